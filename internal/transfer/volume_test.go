package transfer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// loanData is real: 262,200 events of 13,087 loan applications. It is no part of the project.
const loanData = "../../../shared/data/loan_applications.ndjson.gz"

// volume gives a large file: the real one, or generated lines where it is not there.
func volume(t *testing.T) (path string, events int64) {
	if _, err := os.Stat(loanData); err == nil {
		return loanData, 262_200
	}
	fmt.Fprintf(os.Stderr, "%s: %s is not there, generated lines take its place\n", t.Name(), loanData)
	var b bytes.Buffer
	const n = 30_000
	for i := range n {
		fmt.Fprintf(&b, `{"aggregate_type":"loan","aggregate_id":%d,"event_type":"A_%d","payload":{"amount":%d.%02d,"名":"值"},"actor_id":"%d","created_at":"2011-10-0%dT00:00:00.%06dZ"}`+"\n",
			i*7919%997, i%9, i, i%100, i%50, 1+i%9, i)
	}
	return write(t, filepath.Join(t.TempDir(), "generated.ndjson"), b.Bytes()), n
}

func TestALargeFileGoesThroughBothStoresByteByByte(t *testing.T) {
	t.Parallel()
	path, events := volume(t)
	want := typesInFile(t, path)
	digests := make(map[string][sha256.Size]byte)
	var export string
	for _, s := range stores {
		archive := s.archive(t)
		result := mustImport(t, archive, path, ImportOptions{})
		if result.New != events || result.Rejected != 0 || stored(t, archive) != events {
			t.Fatalf("%s: New = %d, Rejected = %d, stored %d; want %d, 0, %d", s.name, result.New, result.Rejected, stored(t, archive), events, events)
		}
		if again := mustImport(t, archive, path, ImportOptions{}); again.New != 0 || stored(t, archive) != events {
			t.Errorf("%s: New = %d the second time, want 0", s.name, again.New)
		}
		if got := typesInArchive(t, archive); !maps.Equal(got, want) {
			t.Errorf("%s: events per type = %v, want %v", s.name, got, want)
		}
		export, digests[s.name] = exported(t, archive)
	}
	// What one store gave goes into a fresh one of each kind, and comes out the same.
	for _, s := range stores {
		copied := s.archive(t)
		mustImport(t, copied, export, ImportOptions{})
		_, digests["copy in "+s.name] = exported(t, copied)
	}
	for name, digest := range digests {
		if digest != digests[stores[0].name] {
			t.Errorf("the export of %s differs from that of %s", name, stores[0].name)
		}
	}
}

func exported(t *testing.T, archive *rea.Archive) (path string, digest [sha256.Size]byte) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "export.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := Export(t.Context(), archive, io.MultiWriter(file, hash), ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	return file.Name(), [sha256.Size]byte(hash.Sum(nil))
}

func typesInArchive(t *testing.T, archive *rea.Archive) map[string]int {
	t.Helper()
	if _, err := archive.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	types := make(map[string]int)
	for e, err := range archive.Autocommit().History(t.Context(), rea.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		types[e.Type]++
	}
	return types
}

// typesInFile counts with nothing of this package's but its unpacking.
func typesInFile(t *testing.T, path string) map[string]int {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var source io.Reader = file
	if filepath.Ext(path) == ".gz" {
		if source, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	types := make(map[string]int)
	lines := bufio.NewScanner(source)
	for lines.Scan() {
		var line struct {
			Type string `json:"event_type"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		types[line.Type]++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return types
}
