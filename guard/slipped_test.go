package guard_test

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/adopt"
	"github.com/realtime-event-archive/rea/guard"
)

// differences are what a check of a table finds, in order.
func (w world) differences(table, kind string) string {
	w.t.Helper()
	pool := w.pool(2)
	described, err := adopt.Describe(w.t.Context(), pool, table, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	list := []string{}
	_, err = adopt.Check(w.t.Context(), pool, described, adopt.CheckOptions{Type: kind, Report: func(d adopt.Difference) {
		line := d.Kind + " " + d.Aggregate.ID
		for _, c := range d.Columns {
			line += fmt.Sprintf(" %s %s, not %s", c.Column, c.Table, c.Events)
		}
		list = append(list, line)
	}})
	if err != nil {
		w.t.Fatalf("check of %s: %v", table, err)
	}
	sort.Strings(list)
	return strings.Join(list, "\n")
}

// same compares two texts.
func (w world) same(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

const logs = `CREATE TABLE logs (id int, at int, n int, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE logs_1 PARTITION OF logs FOR VALUES FROM (0) TO (10); CREATE TABLE logs_2 PARTITION OF logs FOR VALUES FROM (10) TO (20);
INSERT INTO logs VALUES (1, 1, 1), (2, 11, 1)`

func TestADetachedPartitionIsGuardedStillAndSaidToBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(logs)
	w.add("logs", guard.Settings{Type: "log"})
	w.baseline("logs", "log")
	w.do(`ALTER TABLE logs DETACH PARTITION logs_2`)
	w.do(`UPDATE logs_2 SET n = 2; INSERT INTO logs_2 VALUES (3, 12, 1); UPDATE logs SET n = 3`)
	w.want("1/1 BaselineCreated, 1/1 DirectUpdate, 2/11 BaselineCreated, 2/11 DirectUpdate, 3/12 DirectInsert",
		`SELECT string_agg(aggregate_id || ' ' || event_type, ', ' ORDER BY aggregate_id, seq) FROM rea.events WHERE aggregate_type = 'log'`)
	w.same("the check", w.differences("logs", "log"), "extra 2/11\nextra 3/12")
	w.same("problems", w.problems(), "public.logs_2 is no partition of it any more, and what is written there is recorded still: attach it again, or drop its triggers rea_guard_insert, rea_guard_update, rea_guard_delete and rea_guard_truncate")
	w.do(`ALTER TABLE logs ATTACH PARTITION logs_2 FOR VALUES FROM (10) TO (20)`)
	w.same("problems", w.problems(), "")
	w.same("the check", w.differences("logs", "log"), "")

	w.do(`ALTER TABLE logs DETACH PARTITION logs_2`)
	if _, err := guard.Remove(t.Context(), w, "logs", guard.By{}); err != nil {
		t.Fatal(err)
	}
	w.want("0 false", `SELECT count(*) || ' ' || has_table_privilege('rea_owner', 'logs_2', 'SELECT') FROM pg_trigger WHERE tgname LIKE 'rea_guard%'`)
}

func TestAnAttachedTableIsNamedUntilItIsGuarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(logs + `; CREATE TABLE logs_3 (n int, at int NOT NULL, id int NOT NULL, PRIMARY KEY (id, at)); INSERT INTO logs_3 VALUES (1, 21, 7)`)
	w.add("logs", guard.Settings{Type: "log"})
	w.baseline("logs", "log")
	w.do(`ALTER TABLE logs ATTACH PARTITION logs_3 FOR VALUES FROM (20) TO (30)`)
	w.do(`UPDATE logs_3 SET n = 2`) // nobody sees it
	w.same("the check", w.differences("logs", "log"), "missing 7/21")
	w.same("problems", w.problems(), "public.logs_3 has not all triggers of the guard: `rea guard regenerate public.logs`")
	w.do(`UPDATE logs SET n = 3 WHERE id = 7`) // through the table it is seen
	w.regenerate("logs", 0)
	w.do(`UPDATE logs_3 SET n = 4`)
	w.same("problems", w.problems(), "")
	w.same("the check", w.differences("logs", "log"), "")
}

func TestAGuardedTableThatIsAttachedToAnotherOneIsToldByBoth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(logs + `; CREATE TABLE logs_3 (id int, at int, n int, PRIMARY KEY (id, at))`)
	w.add("logs", guard.Settings{Type: "log"})
	w.add("logs_3", guard.Settings{Type: "late"})
	w.do(`ALTER TABLE logs ATTACH PARTITION logs_3 FOR VALUES FROM (20) TO (30); INSERT INTO logs_3 VALUES (7, 21, 1)`)
	states, err := guard.Status(t.Context(), w)
	if err != nil || len(states) != 2 {
		t.Fatalf("Status = %v, %v", states, err)
	}
	w.same("problems of the table", strings.Join(states[0].Problems, "\n"), "public.logs_3 has not all triggers of the guard: `rea guard regenerate public.logs`")
	w.same("problems of the partition", strings.Join(states[1].Problems, "\n"), "it is a partition of public.logs now, and what is written there does not come by here: `rea guard remove`, and guard public.logs")
	w.want("late", `SELECT aggregate_type FROM rea.events WHERE aggregate_id = '7/21'`)
	if _, err := guard.Remove(t.Context(), w, "logs_3", guard.By{}); err != nil {
		t.Fatal(err)
	}
	w.regenerate("logs", 0)
	w.do(`UPDATE logs_3 SET n = 2`)
	w.want("late log", `SELECT string_agg(aggregate_type, ' ' ORDER BY aggregate_type) FROM rea.events WHERE aggregate_id = '7/21'`)
	w.same("problems", w.problems(), "")
}

