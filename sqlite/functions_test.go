package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// tallying opens an archive whose function keeps the table tally.
func tallying(t *testing.T) (*Archive, *sql.DB) {
	t.Helper()
	archive := openAt(t, newFile(t), Config{Config: rea.Config{Inline: []rea.Inline{{Name: "tally", Of: "order", Apply: func(ctx context.Context, tx rea.SQL, e rea.Event) error {
		if _, err := tx.Exec(ctx, `INSERT INTO tally VALUES (?1, ?2)`, e.Aggregate.ID, e.Type); err != nil {
			return err
		}
		if e.Type == "Refused" {
			return errors.New("refused")
		}
		return nil
	}}}}})
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	db := rawDB(t, archive, "_txlock=immediate")
	for _, statement := range []string{
		`CREATE TABLE tally (id TEXT, type TEXT)`,
		`CREATE TRIGGER mine AFTER INSERT ON tally WHEN NEW.type = 'Fatal' BEGIN SELECT RAISE(ROLLBACK, 'not this one'); END`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	return archive, db
}

func tallied(t *testing.T, db *sql.DB) (n int64) {
	t.Helper()
	if err := db.QueryRow(`SELECT count(*) FROM tally`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// wrapped is like the types of sqlx.
type wrapped struct{ *sql.Tx }

func TestInlineFunctionsNeedATransactionOfTheUsers(t *testing.T) {
	t.Parallel()
	archive, db := tallying(t)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, handle := range map[string]SQL{"*sql.DB": db, "*sql.Conn": conn} {
		_, err := archive.SQLTx(handle).Append(t.Context(), order(1), event("A", `{}`))
		if err == nil || !strings.Contains(err.Error(), "needs a transaction: begin one") {
			t.Errorf("%s: error = %v, want that it needs a transaction", name, err)
		}
	}
	mustAppend(t, archive.Autocommit(), order(1), event("A", `{}`)) // nobody holds the file
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, archive.SQLTx(conn), order(1), event("B", `{}`))
	if _, err := conn.ExecContext(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	tx := beginRaw(t, db)
	mustAppend(t, archive.SQLTx(wrapped{tx}), order(1), event("C", `{}`))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if events, rows := count(t, archive), tallied(t, db); events != 3 || rows != 3 {
		t.Errorf("%d events and %d rows, want 3 and 3", events, rows)
	}
}

func TestInlineFunctionWhoseTriggerRollsBackEverything(t *testing.T) {
	t.Parallel()
	archive, db := tallying(t)
	err := archive.Do(t.Context(), func(tx *rea.Tx) error {
		mustAppend(t, tx, order(1), event("A", `{}`))
		if _, err := tx.Append(t.Context(), order(1), event("Fatal", `{}`)); !errors.Is(err, rea.ErrProjection) {
			t.Errorf("error = %v, want %v", err, rea.ErrProjection)
		}
		if _, err := tx.Append(t.Context(), order(1), event("B", `{}`)); err == nil {
			t.Error("an append after the rollback is taken")
		}
		return nil
	})
	if err == nil {
		t.Error("Do has committed what was rolled back")
	}
	tx := beginRaw(t, db)
	_, err = archive.SQLTx(tx).Append(t.Context(), order(1), event("Fatal", `{}`))
	if err == nil || !strings.Contains(err.Error(), "the transaction cannot go on") {
		t.Errorf("error = %v, want that the transaction cannot go on", err)
	}
	_ = tx.Rollback()
	if events, rows := count(t, archive), tallied(t, db); events != 0 || rows != 0 {
		t.Errorf("%d events and %d rows, want none", events, rows)
	}
	mustAppend(t, archive.Autocommit(), order(1), event("A", `{}`))
}

// Appends without functions share transactions (group.go), those with functions have their own.
func TestInlineFunctionsBesideAppendsThatShareATransaction(t *testing.T) {
	t.Parallel()
	archive, db := tallying(t)
	var wait sync.WaitGroup
	for n := range 24 {
		wait.Go(func() {
			aggregate, kind := order(n), "A"
			switch n % 3 {
			case 0:
				aggregate.Type = "invoice"
			case 1:
				kind = "Refused"
			}
			for range 5 {
				_, err := archive.Autocommit().Append(t.Context(), aggregate, event(kind, `{}`))
				if (kind == "Refused") != errors.Is(err, rea.ErrProjection) || kind == "A" && err != nil {
					t.Errorf("%s of %s: error = %v", kind, aggregate, err)
				}
			}
		})
	}
	wait.Wait()
	if events, rows := count(t, archive), tallied(t, db); events != 80 || rows != 40 {
		t.Errorf("%d events and %d rows, want 80 and 40", events, rows)
	}
}

func TestStatementsOfInlineFunctionsAreKeptUpToALimit(t *testing.T) {
	t.Parallel()
	archive := openAt(t, newFile(t), Config{Config: rea.Config{Inline: []rea.Inline{{Name: "texts", Apply: func(ctx context.Context, tx rea.SQL, e rea.Event) error {
		var n int
		_, err := tx.Query(ctx, []any{&n}, nil, fmt.Sprintf("SELECT %d", e.Seq))
		if err == nil && n != int(e.Seq) {
			err = fmt.Errorf("%d, want %d", n, e.Seq)
		}
		return err
	}}}}})
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var events []rea.NewEvent
		for range maxPrepared {
			events = append(events, event("A", `{}`))
		}
		mustAppend(t, archive.Autocommit(), order(1), events...)
	}
	if n := len(archive.store.writer.stmt); n > maxPrepared {
		t.Errorf("prepared statements = %d, want at most %d", n, maxPrepared)
	}
}

// SQLite rolls the whole transaction back where a statement that writes is interrupted.
func TestAStatementOfAnInlineFunctionIsNotInterrupted(t *testing.T) {
	t.Parallel()
	var asked error
	archive := openAt(t, newFile(t), Config{Config: rea.Config{Inline: []rea.Inline{{Name: "slow", Apply: func(ctx context.Context, tx rea.SQL, e rea.Event) error {
		if e.Type != "Slow" {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
		defer cancel()
		const rows = `WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 200000) SELECT n FROM c`
		if _, err := tx.Exec(ctx, `INSERT INTO many `+rows); err != nil {
			return err
		}
		var n int
		_, asked = tx.Query(ctx, []any{&n}, nil, rows) // the time is over by now
		return asked
	}}}}})
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := rawDB(t, archive, "").Exec(`CREATE TABLE many (n INTEGER)`); err != nil {
		t.Fatal(err)
	}
	err := archive.Do(t.Context(), func(tx *rea.Tx) error {
		mustAppend(t, tx, order(1), event("A", `{}`))
		_, err := tx.Append(t.Context(), order(1), event("Slow", `{}`))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(asked, context.DeadlineExceeded) {
			t.Errorf("errors = %v and %v, want %v", err, asked, context.DeadlineExceeded)
		}
		mustAppend(t, tx, order(1), event("B", `{}`))
		return nil
	})
	if n := count(t, archive); err != nil || n != 2 {
		t.Errorf("Do = %v with %d events, want 2", err, n)
	}
}
