package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExportNeverWritesOverTheDatabase(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	sh.must("init")
	sh.must("append", "order", "1", "X")
	before := sh.read("rea.db")
	for name, to := range map[string]string{"symbolic": "rea.db", "hard": "rea.db"} {
		link := os.Symlink
		if name == "hard" {
			link = os.Link
		}
		if err := link(filepath.Join(sh.dir, to), filepath.Join(sh.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"rea.db", "./rea.db", filepath.Join(sh.dir, "rea.db"), "symbolic", "hard", "rea.db-wal", "rea.db-shm", "rea.db-journal"} {
		for _, args := range [][]string{{"export", name}, {"export", name, "--force"}} {
			if r := sh.rea(args...); r.code != 4 || !strings.Contains(r.stderr, "open database") {
				t.Errorf("rea %v ends with %d: %s", args, r.code, r.stderr)
			}
		}
	}
	if sh.read("rea.db") != before {
		t.Error("the database has changed")
	}
	if got := sh.must("log", "-o", "jsonl"); strings.Count(got, "\n") != 1 {
		t.Errorf("the archive holds %q", got)
	}
}
