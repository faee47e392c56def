package sqlite

import (
	"strings"
	"testing"
)

// What a read-only folder does to the command line is tested there, by a process without rights.
func TestFileWithoutLocksIsReadWhileNobodyHasIt(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
	frozen := openAt(t, archive.store.path, Config{})
	r := frozen.store.reader
	if err := r.freeze(t.Context()); err == nil || !strings.Contains(err.Error(), "-wal is there") {
		t.Fatalf("freeze while the file is open: %v, want that the -wal is there", err)
	}
	archive.Close()
	r.close()
	if err := r.freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := frozen.Autocommit().Count(t.Context()); err != nil || n != 1 {
		t.Fatalf("Count = %d, %v, want 1", n, err)
	}
	again := openAt(t, archive.store.path, Config{})
	mustAppend(t, again.Autocommit(), order(1), event("Paid", `{}`))
	for _, when := range []string{"while another program writes", "after it"} {
		if _, err := frozen.Autocommit().Count(t.Context()); err == nil || !strings.Contains(err.Error(), "begun to write") {
			t.Errorf("Count %s: %v, want an error", when, err)
		}
		again.Close()
	}
}
