package guard_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/guard"
)

func ordersWorld(t *testing.T, s guard.Settings) world {
	t.Helper()
	w := newWorld(t)
	w.do(orders + `INSERT INTO orders VALUES (1, 'placed', 1, NULL), (2, 'placed', 2, NULL)`)
	s.Type, s.Status = "order", "status"
	w.add("orders", s)
	return w
}

// kinds are the events of orders, one word each.
const kinds = `SELECT coalesce(string_agg(aggregate_id || replace(event_type, 'Direct', ''), ' ' ORDER BY id), '') FROM rea.events WHERE aggregate_type = 'order'`

func TestAnUpsertIsRecordedOnceAsWhatHappened(t *testing.T) { // CAP-1
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.note := upper(NEW.note); RETURN NEW; END';
CREATE TRIGGER shout BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION shout()`)
	w.do(`INSERT INTO orders VALUES (1, 'x', 9, 'x') ON CONFLICT (id) DO UPDATE SET status = 'paid', note = 'quick'`)
	w.do(`INSERT INTO orders VALUES (1, 'x', 9, 'x') ON CONFLICT (id) DO NOTHING`)
	w.do(`INSERT INTO orders VALUES (1, 'x', 9, 'x'), (3, 'placed', 3, 'new') ON CONFLICT (id) DO UPDATE SET amount = 7`)
	w.events("order", `1 1 DirectUpdate {"new": {"note": "QUICK", "status": "paid"}, "old": {"id": 1, "note": null, "amount": 1, "status": "placed"}} paid
1 2 DirectUpdate {"new": {"amount": 7}, "old": {"amount": 1}} paid
3 1 DirectInsert {"new": {"id": 3, "note": "NEW", "amount": 3, "status": "placed"}} placed`)
}

func TestTruncateIsRecordedOrRefused(t *testing.T) { // CAP-2
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`CREATE TABLE parts (id int REFERENCES orders)`)
	w.do(`TRUNCATE orders CASCADE`)
	w.want("1Delete 2Delete", kinds)
	w.want("TRUNCATE 2", `SELECT operation || ' ' || rows FROM rea.contexts ORDER BY context_id DESC LIMIT 1`)
	w.do(`TRUNCATE orders CASCADE`)
	w.want("1Delete 2Delete", kinds)

	w = ordersWorld(t, guard.Settings{Truncate: "refuse"})
	w.do(`CREATE TABLE parents (id int PRIMARY KEY); ALTER TABLE orders ADD FOREIGN KEY (id) REFERENCES parents NOT VALID`)
	w.refused("RE011", `TRUNCATE orders`)
	w.refused("RE011", `TRUNCATE parents CASCADE`)
	w.want("2", `SELECT count(*) FROM orders`)
}

func TestAStatementWithSeveralWritesRecordsEach(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`WITH a AS (INSERT INTO orders VALUES (3, 'placed', 3) RETURNING id), b AS (DELETE FROM orders WHERE id = 2 RETURNING id)
UPDATE orders SET status = 'paid' WHERE id = 1`)
	w.want("1Update 2Delete 3Insert", `SELECT string_agg(aggregate_id || replace(event_type, 'Direct', ''), ' ' ORDER BY aggregate_id) FROM rea.events WHERE aggregate_type = 'order'`)
	w.want("3", `SELECT count(*) FROM rea.contexts WHERE operation <> 'ALTER'`)
}

func TestMergeIsRecorded(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	if w.one(`SELECT current_setting('server_version_num')::int >= 150000`) == "false" {
		return // there is no MERGE
	}
	w.do(`MERGE INTO orders o USING (VALUES (1, 'paid'), (2, 'gone'), (3, 'placed')) v(id, status) ON v.id = o.id
WHEN MATCHED AND v.status = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET status = v.status WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.status, 1, NULL)`)
	w.want("1Update 2Delete 3Insert", `SELECT string_agg(aggregate_id || replace(event_type, 'Direct', ''), ' ' ORDER BY aggregate_id) FROM rea.events WHERE aggregate_type = 'order'`)
}

func TestCopyIsRecordedAsOneStatement(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	if _, err := w.CopyFrom(t.Context(), pgx.Identifier{"orders"}, []string{"id", "status"}, pgx.CopyFromRows([][]any{{int64(3), "a"}, {int64(4), "b"}})); err != nil {
		t.Fatal(err)
	}
	w.want("3Insert 4Insert", kinds)
	w.want("INSERT 2 copy", `SELECT operation || ' ' || rows || ' ' || left(statement, 4) FROM rea.contexts ORDER BY context_id DESC LIMIT 1`)
}

func TestWhatIsRolledBackToASavepointWasNot(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`BEGIN; UPDATE orders SET status = 'a' WHERE id = 1; SAVEPOINT s; UPDATE orders SET status = 'b'; ROLLBACK TO s; UPDATE orders SET status = 'c' WHERE id = 2; COMMIT`)
	w.want("1Update 2Update", kinds)
	w.want("2", `SELECT count(*) FROM rea.contexts WHERE operation = 'UPDATE'`)
}

func TestNoChangeIsNoEventAndNoContext(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{Ignore: []string{"note"}})
	w.do(`UPDATE orders SET status = status, note = 'ignored'`)
	w.do(`UPDATE orders SET status = 'x' WHERE false; DELETE FROM orders WHERE false; INSERT INTO orders SELECT * FROM orders WHERE false`)
	w.want("", kinds)
	w.want("0", `SELECT count(*) FROM rea.contexts WHERE operation <> 'ALTER'`)
	w.do(`UPDATE orders SET status = CASE id WHEN 1 THEN 'paid' ELSE status END, note = 'still'`)
	w.events("order", `1 1 DirectUpdate {"new": {"status": "paid"}, "old": {"id": 1, "amount": 1, "status": "placed"}} paid`)
	w.want("1", `SELECT rows FROM rea.contexts WHERE operation = 'UPDATE'`)
}

func TestWhatIsRedactedIsOnlySaidToHaveChanged(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{Redact: []string{"note"}})
	w.do(`UPDATE orders SET note = 'secret' WHERE id = 1`)
	w.do(`UPDATE orders SET note = 'secret 2' WHERE id = 1`)
	w.want("0", `SELECT count(*) FROM rea.events WHERE payload::text LIKE '%secret%'`)
	w.want(`{"new": {"note": "(redacted)"}, "old": {"note": "(redacted)"}}`, `SELECT payload FROM rea.events WHERE aggregate_type = 'order' AND seq = 2`)
}

func TestTheStatementIsKeptAsTheClientSentIt(t *testing.T) {
	t.Parallel()
	const last = `SELECT statement FROM rea.contexts ORDER BY context_id DESC LIMIT 1`
	w := ordersWorld(t, guard.Settings{})
	both := `UPDATE orders SET status = 'a' WHERE id = 1; UPDATE orders SET status = 'b' WHERE id = 2`
	w.do(both)
	w.want(both, last)
	w.do(`PREPARE p AS UPDATE orders SET status = $1; EXECUTE p('c')`)
	w.do(`UPDATE orders SET status = $1`, "d")
	w.want("UPDATE orders SET status = $1", last)
	w.do(`CREATE FUNCTION pay() RETURNS void LANGUAGE sql AS $$ UPDATE orders SET status = 'e' $$`)
	w.do(`SELECT pay()`)
	w.want("SELECT pay()", last)

	long := `UPDATE orders SET status = 'f' -- ` + strings.Repeat("€", 5000)
	w.do(long)
	w.want("true", `SELECT statement_cut AND octet_length(statement) BETWEEN 8189 AND 8192 AND $1::text LIKE statement || '%' AND statement_sha256 = encode(sha256(convert_to($1::text, 'UTF8')), 'hex')
