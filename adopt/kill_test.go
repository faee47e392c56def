package adopt_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea/adopt"
	"github.com/realtime-event-archive/rea/sqlite"
)

// killEnv makes this program a baseline that its parent kills: store, address, rejects file.
const killEnv = "REA_TEST_BASELINE"

// takeUntilKilled takes the baseline of the orders, and says so after each chunk.
func takeUntilKilled(args []string) error {
	ctx := context.Background()
	o := adopt.BaselineOptions{Batch: 20, Rejects: args[2], Type: "order", Progress: func(adopt.BaselineProgress) { fmt.Println("a chunk is taken") }}
	if args[0] == "postgres" {
		pool, err := pgxpool.New(ctx, args[1])
		if err != nil {
			return err
		}
		_, err = tryBaseline(ctx, pool, "orders", nil, o)
		return err
	}
	archive, err := sqlite.Open(ctx, args[1], sqlite.Config{})
	if err != nil {
		return err
	}
	_, err = sqliteBaseline(ctx, archive, "orders", o)
	return err
}

// killSome starts the baseline some times, and kills it while it takes one of the next chunks.
func killSome(t *testing.T, store, address, rejects string) {
	t.Helper()
	for range 5 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killEnv+"="+strings.Join([]string{store, address, rejects}, "\n"))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		for range rand.IntN(8) + 1 {
			if line, _ := lines.ReadString('\n'); line != "a chunk is taken\n" {
				t.Fatalf("the child says %q", line)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// wantRejects: each row that cannot be taken is listed once: ids that end in 7 have too long a note.
func wantRejects(t *testing.T, path string, want int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		seen[line] = true
	}
	if n := strings.Count(string(text), "\n"); n != want || len(seen) != want {
		t.Errorf("the rejects have %d lines, %d of them different, want %d", n, len(seen), want)
	}
}

func TestKilledBaselineGoesOn(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		pool := newPool(t, `CREATE TABLE public.orders (id text PRIMARY KEY, status text)`,
			`INSERT INTO orders SELECT CASE i % 10 WHEN 7 THEN repeat('x', 250) || i ELSE i::text END, 'paid' FROM generate_series(1, 2000) i`)
		rejects := filepath.Join(t.TempDir(), "rejects")
		killSome(t, "postgres", pool.Config().ConnString(), rejects)
		r := baseline(t, pool, "orders", nil, adopt.BaselineOptions{Batch: 20, Rejects: rejects})
		if r.Taken != 1800 || r.Refused != 200 || r.Skipped != 0 || r.New == 1800 || r.New == 0 {
			t.Errorf("result: %+v, want 1800 taken, not all in the last run", r)
		}
		if n := query[int](t, pool, `SELECT count(*) FROM rea.events WHERE seq = 1 AND event_type = 'BaselineCreated'`); n != 1800 {
			t.Errorf("%d events, want 1800", n)
		}
		wantRejects(t, rejects, 200)
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		archive, db := newFile(t, `CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT)`, `
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO orders SELECT CASE i % 10 WHEN 7 THEN printf('%.250c', 'x') || i ELSE i END, 'paid' FROM n`)
		rejects := filepath.Join(t.TempDir(), "rejects")
		killSome(t, "sqlite", one[string](t, db, `SELECT file FROM pragma_database_list WHERE name = 'main'`), rejects)
		r, err := sqliteBaseline(t.Context(), archive, "orders", adopt.BaselineOptions{Batch: 20, Rejects: rejects})
		if err != nil || r.Taken != 1800 || r.Refused != 200 || r.Skipped != 0 || r.New == 1800 || r.New == 0 {
			t.Errorf("result: %+v, %v, want 1800 taken, not all in the last run", r, err)
		}
		if n := one[int](t, db, `SELECT count(*) FROM rea_events WHERE seq = 1 AND event_type = 'BaselineCreated'`); n != 1800 {
			t.Errorf("%d events, want 1800", n)
		}
		wantRejects(t, rejects, 200)
	})
}
