package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/guard"
)

// baseline is the first event of each order, as `rea baseline` stores it.
const baseline = `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, payload, status, context_id)
SELECT 'order', o.id::text, 'BaselineCreated', jsonb_build_object('row', to_jsonb(o) - 'rea_seq'), o.status, 1 FROM orders o`

// refusingWorld has a guard that refuses, and a session of a writer who is nobody else.
func refusingWorld(t *testing.T) (w, writer world) {
	t.Helper()
	w = newWorld(t)
	w.do(orders + `INSERT INTO orders VALUES (1, 'placed', 1, NULL), (2, 'placed', 2, NULL)`)
	name := w.login()
	w.do(`GRANT ALL ON orders TO ` + name + `; GRANT rea_writer TO ` + name)
	w.add("orders", guard.Settings{Type: "order", Status: "status", Mode: guard.Refuse, AddColumn: true})
	w.do(baseline)
	writer = w.session()
	writer.do(`SET SESSION AUTHORIZATION ` + name)
	return w, writer
}

func TestAWriteThatNoEventStandsForIsRefused(t *testing.T) {
	t.Parallel()
	w, s := refusingWorld(t)
	e := s.refused("RE011", `UPDATE orders SET status = 'paid'`)
	if e.Detail != `{"ids": ["1", "2"], "code": "guarded", "rows": 2, "table": "public.orders", "message": "rea: UPDATE of public.orders refused: no event of this transaction stands for 2 rows: 1, 2", "operation": "UPDATE"}` {
		t.Errorf("DETAIL = %s", e.Detail)
	}
	s.refused("RE011", `INSERT INTO orders VALUES (3, 'placed', 1, NULL)`)
	s.refused("RE011", `INSERT INTO orders VALUES (3, 'placed', 1, NULL, 1)`)
	s.refused("RE011", `DELETE FROM orders WHERE id = 1`)
	s.refused("RE011", `TRUNCATE orders`)
	s.refused("RE011", `UPDATE orders SET id = 9 WHERE id = 1`)
	s.do(`UPDATE orders SET status = status`)
	w.want("2", `SELECT count(*) FROM rea.events WHERE aggregate_type = 'order'`)
}

func TestAppendThenUpdatePasses(t *testing.T) {
	t.Parallel()
	w, s := refusingWorld(t)
	s.do(`BEGIN; SELECT * FROM rea.append('order', '1', 'Paid'); UPDATE orders SET status = 'paid', rea_seq = 2 WHERE id = 1; COMMIT`)
	s.do(`BEGIN; SELECT * FROM rea.append('order', '3', 'Placed'); SAVEPOINT a; INSERT INTO orders VALUES (3, 'placed', 1, NULL, 1); COMMIT`)
	s.do(`BEGIN; SELECT * FROM rea.append('order', '1', 'A'); SELECT * FROM rea.append('order', '2', 'B');
UPDATE orders o SET status = 'both', rea_seq = (SELECT max(seq) FROM rea.events e WHERE e.aggregate_type = 'order' AND e.aggregate_id = o.id::text) WHERE id < 3; COMMIT`)
	w.want("1 both 3, 2 both 2, 3 placed 1", `SELECT string_agg(id || ' ' || status || ' ' || rea_seq, ', ' ORDER BY id) FROM orders`)
}

func TestADeletePassesForAnEventThatIsDeclaredToDelete(t *testing.T) {
	t.Parallel()
	w, s := refusingWorld(t)
	w.do(`INSERT INTO rea.steps (aggregate_type, event_type, from_status, ruled, deletes) VALUES ('order', 'Purged', 'any', false, true)`)
	s.refused("RE011", `DELETE FROM orders WHERE id = 1`)
	s.do(`BEGIN; SELECT * FROM rea.append('order', '1', 'NoteAdded')`)
	s.refused("RE011", `DELETE FROM orders WHERE id = 1`)
	s.do(`ROLLBACK; BEGIN; SELECT * FROM rea.append('order', '1', 'Purged'); DELETE FROM orders WHERE id = 1`)
	s.refused("RE011", `INSERT INTO orders VALUES (1, 'back', 1, NULL, 2)`)
	s.do(`ROLLBACK; BEGIN; SELECT * FROM rea.append('order', '1', 'Purged'); DELETE FROM orders WHERE id = 1; COMMIT`)
	w.want("1", `SELECT count(*) FROM orders`)
}

