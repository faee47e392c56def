package adopt

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
)

// SQLiteTable is a table of the application's in the archive's file.
type SQLiteTable struct {
	Name    string
	Columns []string
	Key     []string // columns whose values together are the aggregate's id

	nullable []string // of Key
	order    []string // Key as its index has it
}

const (
	sqliteTableSQL   = `SELECT name, type FROM sqlite_master WHERE lower(name) = lower(?1) AND type IN ('table', 'view')`
	sqliteColumnsSQL = `SELECT name, pk, "notnull" FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid`
	sqliteKeysSQL    = `
SELECT l.name, i.name FROM pragma_index_list(?1) l JOIN pragma_index_info(l.name) i
WHERE l."unique" = 1 AND l.partial = 0
  AND NOT EXISTS (SELECT 1 FROM pragma_index_info(l.name) x WHERE x.name IS NULL)
ORDER BY l.origin <> 'pk', l.seq, i.seqno`
)

// DescribeSQLite reads what a table is. key names the columns that make the id; none: the primary key's.
func DescribeSQLite(ctx context.Context, db sqlite.SQL, name string, key []string) (*SQLiteTable, error) {
	t := &SQLiteTable{}
	var kind string
	if err := eachRow(ctx, db, []any{&t.Name, &kind}, func() {}, sqliteTableSQL, name); err != nil {
		return nil, wrap(err, "look for the table %s", name)
	}
	switch lower := strings.ToLower(t.Name); {
	case t.Name == "":
		return nil, &NoTableError{Table: name, Hint: " in the archive's file"}
	case kind != "table" || strings.HasPrefix(lower, "rea_") || strings.HasPrefix(lower, "sqlite_"):
		return nil, fmt.Errorf("rea: %s is no table of the application's", t.Name)
	}
	var column, index string
	var place, notNull int
	primary := map[int]string{}
	err := eachRow(ctx, db, []any{&column, &place, &notNull}, func() {
		t.Columns = append(t.Columns, column)
		if place > 0 {
			primary[place] = column
		}
		if notNull == 0 {
			t.nullable = append(t.nullable, column)
		}
	}, sqliteColumnsSQL, t.Name)
	var unique [][]string
	if len(primary) > 0 {
		unique = append(unique, nil)
		for i := range len(primary) {
			unique[0] = append(unique[0], primary[i+1])
		}
	}
	last := ""
	if err == nil {
		err = eachRow(ctx, db, []any{&index, &column}, func() {
			if index != last {
				unique, last = append(unique, nil), index
			}
			unique[len(unique)-1] = append(unique[len(unique)-1], column)
		}, sqliteKeysSQL, t.Name)
	}
	if err != nil {
		return nil, wrap(err, "read the columns of %s", t.Name)
	}
	return t, t.choose(unique, key)
}

func (t *SQLiteTable) choose(unique [][]string, key []string) error {
	if len(unique) == 0 {
		return fmt.Errorf("rea: %s has no primary key and no unique index over columns alone: a row has no name there", t.Name)
	}
	if len(key) == 0 {
		key = unique[0]
	}
	for _, name := range key {
		if !slices.Contains(t.Columns, name) {
			return fmt.Errorf("rea: %s has no column %s", t.Name, name)
		}
	}
	wanted := slices.Sorted(slices.Values(key))
	i := slices.IndexFunc(unique, func(u []string) bool { return slices.Equal(slices.Sorted(slices.Values(u)), wanted) })
	if i < 0 {
		return fmt.Errorf("rea: the columns %s of %s have no unique index of their own: two rows could be one object", strings.Join(key, ", "), t.Name)
	}
	t.Key, t.order = key, unique[i]
	t.nullable = slices.DeleteFunc(t.nullable, func(name string) bool { return !slices.Contains(key, name) })
	return nil
}

// eachRow runs a query, and calls fn with each row in dest.
func eachRow(ctx context.Context, db sqlite.SQL, dest []any, fn func(), query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		fn()
	}
	return rows.Err()
}

func sqliteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// list names columns as they are; with a plus before each, their values are not made times or bools by the type that was declared.
func list(columns []string, before string) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = before + sqliteName(c)
	}
	return strings.Join(names, ", ")
}

// where chooses the rows that have a key and that a condition names.
func (t *SQLiteTable) where(condition string) string {
	text := "1"
	for _, c := range t.nullable {
		text += " AND " + sqliteName(c) + " IS NOT NULL"
	}
	if condition != "" {
		text += " AND (" + condition + "\n)"
	}
	return text
}

// row is a row as SQLite has it: int64, float64, string, []byte or nil for each column.
type sqliteRow []any

func scanRow(rows *sql.Rows, n int) (sqliteRow, error) {
	row, dest := make(sqliteRow, n), make([]any, n)
	for i := range row {
		dest[i] = &row[i]
	}
	return row, rows.Scan(dest...)
}

var errNotUTF8 = errors.New("the text is no UTF-8")

// valueJSON is the JSON of a value by its own type, whatever was declared: numbers exact, a blob as PostgreSQL writes bytea.
func valueJSON(value any) (json.RawMessage, error) {
	switch v := value.(type) {
	case nil:
		return json.RawMessage("null"), nil
	case int64:
		return strconv.AppendInt(nil, v, 10), nil
	case float64:
		if math.IsInf(v, 0) {
			return json.Marshal(valueText(v))
		}
		return strconv.AppendFloat(nil, v, 'g', -1, 64), nil
	case string:
		if !utf8.ValidString(v) {
			return nil, errNotUTF8
		}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(valueText(value))
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n")), err
}

// valueText is a value as text, of which ids are made.
func valueText(value any) string {
	switch v := value.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		switch {
		case math.IsInf(v, 1):
			return "Infinity"
		case math.IsInf(v, -1):
			return "-Infinity"
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []byte:
		return `\x` + hex.EncodeToString(v)
	case string:
		return v
	}
	return ""
}

// idOf is the aggregate's id of a row with these values of the key.
func idOf(values []any) string {
	if len(values) == 1 {
		return valueText(values[0])
	}
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = strings.NewReplacer("%", "%25", "/", "%2F").Replace(valueText(v))
	}
	return strings.Join(parts, "/")
}

// objectJSON is the JSON of a row, in normal form but for its keys' order.
func objectJSON(columns []string, row sqliteRow) ([]byte, error) {
	b := []byte{'{'}
	for i, c := range columns {
		value, err := valueJSON(row[i])
		if err != nil {
			return nil, &rea.PayloadError{Path: "$.row." + c, Problem: err.Error()}
		}
		name, err := valueJSON(c)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// keyOf writes the values of a key so that they can be bound again with their types.
func keyOf(values []any) string {
	typed := make([]any, len(values))
	for i, value := range values {
		switch v := value.(type) {
		case float64:
			typed[i] = map[string]string{"real": strconv.FormatFloat(v, 'g', -1, 64)}
		case []byte:
			typed[i] = map[string]string{"blob": hex.EncodeToString(v)}
		case string:
			typed[i] = map[string]string{"text": hex.EncodeToString([]byte(v))} // it may be no UTF-8
		default:
			typed[i] = v
		}
	}
	text, _ := json.Marshal(typed) // integers and such maps always can be
	return string(text)
}

// bindKey reads what keyOf wrote.
func bindKey(text string) (values []any, err error) {
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	for _, item := range list {
		var typed map[string]string
		if json.Unmarshal(item, &typed) != nil {
			n, err := strconv.ParseInt(string(item), 10, 64)
			if err != nil {
				return nil, err
			}
			values = append(values, n)
			continue
		}
		if real, ok := typed["real"]; ok {
			f, err := strconv.ParseFloat(real, 64)
			if err != nil {
				return nil, err
			}
			values = append(values, f)
			continue
		}
		raw, err := hex.DecodeString(typed["blob"] + typed["text"])
		if err != nil {
			return nil, err
		}
		if _, ok := typed["text"]; ok {
			values = append(values, string(raw))
		} else {
			values = append(values, raw)
		}
	}
	return values, nil
}
