package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/realtime-event-archive/rea"
)

// followedTable is the name of a followed projection's table, beside: of the one that is built beside it.
func followedTable(name, fingerprint string, beside bool) string {
	if beside {
		return viewPrefix + name + "." + fingerprint[:8]
	}
	return viewPrefix + name
}

func (s *session) TableThere(ctx context.Context, f rea.Followed) (bool, error) {
	n := 0
	err := one(ctx, s.db, []any{&n}, `SELECT count(*) FROM sqlite_master WHERE lower(name) = lower(?1)`, viewPrefix+f.Name)
	return n > 0, s.store.mapError("look for the table of "+f.Name, err)
}

func (s *session) BuildTable(ctx context.Context, f rea.Followed) error {
	if f.State != nil {
		return s.BuildStateTable(ctx, *f.State)
	}
	columns := "bucket TEXT NOT NULL, bucket_local TEXT NOT NULL"
	for _, d := range f.Statistics.By {
		columns += ", " + quoteName(d.Name) + " TEXT NOT NULL"
	}
	for _, m := range f.Statistics.Measures {
		columns += ", " + quoteName(m.Name) + " " + kindOf(m.Type())
	}
	return s.build(ctx, followedTable(f.Name, f.Fingerprint, false), followedTable(f.Name, f.Fingerprint, true),
		columns+", PRIMARY KEY (bucket"+namesOf(f.Statistics.By)+")")
}

func namesOf(dimensions []rea.Dimension) (names string) {
	for _, d := range dimensions {
		names += ", " + quoteName(d.Name)
	}
	return names
}

func (s *session) ReadStateRows(ctx context.Context, t rea.StateTable, beside bool, ids []string) (list []rea.StateRow, err error) {
	for _, id := range ids {
		row, err := s.stateRow(ctx, t, tableOf(t, beside), id)
		if err != nil {
			return nil, s.store.mapError("read "+tableOf(t, beside), err)
		}
		if row.Seq > 0 {
			list = append(list, row)
		}
	}
	return list, nil
}

// AddStatistics reads each row, adds in Go, where numbers have all their digits, and writes it.
func (s *session) AddStatistics(ctx context.Context, t rea.StatisticsTable, beside bool, rows []rea.StatisticsRow) error {
	_, mark := t.Definition()
	table := followedTable(t.Name, mark, beside)
	find, names, values, read, set := " WHERE bucket = ?1 AND bucket_local = ?2", "bucket, bucket_local"+namesOf(t.By), "?1, ?2", "", ""
	for i, d := range t.By {
		find += fmt.Sprintf(" AND %s = ?%d", quoteName(d.Name), i+3)
		values += fmt.Sprintf(", ?%d", i+3)
	}
	for i, m := range t.Measures {
		name, n := quoteName(m.Name), i+3+len(t.By)
		names += ", " + name
		values += fmt.Sprintf(", ?%d", n)
		read += fmt.Sprintf(", CAST(%s AS TEXT)", name)
		set += fmt.Sprintf(", %s = excluded.%[1]s", name)
	}
	selectSQL := fmt.Sprintf("SELECT 1%s FROM %s%s", read, quoteName(table), find)
	upsertSQL := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON CONFLICT (bucket%s) DO UPDATE SET %s", quoteName(table), names, values, namesOf(t.By), set[2:])
	for _, row := range rows {
		args := []any{rea.FormatTime(row.Bucket), row.Local}
		for _, d := range row.By {
			args = append(args, d)
		}
		was, found := make([]*string, len(t.Measures)), 0
		dest := []any{&found}
		for i := range was {
			dest = append(dest, &was[i])
		}
		err := one(ctx, s.db, dest, selectSQL, args...)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return s.store.mapError("fill "+table, err)
		}
		for i, m := range t.Measures {
			value, err := m.Combine(was[i], row.Values[i])
			if err != nil {
				return fmt.Errorf("rea: fill %s: the column %s: %w", table, m.Name, err)
			}
			args = append(args, stored(m.Type(), value))
		}
		if _, err := s.db.ExecContext(context.WithoutCancel(ctx), upsertSQL, args...); err != nil {
			return s.store.mapError("fill "+table, err)
		}
	}
	return nil
}

func (s *session) ExtraIDs(ctx context.Context, t rea.StateTable, after string, limit int) (ids []string, err error) {
	var id string
	err = each(ctx, s.db, func() error { ids = append(ids, id); return nil }, []any{&id},
		"SELECT v.aggregate_id FROM "+quoteName(tableOf(t, false))+` v
WHERE v.aggregate_id > ?1 AND NOT EXISTS (SELECT 1 FROM rea_events e WHERE e.aggregate_type = ?3 AND e.aggregate_id = v.aggregate_id)
ORDER BY v.aggregate_id
LIMIT ?2`, after, int64(limit), t.Of)
	return ids, s.store.mapError("read "+tableOf(t, false), err)
}

func (s *session) Statistics(ctx context.Context, t rea.StatisticsTable) (list []rea.StatisticsRow, err error) {
	table := viewPrefix + t.Name
	var row rea.StatisticsRow
	var bucket string
	by, values := make([]string, len(t.By)), make([]*string, len(t.Measures))
	columns, dest := "bucket, bucket_local", []any{&bucket, &row.Local}
	for i, d := range t.By {
		columns += ", " + quoteName(d.Name)
		dest = append(dest, &by[i])
	}
	for i, m := range t.Measures {
		columns += ", CAST(" + quoteName(m.Name) + " AS TEXT)"
		dest = append(dest, &values[i])
	}
	err = each(ctx, s.db, func() error {
		row.Bucket, row.By, row.Values = moment(bucket), append([]string(nil), by...), append([]*string(nil), values...)
		list = append(list, row)
		return nil
	}, dest, "SELECT "+columns+" FROM "+quoteName(table))
	return list, s.store.mapError("read "+table, err)
}

func (s *store) Snapshot(ctx context.Context, fn func(rea.SnapshotSession) error) error {
	if err := s.reader.still(); err != nil {
		return err
	}
	tx, err := s.reader.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return s.mapError("begin", err)
	}
	defer func() { _ = tx.Rollback() }()
	return fn(&session{store: s, db: tx})
}
