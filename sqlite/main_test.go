package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// TestMain runs the test binary as another process where a test asks for one.
func TestMain(m *testing.M) {
	if role := os.Getenv("REA_TEST_PROCESS"); role != "" {
		if err := process(role, os.Getenv("REA_TEST_FILE")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func newFile(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "rea ?#%.db") // characters that mean something in a name of the driver's
}

func openAt(t testing.TB, path string, config Config) *Archive {
	t.Helper()
	archive, err := Open(t.Context(), path, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(archive.Close)
	return archive
}

// newArchive gives a migrated archive in a file of its own.
func newArchive(t testing.TB) *Archive {
	t.Helper()
	archive := openAt(t, newFile(t), Config{})
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return archive
}

// rawDB opens the archive's file as a program without REA does.
func rawDB(t testing.TB, archive *Archive, settings string) *sql.DB {
	t.Helper()
	db, err := openFile(archive.store.reader.path, "rw", "_busy_timeout=5000&"+settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func order(id any) rea.Ref { return rea.Ref{Type: "order", ID: fmt.Sprint(id)} }

func event(name, payload string) rea.NewEvent {
	return rea.NewEvent{Type: name, Payload: json.RawMessage(payload)}
}

func mustAppend(t testing.TB, tx *rea.Tx, aggregate rea.Ref, events ...rea.NewEvent) rea.Receipt {
	t.Helper()
	receipt, err := tx.Append(t.Context(), aggregate, events)
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

// dump gives what is stored, one line an event.
func dump(t testing.TB, archive *Archive) string {
	t.Helper()
	var b strings.Builder
	for e, err := range archive.Autocommit().History(context.Background(), rea.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%d %s %d %s %s\n", e.Position, e.Aggregate, e.Seq, e.Type, e.Payload)
	}
	return b.String()
}

func count(t testing.TB, archive *Archive) int64 {
	t.Helper()
	n, err := archive.Autocommit().Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const shortWait = 50 * time.Millisecond
