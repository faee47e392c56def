package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/realtime-event-archive/rea"
)

// stateRowsSQL goes from aggregate to aggregate through events_aggregate_seq_key, with one snapshot of events and rows.
const stateRowsSQL = `
WITH RECURSIVE a (id, n) AS (
    (SELECT e.aggregate_id, 1 FROM rea.events e WHERE e.aggregate_type = $1 AND e.aggregate_id > $2 ORDER BY e.aggregate_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.aggregate_id FROM rea.events e
            WHERE e.aggregate_type = $1 AND e.aggregate_id > a.id ORDER BY e.aggregate_id LIMIT 1), a.n + 1
    FROM a WHERE a.id IS NOT NULL AND a.n < $3
)
SELECT a.id, coalesce(v.rea_seq, 0), l.seq
FROM a
CROSS JOIN LATERAL (SELECT e.seq FROM rea.events e WHERE e.aggregate_type = $1 AND e.aggregate_id = a.id ORDER BY e.seq DESC LIMIT 1) l
LEFT JOIN %s v ON v.aggregate_id = a.id
WHERE a.id IS NOT NULL
ORDER BY a.id`

func (s *ownSession) StateRows(ctx context.Context, t rea.StateTable, beside bool, after string, limit int) ([]rea.RowPlace, error) {
	x := stateSQL{t}
	return s.places(ctx, fmt.Sprintf(stateRowsSQL, x.table(beside)), "read "+x.table(beside), t.Of, after, limit)
}

func (s *ownSession) places(ctx context.Context, query, doing string, args ...any) ([]rea.RowPlace, error) {
	// A table without statistics would be scanned for every aggregate.
	if !s.follows {
		if err := s.db.exec(ctx, `SET LOCAL enable_seqscan = off`); err != nil {
			return nil, mapError(doing, err)
		}
	}
	var list []rea.RowPlace
	var p rea.RowPlace
	err := each(ctx, s.db, func() error {
		list = append(list, p)
		return nil
	}, []any{&p.ID, &p.Seq, &p.Last}, query, args...)
	return list, mapError(doing, err)
}

// Through events_aggregate_seq_key.
const firstEventsSQL = `
SELECT` + eventColumns + `
FROM unnest($2::text[]) WITH ORDINALITY i(id, n)
CROSS JOIN LATERAL (SELECT x.* FROM rea.events x WHERE x.aggregate_type = $1 AND x.aggregate_id = i.id ORDER BY x.seq LIMIT $3) e
%s
ORDER BY i.n, e.seq
LIMIT $3`

func (s *ownSession) FirstEvents(ctx context.Context, aggregateType string, ids []string, limit int, positions bool) ([]rea.Event, error) {
	feed := `CROSS JOIN (SELECT NULL::bigint AS position) f`
	if positions {
		feed = `LEFT JOIN rea.feed f ON f.event_id = e.id`
	}
	events, _, err := s.events(ctx, "read events of "+aggregateType, fmt.Sprintf(firstEventsSQL, feed), aggregateType, ids, limit)
	return events, err
}

func (s *ownSession) LastID(ctx context.Context) (int64, error) {
	var id int64
	err := s.one(ctx, &id, `SELECT coalesce((SELECT e.id FROM rea.events e ORDER BY e.id DESC LIMIT 1), 0)`)
	return id, mapError("read the last event", err)
}

// recentRowsSQL goes through events_pkey, and for each aggregate through events_aggregate_seq_key.
const recentRowsSQL = `
SELECT a.aggregate_id, coalesce(v.rea_seq, 0), l.seq
FROM (SELECT DISTINCT e.aggregate_id FROM rea.events e WHERE e.id > $2 AND e.aggregate_type = $1 LIMIT $3) a
CROSS JOIN LATERAL (SELECT e.seq FROM rea.events e WHERE e.aggregate_type = $1 AND e.aggregate_id = a.aggregate_id ORDER BY e.seq DESC LIMIT 1) l
LEFT JOIN %s v ON v.aggregate_id = a.aggregate_id`

