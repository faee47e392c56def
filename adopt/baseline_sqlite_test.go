package adopt_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the application's own door

	"github.com/realtime-event-archive/rea/adopt"
	"github.com/realtime-event-archive/rea/sqlite"
)

// newFile is an archive in a file of the test's own, and the application's connection to it, after some statements.
func newFile(t *testing.T, statements ...string) (*sqlite.Archive, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	archive, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(archive.Close)
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return archive, db
}

func sqliteBaseline(ctx context.Context, archive *sqlite.Archive, table string, o adopt.BaselineOptions) (adopt.BaselineResult, error) {
	if o.Type == "" {
		o.Type = "order"
	}
	b, err := adopt.NewSQLiteBaseline(ctx, archive, table, nil, o)
	if err != nil {
		return adopt.BaselineResult{}, err
	}
	return b.Run(ctx)
}

func one[T any](t *testing.T, db *sql.DB, query string, args ...any) (value T) {
	t.Helper()
	if err := db.QueryRow(query, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

func TestSQLiteBaselineTakesEachRowOnce(t *testing.T) {
	t.Parallel()
	archive, db := newFile(t, `CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, total REAL)`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO orders SELECT i, 'paid', i / 4.0 FROM n`)
	o := adopt.BaselineOptions{Batch: 300, Version: "v9", Status: "status"}
	for run, want := range []int64{1000, 0} {
		r, err := sqliteBaseline(t.Context(), archive, "orders", o)
		if err != nil || r.New != want || r.Rows() != 1000 {
			t.Errorf("run %d: %+v, %v, want %d new", run+1, r, err, want)
		}
	}
	const bad = `
SELECT count(*) FROM rea_events e LEFT JOIN rea_contexts c ON c.context_id = e.context_id
WHERE e.seq <> 1 OR e.event_type <> 'BaselineCreated' OR e.actor_id IS NOT 'baseline' OR e.status IS NOT 'paid' OR e.metadata IS NOT '{"rea": "v9"}'
   OR c.operation IS NOT 'BASELINE' OR c.xid IS NOT e.xid OR e.payload ->> '$.row.id' <> e.aggregate_id`
	if n := one[int](t, db, bad); n != 0 {
		t.Errorf("%d events are not as they should be", n)
	}
	if n := one[int](t, db, `SELECT sum(rows) FROM rea_contexts`); n != 1000 {
		t.Errorf("the contexts have %d rows, want 1000", n)
	}
}

func TestSQLiteBaselineTakesLegacyRowsAsTheyAre(t *testing.T) {
	t.Parallel()
	archive, db := newFile(t, `CREATE TABLE orders (id, at DATETIME, flag BOOLEAN, v, PRIMARY KEY (id))`, `
INSERT INTO orders VALUES (1, NULL, 1, NULL), (2.5, 'PAID ', 'no', -12.5), ('a/b', '2024-01-01', 0, 9e999), (x'00ff', 1700000000, NULL, x''),
    (4, 0.1, 0, 9007199254740993), (5, CAST(x'ff' AS TEXT), 0, 0), (6, 'a' || char(0), 0, 0), (7, '', 0, replace(hex(zeroblob(10000000)), '0', 'x')),
    (8, '{"a": 1, "a": 2}', 0, 1e300), (NULL, '', 0, 0), ('', 1, 0, 0), (9, -0.0, 0, -9e999)`)
	rejects := filepath.Join(t.TempDir(), "rejects.ndjson")
	r, err := sqliteBaseline(t.Context(), archive, "Orders", adopt.BaselineOptions{Batch: 3, Rejects: rejects})
	if err != nil || r.New != 7 || r.Refused != 5 {
		t.Errorf("result: %+v, %v, want 7 new and 5 refused", r, err)
	}
	text, _ := os.ReadFile(rejects)
	for _, want := range []string{`"key":["5"]`, `"key":["6"]`, `"key":["7"]`, `"key":[null]`, `"key":[""]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the rejects lack %s:\n%s", want, text)
		}
	}
	for id, want := range map[string]string{
		"1":      `{"row": {"v": null, "at": null, "id": 1, "flag": 1}}`,
		"2.5":    `{"row": {"v": -12.5, "at": "PAID ", "id": 2.5, "flag": "no"}}`,
		"a/b":    `{"row": {"v": "Infinity", "at": "2024-01-01", "id": "a/b", "flag": 0}}`,
		`\x00ff`: `{"row": {"v": "\\x", "at": 1700000000, "id": "\\x00ff", "flag": null}}`,
		"4":      `{"row": {"v": 9007199254740993, "at": 0.1, "id": 4, "flag": 0}}`,
		"8":      `{"row": {"v": 1` + strings.Repeat("0", 300) + `, "at": "{\"a\": 1, \"a\": 2}", "id": 8, "flag": 0}}`,
		"9":      `{"row": {"v": "-Infinity", "at": 0, "id": 9, "flag": 0}}`,
	} {
		if got := one[string](t, db, `SELECT coalesce(max(payload), '') FROM rea_events WHERE aggregate_id = ?1`, id); got != want {
			t.Errorf("order/%s is\n%s, want\n%s", id, got, want)
		}
	}
}

func TestSQLiteBaselineGoesOn(t *testing.T) {
	t.Parallel()
	archive, _ := newFile(t, `CREATE TABLE lines (a TEXT, b REAL, c BLOB, PRIMARY KEY (a, b, c)) WITHOUT ROWID`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO lines SELECT 'x' || (i % 3), i / 7.0, randomblob(8) FROM n`)
	ctx, cancel := context.WithCancel(t.Context())
	o := adopt.BaselineOptions{Batch: 10, Where: "b > 1 -- not the first ones", Type: "line"}
	o.Progress = func(p adopt.BaselineProgress) {
		if p.Taken == 30 {
			cancel()
		}
	}
	if _, err := sqliteBaseline(ctx, archive, "lines", o); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped: %v", err)
	}
	o.Progress = nil
	other := o
	other.Where = ""
	if _, err := sqliteBaseline(t.Context(), archive, "lines", other); !errors.Is(err, adopt.ErrOtherBaseline) {
		t.Errorf("another condition: %v, want ErrOtherBaseline", err)
	}
	if r, err := sqliteBaseline(t.Context(), archive, "lines", o); err != nil || r.New != 63 || r.Taken != 93 {
		t.Errorf("the rest: %+v, %v, want 63 of 93", r, err)
	}
	if r, err := sqliteBaseline(t.Context(), archive, "lines", other); err != nil || r.New != 7 || r.Rows() != 100 {
		t.Errorf("all: %+v, %v, want 7 new", r, err)
	}
}