func TestARenamedAndMovedTableStaysGuarded(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.baseline("orders", "order")
	w.do(`CREATE SCHEMA shop; REVOKE ALL ON SCHEMA shop FROM PUBLIC; ALTER TABLE orders SET SCHEMA shop; ALTER TABLE shop.orders RENAME TO purchases; ALTER TABLE shop.purchases RENAME id TO nr`)
	w.do(`UPDATE shop.purchases SET status = 'paid' WHERE nr = 1; DELETE FROM shop.purchases WHERE nr = 2`)
	w.want("1BaselineCreated 2BaselineCreated 1Update 2Delete", kinds)
	w.want("shop.purchases", `SELECT table_name FROM rea.contexts ORDER BY context_id DESC LIMIT 1`)
	w.same("problems", w.problems(), "renamed id to nr since the guard was made, which goes the slow way: `rea guard regenerate shop.purchases`\nrea_owner may not read the table, as TRUNCATE has it do: `rea guard regenerate shop.purchases`")
	w.refused("42501", `TRUNCATE shop.purchases`) // it has to read them
	w.regenerate("shop.purchases", 1)
	w.same("problems", w.problems(), "")
	w.same("the check", w.differences("shop.purchases", "order"), "")
	w.do(`TRUNCATE shop.purchases`)
	w.same("the check", w.differences("shop.purchases", "order"), "")
}

func TestATableThatWasMadeAnewIsNotTheGuardedOne(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`UPDATE orders SET status = 'paid'`)
	number := w.one(`SELECT 'orders'::regclass::oid`)
	w.do(`DROP TABLE orders; ` + orders + `INSERT INTO orders VALUES (1, 'anew', 1, NULL), (3, 'anew', 3, NULL)`)
	w.do(`SELECT rea.append('order', '9', 'Placed')`) // there is no row to ask for
	w.want("9", `SELECT max(aggregate_id) FROM rea.events WHERE aggregate_type = 'order'`)
	w.same("problems", w.problems(), "the table was dropped: `rea guard remove "+number+"`")
	_, err := guard.Add(t.Context(), w, "orders", guard.Settings{Type: "order"}, guard.By{})
	if !errors.Is(err, rea.ErrConflict) || !strings.Contains(err.Error(), "rea guard remove "+number) {
		t.Errorf("guard the new table: %v", err)
	}
	if _, err := guard.Remove(t.Context(), w, number, guard.By{}); err != nil {
		t.Fatal(err)
	}
	w.add("orders", guard.Settings{Type: "order"})
	w.same("the check", w.differences("orders", "order"), `different 1 status "anew", not "paid"`+"\nextra 2\nextra 9\nmissing 3")
}

func TestAColumnThatWasMadeAnewStaysRedacted(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{Redact: []string{"note"}, Ignore: []string{"amount"}})
	w.do(`ALTER TABLE orders DROP note, DROP amount; ALTER TABLE orders ADD note text, ADD amount numeric`)
	w.do(`UPDATE orders SET note = 'secret', amount = 5; UPDATE orders SET id = id + 10, note = 'secret too'; TRUNCATE orders`)
	w.do(`INSERT INTO orders VALUES (1, 'placed')`)
	w.regenerate("orders", 0)
	w.do(`UPDATE orders SET note = 'secret', amount = 6; UPDATE orders SET id = id + 10; TRUNCATE orders`)
	w.want("0", `SELECT count(*) FROM rea.events WHERE payload::text LIKE '%secret%' OR payload -> 'new' ? 'amount'`)
	w.same("problems", w.problems(), "")
}

func TestAColumnThatWasMadeAnewIsLevelled(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`UPDATE orders SET note = 'old'`)
	w.do(`ALTER TABLE orders DROP note, ADD note2 int; ALTER TABLE orders ADD note text DEFAULT 'new'; ALTER TABLE orders DROP note2`)
	w.same("problems", w.problems(), "dropped note since the guard was made, which goes the slow way: `rea guard regenerate public.orders`\nadded note since the guard was made, which goes the slow way: `rea guard regenerate public.orders`")
	w.regenerate("orders", 2)
	w.same("the check", w.differences("orders", "order"), "")
}

func TestWhatIsWrittenWhileTriggersAreOffIsFound(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"as a replica":      `SET session_replication_role = replica; %s; RESET session_replication_role`,
		"all of them off":   `ALTER TABLE orders DISABLE TRIGGER ALL; %s; ALTER TABLE orders ENABLE TRIGGER ALL`,
		"those of users":    `ALTER TABLE orders DISABLE TRIGGER USER; %s; ALTER TABLE orders ENABLE TRIGGER USER`,
		"in replicas alone": `ALTER TABLE orders ENABLE REPLICA TRIGGER rea_guard_update, ENABLE REPLICA TRIGGER rea_guard_insert, ENABLE REPLICA TRIGGER rea_guard_delete; %s`,
		"by a rewrite":      `ALTER TABLE orders ALTER status TYPE text USING CASE id WHEN 1 THEN 'hidden' ELSE status END; ALTER TABLE orders DISABLE TRIGGER USER; DELETE FROM orders WHERE id = 2; INSERT INTO orders VALUES (3, 'hidden'); ALTER TABLE orders ENABLE TRIGGER USER`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ordersWorld(t, guard.Settings{})
			w.baseline("orders", "order")
			w.do(strings.ReplaceAll(sql, "%s", `UPDATE orders SET status = 'hidden' WHERE id = 1; DELETE FROM orders WHERE id = 2; INSERT INTO orders VALUES (3, 'hidden')`))
			w.same("the check", w.differences("orders", "order"), `different 1 status "hidden", not "placed"`+"\nextra 2\nmissing 3")
		})
	}
}
