package adopt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea/adopt"
)

const ordersSQL = `
CREATE TABLE public.orders (id bigint PRIMARY KEY, status text, total numeric(12,2), created_at timestamptz, notes json, data jsonb)`

// baseline takes the baseline of a table.
func baseline(t *testing.T, pool *pgxpool.Pool, table string, key []string, o adopt.BaselineOptions) adopt.BaselineResult {
	t.Helper()
	result, err := tryBaseline(t.Context(), pool, table, key, o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func tryBaseline(ctx context.Context, pool *pgxpool.Pool, table string, key []string, o adopt.BaselineOptions) (result adopt.BaselineResult, err error) {
	described, err := adopt.Describe(ctx, pool, table, key)
	if err != nil {
		return result, err
	}
	if o.Type == "" {
		o.Type = "order"
	}
	b, err := adopt.NewBaseline(ctx, pool, described, o)
	if err != nil {
		return result, err
	}
	return b.Run(ctx)
}

func TestBaselineTakesEachRowOnce(t *testing.T) {
	t.Parallel()
	pool := newPool(t, ordersSQL, `INSERT INTO orders SELECT i, 'paid', i, now() FROM generate_series(1, 1000) i`)
	o := adopt.BaselineOptions{Batch: 300, Version: "v9", Status: "status"}
	if r := baseline(t, pool, "orders", nil, o); r.New != 1000 || r.Taken != 1000 || !r.Done || r.Refused != 0 {
		t.Errorf("first run: %+v, want 1000 new", r)
	}
	if r := baseline(t, pool, "orders", nil, o); r.New != 0 || r.Skipped != 1000 {
		t.Errorf("second run: %+v, want 0 new", r)
	}
	run(t, pool, `INSERT INTO orders VALUES (0, 'new'), (5000, 'new')`)
	if r := baseline(t, pool, "orders", nil, o); r.New != 2 || r.Skipped != 1000 {
		t.Errorf("after two inserts: %+v, want 2 new", r)
	}
	const bad = `
SELECT count(*) FROM rea.events e LEFT JOIN rea.contexts c USING (context_id)
WHERE e.seq <> 1 OR e.event_type <> 'BaselineCreated' OR e.actor_id IS DISTINCT FROM 'baseline' OR e.metadata IS DISTINCT FROM '{"rea": "v9"}'
   OR e.status IS NULL OR c.operation IS DISTINCT FROM 'BASELINE' OR c.xid <> e.xid OR c.table_name <> 'public.orders' OR c.login <> session_user
   OR e.payload -> 'row' ->> 'id' <> e.aggregate_id`
	if n := query[int](t, pool, bad); n != 0 {
		t.Errorf("%d events are not as they should be", n)
	}
	if n := query[int](t, pool, `SELECT sum(rows) FROM rea.contexts`); n != 1002 {
		t.Errorf("the contexts have %d rows, want 1002", n)
	}
	if n := query[int](t, pool, `SELECT count(*) FROM rea.contexts`); n != 6 {
		t.Errorf("%d contexts, want one for each chunk that stored something: 6", n)
	}
}

func TestBaselineTakesLegacyRowsAsTheyAre(t *testing.T) {
	t.Parallel()
	pool := newPool(t, ordersSQL, `
INSERT INTO orders VALUES
    (1, NULL, NULL, NULL, NULL, NULL), (2, 'PAID ', -12.50, '-infinity', '{"a": 1, "a" : 2}', 'null'),
    (3, 'paied', 'NaN', 'infinity', ' [1.0, 1e2]', '{"b": 1.00}'), (4, '', 0, '294276-12-31 23:59:59.999999+00', '"\u0000"', '[]'),
    (5, 'x', 1, '4713-01-01 00:00:00+00 BC', 'null', '1'), (6, repeat('x', 20000000), 1, now(), NULL, NULL), (7, 'after', 1, '10000-01-01 00:00:00+00', NULL, NULL)`)
	rejects := filepath.Join(t.TempDir(), "rejects.ndjson")
	r := baseline(t, pool, "public.orders", []string{"id"}, adopt.BaselineOptions{Batch: 3, Rejects: rejects})
	if r.New != 6 || r.Refused != 1 || len(r.First) != 1 || *r.First[0].Key[0] != "6" || r.First[0].Code != "limit" {
		t.Errorf("result: %+v, want 6 new, and 6 refused for its size", r)
	}
	if text, _ := os.ReadFile(rejects); strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), `"key":["6"]`) {
		t.Errorf("rejects: %s", text)
	}
	for id, want := range map[string]string{
		"1": `{"row": {"id": 1, "data": null, "notes": null, "total": null, "status": null, "created_at": null}}`,
		"2": `{"row": {"id": 2, "data": null, "notes": "{\"a\": 1, \"a\" : 2}", "total": -12.50, "status": "PAID ", "created_at": "-infinity"}}`,
		"3": `{"row": {"id": 3, "data": {"b": 1.00}, "notes": " [1.0, 1e2]", "total": "NaN", "status": "paied", "created_at": "infinity"}}`,
		"4": `{"row": {"id": 4, "data": [], "notes": "\"\\u0000\"", "total": 0.00, "status": "", "created_at": "294276-12-31T23:59:59.999999+00:00"}}`,
		"5": `{"row": {"id": 5, "data": 1, "notes": "null", "total": 1.00, "status": "x", "created_at": "4713-01-01T00:00:00+00:00 BC"}}`,
		"7": `{"row": {"id": 7, "data": null, "notes": null, "total": 1.00, "status": "after", "created_at": "10000-01-01T00:00:00+00:00"}}`,
	} {
		if got := query[string](t, pool, `SELECT payload::text FROM rea.events WHERE aggregate_id = $1`, id); got != want {
			t.Errorf("order/%s is\n%s, want\n%s", id, got, want)
		}
	}
}

