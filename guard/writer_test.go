package guard_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/guard"
)

func TestAnIdentityThatIsAlwaysGeneratedIsGuarded(t *testing.T) {
	t.Parallel()
	for _, mode := range []guard.Mode{guard.Capture, guard.Refuse} {
		w := newWorld(t)
		w.do(`CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, status text, twice bigint GENERATED ALWAYS AS (length(status) * 2) STORED);
INSERT INTO orders (status) VALUES ('a')`)
		w.add("orders", guard.Settings{Type: "order", Status: "status", Mode: mode, AddColumn: mode == guard.Refuse})
		if mode == guard.Refuse {
			w.refused("RE011", `INSERT INTO orders (id, status) OVERRIDING SYSTEM VALUE VALUES (7, 'b')`)
			continue
		}
		w.do(`INSERT INTO orders (id, status) OVERRIDING SYSTEM VALUE VALUES (7, 'b'); INSERT INTO orders (id, status) OVERRIDING USER VALUE VALUES (9, 'c'); UPDATE orders SET id = DEFAULT, status = 'dd' WHERE id = 7`)
		w.events("order", `2 1 DirectInsert {"new": {"id": 2, "twice": 2, "status": "c"}} c
3 1 DirectInsert {"new": {"id": 3, "twice": 4, "status": "dd"}} dd
7 1 DirectInsert {"new": {"id": 7, "twice": 2, "status": "b"}} b
7 2 DirectDelete {"old": {"id": 7, "twice": 2, "status": "b"}}`)
	}
}

func TestAKeyThatIsComputedIsGuarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(`CREATE TABLE tags (name text NOT NULL, id text GENERATED ALWAYS AS (lower(name)) STORED PRIMARY KEY); INSERT INTO tags VALUES ('A')`)
	w.add("tags", guard.Settings{Type: "tag"})
	w.do(`INSERT INTO tags VALUES ('B'); UPDATE tags SET name = 'C' WHERE id = 'a'; UPDATE tags SET name = 'b' WHERE id = 'b'`)
	w.events("tag", `a 1 DirectDelete {"old": {"id": "a", "name": "A"}}
b 1 DirectInsert {"new": {"id": "b", "name": "B"}}
b 2 DirectUpdate {"new": {"name": "b"}, "old": {"name": "B"}}
c 1 DirectInsert {"new": {"id": "c", "name": "C"}}`)
}

func TestATableThatLetsNobodyUpdateItsRowsIsGuarded(t *testing.T) {
	t.Parallel()
	const raise = `CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'bookings stay'; END $$; CREATE TRIGGER no BEFORE UPDATE ON bookings `
	for name, c := range map[string]struct{ sql, state string }{
		"a trigger of rows refuses":       {raise + `FOR EACH ROW EXECUTE FUNCTION no()`, "P0001"},
		"a trigger of statements refuses": {raise + `FOR EACH STATEMENT EXECUTE FUNCTION no()`, "P0001"},
		"rows break a constraint":         {`ALTER TABLE bookings ADD CHECK (cents > 9) NOT VALID`, "23514"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.do(`CREATE TABLE bookings (id int PRIMARY KEY, cents int); INSERT INTO bookings VALUES (1, 5); ` + c.sql)
			w.add("bookings", guard.Settings{Type: "booking"})
			w.do(`INSERT INTO bookings VALUES (2, 16)`)
			w.refused(c.state, `UPDATE bookings SET cents = 7`)
			w.events("booking", `2 1 DirectInsert {"new": {"id": 2, "cents": 16}}`)
		})
	}
}

func TestATableThatStampsItsRowsIsGuarded(t *testing.T) {
	t.Parallel()
	for _, s := range []guard.Settings{{}, {RequireReason: true}, {Mode: guard.Refuse, AddColumn: true}} {
		w := newWorld(t)
		w.do(orders + `ALTER TABLE orders ADD updated_at timestamptz; INSERT INTO orders VALUES (1, 'placed', 1, NULL);
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.updated_at := clock_timestamp(); RETURN NEW; END $$; CREATE TRIGGER stamp BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION stamp()`)
		s.Type = "order"
		w.add("orders", s)
		w.want("0", `SELECT count(*) FROM rea.events WHERE aggregate_type = 'order'`)
		w.want("null", `SELECT updated_at FROM orders`)
	}
}