func TestNoSettingAndNoFakeSeqPasses(t *testing.T) {
	t.Parallel()
	w, s := refusingWorld(t)
	for _, sql := range []string{
		`SET rea.guard = 'off'`, `SET rea.bypass = 'on'`, `SET rea.actor = 'rea_owner'`, `SELECT rea.set_context('rea_owner', 'x', NULL)`, `SET row_security = off`,
		`SET enable_seqscan = on`, `SET search_path = pg_temp; CREATE TEMP TABLE events (x int); CREATE TEMP TABLE rea_new (x int)`,
	} {
		s.do(sql)
		s.refused("RE011", `UPDATE public.orders SET status = 'paid'`)
	}
	s.refused("42501", `SET session_replication_role = replica`)
	s.refused("42501", `ALTER TABLE public.orders DISABLE TRIGGER ALL`)
	s.refused("42501", `UPDATE rea.guards SET mode = 'capture'`)
	s.refused("42501", `SELECT rea.guard_row('order', '1')`)
	s.refused("42501", `CREATE TEMP TABLE mine (LIKE public.orders); CREATE TRIGGER t AFTER INSERT ON mine REFERENCING NEW TABLE AS rea_new FOR EACH STATEMENT EXECUTE FUNCTION rea.guard_1_insert()`)
	s.refused("RE011", `UPDATE public.orders SET rea_seq = 99`)
	s.do(`SELECT * FROM rea.append('order', '1', 'Paid')`)
	s.refused("RE011", `UPDATE public.orders SET status = 'paid', rea_seq = 2 WHERE id = 1`) // another transaction's event
	s.do(`BEGIN; SELECT * FROM rea.append('order', '1', 'Paid')`)
	s.refused("RE011", `UPDATE public.orders SET status = 'paid', rea_seq = 4 WHERE id = 1`)
	s.do(`ROLLBACK; BEGIN; SELECT * FROM rea.append('order', '1', 'A'); SELECT * FROM rea.append('order', '1', 'B')`)
	s.refused("RE011", `UPDATE public.orders SET status = 'paid', rea_seq = 3 WHERE id = 1`) // not the last
	s.do(`ROLLBACK; BEGIN; SELECT * FROM rea.append('order', '1', 'A'); UPDATE public.orders SET status = 'a', rea_seq = 3 WHERE id = 1`)
	s.refused("RE011", `UPDATE public.orders SET status = 'b' WHERE id = 1`) // a second change for one event
	s.do(`ROLLBACK`)
	w.want("0", `SELECT count(*) FROM orders WHERE status <> 'placed' OR rea_seq IS NOT NULL`)
}

func TestAMemberOfTheOwnerMayWriteForAnybodysEvent(t *testing.T) {
	t.Parallel()
	w, s := refusingWorld(t)
	s.do(`SELECT * FROM rea.append('order', '1', 'Paid')`)
	w.refused("RE011", `UPDATE orders SET status = 'paid' WHERE id = 1`)
	w.do(`UPDATE orders SET status = 'paid', rea_seq = 2 WHERE id = 1`)
}

func TestABrokenGlassCapturesAndIsRecorded(t *testing.T) {
	t.Parallel()
	w, s := refusingWorld(t)
	if _, _, err := guard.BreakGlass(t.Context(), w, "orders", guard.By{Actor: "42"}); err == nil {
		t.Error("the glass was broken without a reason")
	}
	if _, _, err := guard.BreakGlass(t.Context(), w, "orders", guard.By{Actor: "42", Reason: "incident 7"}); err != nil {
		t.Fatal(err)
	}
	s.do(`UPDATE orders SET status = 'paid' WHERE id = 1`)
	s.refused("RE011", `TRUNCATE orders`)
	states, err := guard.Status(t.Context(), w)
	if err != nil || len(states) != 1 || len(states[0].Problems) != 1 || !strings.Contains(states[0].Problems[0], "glass is broken") {
		t.Errorf("Status = %v, %v", states, err)
	}
	if _, _, err := guard.MendGlass(t.Context(), w, "orders", guard.By{Actor: "42"}); err != nil {
		t.Fatal(err)
	}
	s.refused("RE011", `UPDATE orders SET status = 'x'`)
	w.want(`{"new": {"status": "paid"}, "old": {"status": "placed"}}`, `SELECT payload FROM rea.events WHERE aggregate_type = 'order' ORDER BY id DESC LIMIT 1`)
	w.want("GuardAdded GlassBroken:42:incident 7 GlassMended:42", `SELECT string_agg(concat_ws(':', event_type, actor_id, reason), ' ' ORDER BY seq) FROM rea.events WHERE aggregate_type = 'rea.guard' AND aggregate_id = 'public.orders'`)
	w.want("true", `SELECT bool_and(c.login = current_user) FROM rea.events e JOIN rea.contexts c USING (context_id) WHERE e.aggregate_type = 'rea.guard'`)
}

