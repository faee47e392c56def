package guard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/adopt"
)

// plain are the types, by their fixed oids, whose equality is that of their texts: boolean, bytea, "char", name, bigint, smallint,
// integer, oid, date, timestamp, timestamptz, uuid; text and varchar are, where they are compared byte by byte.
var plain = []uint32{16, 17, 18, 19, 20, 21, 23, 26, 1082, 1114, 1184, 2950}

var texts = []uint32{25, 1043}

func isPlain(c adopt.Column) bool { return slices.Contains(plain, c.TypeOID) }
func isText(c adopt.Column) bool  { return slices.Contains(texts, c.TypeOID) }

func field(alias, column string) string { return alias + "." + pgx.Identifier{column}.Sanitize() }

// differs says whether a column's value has another text in two rows. What is not plain is compared as it is stored first (*<>): a
// numeric 1.0 equals 1.00, and an interval of a day one of 24 hours. NULL and the null of a jsonb column are both null.
func differs(c adopt.Column, a, b string) string {
	x, y := field(a, c.Name), field(b, c.Name)
	switch {
	case isPlain(c):
		return x + " IS DISTINCT FROM " + y
	case isText(c):
		return x + ` COLLATE "C" IS DISTINCT FROM ` + y
	case c.Spelt:
		return x + "::text IS DISTINCT FROM " + y + "::text"
	}
	return fmt.Sprintf("(ROW(%[1]s)::record *<> ROW(%[2]s)::record AND coalesce(to_jsonb(%[1]s), 'null')::text <> coalesce(to_jsonb(%[2]s), 'null')::text)", x, y)
}

// differ says whether any of the columns differs.
func differ(columns []adopt.Column, a, b string) string {
	if len(columns) == 0 {
		return "false"
	}
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = differs(c, a, b)
	}
	return strings.Join(list, "\n        OR ")
}

// same joins two rows by key; as texts where two keys that are equal could have different ones.
func (g *Guard) same(a, b string) string {
	list := make([]string, len(g.Table.Key))
	for i, k := range g.Table.Key {
		c := g.Table.Columns[k]
		switch x, y := field(a, c.Name), field(b, c.Name); {
		case isPlain(c):
			list[i] = x + " = " + y
		case isText(c):
			list[i] = x + ` COLLATE "C" = ` + y + ` COLLATE "C"`
		default:
			list[i] = "(" + x + `::text) COLLATE "C" = (` + y + `::text) COLLATE "C"`
		}
	}
	return strings.Join(list, " AND ")
}

// keyColumn is one that is null where an outer join found no row.
func (g *Guard) keyColumn(alias string) string {
	return field(alias, g.Table.Columns[g.Table.Key[0]].Name)
}

// object is the JSON of a row as it is recorded.
func (g *Guard) object(alias string) string {
	return g.objectOf(func(_ int, c adopt.Column) string { return field(alias, c.Name) })
}

// whole is object of one side of rea_x: o old, n new.
func (g *Guard) whole(side string) string {
	return g.objectOf(func(i int, _ adopt.Column) string { return fmt.Sprintf("rea_x.%s%d", side, i) })
}

func (g *Guard) objectOf(value func(i int, c adopt.Column) string) string {
	const most = 40 // a function takes 100 arguments
	columns := g.recorded()
	if len(columns) == 0 {
		return "'{}'::jsonb"
	}
	pairs := make([]string, len(columns))
	for i, c := range columns {
		pairs[i] = g.pair(c, value(i, c))
	}
	var objects []string
	for part := range slices.Chunk(pairs, most) {
		objects = append(objects, "jsonb_build_object("+strings.Join(part, ", ")+")")
	}
	return "(" + strings.Join(objects, " || ") + ")"
}

// pair is what jsonb_build_object makes into a column's name and value.
func (g *Guard) pair(c adopt.Column, value string) string {
	switch {
	case slices.Contains(g.Settings.Redact, c.Name):
		value = adopt.Literal(redacted) + "::text"
	case c.Spelt:
		value += "::text"
	}
	return adopt.Literal(c.Name) + ", " + value
}

// delta is the JSON of the columns that changed, as they are on one side: o old, n new. || with an empty object costs next to nothing.
func (g *Guard) delta(side string) string {
	columns := g.recorded()
	if len(columns) == 0 {
		return "'{}'::jsonb"
	}
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = fmt.Sprintf("CASE WHEN rea_x.d%d THEN jsonb_build_object(%s) ELSE '{}' END", i, g.pair(c, fmt.Sprintf("rea_x.%s%d", side, i)))
	}
	return strings.Join(parts, "\n            || ")
}

// status is the text of the status column, as far as it can be one.
func (g *Guard) status(alias string) string {
	c := g.column(g.Settings.Status)
	if c == nil {
		return "NULL::text"
	}
	text := field(alias, c.Name) + "::text"
	return "CASE WHEN octet_length(" + text + ") BETWEEN 1 AND 200 THEN " + text + " END"
}
