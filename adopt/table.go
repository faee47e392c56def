// Package adopt makes the rows of an application's table into aggregates: it says how a row becomes JSON and its key an id,
// records baselines, and compares what events fold to with what the table holds.
//
//	table, err := adopt.Describe(ctx, pool, "public.orders", []string{"id"})
//	_, err = pool.Exec(ctx, "SELECT "+table.ID("o")+", "+table.Row("o")+" FROM "+table.SQL()+" o")
package adopt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
)

// Table is a table of the application's in PostgreSQL.
type Table struct {
	OID     uint32
	Schema  string
	Name    string
	Parted  bool     // partitioned: its rows are in its partitions
	Columns []Column // in the table's order
	Key     []int    // of Columns, whose values together are the aggregate's id
	Late    bool     // the key is deferrable: until a statement or transaction ends two rows may have the same

	order []int // Key as the index that makes it unique has it
}

// Column is a column of a table.
type Column struct {
	Number    int16  `json:"number"` // the database's, which renames do not change
	Name      string `json:"name"`
	Type      string `json:"type"` // as format_type gives it
	Generated bool   `json:"-"`    // the database computes it
	Spelt     bool   `json:"-"`    // json or xml: its text is its value, and stands as a string
	NotNull   bool   `json:"-"`
	TypeOID   uint32 `json:"-"`

	varies bool // its values differ in size
}

// Settings are those under which a value has one text and one JSON, whatever the session says. Functions that call ID or Row
// have them too.
var Settings = [][2]string{
	{"TimeZone", "UTC"}, {"DateStyle", "ISO, MDY"}, {"IntervalStyle", "postgres"}, {"bytea_output", "hex"}, {"extra_float_digits", "1"},
	{"lc_monetary", "C"}, {"search_path", "pg_catalog, pg_temp"},
}

// Queryer is what reading takes: *pgxpool.Pool, *pgx.Conn and pgx.Tx have it.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

const relationSQL = `
SELECT c.oid, n.nspname, c.relname, c.relkind::text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass($1)`

// The base type of a domain, and the element type of an array, say whether a value is spelt.
const columnsSQL = `
WITH RECURSIVE types AS (
    SELECT a.attnum, a.atttypid AS type FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
    UNION
    SELECT t.attnum, CASE WHEN p.typbasetype <> 0 THEN p.typbasetype ELSE p.typelem END
    FROM types t JOIN pg_catalog.pg_type p ON p.oid = t.type WHERE p.typbasetype <> 0 OR (p.typelem <> 0 AND p.typcategory = 'A')
)
SELECT a.attnum, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attgenerated <> '', a.attnotnull, a.atttypid, a.attlen = -1,
       EXISTS (SELECT FROM types t WHERE t.attnum = a.attnum AND t.type IN ('pg_catalog.json'::pg_catalog.regtype, 'pg_catalog.xml'::pg_catalog.regtype))
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum`

// The columns of the primary key, else of the unique index over columns alone, without a condition, that has the fewest.
const keySQL = `
SELECT array_agg(a.attname::text ORDER BY k.n), NOT i.indimmediate
FROM pg_catalog.pg_index i, unnest(i.indkey::smallint[]) WITH ORDINALITY k(attnum, n), pg_catalog.pg_attribute a
WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND k.n <= i.indnkeyatts
  AND a.attrelid = i.indrelid AND a.attnum = k.attnum
GROUP BY i.indexrelid, i.indisprimary, i.indimmediate
ORDER BY i.indisprimary DESC, i.indimmediate DESC, count(*), i.indexrelid`

