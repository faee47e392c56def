package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/realtime-event-archive/rea"
)

// viewPrefix begins the names of projections' tables.
const viewPrefix = "rea_views_"

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// tableOf is the name of a projection's table, beside: of the one that is built beside it.
func tableOf(t rea.StateTable, beside bool) string {
	if beside {
		_, fingerprint := t.Definition()
		return viewPrefix + t.Name + "." + fingerprint[:8]
	}
	return viewPrefix + t.Name
}

func kindOf(t rea.ColumnType) string {
	if t == rea.Bigint || t == rea.Boolean {
		return "INTEGER"
	}
	return "TEXT"
}

// LockProjections does nothing: this transaction has the file's write lock.
func (s *session) LockProjections(context.Context) error { return nil }

const projectionsSQL = `
SELECT name, aggregate_type, version, definition, fingerprint
FROM rea_projections
WHERE mode = 'inline'
ORDER BY name`

func (s *session) Projections(ctx context.Context) ([]rea.AppliedProjection, error) {
	var list []rea.AppliedProjection
	var p rea.AppliedProjection
	err := each(ctx, s.db, func() error {
		list = append(list, p)
		return nil
	}, []any{&p.Name, &p.Of, &p.Version, &p.Definition, &p.Fingerprint}, projectionsSQL)
	return list, s.store.mapError("read the projections", err)
}

func (s *session) CheckStateTable(ctx context.Context, t rea.StateTable) (rea.TableCheck, error) {
	table := tableOf(t, false)
	found := map[string]string{}
	var name, kind string
	err := each(ctx, s.db, func() error {
		found[name] = kind
		return nil
	}, []any{&name, &kind}, `SELECT name, type FROM pragma_table_info(?1)`, table)
	switch {
	case err != nil:
		return 0, s.store.mapError("check "+table, err)
	case len(found) == 0:
		return rea.TableMissing, nil
	}
	recorded := 0
	if err := one(ctx, s.db, []any{&recorded}, `SELECT count(*) FROM rea_projections WHERE name = ?1`, t.Name); err != nil {
		return 0, s.store.mapError("check "+table, err)
	}
	if recorded == 0 {
		return rea.TableUnplaced, nil
	}
	columns := append([]rea.Column{{Name: "aggregate_id", Type: rea.Text}, {Name: "rea_seq", Type: rea.Bigint}, {Name: "rea_updated_at", Type: rea.Timestamptz}}, t.Columns...)
	for _, c := range columns {
		if found[c.Name] != kindOf(c.Type) {
			return 0, fmt.Errorf("rea: the column %q of %s is not there, or not %s: put it back, or drop the table and apply the catalog again", c.Name, table, kindOf(c.Type))
		}
	}
	return rea.TableWhole, nil
}

func (s *session) BuildStateTable(ctx context.Context, t rea.StateTable) error {
	columns := "aggregate_id TEXT NOT NULL PRIMARY KEY"
	for _, c := range t.Columns {
		columns += ", " + quoteName(c.Name) + " " + kindOf(c.Type)
	}
	return s.build(ctx, tableOf(t, false), tableOf(t, true), columns+", rea_seq INTEGER NOT NULL, rea_updated_at TEXT NOT NULL")
}

// build makes a table beside that of a projection, unless it is there, and drops what was built for another definition.
func (s *session) build(ctx context.Context, table, beside, columns string) (err error) {
	built, err := s.built(ctx, table)
	exec := func(query string) {
		if err == nil {
			_, err = s.db.ExecContext(context.WithoutCancel(ctx), query)
		}
	}
	for _, name := range built {
		if name != beside {
			exec("DROP TABLE " + quoteName(name))
		}
	}
	if !slices.Contains(built, beside) {
		exec(fmt.Sprintf("CREATE TABLE %s (%s) STRICT, WITHOUT ROWID", quoteName(beside), columns))
	}
	return s.store.mapError("build "+beside, err)
}

// built lists the tables that were begun beside that of a projection.
func (s *session) built(ctx context.Context, table string) (names []string, err error) {
	var name string
	err = each(ctx, s.db, func() error {
		names = append(names, name)
		return nil
	}, []any{&name}, `SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, length(?1)) = ?1 AND length(name) = length(?1) + 8
		AND substr(name, -8) NOT GLOB '*[^0-9a-f]*'`, table+".")
	return names, err
}

// stateRowsSQL goes through events_aggregate_seq_key.
const stateRowsSQL = `
SELECT a.aggregate_id, coalesce(v.rea_seq, 0),
       (SELECT max(e.seq) FROM rea_events e WHERE e.aggregate_type = ?1 AND e.aggregate_id = a.aggregate_id)
FROM (SELECT DISTINCT aggregate_id FROM rea_events WHERE aggregate_type = ?1 AND aggregate_id > ?2 ORDER BY aggregate_id LIMIT ?3) a
LEFT JOIN %s v ON v.aggregate_id = a.aggregate_id
ORDER BY a.aggregate_id`

func (s *session) StateRows(ctx context.Context, t rea.StateTable, beside bool, after string, limit int) ([]rea.RowPlace, error) {
	return s.places(ctx, stateRowsSQL, tableOf(t, beside), t.Of, after, limit)
}

