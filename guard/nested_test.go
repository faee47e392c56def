package guard_test

import (
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/guard"
)

// folded is the state of an order by its events, as the table of docs/design/guard.md says.
const folded = `SELECT count(*) = 0 FROM orders o WHERE (SELECT jsonb_object_agg(k.key, rea.fold_value('order', o.id::text, k.key)) FROM jsonb_each(to_jsonb(o)) k) IS DISTINCT FROM to_jsonb(o)`

func TestARowThatATriggerChangesAgainIsBroughtLevel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ trigger, statement, want string }{
		"an update after an update": {`AFTER UPDATE`, `UPDATE orders SET status = 'a'`, "1Update 2Update 1Update 2Update 1Update 2Update"},
		"an update after an insert": {`AFTER INSERT`, `INSERT INTO orders VALUES (3, 'x', 3, NULL)`, "3Update 3Insert 3Update"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ordersWorld(t, guard.Settings{})
			w.do(`CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF pg_trigger_depth() = 1 THEN UPDATE orders SET status = status || '!', amount = amount + 1 WHERE id = NEW.id; END IF; RETURN NULL; END $$;
CREATE TRIGGER again ` + c.trigger + ` ON orders FOR EACH ROW EXECUTE FUNCTION again()`)
			w.do(c.statement)
			w.want("true", folded+` AND o.status LIKE '%!'`)
			w.want("2", `SELECT max(depth) FROM rea.contexts`)
			w.want("t", `SELECT left((status LIKE '%!')::text, 1) FROM rea.events WHERE aggregate_type = 'order' ORDER BY id DESC LIMIT 1`)
		})
	}
}

func TestARowThatATriggerDeletesIsGoneAtTheEnd(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM orders WHERE id = NEW.id; RETURN NULL; END $$;
CREATE TRIGGER away AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION away()`)
	w.do(`INSERT INTO orders VALUES (3, 'x', 3, NULL)`)
	w.want("DirectDelete", `SELECT event_type FROM rea.events WHERE aggregate_type = 'order' AND aggregate_id = '3' ORDER BY seq DESC LIMIT 1`)

	w.do(`CREATE FUNCTION back() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO orders VALUES (OLD.id, 'back', 0, NULL); RETURN NULL; END $$;
DROP TRIGGER away ON orders; CREATE TRIGGER back AFTER DELETE ON orders FOR EACH ROW EXECUTE FUNCTION back()`)
	w.do(`DELETE FROM orders WHERE id = 1`)
	w.want(`{"new": {"id": 1, "note": null, "amount": 0, "status": "back"}}`, `SELECT payload FROM rea.events WHERE aggregate_type = 'order' AND aggregate_id = '1' ORDER BY seq DESC LIMIT 1`)
}

func TestADeferredConstraintTriggerThatChangesRowsIsRecorded(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.note IS NULL THEN UPDATE orders SET note = 'later' WHERE id = NEW.id; END IF; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER later AFTER UPDATE ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION later()`)
	w.do(`UPDATE orders SET status = 'paid' WHERE id = 1`)
	w.events("order", `1 1 DirectUpdate {"new": {"status": "paid"}, "old": {"id": 1, "note": null, "amount": 1, "status": "placed"}} paid
1 2 DirectUpdate {"new": {"note": "later"}, "old": {"note": null}} paid`)
}

func TestRowSecurityHidesNothingFromTheGuard(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	name := w.login()
	w.do(`ALTER TABLE orders ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON orders TO ` + name + ` USING (id = 1); GRANT ALL ON orders TO ` + name)
	s := w.session()
	s.do(`SET SESSION AUTHORIZATION ` + name + `; UPDATE orders SET status = 'paid'`)
	w.want("1Update", kinds)
	w.refused("RE011", `TRUNCATE orders`)
	if _, _, err := guard.Regenerate(t.Context(), w, "orders", guard.By{}); err != nil {
		t.Fatal(err)
	}
	w.do(`TRUNCATE orders`)
	w.want("1Update 1Delete 2Delete", kinds)
	if _, err := guard.Remove(t.Context(), w, "orders", guard.By{}); err != nil {
		t.Fatal(err)
	}
	w.want("0", `SELECT count(*) FROM pg_policy WHERE polname = 'rea_guard'`)
}

// Whichever way an event comes, a text that cannot be a status is none.
func TestAStatusThatIsTooLongIsNoneOnEveryWay(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{Status: "status"})
	w.do(baseline)
	w.do(`UPDATE orders SET status = repeat('x', 300) WHERE id = 1; ALTER TABLE orders ADD channel text DEFAULT 'web'`)
	w.regenerate("orders", 2)
	w.do(`ALTER TABLE orders ADD late int; UPDATE orders SET late = 1 WHERE id = 1`) // the slow way
	w.want("0", `SELECT count(*) FROM rea.events WHERE aggregate_type = 'order' AND aggregate_id = '1' AND seq > 1 AND length(status) > 6`)
}