// doors are ways to write a row of orders that exists, or a new one.
var doors = map[string]string{
	"update returning":  `UPDATE orders SET status = 'x' WHERE id = 1 RETURNING *`,
	"upsert":            `INSERT INTO orders VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET status = excluded.status`,
	"a chain":           `WITH a AS (SELECT 1 AS id), b AS (UPDATE orders o SET status = 'x' FROM a WHERE o.id = a.id RETURNING o.id) SELECT * FROM b`,
	"a view":            `UPDATE seen SET status = 'x' WHERE id = 1`,
	"a view's trigger":  `UPDATE joined SET status = 'x' WHERE id = 1`,
	"a view's rule":     `UPDATE ruled SET status = 'x' WHERE id = 1`,
	"a rule":            `INSERT INTO requests VALUES (1)`,
	"a function":        `SELECT write_it()`,
	"a dynamic one":     `DO $$ BEGIN EXECUTE 'UPDATE orders SET status = ''x'' WHERE id = 1'; END $$`,
	"a cursor":          `BEGIN; DECLARE c CURSOR FOR SELECT * FROM orders WHERE id = 1 FOR UPDATE; FETCH c; UPDATE orders SET status = 'x' WHERE CURRENT OF c; COMMIT`,
	"a prepared one":    `PREPARE p AS UPDATE orders SET status = 'x' WHERE id = $1; EXECUTE p(1)`,
	"a cascade":         `DELETE FROM customers WHERE id = 1`,
	"merge":             `MERGE INTO orders o USING (VALUES (1)) v (id) ON v.id = o.id WHEN MATCHED THEN UPDATE SET status = 'x'`,
	"a session setting": `SET rea.guard = off; SET row_security = off; SET check_function_bodies = off; SET search_path = pg_temp, public; UPDATE orders SET status = 'x' WHERE id = 1`,
}

const doorsSQL = `CREATE TABLE customers (id int PRIMARY KEY); INSERT INTO customers VALUES (1);
CREATE TABLE orders (id bigint PRIMARY KEY, status text, customer int REFERENCES customers ON DELETE SET NULL); INSERT INTO orders VALUES (1, 'placed', 1), (2, 'placed', NULL);
CREATE VIEW seen AS SELECT id, status FROM orders WHERE id < 5 WITH CHECK OPTION;
CREATE VIEW joined AS SELECT o.id, o.status FROM orders o JOIN customers c ON c.id = o.customer;
CREATE FUNCTION write_joined() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE orders SET status = NEW.status WHERE id = NEW.id; RETURN NEW; END $$;
CREATE TRIGGER write_joined INSTEAD OF UPDATE ON joined FOR EACH ROW EXECUTE FUNCTION write_joined();
CREATE VIEW ruled AS SELECT id, status FROM orders; CREATE RULE r AS ON UPDATE TO ruled DO INSTEAD UPDATE orders SET status = NEW.status WHERE id = OLD.id;
CREATE TABLE requests (id bigint); CREATE RULE r AS ON INSERT TO requests DO ALSO UPDATE orders SET status = 'x' WHERE id = NEW.id;
CREATE FUNCTION write_it() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ UPDATE orders SET status = 'x' WHERE id = 1 $$;`

func TestEveryDoorIsCaptured(t *testing.T) {
	t.Parallel()
	for name, sql := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if strings.HasPrefix(sql, "MERGE") && w.older(15) {
				return
			}
			w.do(doorsSQL)
			w.add("orders", guard.Settings{Type: "order", Status: "status"})
			w.do(sql)
			w.want("1 1 DirectUpdate", `SELECT string_agg(aggregate_id || ' ' || seq || ' ' || event_type, ', ') FROM rea.events WHERE aggregate_type = 'order'`)
			w.want("1", `SELECT count(*) FROM rea.contexts WHERE operation = 'UPDATE' AND rows = 1`)
		})
	}
}

func TestEveryDoorIsRefused(t *testing.T) {
	t.Parallel()
	for name, sql := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if strings.HasPrefix(sql, "MERGE") && w.older(15) {
				return
			}
			w.do(doorsSQL)
			w.add("orders", guard.Settings{Type: "order", Status: "status", Mode: guard.Refuse, AddColumn: true})
			w.refused("RE011", sql)
			_ = w.try(`ROLLBACK`)
			w.want("placed 1, placed -", `SELECT string_agg(status || ' ' || coalesce(customer::text, '-'), ', ' ORDER BY id) FROM orders`)
		})
	}
}

// older reports whether the server is older than a version, and says that a test leaves something out for it.
func (w world) older(version int) bool {
	w.t.Helper()
	if w.one(fmt.Sprintf(`SELECT current_setting('server_version_num')::int < %d`, version*10_000)) != "true" {
		return false
	}
	fmt.Fprintf(os.Stderr, "NOT TESTED: %s: MERGE takes PostgreSQL %d\n", w.t.Name(), version)
	return true
}

func TestCopyIntoARefusingGuardIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(orders)
	w.add("orders", guard.Settings{Type: "order", Mode: guard.Refuse, AddColumn: true})
	_, err := w.CopyFrom(t.Context(), pgx.Identifier{"orders"}, []string{"id", "rea_seq"}, pgx.CopyFromRows([][]any{{int64(3), int64(1)}}))
	if sqlState(err) != "RE011" {
		t.Errorf("copy: %v", err)
	}
	w.want("0", `SELECT count(*) FROM orders`)
}

func TestAnUpsertThatMeetsARowTwiceLeavesNothing(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.refused("21000", `INSERT INTO orders VALUES (1, 'x', 1), (1, 'y', 1) ON CONFLICT (id) DO UPDATE SET status = excluded.status`)
	w.want("", kinds)
	// one row, once by each part of a chain: PostgreSQL writes one of the two
	w.do(`WITH a AS (UPDATE orders SET status = 'a' WHERE id = 1 RETURNING id) UPDATE orders SET status = 'b' WHERE id = 1`)
	w.do(`WITH a AS (UPDATE orders SET status = 'c' WHERE id = 1 RETURNING id) DELETE FROM orders USING a WHERE orders.id = a.id AND a.id = 2`)
	w.want("1Update 1Update", kinds)
	w.same("the check", w.differences("orders", "order"), "missing 2")
}

func TestATriggerOfTheApplicationThatRaisesLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"BEFORE UPDATE ON orders FOR EACH ROW", "AFTER UPDATE ON orders FOR EACH ROW", "AFTER UPDATE ON orders FOR EACH STATEMENT"} {
		w := ordersWorld(t, guard.Settings{})
		w.do(`CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$; CREATE TRIGGER zz_no ` + when + ` EXECUTE FUNCTION no()`)
		w.refused("P0001", `UPDATE orders SET status = 'x'`)
		w.do(`DO $$ BEGIN UPDATE orders SET status = 'x'; EXCEPTION WHEN raise_exception THEN NULL; END $$`)
		w.want("", kinds)
		w.want("0", `SELECT count(*) FROM rea.contexts WHERE operation = 'UPDATE'`)
	}
}

func TestNamesOfASessionsOwnDoNotReachTheGuard(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	name := w.login()
	w.do(`GRANT ALL ON orders TO ` + name + `; GRANT CREATE ON SCHEMA public TO ` + name + `; GRANT USAGE ON SCHEMA rea TO ` + name)
	s := w.session()
	s.do(`SET SESSION AUTHORIZATION ` + name + `;
CREATE TEMP TABLE events (id bigint, aggregate_type text, aggregate_id text, seq bigint, event_type text, payload jsonb, status text, context_id bigint); CREATE TEMP TABLE contexts (x int); CREATE TEMP TABLE guards (x int); CREATE TEMP TABLE rea_old (x int); CREATE TEMP TABLE rea_new (x int); CREATE TEMP TABLE rea_y (x int);
CREATE TEMP TABLE pg_attribute (attname text, attrelid oid, attnum int, attisdropped bool, atttypid oid); CREATE TEMP TABLE pg_class (oid oid, relname text);
CREATE FUNCTION public.observe(bigint, text, text, text, bigint, text) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 = 1';
CREATE FUNCTION public.guard_1_update() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION public.jsonb_build_object(text, anyelement) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb';
CREATE FUNCTION public.count(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
CREATE FUNCTION public.never(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR public.= (FUNCTION = public.never, LEFTARG = bigint, RIGHTARG = bigint)`)
	for _, path := range []string{`public, pg_temp, pg_catalog`, `pg_temp, public, pg_catalog`, `public, rea, pg_catalog`} {
		s.do(`SET search_path = ` + path)
		s.do(`UPDATE public.orders SET status = status || 'x'`)
		s.do(`UPDATE public.orders SET id = id + 10 WHERE id OPERATOR(pg_catalog.<) 3; UPDATE public.orders SET id = id - 10 WHERE id OPERATOR(pg_catalog.>) 10`) // the other way
	}
	w.want("30 events", `SELECT count(*) || ' events' FROM rea.events WHERE aggregate_type = 'order'`)
	w.want("true", folded)
	w.want("9", `SELECT count(*) FROM rea.contexts WHERE operation = 'UPDATE'`)
}