func TestAGuardThatRefusesKnowsItsRowsAfterColumnsChange(t *testing.T) {
	t.Parallel()
	w, s := refusingWorld(t)
	w.do(`ALTER TABLE orders RENAME status TO state; ALTER TABLE orders ADD extra int; ALTER TABLE orders DROP amount; ALTER TABLE orders RENAME id TO nr`)
	s.refused("RE011", `UPDATE orders SET extra = 1`)
	s.refused("RE011", `INSERT INTO orders VALUES (7, 'x')`)
	s.do(`BEGIN; SELECT * FROM rea.append('order', '1', 'Paid'); UPDATE orders SET state = 'paid', rea_seq = 2 WHERE nr = 1; COMMIT`)
	s.do(`UPDATE orders SET state = state`)
}

func TestWhatCannotBeGuardedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(orders + `CREATE VIEW seen AS SELECT * FROM orders; CREATE TABLE bare (a int); CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (9); CREATE TABLE nullable (id int UNIQUE); CREATE TEMP TABLE tmp (id int PRIMARY KEY);
CREATE TABLE odd (id int PRIMARY KEY, rea_seq text)`)
	for name, want := range map[string]string{
		"seen": "no table", "bare": "no primary key", "parent": "inherits", "child": "inherits", "parted_1": "is a partition", "nullable": "can be null", "tmp": "temporary",
		"rea.events": "no table of the application's", "nowhere": "there is no table",
	} {
		if _, err := guard.Add(t.Context(), w, name, guard.Settings{Type: "x"}, guard.By{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("guard %s: %v, want %q", name, err, want)
		}
	}
	for _, c := range []struct {
		s    guard.Settings
		want string
	}{
		{guard.Settings{}, "no aggregate type"}, {guard.Settings{Type: "x", Mode: "hide"}, "neither"}, {guard.Settings{Type: "x", Status: "nope"}, "no column nope"},
		{guard.Settings{Type: "x", Ignore: []string{"id"}}, "part of the id"}, {guard.Settings{Type: "x", Status: "status", Redact: []string{"status"}}, "cannot be ignored or redacted"},
		{guard.Settings{Type: "x", SQL: "some"}, "full, hash, off"}, {guard.Settings{Type: "x", Mode: guard.Refuse}, "--add-column"}, {guard.Settings{Type: "x", Mode: guard.Refuse, Truncate: "capture"}, "TRUNCATE"},
	} {
		if _, err := guard.Add(t.Context(), w, "orders", c.s, guard.By{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.s, err, c.want)
		}
	}
	if _, err := guard.Add(t.Context(), w, "odd", guard.Settings{Type: "x", Mode: guard.Refuse, AddColumn: true}, guard.By{}); err == nil || !strings.Contains(err.Error(), "should be bigint") {
		t.Errorf("a rea_seq that is no number: %v", err)
	}
	w.add("orders", guard.Settings{Type: "order"})
	if _, err := guard.Add(t.Context(), w, "orders", guard.Settings{Type: "other"}, guard.By{}); !errors.Is(err, rea.ErrConflict) {
		t.Errorf("a second guard: %v", err)
	}
	if _, err := guard.Add(t.Context(), w, "parted", guard.Settings{Type: "order"}, guard.By{}); !errors.Is(err, rea.ErrConflict) {
		t.Errorf("a second table of a type: %v", err)
	}
	if _, err := guard.Remove(t.Context(), w, "parted", guard.By{}); !errors.Is(err, rea.ErrNotFound) {
		t.Errorf("remove no guard: %v", err)
	}
}