func (s *ownSession) RecentRows(ctx context.Context, t rea.StateTable, after int64, limit int) ([]rea.RowPlace, error) {
	return s.places(ctx, fmt.Sprintf(recentRowsSQL, stateSQL{t}.table(false)), "read "+stateSQL{t}.table(false), t.Of, after, limit)
}

// saveRows takes [["id", was, seq, "updated", "value"...]...]. A row that moved meanwhile is left alone.
func (s stateSQL) saveRows(beside bool) string {
	names, set, values := "", "", ""
	for i, c := range s.Columns {
		names += ", " + quoteName(c.Name)
		values += fmt.Sprintf(", (r.r ->> %d)::%s", i+4, c.Type)
		set += fmt.Sprintf(", %s = (r.r ->> %d)::%s", quoteName(c.Name), i+4, c.Type)
	}
	return fmt.Sprintf(`
WITH r AS MATERIALIZED (SELECT x.r FROM jsonb_array_elements($1::jsonb) x(r)),
changed AS (
    UPDATE %[1]s rea_v SET rea_seq = (r.r ->> 2)::bigint, rea_updated_at = (r.r ->> 3)::timestamptz%[2]s
    FROM r WHERE rea_v.aggregate_id = r.r ->> 0 AND rea_v.rea_seq = (r.r ->> 1)::bigint
    RETURNING 1),
added AS (
    INSERT INTO %[1]s (aggregate_id, rea_seq, rea_updated_at%[3]s)
    SELECT r.r ->> 0, (r.r ->> 2)::bigint, (r.r ->> 3)::timestamptz%[4]s FROM r WHERE r.r ->> 1 = '0'
    ON CONFLICT (aggregate_id) DO NOTHING
    RETURNING 1)
SELECT (SELECT count(*) FROM changed) + (SELECT count(*) FROM added)`, s.table(beside), set, names, values)
}

// saveBytes ends a statement of rows: jsonb holds 256 MiB at most, and a row some payloads of 16.
const saveBytes = 8 << 20

func (s *ownSession) SaveStateRows(ctx context.Context, t rea.StateTable, beside bool, rows []rea.StateRow) (int, error) {
	x := stateSQL{t}
	doing := "fill " + x.table(beside)
	if len(rows) == 0 {
		return 0, nil
	}
	if err := s.keep(ctx); err != nil {
		return 0, mapError(doing, err)
	}
	if !s.follows {
		if err := s.run(ctx, doing, `SET LOCAL lock_timeout = '1s'`); err != nil {
			return 0, err
		}
	}
	saved := 0
	if t.Mode == "followed" { // nobody else adds rows, and who does is found: fewer are saved
		var added []rea.StateRow
		added, rows = split(rows)
		err := s.copyRows(ctx, x, beside, added)
		if sqlState(err) == "23505" {
			return 0, nil
		}
		if err != nil {
			return 0, mapError(doing, err)
		}
		saved = len(added)
	}
	for len(rows) > 0 {
		var list [][]any
		for size := 0; len(list) < len(rows) && size < saveBytes; {
			row := rows[len(list)]
			values := []any{row.ID, row.Was, row.Seq, rea.FormatTime(row.Updated)}
			for _, value := range row.Values {
				if values = append(values, value); value != nil {
					size += len(*value)
				}
			}
			list = append(list, values)
		}
		rows = rows[len(list):]
		text, err := json.Marshal(list)
		if err != nil {
			return saved, err
		}
		n := 0
		err = s.one(ctx, &n, x.saveRows(beside), string(text))
		if sqlState(err) == "55P03" {
			return 0, fmt.Errorf("rea: %s: %w (%w)", doing, rea.ErrRetry, err)
		}
		if err != nil {
			return saved, mapError(doing, err)
		}
		saved += n
	}
	return saved, nil
}
