package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
)

// followedSQL writes the SQL of a followed projection's table.
type followedSQL struct{ rea.Followed }

func (s followedSQL) beside() string { return s.Name + "." + s.Fingerprint[:8] }

func (s followedSQL) table(beside bool) string {
	if beside {
		return "rea_views." + quoteName(s.beside())
	}
	return "rea_views." + quoteName(s.Name)
}

func (s followedSQL) create() string {
	if s.State != nil {
		return stateSQL{*s.State}.create()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (\n    bucket timestamptz NOT NULL,\n    bucket_local text NOT NULL,\n", s.table(true))
	for _, d := range s.Statistics.By {
		fmt.Fprintf(&b, "    %s text COLLATE \"C\" NOT NULL,\n", quoteName(d.Name))
	}
	for _, m := range s.Statistics.Measures {
		fmt.Fprintf(&b, "    %s %s,\n", quoteName(m.Name), m.Type())
	}
	fmt.Fprintf(&b, "    CONSTRAINT %s PRIMARY KEY (%s)\n) WITH (fillfactor = 80)", quoteName(s.beside()+"_pkey"), statisticsKey(*s.Statistics))
	return b.String()
}

func statisticsKey(t rea.StatisticsTable) string {
	key := "bucket"
	for _, d := range t.By {
		key += ", " + quoteName(d.Name)
	}
	return key
}

func (s *ownSession) TableThere(ctx context.Context, f rea.Followed) (there bool, err error) {
	err = s.one(ctx, &there, `SELECT to_regclass($1) IS NOT NULL`, followedSQL{f}.table(false))
	return there, mapError("look for the table of "+f.Name, err)
}

func (s *ownSession) BuildTable(ctx context.Context, f rea.Followed) error {
	x := followedSQL{f}
	return s.build(ctx, f.Name, x.beside(), x.table(true), x.create())
}

// readRows is SELECT aggregate_id, rea_seq, rea_updated_at and the columns as the texts that fill them. The rows are found by their
// primary key.
func (s stateSQL) readRows(beside bool) string {
	texts := ""
	for _, c := range s.Columns {
		name := "v." + quoteName(c.Name)
		switch c.Type {
		case rea.Timestamptz:
			name = "to_char(" + name + ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
		case rea.Date:
			name = "to_char(" + name + ", 'YYYY-MM-DD')"
		default:
			name += "::text"
		}
		texts += ", " + name
	}
	return fmt.Sprintf("SELECT v.aggregate_id, v.rea_seq, v.rea_updated_at%s FROM %s v", texts, s.table(beside))
}

func (s *ownSession) ReadStateRows(ctx context.Context, t rea.StateTable, beside bool, ids []string) ([]rea.StateRow, error) {
	x := stateSQL{t}
	text, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	return s.stateRows(ctx, x, x.readRows(beside)+" WHERE v.aggregate_id = ANY (ARRAY(SELECT jsonb_array_elements_text($1::jsonb)))", string(text))
}

func (s *ownSession) stateRows(ctx context.Context, x stateSQL, query string, args ...any) (list []rea.StateRow, err error) {
	var row rea.StateRow
	var updated time.Time
	values := make([]*string, len(x.Columns))
	dest := []any{&row.ID, &row.Seq, &updated}
	for i := range values {
		dest = append(dest, &values[i])
	}
	err = each(ctx, s.db, func() error {
		row.Was, row.Updated = row.Seq, updated.UTC()
		row.Values = append([]*string(nil), values...)
		list = append(list, row)
		return nil
	}, dest, query, args...)
	return list, mapError("read the rows of "+x.Name, err)
}

// addStatistics takes [["bucket", "local", "dimension"..., "measure"...]...].
func addStatistics(t rea.StatisticsTable, table string) string {
	names, values, set := "bucket, bucket_local", "(r.r ->> 0)::timestamptz, r.r ->> 1", []string{}
	n := 2
	for _, d := range t.By {
		names += ", " + quoteName(d.Name)
		values += fmt.Sprintf(", r.r ->> %d", n)
		n++
	}
	for _, m := range t.Measures {
		name := quoteName(m.Name)
		names += ", " + name
		values += fmt.Sprintf(", (r.r ->> %d)::%s", n, m.Type())
		n++
		switch m.Kind {
		case rea.MeasureMin:
			set = append(set, fmt.Sprintf("%s = least(v.%[1]s, excluded.%[1]s)", name))
		case rea.MeasureMax:
			set = append(set, fmt.Sprintf("%s = greatest(v.%[1]s, excluded.%[1]s)", name))
		default:
			set = append(set, fmt.Sprintf("%s = coalesce(v.%[1]s + excluded.%[1]s, v.%[1]s, excluded.%[1]s)", name))
		}
	}
	return fmt.Sprintf(`
INSERT INTO %s AS v (%s)
SELECT %s FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY r(r, n) ORDER BY r.n
ON CONFLICT (%s) DO UPDATE SET %s`, table, names, values, statisticsKey(t), strings.Join(set, ", "))
}

func (s *ownSession) AddStatistics(ctx context.Context, t rea.StatisticsTable, beside bool, rows []rea.StatisticsRow) error {
	f := rea.Followed{Name: t.Name}
	_, f.Fingerprint = t.Definition()
	x := followedSQL{f}
	doing := "fill " + x.table(beside)
	if err := s.keep(ctx); err != nil {
		return mapError(doing, err)
	}
	list := make([][]any, len(rows))
	for i, row := range rows {
		list[i] = []any{row.Bucket.UTC().Format(time.RFC3339), row.Local}
		for _, d := range row.By {
			list[i] = append(list[i], d)
		}
		for _, value := range row.Values {
			list[i] = append(list[i], value)
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return mapError(doing, s.db.exec(ctx, addStatistics(t, x.table(beside)), string(text)))
}

func (s *ownSession) ExtraIDs(ctx context.Context, t rea.StateTable, after string, limit int) (ids []string, err error) {
	x := stateSQL{t}
	var id string
	err = each(ctx, s.db, func() error { ids = append(ids, id); return nil }, []any{&id},
		"SELECT v.aggregate_id FROM "+x.table(false)+` v
WHERE v.aggregate_id > $1 AND (SELECT e.seq FROM rea.events e WHERE e.aggregate_type = $3 AND e.aggregate_id = v.aggregate_id LIMIT 1) IS NULL
ORDER BY v.aggregate_id
LIMIT $2`, after, limit, t.Of)
	return ids, mapError("read the rows of "+t.Name, err)
}

func (s *ownSession) Statistics(ctx context.Context, t rea.StatisticsTable) (list []rea.StatisticsRow, err error) {
	var row rea.StatisticsRow
	by, values := make([]string, len(t.By)), make([]*string, len(t.Measures))
	columns, dest := "v.bucket, v.bucket_local", []any{&row.Bucket, &row.Local}
	for i, d := range t.By {
		columns += ", v." + quoteName(d.Name)
		dest = append(dest, &by[i])
	}
	for i, m := range t.Measures {
		columns += ", v." + quoteName(m.Name) + "::text"
		dest = append(dest, &values[i])
	}
	err = each(ctx, s.db, func() error {
		row.By, row.Values = append([]string(nil), by...), append([]*string(nil), values...)
		list = append(list, row)
		return nil
	}, dest, "SELECT "+columns+" FROM "+followedSQL{rea.Followed{Name: t.Name}}.table(false)+" v")
	return list, mapError("read "+t.Name, err)
}

func (s *store) Snapshot(ctx context.Context, fn func(rea.SnapshotSession) error) error {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return mapError("begin", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	return fn(&ownSession{session: session{store: s, db: pgxConn{tx}}, tx: tx})
}
