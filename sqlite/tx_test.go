package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

func beginRaw(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func TestUsersTransaction(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	db := rawDB(t, archive, "_txlock=immediate")
	if _, err := db.Exec("CREATE TABLE shop (id TEXT PRIMARY KEY, status TEXT)"); err != nil {
		t.Fatal(err)
	}
	for _, commit := range []bool{false, true} {
		tx := beginRaw(t, db)
		if _, err := tx.Exec("INSERT INTO shop VALUES ('1', 'paid')"); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, archive.SQLTx(tx), order(1), event("Placed", `{}`), event("Paid", `{}`))
		_, err := archive.SQLTx(tx).With(rea.Expect(1)).Append(t.Context(), order(1), event("Paid", `{}`))
		if conflict := (*rea.ConflictError)(nil); !errors.As(err, &conflict) || conflict.Actual != 2 {
			t.Fatalf("err = %v, want a conflict with seq 2", err)
		}
		mustAppend(t, archive.SQLTx(tx), order(2), event("Placed", `{}`))
		if n := count(t, archive); n != 0 {
			t.Errorf("%d events are seen from outside, want 0", n)
		}
		if commit {
			err = tx.Commit()
		} else {
			err = tx.Rollback()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var shops int
	if err := db.QueryRow("SELECT count(*) FROM shop").Scan(&shops); err != nil || shops != 1 || count(t, archive) != 3 {
		t.Errorf("%d shops, %d events, %v, want 1 and 3", shops, count(t, archive), err)
	}
}

func TestEventsOfOneTransactionShareItsNumber(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	mustAppend(t, archive.Autocommit(), order(0), event("Placed", `{}`))
	tx := beginRaw(t, rawDB(t, archive, "_txlock=immediate"))
	mustAppend(t, archive.SQLTx(tx), order(1), event("Placed", `{}`), event("Paid", `{}`))
	mustAppend(t, archive.SQLTx(tx), order(2), event("Placed", `{}`))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	err := archive.Do(t.Context(), func(tx *rea.Tx) error {
		mustAppend(t, tx, order(1), event("Shipped", `{}`))
		mustAppend(t, tx, order(2), event("Paid", `{}`))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range archive.Autocommit().History(t.Context(), rea.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.XID)
	}
	if want := "1 2 2 2 5 5"; strings.Join(got, " ") != want {
		t.Errorf("xids = %s, want %s", got, want)
	}
}

// A deferred transaction that has read before another one wrote cannot write: a retry, at once.
func TestUsersDeferredTransactionIsARetry(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	db := rawDB(t, archive, "")
	tx := beginRaw(t, db)
	if n, err := archive.SQLTx(tx).Count(t.Context()); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
	_, err := archive.SQLTx(tx).Append(t.Context(), order(2), event("Placed", `{}`))
	if busy := (*BusyError)(nil); !errors.Is(err, rea.ErrRetry) || !errors.As(err, &busy) {
		t.Fatalf("err = %v, want ErrRetry", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	tx = beginRaw(t, db) // deferred, and nobody comes between
	mustAppend(t, archive.SQLTx(tx), order(2), event("Placed", `{}`))
	if err := tx.Commit(); err != nil || count(t, archive) != 2 {
		t.Errorf("%v, %d events, want 2", err, count(t, archive))
	}
}

func TestReadOnlyConnection(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	tx := beginRaw(t, rawDB(t, archive, "_query_only=1"))
	if _, err := archive.SQLTx(tx).Append(t.Context(), order(1), event("Placed", `{}`)); !errors.Is(err, rea.ErrReadOnly) {
		t.Errorf("err = %v, want ErrReadOnly", err)
	}
}

// formatter drops the arguments, as bun.Tx does.
type formatter struct{ *sql.Tx }

func (f formatter) QueryContext(ctx context.Context, query string, _ ...any) (*sql.Rows, error) {
	return f.Tx.QueryContext(ctx, strings.NewReplacer("?1", "1", "?2", "2").Replace(query))
}

func TestWrapperThatFormatsQueriesIsNamed(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	tx := beginRaw(t, rawDB(t, archive, "_txlock=immediate"))
	_, err := archive.SQLTx(formatter{tx}).Append(t.Context(), order(1), event("Placed", `{}`))
	if err == nil || !strings.Contains(err.Error(), "sqlite.formatter formats queries itself") {
		t.Errorf("err = %v", err)
	}
	mustAppend(t, archive.SQLTx(tx), order(1), event("Placed", `{}`))
}

func TestCallAfterTheEndIsRefused(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	var kept *rea.Tx
	if err := archive.Do(t.Context(), func(tx *rea.Tx) error { kept = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Append(t.Context(), order(1), event("Placed", `{}`)); !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("err = %v, want sql.ErrTxDone", err)
	}
}

func TestWaitForAnotherWriterEnds(t *testing.T) {
	t.Parallel()
	path := newArchive(t).store.reader.path
	archive := openAt(t, path, Config{Busy: shortWait, Config: rea.Config{Attempts: 1}})
	nothing := func(*rea.Tx) error { return nil }
	tries := map[string]func(ctx context.Context) error{
		"Do": func(ctx context.Context) error { return archive.Do(ctx, nothing) },
		"Append": func(ctx context.Context) error {
			_, err := archive.Autocommit().Append(ctx, order(1), event("Placed", `{}`))
			return err
		},
		"Uninstall": func(ctx context.Context) error { return archive.Uninstall(ctx, 0) },
	}
	check := func(t *testing.T) {
		for name, try := range tries {
			began := time.Now()
			err := try(t.Context())
			var busy *BusyError
			if !errors.Is(err, rea.ErrRetry) || !errors.As(err, &busy) || busy.File != path || busy.Wait != shortWait {
				t.Errorf("%s: err = %v, want a *BusyError with file and wait", name, err)
			}
			if waited := time.Since(began); waited < shortWait || waited > 20*time.Second {
				t.Errorf("%s waited %s", name, waited)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := try(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: err = %v, want context.Canceled", name, err)
			}
		}
		// A reader waits for nobody.
		if _, err := archive.Autocommit().Count(t.Context()); err != nil {
			t.Error(err)
		}
	}
	t.Run("of another process", func(t *testing.T) {
		tx := beginRaw(t, rawDB(t, archive, "_txlock=immediate"))
		check(t)
		_ = tx.Rollback()
	})
	t.Run("of this one", func(t *testing.T) {
		if err := archive.Do(t.Context(), func(*rea.Tx) error { check(t); return nil }); err != nil {
			t.Fatal(err)
		}
	})
	mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
}

// A trigger of the user's may end the whole transaction: then nothing more of it is stored, and nobody else suffers.
func TestTriggerThatRollsBack(t *testing.T) {
	t.Parallel()
	setUp := func(t *testing.T) *Archive {
		archive := newArchive(t)
		for _, statement := range []string{
			`CREATE TRIGGER mine AFTER INSERT ON rea_events WHEN NEW.event_type = 'Bad' BEGIN SELECT RAISE(ROLLBACK, 'not this one'); END`,
			`CREATE TABLE other (x INTEGER CHECK (x > 0))`,
			`CREATE TRIGGER worse AFTER INSERT ON rea_events WHEN NEW.event_type = 'Worse' BEGIN INSERT OR ROLLBACK INTO other VALUES (0); END`,
		} {
			if _, err := rawDB(t, archive, "").Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		return archive
	}
	for _, name := range []string{"Bad", "Worse"} {
		ways := map[string]func(tx *rea.Tx) error{
			"Append": func(tx *rea.Tx) error { _, err := tx.Append(t.Context(), order(2), event(name, `{}`)); return err },
			"Import": func(tx *rea.Tx) error {
				_, err := tx.Import(t.Context(), []rea.Line{{Aggregate: order(2), Event: event(name, `{}`)}, {Aggregate: order(4), Event: event("Placed", `{}`)}})
				return err
			},
		}
		for way, call := range ways {
			t.Run(way+" "+name, func(t *testing.T) {
				t.Parallel()
				archive := setUp(t)
				err := archive.Do(t.Context(), func(tx *rea.Tx) error {
					mustAppend(t, tx, order(1), event("Placed", `{}`))
					if err := call(tx); err == nil {
						t.Error("no error")
					}
					if _, err := tx.Append(t.Context(), order(3), event("Placed", `{}`)); err == nil {
						t.Error("an append after the rollback is taken")
					}
					return nil
				})
				if err == nil || !strings.Contains(err.Error(), "rolled the whole transaction back") {
					t.Errorf("Do = %v", err)
				}
				if got := dump(t, archive); got != "" {
					t.Errorf("stored:\n%s", got)
				}
				mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
			})
		}
	}
	t.Run("appends that share a transaction", func(t *testing.T) {
		t.Parallel()
		archive := setUp(t)
		var wg sync.WaitGroup
		held := make(chan struct{})
		wg.Go(func() {
			_ = archive.Do(t.Context(), func(*rea.Tx) error {
				close(held)
				for waiting := 0; waiting < 20; time.Sleep(time.Millisecond) {
					archive.store.group.mu.Lock()
					waiting = len(archive.store.group.waiting)
					archive.store.group.mu.Unlock()
				}
				return nil
			})
		})
		<-held
		for i := range 20 {
			wg.Go(func() {
				name := "Placed"
				if i%5 == 2 {
					name = "Bad"
				}
				if _, err := archive.Autocommit().Append(t.Context(), order(i), event(name, `{}`)); (err != nil) != (name == "Bad") {
					t.Errorf("append %d of %s = %v", i, name, err)
				}
			})
		}
		wg.Wait()
		if n := count(t, archive); n != 16 {
			t.Errorf("%d events are stored, want 16", n)
		}
	})
}
