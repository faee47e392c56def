package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/guard"
	"github.com/realtime-event-archive/rea/postgres"
)

func TestAKilledBulkStatementLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(orders + `INSERT INTO orders SELECT n, 'placed', n, NULL FROM generate_series(10000, 19999) n`)
	w.add("orders", guard.Settings{Type: "order", Status: "status"})
	w.baseline("orders", "order")
	holder, victim := w.session(), w.session()
	holder.do(`BEGIN; SELECT rea.append('order', '15000', 'NoteAdded')`)
	done := make(chan error, 1)
	go func() { done <- victim.try(`UPDATE orders SET status = 'paid'`) }()
	w.waits(victim) // half of its events are stored
	w.do(fmt.Sprintf(`SELECT pg_terminate_backend(%d)`, victim.PgConn().PID()))
	if err := <-done; sqlState(err) != "57P01" {
		t.Errorf("the killed statement: %v", err)
	}
	holder.do(`COMMIT`)
	w.want("0 0", `SELECT (SELECT count(*) FROM orders WHERE status = 'paid') || ' ' || (SELECT count(*) FROM rea.events WHERE event_type = 'DirectUpdate')`)
	w.want("0", `SELECT count(*) FROM rea.contexts WHERE operation = 'UPDATE'`)

	// the ids that it drew are holes, which are forgotten; what comes later has its positions
	w.do(`UPDATE orders SET status = 'paid'`)
	archive, err := postgres.New(w.pool(2), postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want("true", `SELECT count(*) = max(position) AND count(*) = (SELECT count(*) FROM rea.events) FROM rea.feed`)
	w.same("the check", w.differences("orders", "order"), "")
}

func TestOfTwoThatCaptureCrosswiseOneGoesOn(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`CREATE TABLE lines (id int PRIMARY KEY, n int); INSERT INTO lines VALUES (1, 1), (2, 1)`)
	w.add("lines", guard.Settings{Type: "line"})
	one, two := w.session(), w.session()
	one.do(`BEGIN; UPDATE orders SET status = 'one'`)
	two.do(`BEGIN; UPDATE lines SET n = 2`)
	done := make(chan error, 1)
	go func() { done <- one.try(`UPDATE lines SET n = 1 - n`) }()
	w.waits(one)
	second := two.try(`UPDATE orders SET status = 'two'`)
	first := <-done
	states := sqlState(first) + sqlState(second)
	if states != "40P01" {
		t.Fatalf("one: %v; two: %v, want 40P01 for one of them", first, second)
	}
	_ = one.try(`COMMIT`)
	_ = two.try(`COMMIT`)
	w.want("2 2", `SELECT count(*) FILTER (WHERE aggregate_type = 'order') || ' ' || count(*) FILTER (WHERE aggregate_type = 'line') FROM rea.events WHERE event_type = 'DirectUpdate'`)
	w.same("orders", w.differences("orders", "order"), "")
	w.same("lines", w.differences("lines", "line"), "")
}

func TestAnAppenderAndAWriterThatMeetAreADeadlockForOne(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(baseline)
	appender, writer := w.session(), w.session()
	writer.do(`BEGIN; UPDATE orders SET status = 'a' WHERE id = 1`)
	appender.do(`BEGIN; SELECT rea.append('order', '2', 'NoteAdded')`)
	done := make(chan error, 1)
	go func() { done <- writer.try(`UPDATE orders SET status = 'a' WHERE id = 2`) }()
	w.waits(writer)
	second := appender.try(`UPDATE orders SET status = 'b' WHERE id = 2`)
	first := <-done
	if states := sqlState(first) + sqlState(second); states != "40P01" {
		t.Fatalf("writer: %v; appender: %v, want 40P01 for one of them", first, second)
	}
	_ = writer.try(`COMMIT`)
	_ = appender.try(`COMMIT`)
	w.want("true", folded)
}

