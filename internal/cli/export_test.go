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

func TestExportLeavesThePartOfAnotherOneAlone(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	sh.must("init")
	sh.write("out.ndjson.part", "x")
	if r := sh.rea("export", "out.ndjson"); r.code != 4 || !strings.Contains(r.stderr, "out.ndjson.part exists") {
		t.Errorf("rea export ends with %d: %s", r.code, r.stderr)
	}
	if sh.read("out.ndjson.part") != "x" {
		t.Error("the part has changed")
	}
}

func TestServerThatTakesNoWritesIsReadAsFarAsItIsNumbered(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[1])
	url := stores[1].new(t)
	sh.env["REA_DATABASE_URL"] = url
	sh.must("migrate", "up")
	sh.must("append", "order", "1", "Numbered")
	sh.must("log")
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	readOnly := url + separator + "default_transaction_read_only=on"
	sh.env["REA_DATABASE_URL"] = readOnly
	if r := sh.rea("export"); r.code != 0 || strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("rea export ends with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	sh.env["REA_DATABASE_URL"] = url
	sh.must("append", "order", "2", "Later")
	sh.env["REA_DATABASE_URL"] = readOnly
	if r := sh.rea("log"); r.code != 0 || !strings.Contains(r.stderr, "no position yet") || !strings.Contains(r.stdout, "Numbered") {
		t.Errorf("rea log ends with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := sh.rea("export"); r.code != 3 || strings.Count(r.stdout, "\n") != 1 || !strings.Contains(r.stderr, "1 event without a position left out") {
		t.Errorf("rea export ends with %d: %s%s", r.code, r.stdout, r.stderr)
	}
}
