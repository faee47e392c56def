package adopt_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/adopt"
	"github.com/realtime-event-archive/rea/guard"
)

// differences are those of a table, one text each.
func differences(check func(adopt.CheckOptions) (adopt.CheckResult, error), o adopt.CheckOptions) (list []string, err error) {
	o.Report = func(d adopt.Difference) {
		text := d.Kind + " " + d.Aggregate.String()
		for _, c := range d.Columns {
			text += fmt.Sprintf(" %s: %s, not %s", c.Column, c.Table, c.Events)
		}
		list = append(list, text)
	}
	_, err = check(o)
	return list, err
}

func TestCheckFindsWhatSlippedPastTheTriggers(t *testing.T) {
	t.Parallel()
	pool := newPool(t, ordersSQL, `INSERT INTO orders SELECT i, 'placed', i, now(), '{"a": 1}', '{"n": [1, 2.0]}' FROM generate_series(1, 3000) i`)
	guardOrders(t, pool, guard.Settings{Status: "status", Ignore: []string{"created_at"}, Redact: []string{"notes"}})
	baseline(t, pool, "orders", nil, adopt.BaselineOptions{})
	run(t, pool, `UPDATE orders SET status = 'paid', created_at = 'infinity' WHERE id % 7 = 0`, `DELETE FROM orders WHERE id % 100 = 0`, `INSERT INTO orders VALUES (-1, 'new')`)
	wantNoDifference(t, pool, "orders")

	run(t, pool, `ALTER TABLE orders DISABLE TRIGGER USER`, `UPDATE orders SET total = 0.5, notes = '"secret"' WHERE id = 9`, `UPDATE orders SET total = 7.0000, created_at = now(), notes = NULL WHERE id = 7`,
		`UPDATE orders SET data = '{"n": [2, 1]}', status = NULL WHERE id = 2999`, `DELETE FROM orders WHERE id = 1501`, `INSERT INTO orders VALUES (100, 'back'), (-2, 'silent')`)
	got, err := differences(func(o adopt.CheckOptions) (adopt.CheckResult, error) {
		return adopt.Check(t.Context(), pool, describe(t, pool, "orders"), o)
	}, adopt.CheckOptions{Type: "order"})
	want := []string{"missing order/-2", "different order/9 total: 0.50, not 9.00", "deleted order/100",
		`different order/2999 status: null, not "placed" data: {"n": [2, 1]}, not {"n": [1, 2.0]}`, "extra order/1501"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("differences = %q, %v, want\n%q", got, err, want)
	}
}

func TestCheckFoldsByTheCatalog(t *testing.T) {
	t.Parallel()
	rules, err := rea.NewCatalog(rea.Type{Name: "order", Status: "status", Events: []rea.EventType{
		{Name: "OrderPlaced", From: []string{rea.FromNone}, To: "placed"}, {Name: "OrderErased", From: []string{rea.FromAny}, Deletes: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	pool := newPool(t, `CREATE TABLE public.orders (id text PRIMARY KEY, status text)`, `INSERT INTO orders VALUES ('1', 'placed'), ('2', 'paid')`,
		`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ('order', '1', 'OrderPlaced'), ('order', '2', 'OrderPlaced'), ('order', '3', 'OrderPlaced'),
         ('order', '4', 'OrderPlaced'), ('order', '3', 'OrderErased')`, `INSERT INTO rea.baselines (relation, aggregate_type, key, columns) VALUES ('orders', 'order', '{1}', '{2}')`)
	got, err := differences(func(o adopt.CheckOptions) (adopt.CheckResult, error) {
		return adopt.Check(t.Context(), pool, describe(t, pool, "orders"), o)
	}, adopt.CheckOptions{Type: "order", Catalog: rules})
	want := []string{`different order/2 status: "paid", not "placed"`, "extra order/4"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("differences = %q, %v, want\n%q", got, err, want)
	}
}

func TestCheckComparesPagesOfAnyKey(t *testing.T) {
	t.Parallel()
	archive, db := newFile(t, `CREATE TABLE orders (a TEXT, b, v REAL, PRIMARY KEY (b, a))`, `
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO orders SELECT 'x' || i, CASE i % 3 WHEN 0 THEN i WHEN 1 THEN i / 3.0 ELSE 't' || i END, i FROM n`)
	if r, err := sqliteBaseline(t.Context(), archive, "orders", adopt.BaselineOptions{}); err != nil || r.New != 500 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, s := range []string{`UPDATE orders SET v = 1e10 WHERE a = 'x499'`, `UPDATE orders SET v = 2.0 WHERE a = 'x2'`, `DELETE FROM orders WHERE a = 'x3'`, `INSERT INTO orders VALUES ('x', NULL, 1), ('y', 'z', 1)`} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	got, err := differences(func(o adopt.CheckOptions) (adopt.CheckResult, error) {
		return adopt.CheckSQLite(t.Context(), archive, "orders", nil, o)
	}, adopt.CheckOptions{Type: "order"})
	want := []string{"different order/166.33333333333334/x499 v: 10000000000, not 499", "missing order/z/y", "missing order/NULL/x", "extra order/3/x3"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("differences = %q, %v, want\n%q", got, err, want)
	}
}