func TestAWriterInASnapshotMeetsAnAppendAsASerializationFailure(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
		w := ordersWorld(t, guard.Settings{})
		w.do(baseline)
		s := w.session()
		s.do(`BEGIN ISOLATION LEVEL ` + level + `; SELECT count(*) FROM orders`)
		w.do(`SELECT rea.append('order', '1', 'NoteAdded')`)
		s.refused("40001", `UPDATE orders SET status = 'paid' WHERE id = 1`)
		s.do(`ROLLBACK; BEGIN ISOLATION LEVEL ` + level + `; UPDATE orders SET status = 'paid'; COMMIT`)
		w.want("true", folded)
	}
}

func TestAPreparedTransactionIsCapturedWhenItCommits(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	gid := w.one(`SELECT current_database()`)
	w.do(`BEGIN; SELECT rea.set_context('42', 'two phases', NULL); UPDATE orders SET status = 'paid' WHERE id = 1; PREPARE TRANSACTION '` + gid + `a'`)
	w.do(`BEGIN; UPDATE orders SET status = 'gone' WHERE id = 2; PREPARE TRANSACTION '` + gid + `b'`)
	w.want("", kinds)
	w.do(`COMMIT PREPARED '` + gid + `a'`)
	w.do(`ROLLBACK PREPARED '` + gid + `b'`)
	w.events("order", `1 1 DirectUpdate {"new": {"status": "paid"}, "old": {"id": 1, "note": null, "amount": 1, "status": "placed"}} paid`)
	w.want("42 UPDATE 1", `SELECT e.actor_id || ' ' || c.operation || ' ' || c.rows FROM rea.events e JOIN rea.contexts c USING (context_id) WHERE aggregate_type = 'order'`)
}

func TestARowOfEightMegabytesIsRecordedAndOneBeyondTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`UPDATE orders SET note = repeat('x', 8000000) WHERE id = 1`)
	w.do(`UPDATE orders SET note = repeat('y', 8000000) WHERE id = 1`) // old and new: just below 16 MiB
	w.do(`UPDATE orders SET note = repeat('z', 16000000) WHERE id = 2`)
	w.want("8000000 16000000", `SELECT string_agg(length(rea.fold_value('order', o.id::text, 'note') #>> '{}')::text, ' ' ORDER BY o.id) FROM orders o`)
	w.do(`DELETE FROM orders WHERE id = 2`)

	for name, c := range map[string]struct{ sql, row string }{
		"an insert":     {`INSERT INTO orders VALUES (3, 'x', 1, repeat('x', 17000000))`, "3"},
		"an update":     {`UPDATE orders SET note = repeat('z', 9000000)`, "1"},
		"another key":   {`UPDATE orders SET id = 9, note = repeat('z', 17000000)`, "9"},
		"one of many":   {`INSERT INTO orders SELECT n, 'x', 1, CASE n WHEN 77 THEN repeat('x', 17000000) END FROM generate_series(50, 99) n`, "77"},
		"spelt in json": {`INSERT INTO orders VALUES (4, 'x', 1, repeat(chr(1), 3000000))`, "4"}, // six bytes each
	} {
		e := w.refused("RE005", c.sql)
		if !strings.Contains(e.Message, "cannot record the row "+c.row+": its payload") || !strings.Contains(e.Hint, "--ignore") {
			t.Errorf("%s: %s, %s", name, e.Message, e.Hint)
		}
	}
	w.want("8000000", `SELECT string_agg(DISTINCT length(note)::text, ' ') FROM orders`)
	w.want("1Update 1Update 2Update 2Delete", kinds)
}

func TestARowThatIsTooDeepIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(`CREATE TABLE docs (id int PRIMARY KEY, doc jsonb)`)
	w.add("docs", guard.Settings{Type: "doc"})
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	w.do(`INSERT INTO docs VALUES (1, $1::text::jsonb)`, deep(898))
	w.refused("RE005", `INSERT INTO docs VALUES (2, $1::text::jsonb)`, deep(899))
	w.want("1", `SELECT count(*) FROM docs`)
}
