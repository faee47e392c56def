package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/guard"
)

// hostile are settings of a session that change the texts of values.
const hostile = `SET TimeZone = 'Asia/Kolkata'; SET DateStyle = 'German, DMY'; SET IntervalStyle = 'sql_standard'; SET bytea_output = 'escape'; SET extra_float_digits = -5;
SET standard_conforming_strings = off; SET search_path = ''; SET lc_monetary = 'C'; SET quote_all_identifiers = on; SET plan_cache_mode = force_custom_plan; SET transform_null_equals = on; SET row_security = on;`

func TestValuesAreExactWhateverTheSessionSays(t *testing.T) { // TIME-2, JSON-4
	t.Parallel()
	w := newWorld(t)
	w.do(`CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN cents AS numeric CHECK (VALUE >= 0); CREATE TYPE pair AS (a int, b text); CREATE DOMAIN spelt AS json;
CREATE TABLE v (id int PRIMARY KEY, ts timestamptz, t timestamp, d date, n numeric, f float8, r float4, iv interval, b bytea, m mood, c cents, p pair, a int[], ta text[], j json, jb jsonb, sj spelt, ja json[],
  u uuid, o bool, g int GENERATED ALWAYS AS (id * 2) STORED, mo money, ch char(5), bits bit(3), ip inet, rg int4range)`)
	w.add("v", guard.Settings{Type: "v"})
	s := w.session()
	s.do(hostile)
	s.do(`INSERT INTO public.v VALUES (1, '2026-01-02 03:04:05.123456+00', '2026-01-02 03:04:05', '2026-01-02', 'NaN', 0.1, 0.1, '1 day 02:03:04', '\\x00ff', 'glad', 1.50, ROW(1, 'x,y'), '{1,NULL,3}',
  '{"a,b",NULL,"null"}', '{"b": 1, "a":  1.0, "b": 2}', '{"b": 1.0, "a": 1e2}', '[1,  2]', ARRAY['{"x":  1}'::json], 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', true, DEFAULT, 1234.5, 'ab', B'101', '10.0.0.1', '[1,5)')`)
	w.want(`{"a": [1, null, 3], "b": "\\x00ff", "c": 1.50, "d": "2026-01-02", "f": 0.1, "g": 2, "j": "{\"b\": 1, \"a\":  1.0, \"b\": 2}", "m": "glad", "n": "NaN", "o": true, "p": {"a": 1, "b": "x,y"}, "r": 0.1, "t": "2026-01-02T03:04:05", "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "ch": "ab   ", "id": 1, "ip": "10.0.0.1", "iv": "1 day 02:03:04", "ja": "{\"{\\\"x\\\":  1}\"}", "jb": {"a": 100, "b": 1.0}, "mo": "$1,234.50", "rg": "[1,5)", "sj": "[1,  2]", "ta": ["a,b", null, "null"], "ts": "2026-01-02T03:04:05.123456+00:00", "bits": "101"}`,
		`SELECT payload -> 'new' FROM rea.events WHERE aggregate_type = 'v'`)
	for i, c := range []struct{ set, want string }{
		{`ts = 'infinity'`, `{"ts": "infinity"}`},
		{`ts = '-infinity', d = 'infinity'`, `{"d": "infinity", "ts": "-infinity"}`},
		{`ts = '10000-01-01 00:00:00+00'`, `{"ts": "10000-01-01T00:00:00+00:00"}`},
		{`ts = '0001-01-01 00:00:00+00 BC'`, `{"ts": "0001-01-01T00:00:00+00:00 BC"}`},
		{`ts = '294276-12-31 23:59:59.999999+00'`, `{"ts": "294276-12-31T23:59:59.999999+00:00"}`},
		{`a = '{1,2}'`, `{"a": [1, 2]}`}, {`a = '{}'`, `{"a": []}`}, {`a = NULL`, `{"a": null}`}, {`a = '{}'`, `{"a": []}`},
		{`c = 1.5`, `{"c": 1.5}`}, {`n = 1.0`, `{"n": 1.0}`}, {`n = 1.00`, `{"n": 1.00}`}, {`n = 'Infinity'`, `{"n": "Infinity"}`},
		{`n = 12345678901234567890.123456789`, `{"n": 12345678901234567890.123456789}`},
		{`iv = '24:00:00'`, `{"iv": "24:00:00"}`}, {`iv = '1 day'`, `{"iv": "1 day"}`},
		{`j = '{"b": 1, "a": 1.0, "b": 2}'`, `{"j": "{\"b\": 1, \"a\": 1.0, \"b\": 2}"}`},
		{`jb = '{"b": 1.00, "a": 100}'`, `{"jb": {"a": 100, "b": 1.00}}`}, {`jb = 'null'`, `{"jb": null}`},
		{`f = 'NaN', r = '-Infinity'`, `{"f": "NaN", "r": "-Infinity"}`}, {`f = 0.1::float8 + 0.2::float8`, `{"f": 0.30000000000000004}`},
		{`p = ROW(NULL, NULL)`, `{"p": {"a": null, "b": null}}`}, {`ja = NULL`, `{"ja": null}`},
	} {
		s.do(`UPDATE public.v SET ` + c.set)
		w.want(c.want, `SELECT payload -> 'new' FROM rea.events WHERE aggregate_type = 'v' AND seq = $1`, i+2)
	}
	last := w.one(`SELECT max(seq) FROM rea.events WHERE aggregate_type = 'v'`)
	s.do(`UPDATE public.v SET jb = NULL, f = f, ja = ja, n = 12345678901234567890.123456789`)
	if got := w.one(`SELECT max(seq) FROM rea.events WHERE aggregate_type = 'v'`); got != last {
		t.Errorf("a jsonb null that becomes NULL has the same JSON, and made event %s after %s", got, last)
	}
	w.want("true", `SELECT rea.guard_row('v', '1') = (SELECT jsonb_object_agg(k, rea.fold_value('v', '1', k)) FROM jsonb_object_keys(rea.guard_row('v', '1')) k)`)
}