// FirstEvents has no round trips to save: those of the first aggregate.
func (s *session) FirstEvents(ctx context.Context, aggregateType string, ids []string, limit int, positions bool) ([]rea.Event, error) {
	events, _, err := s.Events(ctx, rea.Stretch{Aggregate: rea.Ref{Type: aggregateType, ID: ids[0]}, Limit: limit, Folding: !positions}, nil)
	return events, err
}

func (s *session) LastID(ctx context.Context) (id int64, err error) {
	err = one(ctx, s.db, []any{&id}, `SELECT coalesce(max(id), 0) FROM rea_events`)
	return id, s.store.mapError("read the last event", err)
}

const recentRowsSQL = `
SELECT a.aggregate_id, coalesce(v.rea_seq, 0),
       (SELECT max(e.seq) FROM rea_events e WHERE e.aggregate_type = ?1 AND e.aggregate_id = a.aggregate_id)
FROM (SELECT DISTINCT aggregate_id FROM rea_events WHERE id > ?2 AND +aggregate_type = ?1 LIMIT ?3) a
LEFT JOIN %s v ON v.aggregate_id = a.aggregate_id`

func (s *session) RecentRows(ctx context.Context, t rea.StateTable, after int64, limit int) ([]rea.RowPlace, error) {
	return s.places(ctx, recentRowsSQL, tableOf(t, false), t.Of, after, limit)
}

func (s *session) places(ctx context.Context, query, table string, args ...any) ([]rea.RowPlace, error) {
	var list []rea.RowPlace
	var p rea.RowPlace
	err := each(ctx, s.db, func() error {
		list = append(list, p)
		return nil
	}, []any{&p.ID, &p.Seq, &p.Last}, fmt.Sprintf(query, quoteName(table)), args...)
	return list, s.store.mapError("read "+table, err)
}

func (s *session) SaveStateRows(ctx context.Context, t rea.StateTable, beside bool, rows []rea.StateRow) (saved int, err error) {
	for _, row := range rows {
		n, err := s.saveRow(context.WithoutCancel(ctx), t, beside, row)
		if err != nil {
			return saved, s.store.mapError("fill "+tableOf(t, beside), err)
		}
		saved += n
	}
	return saved, nil
}

func (s *session) saveRow(ctx context.Context, t rea.StateTable, beside bool, row rea.StateRow) (int, error) {
	args := []any{row.ID, row.Was, row.Seq, rea.FormatTime(row.Updated)}
	names, values, set := "", "", ""
	for i, c := range t.Columns {
		names += ", " + quoteName(c.Name)
		values += fmt.Sprintf(", ?%d", i+5)
		set += fmt.Sprintf(", %s = ?%d", quoteName(c.Name), i+5)
		args = append(args, stored(c.Type, row.Values[i]))
	}
	query := fmt.Sprintf("UPDATE %s SET rea_seq = ?3, rea_updated_at = ?4%s WHERE aggregate_id = ?1 AND rea_seq = ?2", quoteName(tableOf(t, beside)), set)
	if row.Was == 0 {
		query = fmt.Sprintf("INSERT INTO %s (aggregate_id, rea_seq, rea_updated_at%s) SELECT ?1, ?3, ?4%s WHERE ?2 = 0 ON CONFLICT (aggregate_id) DO NOTHING", quoteName(tableOf(t, beside)), names, values)
	}
	result, err := s.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// stored is a value as SQLite keeps it: TEXT that an INTEGER column makes a number, 1 and 0.
func stored(t rea.ColumnType, value *string) any {
	switch {
	case value == nil:
		return nil
	case t == rea.Boolean:
		return number(*value == "true")
	}
	return *value
}

func (s *session) InstallStateTable(ctx context.Context, t rea.StateTable, built, recreate bool) (err error) {
	exec := func(query string, args ...any) {
		if err == nil {
			_, err = s.db.ExecContext(context.WithoutCancel(ctx), query, args...)
		}
	}
	definition, fingerprint := t.Definition()
	if built {
		err = s.SwitchTable(ctx, rea.Followed{Name: t.Name, Inline: true, Definition: definition, Fingerprint: fingerprint}, recreate)
	}
	exec(`
INSERT INTO rea_projections (name, mode, aggregate_type, version, definition, fingerprint) VALUES (?1, 'inline', ?2, ?3, ?4, ?5)
ON CONFLICT (name) DO UPDATE
SET mode = excluded.mode, aggregate_type = excluded.aggregate_type, version = excluded.version, definition = excluded.definition,
    fingerprint = excluded.fingerprint, made_at = excluded.made_at,
    position = CASE WHEN ?6 THEN 0 ELSE position END, event_id = CASE WHEN ?6 THEN 0 ELSE event_id END`,
		t.Name, t.Of, int64(t.Version), definition, fingerprint, number(built))
	return s.store.mapError("make appends keep "+tableOf(t, false), err)
}

func (s *session) RemoveProjection(ctx context.Context, name string) error {
	_, err := s.db.ExecContext(context.WithoutCancel(ctx), `DELETE FROM rea_projections WHERE name = ?1`, name)
	return s.store.mapError("remove the projection "+name, err)
}
