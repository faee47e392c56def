package pgtest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

// build fails when it runs twice in one database.
const build = "CREATE TABLE note (text text); INSERT INTO note VALUES ('from the template')"

func TestMain(m *testing.M) {
	pgtest.Main(m, pgtest.Migrated(build, func(ctx context.Context, url string) error {
		return run(ctx, url, build)
	}))
}

func run(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

func mustRun(t *testing.T, url, sql string) {
	t.Helper()
	if err := run(t.Context(), url, sql); err != nil {
		t.Fatal(err)
	}
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var value T
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestCopiesDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	a, b := pgtest.Database(t), pgtest.Database(t)
	mustRun(t, a, "INSERT INTO note VALUES ('mine')")
	if got := query[int](t, a, "SELECT count(*) FROM note"); got != 2 {
		t.Errorf("notes in a = %d, want 2", got)
	}
	if got := query[int](t, b, "SELECT count(*) FROM note"); got != 1 {
		t.Errorf("notes in b = %d, want 1", got)
	}
}

func TestEmptyHasNoTables(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	if got := query[string](t, url, "SELECT coalesce(to_regclass('note')::text, 'none')"); got != "none" {
		t.Errorf("note in an empty database = %s, want none", got)
	}
	if got := query[string](t, url, "SHOW server_encoding"); got != "UTF8" {
		t.Errorf("encoding = %s, want UTF8", got)
	}
}

func TestDatabaseIsDroppedWhileConnected(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("left open", func(t *testing.T) {
		url = pgtest.Database(t)
		if _, err := pgx.Connect(context.Background(), url); err != nil {
			t.Fatal(err)
		}
	})
	if err := run(t.Context(), url, "SELECT 1"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("connect after the test = %v, want that the database does not exist", err)
	}
}

func TestCommittedRowsOutliveACrash(t *testing.T) {
	t.Parallel()
	s := pgtest.NewServer(t, pgtest.Options{Settings: map[string]string{"work_mem": "7MB"}})
	url := s.URL("postgres")
	mustRun(t, url, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	if err := s.StopImmediate(); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), url, "SELECT 1"); err == nil {
		t.Fatal("the server answers after StopImmediate")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, url, "SELECT n FROM kept"); got != 1 {
		t.Errorf("row after recovery = %d, want 1", got)
	}
	if got := query[string](t, url, "SHOW work_mem"); got != "7MB" {
		t.Errorf("work_mem = %s, want 7MB", got)
	}
}

func TestStopRemovesTheFolder(t *testing.T) {
	t.Parallel()
	s, err := pgtest.Start(t.Context(), pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder after Stop: %v, want that it does not exist", err)
	}
}

// TestProgramsShareATemplate runs this test program twice at once on a server that has no
// template yet.
func TestProgramsShareATemplate(t *testing.T) {
	t.Parallel()
	s := pgtest.NewServer(t, pgtest.Options{})
	var programs sync.WaitGroup
	for range 2 {
		programs.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestCopiesDoNotSeeEachOther$", "-test.count", "5")
			cmd.Env = append(os.Environ(), pgtest.EnvURL+"="+s.URL("postgres"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	programs.Wait()
	const left = "SELECT coalesce(string_agg(datname, ' '), 'none') FROM pg_database WHERE datname LIKE 'rea_test_%'"
	if got := query[string](t, s.URL("postgres"), left); got != "none" {
		t.Errorf("databases left = %s, want none", got)
	}
}

func TestUnfinishedTemplateIsBuiltAgain(t *testing.T) {
	t.Parallel()
	s := pgtest.NewServer(t, pgtest.Options{})
	name := pgtest.Name(pgtest.Migrated(build, nil))
	mustRun(t, s.URL("postgres"), "CREATE DATABASE "+name)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestCopiesDoNotSeeEachOther$")
	cmd.Env = append(os.Environ(), pgtest.EnvURL+"="+s.URL("postgres"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestWrongFolderOfBinariesIsAnError(t *testing.T) {
	t.Setenv("REA_TEST_PG_BIN", t.TempDir())
	_, err := pgtest.Start(t.Context(), pgtest.Options{})
	if want := "no initdb and postgres in"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Start = %v, want %q", err, want)
	}
}

func TestBinariesFollowLinksOnPath(t *testing.T) {
	real, path := t.TempDir(), t.TempDir()
	for _, name := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(real, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(real, "postgres"), filepath.Join(path, "postgres")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	t.Setenv("REA_TEST_PG_BIN", "")
	want, err := filepath.EvalSymlinks(real)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pgtest.Binaries(""); err != nil || got != want {
		t.Errorf("Binaries = %s, %v, want %s", got, err, want)
	}
}