func TestWideValuesThatDoNotChangeAreNotInTheEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(`CREATE TABLE wide (id int PRIMARY KEY, big text, n numeric); ALTER TABLE wide ALTER big SET STORAGE EXTERNAL; INSERT INTO wide VALUES (1, repeat('x', 100000), 1), (2, repeat('y', 100000), 1)`)
	w.add("wide", guard.Settings{Type: "wide"})
	w.do(`UPDATE wide SET n = 2; UPDATE wide SET n = 3; UPDATE wide SET big = big || 'z' WHERE id = 1`)
	w.want("1:2 false, 2:2 false, 1:3 true", `SELECT string_agg(aggregate_id || ':' || seq || ' ' || (payload -> 'new' ? 'big'), ', ' ORDER BY id) FROM rea.events WHERE aggregate_type = 'wide' AND seq > 1`)
	w.want("100001", `SELECT length(payload -> 'new' ->> 'big') FROM rea.events WHERE aggregate_type = 'wide' AND seq = 3`)
}

func TestHostileNamesAreNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("x", 63)
	names := []string{`a"b`, `it's`, `$$`, `$1`, `%s`, "new\nline", `back\slash`, `rea_o`, `rea_n`, `context`, `tries`, `stored`, `rea_guard`, `rea_x`, `d0`, `event_type`, `select`, `plainly`, long, `é世界`, `TG_OP`, ` `}
	quoted := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
	table := quoted(`O'Re"illy` + "\n" + `$$ \ %s ;--`)
	var columns, sets []string
	for _, name := range names {
		columns = append(columns, quoted(name)+" text")
		sets = append(sets, quoted(name)+" = 'v'")
	}
	w.do(`CREATE SCHEMA "My ""S"; CREATE TABLE "My ""S".` + table + ` ("id; DROP" int, ` + strings.Join(columns, ", ") + `, "k'2" text, PRIMARY KEY ("id; DROP", "k'2"))`)
	w.add(`"My ""S".`+table, guard.Settings{Type: "it's", Status: `it's`, Ignore: []string{`$$`}, Redact: []string{"new\nline"}})
	for _, session := range []string{``, hostile} {
		w.do(`RESET ALL; TRUNCATE "My ""S".` + table)
		s := w.session()
		s.do(session)
		s.do(`INSERT INTO "My ""S".` + table + ` ("id; DROP", "k'2") VALUES (1, 'a''b')`)
		s.do(`UPDATE "My ""S".` + table + ` SET ` + strings.Join(sets, ", "))
		s.do(`UPDATE "My ""S".` + table + ` SET "k'2" = 'c'`)
		w.want(fmt.Sprint(len(names)-1), `SELECT count(*) FROM (SELECT payload FROM rea.events WHERE aggregate_type = 'it''s' AND event_type = 'DirectUpdate' ORDER BY id DESC LIMIT 1) e, jsonb_object_keys(e.payload -> 'new')`)
		w.want("v", `SELECT status FROM rea.events WHERE aggregate_type = 'it''s' ORDER BY id DESC LIMIT 1`)
		w.want("1/c", `SELECT aggregate_id FROM rea.events WHERE aggregate_type = 'it''s' ORDER BY id DESC LIMIT 1`)
	}
	w.want(`My "S.O'Re"illy`, `SELECT split_part(table_name, E'\n', 1) FROM rea.contexts ORDER BY context_id DESC LIMIT 1`)
	states, err := guard.Status(t.Context(), w)
	if err != nil || len(states) != 1 || len(states[0].Problems) > 0 {
		t.Errorf("Status = %v, %v", states, err)
	}
}

func TestNamesOf63BytesAreToldApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, end := range []string{"a", "b"} {
		name := strings.Repeat("t", 62) + end
		w.do(`CREATE TABLE ` + name + ` (id int PRIMARY KEY)`)
		w.add(name, guard.Settings{Type: end})
		w.do(`INSERT INTO ` + name + ` VALUES (1)`)
	}
	w.want("a b", `SELECT string_agg(aggregate_type, ' ' ORDER BY id) FROM rea.events WHERE aggregate_type <> 'rea.guard'`)
}

func TestATableOfManyColumnsIsRecordedToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, n := range []int{450, 1200} {
		w.do(fmt.Sprintf(`DO $$ BEGIN EXECUTE 'CREATE TABLE t%[1]d (id int PRIMARY KEY, ' || (SELECT string_agg('c' || n || ' int', ', ') FROM generate_series(1, %[1]d) n) || ')'; END $$`, n))
		kind := fmt.Sprint("t", n)
		w.add(kind, guard.Settings{Type: kind})
		w.do(`INSERT INTO ` + kind + ` (id) VALUES (1); UPDATE ` + kind + ` SET c7 = 1`)
		w.want(`{"new": {"c7": 1}, "old": {"c7": null}}`, `SELECT payload FROM rea.events WHERE aggregate_type = $1 AND seq = 2`, kind)
	}
}
