package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
	"github.com/realtime-event-archive/rea/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, &storetest.Door{
		Tables: "rea_",
		Empty:  func(t *testing.T) string { return filepath.Join(t.TempDir(), "archive.db") },
		Migrated: func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "archive.db")
			archive := openArchive(t, path, rea.Config{})
			if err := archive.Migrate(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			archive.Close()
			return path
		},
		Changes: changes,
		Open: func(t *testing.T, path string, config rea.Config) *storetest.Base {
			archive := openArchive(t, path, config)
			t.Cleanup(archive.Close)
			return &storetest.Base{Archive: archive.Archive, Begin: begin(t, path, archive)}
		},
	})
}

// changes are the statements that SQLite has for changing rows.
var changes = []string{
	`UPDATE rea_events SET payload = '{}' WHERE aggregate_id = '1' AND seq = 1`,
	`DELETE FROM rea_events WHERE aggregate_id = '1' AND seq = 1`,
	`DELETE FROM rea_events`,
	`UPDATE OR REPLACE rea_events SET seq = 2 WHERE seq = 1`,
	`UPDATE OR IGNORE rea_events SET event_type = 'X'`,
	`INSERT OR REPLACE INTO rea_events (aggregate_type, aggregate_id, seq, event_type) VALUES ('order', '1', 1, 'X')`,
	`REPLACE INTO rea_events (id, aggregate_type, aggregate_id, seq, event_type) VALUES (1, 'order', '1', 3, 'X')`,
	`INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type) VALUES ('order', '1', 1, 'X')
	 ON CONFLICT (aggregate_type, aggregate_id, seq) DO UPDATE SET event_type = 'X'`,
}

func openArchive(t *testing.T, path string, config rea.Config) *sqlite.Archive {
	t.Helper()
	archive, err := sqlite.Open(t.Context(), path, sqlite.Config{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// begin begins transactions of a handle of the user's own.
func begin(t *testing.T, path string, archive *sqlite.Archive) func(context.Context) (*storetest.Transaction, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
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
				_, err := tx.ExecContext(ctx, statement)
				return err
			},
			Text: func(ctx context.Context, query string) (text string, err error) {
				return text, tx.QueryRowContext(ctx, query).Scan(&text)
			},
			Commit: ended(tx.Commit), Rollback: ended(tx.Rollback),
		}, nil
	}
}
