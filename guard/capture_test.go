package guard_test

import (
	"testing"

	"github.com/realtime-event-archive/rea/guard"
)

const orders = `CREATE TABLE orders (id bigint PRIMARY KEY, status text, amount numeric, note text);`

func TestEachChangedRowBecomesAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(orders + `INSERT INTO orders VALUES (1, 'placed', 1.50, NULL), (2, 'placed', 2, 'x')`)
	w.add("orders", guard.Settings{Type: "order", Status: "status"})
	w.events("order", "")
	w.do(`INSERT INTO orders VALUES (3, 'placed', 3.00, NULL)`)
	w.do(`UPDATE orders SET status = 'paid' WHERE id <> 2`)
	w.do(`UPDATE orders SET note = note, amount = 1.5 WHERE id < 3`)
	w.do(`UPDATE orders SET amount = amount`)
	w.do(`DELETE FROM orders WHERE id > 1`)
	w.events("order", `1 1 DirectUpdate {"new": {"status": "paid"}, "old": {"id": 1, "note": null, "amount": 1.50, "status": "placed"}} paid
1 2 DirectUpdate {"new": {"amount": 1.5}, "old": {"amount": 1.50}} paid
2 1 DirectUpdate {"new": {"amount": 1.5}, "old": {"id": 2, "note": "x", "amount": 2, "status": "placed"}} placed
2 2 DirectDelete {"old": {"id": 2, "note": "x", "amount": 1.5, "status": "placed"}}
3 1 DirectInsert {"new": {"id": 3, "note": null, "amount": 3.00, "status": "placed"}} placed
3 2 DirectUpdate {"new": {"status": "paid"}, "old": {"status": "placed"}} paid
3 3 DirectDelete {"old": {"id": 3, "note": null, "amount": 3.00, "status": "paid"}}`)
	w.want("INSERT 1, UPDATE 2, UPDATE 2, DELETE 2", `SELECT string_agg(operation || ' ' || rows, ', ' ORDER BY context_id) FROM rea.contexts WHERE table_name = 'public.orders' AND operation <> 'ALTER'`)
	w.want(`{"id": 1, "note": null, "amount": 1.5, "status": "paid"}`, `SELECT rea.guard_row('order', '1')`)
	w.want("null", `SELECT rea.guard_row('order', 'x')`)
	w.want("null", `SELECT rea.guard_row('order', '01')`)
}

// The guard was told of no status column: the catalog names the field.
func TestTheStatusIsWhatTheCatalogCallsSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(orders + `INSERT INTO orders VALUES (1, 'placed', 1, NULL), (2, 'placed', 2, NULL)`)
	w.add("orders", guard.Settings{Type: "order"})
	w.apply(machine)
	w.do(`UPDATE orders SET note = 'x' WHERE id = 1`)
	w.do(`UPDATE orders SET amount = 3 WHERE id = 1`)
	w.do(`UPDATE orders SET status = 'lost' WHERE id = 1`)
	w.do(`UPDATE orders SET status = NULL, note = NULL`)
	w.do(`INSERT INTO orders VALUES (3, 'paid', 1, NULL)`)
	w.do(`DELETE FROM orders WHERE id = 3`)
	w.want("1 placed placed lost lost, 2 -, 3 paid -", `SELECT string_agg(x.line, ', ' ORDER BY x.line) FROM (
		SELECT e.aggregate_id || ' ' || string_agg(coalesce(e.status, '-'), ' ' ORDER BY e.seq) AS line FROM rea.events e WHERE e.aggregate_type = 'order' GROUP BY e.aggregate_id) x`)
	w.want("1", `SELECT string_agg(DISTINCT e.catalog_version::text, '') FROM rea.events e WHERE e.aggregate_type = 'order'`)
}

func TestASnapshotOlderThanTheCatalogRecordsNothing(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	s := w.session()
	s.do(`BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM orders`)
	w.apply(machine)
	s.refused("40001", `UPDATE orders SET status = 'paid'`)
	s.do(`ROLLBACK`)
	s.do(`UPDATE orders SET status = 'paid'`)
	w.want("2", `SELECT count(*) FROM rea.events WHERE aggregate_type = 'order'`)
}
