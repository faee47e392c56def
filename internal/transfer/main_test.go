package transfer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
	"github.com/realtime-event-archive/rea/sqlite"
)

// killEnv makes this program an import that stops for ever in its n-th transaction, right before the commit.
const killEnv = "REA_TEST_IMPORT_STOPS_AT"

func TestMain(m *testing.M) {
	if os.Getenv(killEnv) != "" {
		importAndStop()
	}
	pgtest.Main(m)
}

// store opens archives of one kind. Its name is that of the subtests.
type store struct {
	name string
	new  func(t testing.TB) (url string) // an empty database
	open func(ctx context.Context, url string) (*rea.Archive, error)
}

var stores = []store{{
	name: "sqlite",
	new:  func(t testing.TB) string { return filepath.Join(t.TempDir(), "test.db") },
	open: func(ctx context.Context, path string) (*rea.Archive, error) {
		archive, err := sqlite.Open(ctx, path, sqlite.Config{})
		if err != nil {
			return nil, err
		}
		return archive.Archive, nil
	},
}, {
	name: "postgres",
	new:  pgtest.Empty,
	open: func(ctx context.Context, url string) (*rea.Archive, error) {
		archive, err := postgres.Open(ctx, url, postgres.Config{})
		if err != nil {
			return nil, err
		}
		return archive.Archive, nil
	},
}}

func forEachStore(t *testing.T, test func(t *testing.T, s store)) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// archive gives an empty archive.
func (s store) archive(t testing.TB) *rea.Archive {
	t.Helper()
	return s.at(t, s.new(t))
}

// at opens the archive at url, which is migrated first.
func (s store) at(t testing.TB, url string) *rea.Archive {
	t.Helper()
	archive, err := s.open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(archive.Close)
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return archive
}

func stored(t testing.TB, archive *rea.Archive) int64 {
	t.Helper()
	n, err := archive.Autocommit().Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// write makes a file.
func write(t testing.TB, path string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func importOf(ctx context.Context, archive *rea.Archive, path string, o ImportOptions) (ImportResult, error) {
	file, err := os.Open(path)
	if err != nil {
		return ImportResult{}, err
	}
	defer file.Close()
	return Import(ctx, archive, file, o)
}

func mustImport(t testing.TB, archive *rea.Archive, path string, o ImportOptions) ImportResult {
	t.Helper()
	result, err := importOf(t.Context(), archive, path, o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func note(i int) string {
	return fmt.Sprintf(`{"aggregate_type":"order","aggregate_id":%d,"event_type":"NoteAdded","payload":{"n":%d}}`+"\n", i%7, i)
}
