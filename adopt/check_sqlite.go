package adopt

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
)

// KnownSQLite says as what the baseline of a table in the archive's file was taken; "": there is none.
func KnownSQLite(ctx context.Context, archive *sqlite.Archive, table string) (aggregateType string, key []string, err error) {
	err = archive.Read(ctx, func(db sqlite.SQL) error {
		aggregateType, key, _, err = recordedSQLite(ctx, db, table)
		return err
	})
	return aggregateType, key, err
}

func recordedSQLite(ctx context.Context, db sqlite.SQL, table string) (kind string, key []string, partial bool, err error) {
	text := "null"
	err = eachRow(ctx, db, []any{&kind, &text, &partial}, func() {},
		`SELECT aggregate_type, key, columns IS NOT NULL FROM rea_baselines WHERE lower(table_name) = lower(?1)`, table)
	if err == nil {
		err = json.Unmarshal([]byte(text), &key)
	}
	return kind, key, partial, wrap(err, "look for the baseline of %s", table)
}

// CheckSQLite compares each row of a table in the archive's file with what its events fold to, in one view of both.
func CheckSQLite(ctx context.Context, archive *sqlite.Archive, table string, key []string, o CheckOptions) (result CheckResult, err error) {
	err = archive.Read(ctx, func(db sqlite.SQL) error {
		t, err := DescribeSQLite(ctx, db, table, key)
		if err != nil {
			return err
		}
		c := checking{options: o, view: &sqliteView{db: db, table: t, of: o.Type}, columns: t.Columns}
		if _, _, c.partial, err = recordedSQLite(ctx, db, t.Name); err != nil {
			return err
		}
		result, err = c.run(ctx)
		return err
	})
	return result, err
}

// sqliteView implements checked.
type sqliteView struct {
	db    sqlite.SQL
	table *SQLiteTable
	of    string
	after []any
}

func (v *sqliteView) count(ctx context.Context) (n int64, err error) {
	err = eachRow(ctx, v.db, []any{&n}, func() {}, "SELECT count(*) FROM "+sqliteName(v.table.Name)+" WHERE "+v.table.where(""))
	return n, wrap(err, "count the rows of %s", v.table.Name)
}

// page passes a row whose values have no JSON on as one that is different in everything: {}.
func (v *sqliteView) page(ctx context.Context, limit int) (list []tableRow, err error) {
	rows, err := v.db.QueryContext(ctx, v.table.pageSQL(v.table.Columns, "", len(v.after), limit), v.after...)
	if err != nil {
		return nil, wrap(err, "read %s", v.table.Name)
	}
	defer rows.Close()
	for rows.Next() {
		row, err := scanRow(rows, len(v.table.order)+len(v.table.Columns))
		if err != nil {
			return nil, wrap(err, "read %s", v.table.Name)
		}
		v.after = row[:len(v.table.order)]
		text, err := objectJSON(v.table.Columns, row[len(v.table.order):])
		if err == nil {
			text, err = rea.NormalizeJSON(text, "row", 0)
		}
		if err != nil {
			text = []byte("{}")
		}
		list = append(list, tableRow{id: idOf(v.table.keyIn(v.after)), text: text})
	}
	return list, wrap(rows.Err(), "read %s", v.table.Name)
}

func (v *sqliteView) nameless(ctx context.Context) (ids []string, err error) {
	list, err := v.table.nameless(ctx, v.db, "")
	for _, key := range list {
		parts := make([]string, len(key))
		for i, value := range key {
			if parts[i] = valueText(value); value == nil {
				parts[i] = "NULL"
			}
		}
		ids = append(ids, strings.Join(parts, "/"))
	}
	return ids, err
}

const sqliteFoldEventsSQL = `
SELECT aggregate_id, seq, event_type, event_version, payload, coalesce(status, ''), coalesce(catalog_version, 0), correction,
       coalesce(actor_id, ''), coalesce(reason, ''), coalesce(correlation_id, ''), coalesce(idempotency_key, ''), coalesce(key_events, 0), metadata, created_at
FROM rea_events
WHERE aggregate_type = ?1 AND aggregate_id IN (SELECT value FROM json_each(?2))
ORDER BY aggregate_id, seq`

