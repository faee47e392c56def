package guard_test

import (
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/guard"
)

// manyOrders are what the article's accident is about.
const manyOrders = `CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint, status text, amount numeric, note text);
INSERT INTO orders SELECT n, n % 100, CASE n % 4 WHEN 0 THEN 'placed' WHEN 1 THEN 'paid' WHEN 2 THEN 'shipped' ELSE 'cancelled' END, n * 0.01, NULL FROM generate_series(1, 100000) n;
ANALYZE orders`

// theMistake should cancel a customer's orders that are not shipped yet: AND binds closer than OR.
const theMistake = `UPDATE orders SET status = 'cancelled' WHERE customer_id = 44 AND status = 'placed' OR status = 'paid'`

func TestTheArticlesAccidentIsOneContextAndItsRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(manyOrders)
	w.add("orders", guard.Settings{Type: "order", Status: "status"})
	w.do(`ALTER TABLE rea.events SET (autovacuum_enabled = off); ALTER TABLE rea.contexts SET (autovacuum_enabled = off)`)
	w.do(`VACUUM ANALYZE rea.events`) // empty, and taken for tiny for ever
	w.want("0 26000", `SELECT (SELECT count(*) FROM rea.events WHERE aggregate_type = 'order') || ' ' || (SELECT count(*) FROM orders WHERE customer_id = 44 AND status = 'placed' OR status = 'paid') `)
	w.do(`CREATE TABLE was AS TABLE orders`)
	w.do(theMistake)
	w.want("1 26000 26000 "+theMistake, `SELECT count(*) || ' ' || max(rows) || ' ' || (SELECT count(*) FROM rea.events e WHERE e.context_id = max(c.context_id)) || ' ' || max(statement) FROM rea.contexts c WHERE operation = 'UPDATE'`)
	w.want("0", `SELECT count(*) FROM (SELECT w.id, w.status, o.status FROM was w JOIN orders o USING (id) WHERE w.status <> o.status
    EXCEPT SELECT e.aggregate_id::bigint, e.payload -> 'old' ->> 'status', e.payload -> 'new' ->> 'status' FROM rea.events e WHERE e.aggregate_type = 'order' AND e.status = 'cancelled') x`)
	w.want("26000", `SELECT count(*) FROM rea.events WHERE aggregate_type = 'order' AND event_type = 'DirectUpdate'`)
}

func TestARefusingGuardStopsTheArticlesAccidentWithItsCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(manyOrders)
	name := w.login()
	w.add("orders", guard.Settings{Type: "order", Status: "status", Mode: guard.Refuse, AddColumn: true})
	w.do(`GRANT ALL ON orders TO ` + name)
	s := w.session()
	s.do(`SET SESSION AUTHORIZATION ` + name)
	e := s.refused("RE011", theMistake)
	if !strings.Contains(e.Message, "stands for 26000 rows: 1, 100") || !strings.Contains(e.Detail, `"rows": 26000`) {
		t.Errorf("refused with %s, %s", e.Message, e.Detail)
	}
	w.want("25000", `SELECT count(*) FROM orders WHERE status = 'paid'`)
}

func TestABulkUpdateIntoAVacuumedEmptyArchiveDoesBoundedWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(manyOrders)
	w.add("orders", guard.Settings{Type: "order", Status: "status"})
	w.do(`ALTER TABLE rea.events SET (autovacuum_enabled = off)`)
	w.do(`VACUUM ANALYZE rea.events`)
	w.do(`UPDATE orders SET note = 'warm' WHERE id = 1`) // the plan is one for a row
	pages := func(sql string) (n int) {
		t.Helper()
		var plan []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		if err := w.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) `+sql).Scan(&plan); err != nil {
			t.Fatal(err)
		}
		return plan[0].Plan.Hit + plan[0].Plan.Read
	}
	const rows, most = 100_000, 60 // a scan of the events for each row would be thousands
	for _, sql := range []string{`UPDATE orders SET note = 'x'`, `UPDATE orders SET note = 'y'`, `DELETE FROM orders`} {
		if n := pages(sql); n > rows*most || n < rows {
			t.Errorf("%s: %d pages, want %d to %d", sql, n, rows, rows*most)
		}
	}
	w.want("300001", `SELECT count(*) FROM rea.events WHERE aggregate_type = 'order'`)
}
