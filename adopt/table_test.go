package adopt_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/adopt"
)

func describe(t *testing.T, pool *pgxpool.Pool, table string, key ...string) *adopt.Table {
	t.Helper()
	d, err := adopt.Describe(t.Context(), pool, table, key)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// hostile are settings, and functions in front of the search_path, under which an unpinned expression has another meaning.
const hostile = `
CREATE SCHEMA evil;
CREATE FUNCTION evil.jsonb_build_object(VARIADIC "any") RETURNS jsonb LANGUAGE internal AS 'jsonb_build_array';
CREATE FUNCTION evil.jsonb_build_object(text, bigint) RETURNS jsonb LANGUAGE sql AS $$ SELECT '"evil"'::jsonb $$;
CREATE FUNCTION evil.replace(text, text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$;
CREATE FUNCTION evil.glue(text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$;
CREATE OPERATOR evil.|| (FUNCTION = evil.glue, LEFTARG = text, RIGHTARG = text);
CREATE DOMAIN evil.text AS int`

func TestTableUnderHostileSettings(t *testing.T) {
	t.Parallel()
	columns := []string{`"a""b" text`, `"o'x\y" text`}
	names := []string{`a"b`, `o'x\y`}
	values := []string{`'x%/y'`, `E'\\'`}
	want := []string{`"x%/y"`, `"\\"`}
	for i, c := range []struct{ typ, value, want string }{
		{"bigint", "9223372036854775807", "9223372036854775807"}, {"numeric", "1.10", "1.10"}, {"float8", "0.1::float8 + 0.2", "0.30000000000000004"}, {"real", "0.1", "0.1"},
		{"boolean", "true", "true"}, {"timestamptz", "'2024-06-01 12:00:00.123456+02'", `"2024-06-01T10:00:00.123456+00:00"`}, {"timestamp", "'2024-06-01 12:00'", `"2024-06-01T12:00:00"`},
		{"date", "'2024-02-29'", `"2024-02-29"`}, {"time", "'12:00:00.5'", `"12:00:00.5"`}, {"interval", "'1 year 2 days 03:04:05'", `"1 year 2 days 03:04:05"`},
		{"bytea", `'\x00ff'`, `"\\x00ff"`}, {"json", `'{"a":1, "a" :2}'`, `"{\"a\":1, \"a\" :2}"`}, {"json", "NULL", "null"}, {"xml", "'<a  b=\"1\"/>'", `"<a  b=\"1\"/>"`},
		{"jsonb", `'{"bb": 1.0, "a": 2}'`, `{"a": 2, "bb": 1.0}`}, {"jsonb", "'null'", "null"}, {"int[]", "'{1,NULL,3}'", "[1, null, 3]"}, {"text[]", `'{a,"b c"}'`, `["a", "b c"]`},
		{"uuid", "'00000000-0000-0000-0000-000000000001'", `"00000000-0000-0000-0000-000000000001"`}, {"inet", "'10.0.0.1/8'", `"10.0.0.1/8"`}, {"money", "12.5", `"$12.50"`},
		{"int4range", "'[1,5)'", `"[1,5)"`}, {"char(5)", "'ab'", `"ab   "`}, {"public.point3", "ROW(1,'x')", `{"n": 1, "t": "x"}`}, {"tsvector", "'a b'", `"'a' 'b'"`},
		{"public.spelt", `'{"z": 1}'`, `"{\"z\": 1}"`}, {"public.mood", "'happy'", `"happy"`}, {"json[]", `ARRAY['{"q": 1}'::json]`, `"{\"{\\\"q\\\": 1}\"}"`},
	} {
		name := fmt.Sprintf("c%d", i)
		columns, names, values, want = append(columns, name+" "+c.typ), append(names, name), append(values, c.value), append(want, c.want)
	}
	for i := range 100 {
		name := fmt.Sprintf("n%d", i)
		columns, names, values, want = append(columns, name+" int"), append(names, name), append(values, fmt.Sprint(i)), append(want, fmt.Sprint(i))
	}
	pool := newPool(t, `CREATE TYPE public.point3 AS (n int, t text)`, `CREATE DOMAIN public.spelt AS json`, `CREATE TYPE public.mood AS ENUM ('happy')`,
		`CREATE SCHEMA "My ""shop"`, `CREATE TABLE "My ""shop"."the 'table" (`+strings.Join(columns, ", ")+`, PRIMARY KEY ("o'x\y", "a""b"))`,
		`INSERT INTO "My ""shop"."the 'table" VALUES (`+strings.Join(values, ", ")+`)`, hostile)
	table := describe(t, pool, `"My ""shop"."the 'table"`, `a"b`, `o'x\y`)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	settings := `SET standard_conforming_strings = off; SET search_path = evil, pg_catalog`
	for _, s := range adopt.Settings {
		if s[0] != "search_path" {
			settings += "; SET " + s[0] + " = '" + s[1] + "'"
		}
	}
	if _, err := conn.Exec(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	var id string
	if err := conn.QueryRow(t.Context(), "SELECT "+table.ID("t")+" FROM "+table.SQL()+" t").Scan(&id); err != nil || id != `x%25%2Fy/\` {
		t.Errorf("the id is %q, %v", id, err)
	}
	var row string
	if err := conn.QueryRow(t.Context(), "SELECT ("+table.Row("t")+")::pg_catalog.text FROM "+table.SQL()+" t").Scan(&row); err != nil {
		t.Fatal(err)
	}
	fields, err := rea.ParseObject([]byte(row))
	if err != nil || len(fields) != len(names) {
		t.Fatalf("%d fields, %v, want %d", len(fields), err, len(names))
	}
	for i, name := range names {
		if got := string(fields[name]); got != want[i] {
			t.Errorf("%s (%s) = %s, want %s", name, columns[i], got, want[i])
		}
	}
}

func TestDescribeRefusesWhatHasNoObjects(t *testing.T) {
	t.Parallel()
	pool := newPool(t, `CREATE TABLE public.plain (id int, at date)`, `CREATE VIEW public.seen AS SELECT 1 AS id`,
		`CREATE TABLE public.some (id int, UNIQUE (id)) `, `CREATE TABLE public.odd (id int, at date)`, `CREATE UNIQUE INDEX ON public.odd (lower(id::text))`,
		`CREATE UNIQUE INDEX ON public.odd (id) WHERE at IS NULL`, `CREATE TABLE public.dropped (gone int, id int PRIMARY KEY, w int)`, `ALTER TABLE public.dropped DROP gone`)
	for _, c := range []struct{ table, key, want string }{
		{"nothing", "", "there is no table"}, {"plain", "", "no primary key"}, {"seen", "", "is no table"}, {"odd", "", "no unique index"}, {"rea.events", "", "no table of the application's"},
		{"some", "at", "has no column at"}, {"dropped", "w", "no unique index of their own"}, {"dropped", "gone", "has no column gone"},
	} {
		var key []string
		if c.key != "" {
			key = []string{c.key}
		}
		_, err := adopt.Describe(t.Context(), pool, c.table, key)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Describe(%s, %s) = %v, want %q", c.table, c.key, err, c.want)
		}
		if c.table == "nothing" && !errors.Is(err, rea.ErrNotFound) {
			t.Errorf("%v is not ErrNotFound", err)
		}
	}
	if d := describe(t, pool, "dropped"); len(d.Columns) != 2 || d.Columns[0].Number != 2 || d.Key[0] != 0 {
		t.Errorf("after a column went: %+v", d)
	}
}