func (v *sqliteView) events(ctx context.Context, ids []string, each func(rea.Event) error) error {
	text, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	rows, err := v.db.QueryContext(ctx, sqliteFoldEventsSQL, v.of, string(text))
	if err != nil {
		return wrap(err, "read the events of %s", v.table.Name)
	}
	defer rows.Close()
	for rows.Next() {
		e := rea.Event{Aggregate: rea.Ref{Type: v.of}}
		var payload, created string
		var metadata *string
		if err := rows.Scan(&e.Aggregate.ID, &e.Seq, &e.Type, &e.Version, &payload, &e.Status, &e.CatalogVersion, &e.Correction,
			&e.Actor, &e.Reason, &e.Correlation, &e.Key, &e.KeyEvents, &metadata, &created); err != nil {
			return wrap(err, "read the events of %s", v.table.Name)
		}
		if e.CreatedAt, err = rea.ParseTime(created); err != nil {
			return err
		}
		e.Payload = json.RawMessage(payload)
		if metadata != nil {
			e.Metadata = json.RawMessage(*metadata)
		}
		if err := each(e); err != nil {
			return err
		}
	}
	return wrap(rows.Err(), "read the events of %s", v.table.Name)
}

// rowless has the ids of rows made here: SQLite writes a real in another way.
func (v *sqliteView) rowless(ctx context.Context, after string, limit int) (ids []string, err error) {
	there := map[string]bool{}
	rows, err := v.db.QueryContext(ctx, "SELECT "+list(v.table.order, "+")+" FROM "+sqliteName(v.table.Name))
	if err != nil {
		return nil, wrap(err, "read %s", v.table.Name)
	}
	defer rows.Close()
	for rows.Next() {
		key, err := scanRow(rows, len(v.table.order))
		if err != nil {
			return nil, wrap(err, "read %s", v.table.Name)
		}
		there[idOf(v.table.keyIn(key))] = true
	}
	if err := rows.Err(); err != nil {
		return nil, wrap(err, "read %s", v.table.Name)
	}
	var id string
	err = eachRow(ctx, v.db, []any{&id}, func() {
		if !there[id] && len(ids) < limit {
			ids = append(ids, id)
		}
	}, `SELECT aggregate_id FROM rea_events WHERE aggregate_type = ?1 AND seq = 1 AND aggregate_id > ?2 ORDER BY aggregate_id`, v.of, after)
	return ids, wrap(err, "look for events without a row in %s", v.table.Name)
}

// keyIn gives the values of the key in the id's order, of values in the index's.
func (t *SQLiteTable) keyIn(ordered []any) []any {
	key := make([]any, len(t.Key))
	for i, name := range t.Key {
		for j, other := range t.order {
			if name == other {
				key[i] = ordered[j]
			}
		}
	}
	return key
}

// pageSQL reads the next rows after a key of n values, 0: the first ones: the key in its index's order, then the columns.
func (t *SQLiteTable) pageSQL(columns []string, condition string, n, limit int) string {
	query := "SELECT " + list(t.order, "+") + ", " + list(columns, "+") + " FROM " + sqliteName(t.Name) + " WHERE " + t.where(condition)
	if n > 0 {
		query += " AND (" + list(t.order, "") + ") > (?" + strings.Repeat(", ?", n-1) + ")"
	}
	return query + " ORDER BY " + list(t.order, "") + fmt.Sprintf(" LIMIT %d", limit)
}

// nameless gives the keys that have a NULL.
func (t *SQLiteTable) nameless(ctx context.Context, db sqlite.SQL, condition string) (keys [][]any, err error) {
	text := "0"
	for _, c := range t.nullable {
		text += " OR " + sqliteName(c) + " IS NULL"
	}
	if text = "(" + text + ")"; condition != "" {
		text += " AND (" + condition + "\n)"
	}
	rows, err := db.QueryContext(ctx, "SELECT "+list(t.Key, "+")+" FROM "+sqliteName(t.Name)+" WHERE "+text)
	if err != nil {
		return nil, wrap(err, "read %s", t.Name)
	}
	defer rows.Close()
	for rows.Next() {
		key, err := scanRow(rows, len(t.Key))
		if err != nil {
			return nil, wrap(err, "read %s", t.Name)
		}
		keys = append(keys, key)
	}
	return keys, wrap(rows.Err(), "read %s", t.Name)
}