// Describe reads what a table is. name is as in SQL, with a schema or by the search_path; key names the columns that make the id, in
// order; none: the primary key's. It refuses what has no rows of its own, tables of REA's, and a key that is not unique.
func Describe(ctx context.Context, db Queryer, name string, key []string) (*Table, error) {
	t := &Table{}
	var kind string
	rows, err := db.Query(ctx, relationSQL, name)
	if err != nil {
		return nil, fmt.Errorf("rea: look for the table %s: %w", name, err)
	}
	found := false
	if _, err = pgx.ForEachRow(rows, []any{&t.OID, &t.Schema, &t.Name, &kind}, func() error { found = true; return nil }); err != nil {
		return nil, fmt.Errorf("rea: look for the table %s: %w", name, err)
	}
	t.Parted = kind == "p"
	switch {
	case !found:
		return nil, &NoTableError{Table: name, Hint: ": name it with its schema"}
	case kind != "r" && kind != "p":
		return nil, fmt.Errorf("rea: %s is no table: only tables can be guarded", t)
	case t.Schema == "rea" || t.Schema == "rea_views" || t.Schema == "pg_catalog" || t.Schema == "information_schema":
		return nil, fmt.Errorf("rea: %s is no table of the application's", t)
	}
	if rows, err = db.Query(ctx, columnsSQL, t.OID); err != nil {
		return nil, fmt.Errorf("rea: read the columns of %s: %w", t, err)
	}
	var c Column
	if _, err = pgx.ForEachRow(rows, []any{&c.Number, &c.Name, &c.Type, &c.Generated, &c.NotNull, &c.TypeOID, &c.varies, &c.Spelt}, func() error {
		t.Columns = append(t.Columns, c)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("rea: read the columns of %s: %w", t, err)
	}
	return t, t.choose(ctx, db, key)
}

// NoTableError says that a table is not there. errors.Is finds rea.ErrNotFound in it.
type NoTableError struct {
	Table string
	Hint  string // what to do
}

func (e *NoTableError) Error() string { return "rea: there is no table " + e.Table + e.Hint }

// Is reports whether target is rea.ErrNotFound.
func (e *NoTableError) Is(target error) bool { return target == rea.ErrNotFound }

// KeyError says that the rows of a table have no name, or not the one that was asked for. Describe gives the table besides.
type KeyError struct{ problem string }

func (e *KeyError) Error() string { return "rea: " + e.problem }

// choose sets Key.
func (t *Table) choose(ctx context.Context, db Queryer, key []string) error {
	rows, err := db.Query(ctx, keySQL, t.OID)
	if err != nil {
		return fmt.Errorf("rea: read the keys of %s: %w", t, err)
	}
	type index struct {
		columns []string
		late    bool
	}
	unique, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (i index, err error) { return i, row.Scan(&i.columns, &i.late) })
	if err != nil {
		return fmt.Errorf("rea: read the keys of %s: %w", t, err)
	}
	if len(unique) == 0 {
		return &KeyError{fmt.Sprintf("%s has no primary key and no unique index over columns alone: a row has no name there", t)}
	}
	if len(key) == 0 {
		key = unique[0].columns
	}
	for _, name := range key {
		i := t.Index(name)
		if i < 0 {
			return &KeyError{fmt.Sprintf("%s has no column %s", t, name)}
		}
		t.Key = append(t.Key, i)
	}
	wanted := slices.Sorted(slices.Values(key))
	i := slices.IndexFunc(unique, func(u index) bool { return slices.Equal(slices.Sorted(slices.Values(u.columns)), wanted) })
	if i < 0 {
		return &KeyError{fmt.Sprintf("the columns %s of %s have no unique index of their own: two rows could be one object", strings.Join(key, ", "), t)}
	}
	t.Late = unique[i].late
	for _, name := range unique[i].columns {
		t.order = append(t.order, t.Index(name))
	}
	return nil
}

// String gives schema.table, for people.
func (t *Table) String() string { return t.Schema + "." + t.Name }

// SQL gives the table's name as SQL takes it.
func (t *Table) SQL() string { return pgx.Identifier{t.Schema, t.Name}.Sanitize() }

// Index is that of a column in Columns; -1: there is none of this name.
func (t *Table) Index(column string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == column })
}

// ID is an SQL expression for the aggregate's id of a row of alias: the key as text, of several columns each with % and / as %25 and
// %2F, joined by /. It holds under Settings.
func (t *Table) ID(alias string) string {
	parts := make([]string, len(t.Key))
	for i, k := range t.Key {
		parts[i] = "(" + field(alias, t.Columns[k].Name) + `::pg_catalog.text COLLATE "C")` // else a collation of the key's might forbid it
	}
	if len(parts) == 1 {
		return parts[0]
	}
	for i := range parts {
		parts[i] = "pg_catalog.replace(pg_catalog.replace(" + parts[i] + ", '%', '%25'), '/', '%2F')"
	}
	return strings.Join(parts, " OPERATOR(pg_catalog.||) '/' OPERATOR(pg_catalog.||) ")
}

// Row is an SQL expression for the jsonb object of a row of alias, by the names of its columns. It holds under Settings.
func (t *Table) Row(alias string) string { return Object(alias, t.Columns) }

// Object is Row for some columns.
func Object(alias string, columns []Column) string {
	const most = 40 // a function takes 100 arguments
	if len(columns) == 0 {
		return "'{}'::pg_catalog.jsonb"
	}
	var objects []string
	for part := range slices.Chunk(columns, most) {
		args := make([]string, len(part))
		for i, c := range part {
			args[i] = Literal(c.Name) + ", " + c.Value(alias)
		}
		objects = append(objects, "pg_catalog.jsonb_build_object("+strings.Join(args, ", ")+")")
	}
	return strings.Join(objects, " OPERATOR(pg_catalog.||) ")
}

// Value is an SQL expression for what jsonb_build_object makes into the column's JSON.
func (c Column) Value(alias string) string {
	if c.Spelt {
		return field(alias, c.Name) + "::pg_catalog.text"
	}
	return field(alias, c.Name)
}

func field(alias, column string) string { return alias + "." + pgx.Identifier{column}.Sanitize() }

// Literal writes a text as SQL takes it, whatever standard_conforming_strings is.
func Literal(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}