FROM rea.contexts ORDER BY context_id DESC LIMIT 1`, long)
	for mode, want := range map[string]string{"hash": "false true", "off": "false false"} {
		if _, _, err := guard.Change(t.Context(), w, "orders", to(guard.Settings{SQL: mode}), guard.By{}); err != nil {
			t.Fatal(err)
		}
		w.do(`UPDATE orders SET status = $1`, mode)
		w.want(want, `SELECT (statement IS NOT NULL) || ' ' || (statement_sha256 IS NOT NULL) FROM rea.contexts ORDER BY context_id DESC LIMIT 1`)
	}
}

func TestAPayloadOverTheLimitIsRefusedWithItsRow(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	e := w.refused("RE005", `UPDATE orders SET note = repeat('x', 17000000) WHERE id = 2`)
	if !strings.Contains(e.Detail, `"aggregate_id": "2"`) || !strings.Contains(e.Detail, `"code": "limit"`) {
		t.Errorf("DETAIL = %s, want the row", e.Detail)
	}
}

func TestAChangeWithoutAReasonIsRefusedWhereOneIsWanted(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{RequireReason: true})
	e := w.refused("RE011", `UPDATE orders SET status = 'x'`)
	if !strings.Contains(e.Hint, "rea.set_context") {
		t.Errorf("HINT = %s", e.Hint)
	}
	w.do(`UPDATE orders SET status = status`)
	w.refused("RE011", `TRUNCATE orders`)
	w.do(`BEGIN; SELECT rea.set_context('42', 'incident 7', NULL); UPDATE orders SET status = 'x'; COMMIT`)
	w.want("42 incident 7", `SELECT DISTINCT actor_id || ' ' || reason FROM rea.events WHERE aggregate_type = 'order'`)
}
