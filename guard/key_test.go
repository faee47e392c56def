package guard_test

import (
	"fmt"
	"testing"

	"github.com/realtime-event-archive/rea/guard"
)

func TestACompositeKeyIsOneIDAndItsPartsAreEncoded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(`CREATE TABLE lines (doc text, line int, n int, PRIMARY KEY (doc, line))`)
	w.add("lines", guard.Settings{Type: "line"})
	w.do(`INSERT INTO lines VALUES ('a/b%', 7, 1)`)
	w.do(`UPDATE lines SET n = 2`)
	w.events("line", `a%2Fb%25/7 1 DirectInsert {"new": {"n": 1, "doc": "a/b%", "line": 7}}
a%2Fb%25/7 2 DirectUpdate {"new": {"n": 2}, "old": {"n": 1}}`)
	w.want(`{"n": 2, "doc": "a/b%", "line": 7}`, `SELECT rea.guard_row('line', 'a%2Fb%25/7')`)
}

func TestAChangedKeyIsADeleteAndAnInsert(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(orders + `INSERT INTO orders VALUES (1, 'placed', 1, NULL), (2, 'paid', 2, NULL)`)
	w.add("orders", guard.Settings{Type: "order", Status: "status"})
	w.do(`UPDATE orders SET id = 5 WHERE id = 1`)
	w.events("order", `1 1 DirectDelete {"old": {"id": 1, "note": null, "amount": 1, "status": "placed"}}
5 1 DirectInsert {"new": {"id": 5, "note": null, "amount": 1, "status": "placed"}} placed`)
}

func TestSwappedKeysAreChangesOfTheRowsThatHaveThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(`CREATE TABLE seats (id int, who text, CONSTRAINT k PRIMARY KEY (id) DEFERRABLE); INSERT INTO seats VALUES (1, 'a'), (2, 'b')`)
	w.add("seats", guard.Settings{Type: "seat"})
	w.do(`UPDATE seats SET id = 3 - id`)
	w.events("seat", `1 1 DirectUpdate {"new": {"who": "b"}, "old": {"id": 1, "who": "a"}}
2 1 DirectUpdate {"new": {"who": "a"}, "old": {"id": 2, "who": "b"}}`)
}

func TestAKeyThatIsThereTwiceForAMomentIsPairedInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(`CREATE TABLE seats (id int, who text, CONSTRAINT k PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED); INSERT INTO seats VALUES (1, 'a'), (2, 'b')`)
	w.add("seats", guard.Settings{Type: "seat"})
	w.do(`BEGIN; UPDATE seats SET id = 1; UPDATE seats SET id = 2 WHERE who = 'a'; COMMIT`)
	w.want("2 a, 1 b", `SELECT string_agg(id || ' ' || who, ', ' ORDER BY who) FROM seats`)
	w.want("DirectDelete", `SELECT event_type FROM rea.events WHERE aggregate_type = 'seat' AND aggregate_id = '2' ORDER BY seq LIMIT 1`)
	w.do(`BEGIN; INSERT INTO seats VALUES (3, 'c'), (3, 'd'), (4, 'e'); DELETE FROM seats WHERE who = 'd'; COMMIT`)
	w.do(`BEGIN; INSERT INTO seats VALUES (3, 'd'); DELETE FROM seats WHERE id = 3; COMMIT`)
	w.want("Insert c, Insert d, Delete d, Insert d, Delete c, Delete d", `SELECT string_agg(replace(event_type, 'Direct', '') || ' ' || (coalesce(payload -> 'new', payload -> 'old') ->> 'who'), ', ' ORDER BY seq)
		FROM rea.events WHERE aggregate_type = 'seat' AND aggregate_id = '3'`)
}

func TestARowThatCascadesChangeTwiceIsRecordedInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(`CREATE TABLE users (id int PRIMARY KEY); INSERT INTO users VALUES (1);
CREATE TABLE posts (id int PRIMARY KEY, author int REFERENCES users ON DELETE SET NULL, editor int REFERENCES users ON DELETE SET NULL, n int);
INSERT INTO posts VALUES (10, 1, 1, 0)`)
	w.add("posts", guard.Settings{Type: "post"})
	w.do(`DELETE FROM users`)
	w.want(`{"editor": null}`, `SELECT payload -> 'new' FROM rea.events WHERE aggregate_type = 'post' ORDER BY seq DESC LIMIT 1`)
	w.want("2", `SELECT count(*) FROM rea.events WHERE aggregate_type = 'post'`)
}

func TestCascadesOfOtherRolesAreCaptured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := w.login()
	w.do(`CREATE TABLE users (id int PRIMARY KEY); INSERT INTO users VALUES (1);
CREATE TABLE posts (id int PRIMARY KEY, author int REFERENCES users ON DELETE CASCADE ON UPDATE CASCADE); INSERT INTO posts VALUES (10, 1);
GRANT ALL ON users TO ` + name)
	w.add("posts", guard.Settings{Type: "post"})
	other := w.session()
	other.do(`SET SESSION AUTHORIZATION ` + name)
	other.do(`UPDATE users SET id = 2`)
	other.do(`DELETE FROM users`)
	w.events("post", `10 1 DirectUpdate {"new": {"author": 2}, "old": {"id": 10, "author": 1}}
10 2 DirectDelete {"old": {"id": 10, "author": 2}}`)
	w.want(name, `SELECT DISTINCT login FROM rea.contexts WHERE table_name = 'public.posts' AND operation <> 'ALTER'`)
}

