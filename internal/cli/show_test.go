package cli_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/catalog"
	"github.com/realtime-event-archive/rea/sqlite"
)

func TestShowGivesTheSameFromASnapshotAndStoresNone(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	sh.must("init")
	sh.write("rea.yaml", "rea: 1\naggregates: {order: {snapshot: {every: 2}, events: {X: {set: {a: $.a}, count: n}}}}\n")
	for range 5 {
		sh.must("append", "order", "1", "X", "--data", `{"a": 0.10}`)
	}
	path := filepath.Join(sh.dir, "rea.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	snapshots := func() (n int) {
		if err := db.QueryRow(`SELECT count(*) FROM rea_snapshots`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	shown := func() string {
		return sh.must("show", "order", "1", "--json") + sh.must("show", "order", "1") + sh.must("show", "order", "1", "--at", "seq:4", "--json")
	}
	want := shown()
	if n := snapshots(); n != 0 {
		t.Errorf("snapshots after show = %d, want 0: it only reads", n)
	}
	c, err := catalog.Load(filepath.Join(sh.dir, "rea.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := sqlite.Open(t.Context(), path, sqlite.Config{Config: rea.Config{Catalog: c}})
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if stored, err := archive.Snapshot(t.Context(), rea.Ref{Type: "order", ID: "1"}); err != nil || !stored || snapshots() != 1 {
		t.Fatalf("Snapshot = %v, %v, want true", stored, err)
	}
	if got := shown(); got != want {
		t.Errorf("from a snapshot show gives\n%s, want\n%s", got, want)
	}
	sh.must("append", "order", "1", "X", "--data", `{"a": 0.10}`)
	if got := sh.must("show", "order", "1", "--json"); !strings.Contains(got, `"state":{"a":0.10,"n":6}`) {
		t.Errorf("from a snapshot show gives %s, want what the events give", got)
	}
	if _, err := db.Exec(`UPDATE rea_snapshots SET state = 'xx'`); err != nil {
		t.Fatal(err)
	}
	r := sh.rea("show", "order", "1", "--json")
	if r.code != 0 || !strings.Contains(r.stdout, `"state":{"a":0.10,"n":6}`) || strings.Count(r.stderr, "warning") != 1 || !strings.Contains(r.stderr, "order/1") {
		t.Errorf("with a damaged snapshot show ends with %d, %s, %s, want the state and one warning that names order/1", r.code, r.stdout, r.stderr)
	}
}