func TestBaselineListsRowsWithoutAName(t *testing.T) {
	t.Parallel()
	pool := newPool(t, `CREATE TABLE public."Odd ""table" ("a b" text, "%" varchar(500), v int, UNIQUE ("%", "a b"))`, `
INSERT INTO "Odd ""table" VALUES ('x/y', '100%', 1), (NULL, 'z', 2), ('z', NULL, 3), (repeat('k', 150), repeat('k', 150), 4), (E'tab\t', 'x', 5), ('', '', 6)`)
	rejects := filepath.Join(t.TempDir(), "rejects.ndjson")
	r := baseline(t, pool, `public."Odd ""table"`, []string{"a b", "%"}, adopt.BaselineOptions{Batch: 2, Rejects: rejects})
	if r.New != 2 || r.Refused != 4 {
		t.Errorf("result: %+v, want 2 new and 4 refused", r)
	}
	ids := query[[]string](t, pool, `SELECT array_agg(aggregate_id ORDER BY aggregate_id) FROM rea.events`)
	if !slices.Equal(ids, []string{"/", "x%2Fy/100%25"}) {
		t.Errorf("ids = %q", ids)
	}
	text, err := os.ReadFile(rejects)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"key":[null,"z"]`, `"key":["z",null]`, `"key":["tab\t","x"]`, `kkk`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the rejects lack %s:\n%s", want, text)
		}
	}
}

func TestBaselineGoesOnOnlyWithWhatItWasAskedFor(t *testing.T) {
	t.Parallel()
	pool := newPool(t, ordersSQL, `INSERT INTO orders SELECT i, 'paid', i, now() FROM generate_series(1, 100) i`)
	o := adopt.BaselineOptions{Batch: 10, Where: "id > 20 -- not the oldest", Columns: []string{"status"}}
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(p adopt.BaselineProgress) {
		if p.Taken == 30 {
			cancel()
		}
	}
	if _, err := tryBaseline(ctx, pool, "orders", nil, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped: %v", err)
	}
	o.Progress = nil
	other := o
	other.Where = ""
	if _, err := tryBaseline(t.Context(), pool, "orders", nil, other); !errors.Is(err, adopt.ErrOtherBaseline) {
		t.Errorf("another condition: %v, want ErrOtherBaseline", err)
	}
	if r := baseline(t, pool, "orders", nil, o); r.New != 50 || r.Taken != 80 {
		t.Errorf("the rest: %+v, want 50 of 80", r)
	}
	if n := query[int](t, pool, `SELECT count(*) FROM rea.events WHERE payload <> jsonb_build_object('row', jsonb_build_object('id', aggregate_id::int, 'status', 'paid'))`); n != 0 {
		t.Errorf("%d events have other columns", n)
	}
	if r := baseline(t, pool, "orders", nil, other); r.New != 20 || r.Taken != 20 || r.Skipped != 80 {
		t.Errorf("all: %+v, want 20 new", r)
	}
}

func TestBaselineOfAnyKey(t *testing.T) {
	t.Parallel()
	pool := newPool(t, `CREATE COLLATION public.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`, `CREATE TYPE public.mood AS ENUM ('sad', 'ok', 'happy')`, `CREATE DOMAIN public.code AS char(6)`,
		`CREATE TABLE public.parts (region text, id int, at timestamptz, PRIMARY KEY (region, id)) PARTITION BY LIST (region)`,
		`CREATE TABLE public.parts_a PARTITION OF parts FOR VALUES IN ('a')`, `CREATE TABLE public.parts_b PARTITION OF parts FOR VALUES IN ('b', 'c')`,
		`INSERT INTO parts SELECT chr(97 + i % 3), i FROM generate_series(1, 50) i`)
	if r := baseline(t, pool, "parts", nil, adopt.BaselineOptions{Batch: 7}); r.New != 50 {
		t.Errorf("partitions: %+v, want 50 new", r)
	}
	for i, c := range []struct{ typ, value string }{
		{"uuid", "md5(i::text)::uuid"}, {"float8", "i / 3.0"}, {"real", "i / 3.0"}, {"numeric", "i / 3.0"}, {"timestamptz", "timestamptz '2024-01-01' + i * interval '1.000001 s'"},
		{"date", "date '2024-01-01' + i"}, {"bytea", "decode(md5(i::text), 'hex')"}, {"interval", "i * interval '25:00:01'"}, {"public.code", "i::text"},
		{"inet", "('10.0.0.' || i)::inet"}, {"bool", "i = 1"}, {"public.mood", "CASE i WHEN 1 THEN 'sad' WHEN 2 THEN 'ok' ELSE 'happy' END::public.mood"},
		{"text COLLATE public.loose", "'n' || i"}, {"text COLLATE \"en-x-icu\"", "chr(60 + i)"}, {"int[]", "ARRAY[i, -i]"}, {"money", "i::money"}, {"\"char\"", "chr(64 + i)::\"char\""},
	} {
		table := fmt.Sprintf("keyed_%d", i)
		n := 40
		switch c.typ {
		case "bool":
			n = 2
		case "public.mood":
			n = 3
		}
		run(t, pool, "CREATE TABLE public."+table+" (k "+c.typ+" PRIMARY KEY)",
			fmt.Sprintf("INSERT INTO %s SELECT %s FROM generate_series(1, %d) i", table, c.value, n))
		if r := baseline(t, pool, table, nil, adopt.BaselineOptions{Batch: 3, Type: table}); r.New != int64(n) || r.Refused != 0 {
			t.Errorf("a key of type %s: %+v, want %d new", c.typ, r, n)
		}
	}
}