// A policy for everybody is one for the archive's owner, whose rights its functions would have, and restricts what he sees.
func TestNoPolicyOfOthersRunsWithTheRightsOfTheArchive(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{Status: "status"})
	w.do(baseline)
	app := w.login()
	w.do(`ALTER TABLE orders OWNER TO ` + app + `; CREATE FUNCTION seen() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'a policy ran as %', current_user; END $$`)
	app2 := w.session()
	app2.do(`SET SESSION AUTHORIZATION ` + app + `; ALTER TABLE orders ENABLE ROW LEVEL SECURITY`)
	for _, policy := range []string{`CREATE POLICY mine ON orders USING (seen())`, `CREATE POLICY mine ON orders AS RESTRICTIVE USING (id = 1)`} {
		app2.do(policy)
		if _, _, err := guard.Regenerate(t.Context(), w, "orders", guard.By{}); err != nil {
			t.Fatal(err)
		}
		app2.refused("RE011", `TRUNCATE orders`)
		w.want("null", `SELECT rea.guard_row('order', '1')`)
		if got := w.problems(); !strings.Contains(got, "the policy mine of public.orders would choose the rows") {
			t.Errorf("problems: %s", got)
		}
		w.do(`ALTER POLICY mine ON orders TO ` + app)
		w.want("true", `SELECT rea.guard_row('order', '1') IS NOT NULL`)
		app2.do(`DROP POLICY mine ON orders`)
	}
	app2.do(`TRUNCATE orders`)
	w.want("1BaselineCreated 2BaselineCreated 1Delete 2Delete", kinds)
}

func TestAnAppendMeanwhileKeepsNoEventBack(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(baseline)
	other := w.session()
	other.do(`BEGIN; SELECT * FROM rea.append('order', '2', 'NoteAdded')`)
	done := make(chan error, 1)
	go func() { done <- w.try(`UPDATE orders SET status = 'paid'`) }()
	other.waits(w)
	other.do(`COMMIT`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.want("1 DirectUpdate 2, 2 NoteAdded 2, 2 DirectUpdate 3", `SELECT string_agg(aggregate_id || ' ' || event_type || ' ' || seq, ', ' ORDER BY aggregate_id, seq) FROM rea.events WHERE aggregate_type = 'order' AND seq > 1`)
	w.want("2", `SELECT rows FROM rea.contexts WHERE operation = 'UPDATE'`)
}

// waits returns when another session waits for a lock.
func (w world) waits(other world) {
	w.t.Helper()
	pid := other.PgConn().PID()
	for w.one(`SELECT coalesce(wait_event_type, '') FROM (SELECT pg_stat_clear_snapshot()) c, pg_stat_activity WHERE pid = $1`, int32(pid)) != "Lock" {
	}
}

func TestTriggersOfStatementsBeforeAndAfterTheGuardsAreBroughtLevel(t *testing.T) {
	t.Parallel()
	for _, trigger := range []string{"aa AFTER UPDATE ON orders", "zz AFTER UPDATE ON orders"} {
		w := ordersWorld(t, guard.Settings{})
		w.do(`CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF pg_trigger_depth() = 1 THEN UPDATE orders SET note = coalesce(note, '') || '!'; DELETE FROM orders WHERE id = 3; INSERT INTO orders VALUES (4, 'new') ON CONFLICT (id) DO UPDATE SET amount = 4; END IF; RETURN NULL; END $$;
CREATE TRIGGER ` + trigger + ` FOR EACH STATEMENT EXECUTE FUNCTION again(); INSERT INTO orders VALUES (3, 'placed')`)
		w.do(`BEGIN; UPDATE orders SET status = 'paid' WHERE id <> 2; UPDATE orders SET status = 'sent'; COMMIT`)
		w.same(trigger, w.differences("orders", "order"), "")
		w.want("3DirectDelete", `SELECT aggregate_id || event_type FROM rea.events WHERE aggregate_type = 'order' AND aggregate_id = '3' ORDER BY seq DESC LIMIT 1`)
	}
}

func TestATriggerThatWritesOtherRowsOfTheTableIsRecorded(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"BEFORE", "AFTER"} {
		w := ordersWorld(t, guard.Settings{})
		w.do(`CREATE TABLE totals (id int PRIMARY KEY, n numeric); INSERT INTO totals VALUES (1, 0);
CREATE FUNCTION next() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE totals SET n = n + 1; IF NEW.id < 5 THEN UPDATE orders SET amount = amount + 1 WHERE id = NEW.id + 1; END IF; RETURN NEW; END $$;
CREATE TRIGGER next ` + when + ` UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION next(); INSERT INTO orders SELECT n, 'placed', 0 FROM generate_series(3, 6) n`)
		w.add("totals", guard.Settings{Type: "total"})
		w.do(`UPDATE orders SET status = 'paid' WHERE id = 1; UPDATE orders SET status = 'sent' WHERE id = 4`)
		w.same(when, w.differences("orders", "order"), "")
		w.same(when, w.differences("totals", "total"), "")
	}
}
