package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

const appendsOfEach = 250

// process is what another process of a test does with the file. It begins when its standard input ends.
func process(role, path string) error {
	ctx := context.Background()
	archive, err := Open(ctx, path, Config{})
	if err != nil {
		return err
	}
	defer archive.Close()
	fmt.Println("ready")
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return err
	}
	switch role {
	case "append":
		for i := range appendsOfEach {
			if err := archive.Do(ctx, func(tx *rea.Tx) error { return appendNext(ctx, tx, order(i%5)) }); err != nil {
				return err
			}
		}
		return nil
	case "migrate":
		return archive.Migrate(ctx, func(m rea.Migration) { fmt.Printf("applied %d\n", m.Version) })
	case "die while migrating":
		return dieWhileMigrating(ctx, archive.store)
	}
	return errors.New("no such role")
}

// appendNext reads the aggregate's events and appends one, expecting to have seen the last.
func appendNext(ctx context.Context, tx *rea.Tx, aggregate rea.Ref) error {
	var last int64
	for e, err := range tx.Events(ctx, aggregate, 0) {
		if err != nil {
			return err
		}
		last = e.Seq
	}
	_, err := tx.With(rea.Expect(last)).Append(ctx, aggregate, event("Noted", `{"n": 1}`))
	return err
}

// dieWhileMigrating is killed with the first migration done and not committed.
func dieWhileMigrating(ctx context.Context, s *store) error {
	w, err := newWriter(s.reader.path, "rwc", s.busy)
	if err != nil {
		return err
	}
	if err := s.useWAL(ctx, w); err != nil {
		return err
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	if _, err := w.conn.ExecContext(ctx, versionsSQL+";\n"+steps[0].SQL); err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {}
}

type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bytes.Buffer
	stderr *bytes.Buffer
}

// start starts the test binary in a role and waits until it is ready.
func start(t *testing.T, role, path string) *child {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.CommandContext(t.Context(), executable), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	c.cmd.Env = append(os.Environ(), "REA_TEST_PROCESS="+role, "REA_TEST_FILE="+path)
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	var once sync.Once
	c.cmd.Stdout = writerFunc(func(b []byte) (int, error) {
		once.Do(func() { close(ready) })
		return c.stdout.Write(b)
	})
	c.cmd.Stderr = c.stderr
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatalf("%s is not ready: %s", role, c.stderr)
	}
	return c
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func (c *child) begin() { _ = c.stdin.Close() }

func TestProcessesReadAndThenWriteOneFile(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	var children []*child
	for range 4 {
		children = append(children, start(t, "append", archive.store.reader.path))
	}
	for _, c := range children {
		c.begin()
	}
	for _, c := range children {
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("process: %v\n%s", err, c.stderr)
		}
	}
	if n := count(t, archive); n != 4*appendsOfEach {
		t.Errorf("%d events are stored, want %d", n, 4*appendsOfEach)
	}
	for i := range 5 {
		var want int64
		for e, err := range archive.Autocommit().Events(t.Context(), order(i), 0) {
			if want++; err != nil || e.Seq != want {
				t.Fatalf("Seq = %d, %v, want %d", e.Seq, err, want)
			}
		}
	}
}

func TestProcessesMigrateAtOnceAndOneIsKilled(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"no file", "an empty file", "the version before"} {
		t.Run("from "+from, func(t *testing.T) {
			t.Parallel()
			path := newFile(t)
			want := len(steps)
			switch from {
			case "an empty file":
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			case "the version before":
				migrateTo(t, path, len(steps)-1)
				want = 1
			}
			killed := start(t, "die while migrating", path)
			if from != "the version before" {
				killed.begin()
				if err := killed.cmd.Wait(); err == nil {
					t.Fatal("the process that kills itself ended well")
				}
			}
			var children []*child
			for range 5 {
				children = append(children, start(t, "migrate", path))
			}
			for _, c := range children {
				c.begin()
			}
			_ = killed.cmd.Process.Kill()
			applied := 0
			for _, c := range children {
				if err := c.cmd.Wait(); err != nil {
					t.Errorf("process: %v\n%s", err, c.stderr)
				}
				applied += strings.Count(c.stdout.String(), "applied")
			}
			if applied != want {
				t.Errorf("%d migrations were applied by all together, want %d", applied, want)
			}
			archive := openAt(t, path, Config{})
			mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
		})
	}
}

// migrateTo applies the first migrations alone.
func migrateTo(t *testing.T, path string, version int) {
	t.Helper()
	archive := openAt(t, path, Config{})
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	db := rawDB(t, archive, "")
	for _, text := range []string{"DROP INDEX rea_events_context", "DROP VIEW rea_history", "DROP TABLE rea_contexts", "DROP TABLE rea_baselines", "DELETE FROM rea_schema_migrations WHERE version = 7"} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := db.QueryRow("SELECT max(version) FROM rea_schema_migrations").Scan(&n); err != nil || n != version {
		t.Fatalf("version = %d, %v, want %d: undo the newest migration here", n, err, version)
	}
}

func TestMigrationTextIsRunnable(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	archive := openAt(t, path, Config{})
	db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(archive.MigrationSQL()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
	if err := archive.Migrate(t.Context(), func(m rea.Migration) { t.Errorf("%d was applied again", m.Version) }); err != nil {
		t.Error(err)
	}
}
