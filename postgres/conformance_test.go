package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
	"github.com/realtime-event-archive/rea/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, string, *postgres.Archive) func(context.Context) (*storetest.Transaction, error){
		"pgx":          pgxDoor,
		"database sql": stdlibDoor,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, &storetest.Door{
				Tables: "rea.", Concurrent: true,
				Migrated: func(t *testing.T) string { return pgtest.Database(t) },
				Empty:    func(t *testing.T) string { return pgtest.Empty(t) },
				Changes:  changes,
				Open: func(t *testing.T, address string, config rea.Config) *storetest.Base {
					address = with(t, address, "pool_max_conns", "24")
					archive, err := postgres.Open(t.Context(), address, postgres.Config{Config: config})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(archive.Close)
					return &storetest.Base{Archive: archive.Archive, Begin: open(t, address, archive), Waiting: waiting(t, address)}
				},
			})
		})
	}
}

// changes are the statements that PostgreSQL has for changing rows; MERGE came with 15.
var changes = []string{
	`UPDATE rea.events SET payload = '{}' WHERE aggregate_id = '1' AND seq = 1`,
	`UPDATE rea.events SET actor_id = NULL WHERE false`,
	`DELETE FROM rea.events WHERE aggregate_id = '1' AND seq = 1`,
	`TRUNCATE rea.events`,
	`TRUNCATE rea.events CASCADE`,
	`INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type) VALUES ('order', '1', 1, 'X')
	 ON CONFLICT (aggregate_type, aggregate_id, seq) DO UPDATE SET event_type = 'X'`,
	`MERGE INTO rea.events e USING (VALUES (1)) v (n) ON e.seq = v.n WHEN MATCHED THEN DELETE`,
	`WITH gone AS (DELETE FROM rea.events RETURNING 1) SELECT count(*) FROM gone`,
	`SET LOCAL session_replication_role = replica; DELETE FROM rea.events`,
	`SET LOCAL session_replication_role = replica; TRUNCATE rea.events`,
}

// with adds a parameter to a connection string.
func with(t *testing.T, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	return u.String()
}

func pgxDoor(t *testing.T, address string, archive *postgres.Archive) func(context.Context) (*storetest.Transaction, error) {
	pool := newPool(t, address)
	return func(ctx context.Context) (*storetest.Transaction, error) {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return nil, err
		}
		return &storetest.Transaction{
			Tx: archive.Tx(tx),
			Exec: func(ctx context.Context, statement string) error {
				_, err := tx.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
				return err
			},
			Text: func(ctx context.Context, query string) (text string, err error) {
				return text, tx.QueryRow(ctx, query).Scan(&text)
			},
			Commit: tx.Commit, Rollback: tx.Rollback,
			Cut: func() { _ = tx.Conn().PgConn().Conn().Close() },
		}, nil
	}
}

func stdlibDoor(t *testing.T, address string, archive *postgres.Archive) func(context.Context) (*storetest.Transaction, error) {
	db := stdlib.OpenDBFromPool(newPool(t, address))
	t.Cleanup(func() { _ = db.Close() })
	return func(ctx context.Context) (*storetest.Transaction, error) {
		conn, err := db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		ended := func(end func() error) func(context.Context) error {
			return func(context.Context) error {
				err := end()
				_ = conn.Close()
				return err
			}
		}
		return &storetest.Transaction{
			Tx: archive.SQLTx(tx),
			Exec: func(ctx context.Context, statement string) error {
				_, err := tx.ExecContext(ctx, statement, pgx.QueryExecModeSimpleProtocol)
				return err
			},
			Text: func(ctx context.Context, query string) (text string, err error) {
				return text, tx.QueryRowContext(ctx, query).Scan(&text)
			},
			Commit: ended(tx.Commit), Rollback: ended(tx.Rollback),
			Cut: func() {
				_ = conn.Raw(func(c any) error { return c.(*stdlib.Conn).Conn().PgConn().Conn().Close() })
			},
		}, nil
	}
}

func newPool(t *testing.T, address string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// waiting polls until a session of the database waits for a lock of another one.
func waiting(t *testing.T, address string) func(context.Context) error {
	pool := newPool(t, address)
	return func(ctx context.Context) error {
		for {
			var n int
			err := pool.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity a
				WHERE a.datname = current_database() AND a.wait_event_type = 'Lock'`).Scan(&n)
			if err != nil || n > 0 {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("no session waits: %w", ctx.Err())
			case <-time.After(2 * time.Millisecond):
			}
		}
	}
}