func TestRowsOfPartitionsAreCapturedThroughTheTableAndDirectly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(`CREATE TABLE logs (id int, at date, n int, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE logs_1 PARTITION OF logs FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE logs_2 (n int, id int NOT NULL, gone text, at date NOT NULL);
ALTER TABLE logs_2 DROP COLUMN gone;
ALTER TABLE logs ATTACH PARTITION logs_2 FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')`)
	w.add("logs", guard.Settings{Type: "log"})
	w.do(`INSERT INTO logs VALUES (1, '2026-01-05', 1), (2, '2026-02-05', 1)`)
	w.do(`INSERT INTO logs_2 (id, at, n) VALUES (3, '2026-02-06', 1)`)
	w.do(`UPDATE logs_2 SET n = 2 WHERE id = 3`)
	w.do(`UPDATE logs SET n = 3`)
	w.do(`DELETE FROM logs_1`)
	w.want("1/2026-01-05 DirectInsert, 1/2026-01-05 DirectUpdate, 1/2026-01-05 DirectDelete, 2/2026-02-05 DirectInsert, 2/2026-02-05 DirectUpdate, 3/2026-02-06 DirectInsert, 3/2026-02-06 DirectUpdate, 3/2026-02-06 DirectUpdate",
		`SELECT string_agg(aggregate_id || ' ' || event_type, ', ' ORDER BY aggregate_id, seq) FROM rea.events WHERE aggregate_type = 'log'`)
	w.do(`UPDATE logs SET at = '2026-01-06' WHERE id = 2`)
	w.want("2/2026-01-06 DirectInsert, 2/2026-02-05 DirectDelete", `SELECT string_agg(aggregate_id || ' ' || event_type, ', ' ORDER BY aggregate_id) FROM rea.events WHERE context_id = (SELECT max(context_id) FROM rea.contexts)`)

	w.do(`CREATE TABLE logs_3 PARTITION OF logs FOR VALUES FROM ('2026-03-01') TO ('2026-04-01')`)
	w.refused("RE011", `TRUNCATE logs`)
	states, err := guard.Status(t.Context(), w)
	if err != nil || len(states) != 1 || fmt.Sprint(states[0].Problems) != "[public.logs_3 has not all triggers of the guard: `rea guard regenerate public.logs`]" {
		t.Errorf("Status = %v, %v, want the new partition", states, err)
	}
	if _, _, err := guard.Regenerate(t.Context(), w, "logs", guard.By{}); err != nil {
		t.Fatal(err)
	}
	w.do(`INSERT INTO logs_3 VALUES (9, '2026-03-03', 1)`)
	w.want("1", `SELECT count(*) FROM rea.events WHERE aggregate_type = 'log' AND aggregate_id LIKE '9/%'`)
	w.do(`TRUNCATE logs`)
	w.want("3", `SELECT count(*) FROM rea.events e JOIN rea.contexts c USING (context_id) WHERE c.operation = 'TRUNCATE'`)
}

func TestARowThatMovesBetweenPartitionsWithItsKeyIsOneChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(`CREATE TABLE logs (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
CREATE TABLE logs_1 PARTITION OF logs FOR VALUES FROM (0) TO (10); CREATE TABLE logs_2 PARTITION OF logs FOR VALUES FROM (10) TO (20)`)
	w.add("logs", guard.Settings{Type: "log"})
	w.do(`INSERT INTO logs VALUES (1, 1); UPDATE logs SET id = 11, n = 2`)
	w.events("log", `1 1 DirectInsert {"new": {"n": 1, "id": 1}}
1 2 DirectDelete {"old": {"n": 1, "id": 1}}
11 1 DirectInsert {"new": {"n": 2, "id": 11}}`)
}

func TestAKeyThatNobodyMayWriteCanBeGuarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(`CREATE TABLE bills (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int); INSERT INTO bills (n) VALUES (1);
CREATE TABLE sums (a int, id int GENERATED ALWAYS AS (a + 1) STORED PRIMARY KEY); INSERT INTO sums VALUES (1);
CREATE TABLE numbers (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY); INSERT INTO numbers DEFAULT VALUES`)
	for table, kind := range map[string]string{"bills": "bill", "sums": "sum", "numbers": "number"} {
		w.add(table, guard.Settings{Type: kind})
	}
	w.do(`UPDATE bills SET n = 2; INSERT INTO numbers DEFAULT VALUES; INSERT INTO sums VALUES (2)`)
	w.events("bill", `1 1 DirectUpdate {"new": {"n": 2}, "old": {"n": 1, "id": 1}}`)
	w.events("number", `2 1 DirectInsert {"new": {"id": 2}}`)
	w.events("sum", `3 1 DirectInsert {"new": {"a": 2, "id": 3}}`)
}
