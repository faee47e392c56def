package storetest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// childOf names the database of a test program that was started by a clause; it runs the same clause alone.
const childOf = "REA_STORETEST_CHILD"

// child starts this test program again, with the running clause alone, and gives the lines that it says.
func child(t *testing.T, address string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	var pattern []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run", strings.Join(pattern, "/"))
	cmd.Env = append(os.Environ(), childOf+"="+address)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // ends with this program
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

// hear gives what the child says next.
func hear(t *testing.T, from *bufio.Scanner) string {
	t.Helper()
	for from.Scan() {
		if said, ok := strings.CutPrefix(from.Text(), "child: "); ok {
			return said
		}
	}
	t.Fatalf("the child said nothing more: %v", from.Err())
	return ""
}

func say(what ...any) { fmt.Println("child: " + fmt.Sprint(what...)) }

var crashes = []clause{
	{"P18 a writer killed at any moment leaves whole transactions, and all that it was told of", func(t *testing.T, d *Door) {
		if address := os.Getenv(childOf); address != "" {
			b := d.Open(t, address, rea.Config{})
			for n := 0; ; n++ {
				if err := b.Do(t.Context(), func(tx *rea.Tx) error {
					put(t, tx, rea.Ref{Type: "order", ID: fmt.Sprint(n)}, event("A"), event("B"))
					put(t, tx, rea.Ref{Type: "order", ID: fmt.Sprint(n)}, event("C"))
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				say(n)
			}
		}
		address := d.Migrated(t)
		b := d.Open(t, address, rea.Config{})
		told := 0
		for round := range 3 {
			cmd, out := child(t, address)
			for hear(t, out) != fmt.Sprint(7*round) {
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for out.Scan() {
				if n, ok := strings.CutPrefix(out.Text(), "child: "); ok {
					_, _ = fmt.Sscan(n, &told)
				}
			}
			_ = cmd.Wait()
			told = max(told, 7*round)
			for n := 0; n <= told; n++ {
				if got := len(of(t, b.Autocommit(), rea.Ref{Type: "order", ID: fmt.Sprint(n)})); got < 3 || got%3 != 0 {
					t.Errorf("events of order/%d, which was told as stored = %d, want 3 a round", n, got)
				}
			}
			events := b.history(t, rea.Filter{})
			dense(t, events)
			same(t, "events beyond whole transactions", len(events)%3, 0)
			for i, e := range events {
				same(t, "Position", e.Position, int64(i+1))
			}
		}
		put(t, b.Autocommit(), order1, event("After"))
	}},
	{"P18 a migrator killed between two steps leaves the rest to the others", func(t *testing.T, d *Door) {
		if address := os.Getenv(childOf); address != "" {
			b := d.Open(t, address, rea.Config{})
			err := b.Migrate(t.Context(), func(m rea.Migration) {
				say(m.Version)
				_, _ = io.ReadAll(os.Stdin) // until the parent ends or kills
			})
			t.Fatalf("the child outlived its step: %v", err)
		}
		address := d.Empty(t)
		cmd, out := child(t, address)
		same(t, "step of the killed one", hear(t, out), "1")
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		b := d.Open(t, address, rea.Config{})
		known, err := b.Migrations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var want []int
		for _, m := range known[1:] {
			want = append(want, m.Version)
		}
		applied, err := b.steps(t)
		same(t, "steps of the next one", fmt.Sprint(applied, err), fmt.Sprint(want, " <nil>"))
		put(t, b.Autocommit(), order1, event("After"))
	}},
}
