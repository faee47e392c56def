package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/lib/pq"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
)

// tallying opens an archive whose function keeps the table tally.
func tallying(t *testing.T) (*postgres.Archive, console, string) {
	t.Helper()
	_, s, url := archive(t)
	s.do(`CREATE TABLE tally (id text, type text CHECK (type <> 'Refused'))`)
	a, err := postgres.Open(t.Context(), url, postgres.Config{Config: rea.Config{Inline: []rea.Inline{{
		Name: "tally", Of: "order", Apply: func(ctx context.Context, tx rea.SQL, e rea.Event) error {
			_, err := tx.Exec(ctx, `INSERT INTO tally VALUES ($1, $2)`, e.Aggregate.ID, e.Type)
			return err
		},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a, s, url
}

func TestInlineFunctionsNeedATransactionOfTheUsers(t *testing.T) {
	t.Parallel()
	a, s, url := tallying(t)
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	pool := newPool(t, url)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for name, tx := range map[string]*rea.Tx{"pool": a.Tx(pool), "connection": a.Tx(conn), "*sql.DB": a.SQLTx(db)} {
		_, err := tx.Append(t.Context(), order1, rea.NewEvent{Type: "A"})
		if err == nil || !strings.Contains(err.Error(), "needs a transaction: begin one") {
			t.Errorf("%s: error = %v, want that it needs a transaction", name, err)
		}
	}
	if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	put(t, a.Tx(conn), order1, "A")
	if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	s.want("1", `SELECT count(*) FROM tally`)
	s.want("1", `SELECT count(*) FROM rea.events`)
}

func TestInlineFunctionsThroughLibPQ(t *testing.T) {
	t.Parallel()
	a, s, url := tallying(t)
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	put(t, a.SQLTx(tx), order1, "A", "B")
	var refused *rea.ProjectionError
	if _, err := a.SQLTx(tx).Append(t.Context(), order1, rea.NewEvent{Type: "C"}, rea.NewEvent{Type: "Refused"}); !errors.As(err, &refused) {
		t.Fatalf("error = %v, want a *rea.ProjectionError", err)
	}
	same(t, "Seq", refused.Seq, 4)
	put(t, a.SQLTx(tx), order1, "C")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	s.want("A B C", `SELECT string_agg(type, ' ' ORDER BY type) FROM tally`)
	s.want("3", `SELECT count(*) FROM rea.events`)
}

// What an append with a function may do, a login with the role of writers may: reading back takes no other right.
func TestInlineFunctionsAsAWriter(t *testing.T) {
	t.Parallel()
	a, s, url := tallying(t)
	s.do(`GRANT ALL ON tally TO rea_writer`)
	writer := connect(t, url)
	writer.login("rea_writer")
	if err := pgx.BeginFunc(t.Context(), writer.Conn, func(tx pgx.Tx) error {
		put(t, a.Tx(tx), order1, "A", "B")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.want("2", `SELECT count(*) FROM tally`)
}
