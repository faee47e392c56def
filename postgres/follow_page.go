package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/realtime-event-archive/rea"
)

// leanSQL is unfilteredPageSQL without what tables of states and statistics are not computed from: a constant in its place costs the
// server next to nothing, and the rows are read as all others are.
const leanSQL = `
SELECT e.id, e.seq, e.event_type, e.event_version, e.payload, e.created_at, NULL::text, NULL::int, false,
       %s, NULL::text, NULL::int, %s,
       e.aggregate_type, e.aggregate_id, f.position, ''::text, ''::text, NULL::timestamptz
FROM (SELECT p.position, p.event_id FROM rea.feed p WHERE p.position > $1 ORDER BY p.position LIMIT $2) f
CROSS JOIN LATERAL (SELECT x.* FROM rea.events x WHERE x.id = f.event_id LIMIT 1) e%s
ORDER BY f.position`

const leanFilterSQL = `
WHERE ($3::text IS NULL OR e.aggregate_type = $3)
  AND ($4::jsonb IS NULL OR e.event_type = ANY (ARRAY(SELECT jsonb_array_elements_text($4::jsonb))))`

const followEndSQL = `
SELECT p.position, p.event_id
FROM (SELECT p.position, p.event_id FROM rea.feed p WHERE p.position > $1 ORDER BY p.position LIMIT $2) p
ORDER BY p.position DESC
LIMIT 1`

// rowsBehindSQL reads the page of the feed first (feed_pkey), then its events (events_pkey), then the rows by their primary key.
const rowsBehindSQL = `
SELECT a.aggregate_id, coalesce(v.rea_seq, 0), a.seq
FROM (SELECT e.aggregate_id, max(e.seq) AS seq
      FROM (SELECT p.event_id FROM rea.feed p WHERE p.position > $1 ORDER BY p.position LIMIT $2) f
      CROSS JOIN LATERAL (SELECT x.aggregate_type, x.aggregate_id, x.seq FROM rea.events x WHERE x.id = f.event_id LIMIT 1) e
      WHERE e.aggregate_type = $3
      GROUP BY e.aggregate_id) a
LEFT JOIN %s v ON v.aggregate_id = a.aggregate_id
WHERE v.rea_seq IS NULL OR v.rea_seq < a.seq
ORDER BY a.aggregate_id`

// RowsBehind: the end comes first, so that what is numbered in between is not passed over.
func (s *ownSession) RowsBehind(ctx context.Context, t rea.StateTable, from rea.Offset, limit int) (rows []rea.RowPlace, to rea.Offset, err error) {
	x := stateSQL{t}
	to = from
	err = each(ctx, s.db, func() error { return nil }, []any{&to.Position, &to.EventID}, followEndSQL, from.Position, limit)
	if err != nil || to == from {
		return nil, to, mapError("read by position", err)
	}
	rows, err = s.places(ctx, fmt.Sprintf(rowsBehindSQL, x.table(false)), "read "+x.table(false), from.Position, to.Position-from.Position, t.Of)
	return rows, to, err
}

func (s *ownSession) FollowPage(ctx context.Context, filter rea.FollowFilter, from rea.Offset, limit int) (page []rea.Event, to rea.Offset, err error) {
	const doing = "read by position"
	to = from
	selective := filter.Type != "" || filter.Events != nil
	if selective { // the end first: what is numbered in between is not passed over
		err := each(ctx, s.db, func() error { return nil }, []any{&to.Position, &to.EventID}, followEndSQL, from.Position, limit)
		if err != nil || to == from {
			return nil, to, mapError(doing, err)
		}
		limit = int(to.Position - from.Position) // positions are dense
	}
	cut := false
	if filter.Lean {
		page, cut, err = s.leanPage(ctx, doing, filter, from.Position, limit)
	} else {
		page, cut, err = s.events(ctx, doing, unfilteredPageSQL, from.Position, limit)
	}
	if err == nil && len(page) > 0 && (cut || !selective) {
		last := page[len(page)-1]
		to = rea.Offset{Position: last.Position, EventID: last.ID}
	}
	return page, to, err
}

func (s *ownSession) leanPage(ctx context.Context, doing string, filter rea.FollowFilter, after int64, limit int) (page []rea.Event, cut bool, err error) {
	var events any
	if filter.Events != nil {
		text, err := json.Marshal(filter.Events)
		if err != nil {
			return nil, false, err
		}
		events = string(text)
	}
	carried, metadata, where := "NULL::text, NULL::text, NULL::text", "NULL::jsonb", ""
	if filter.Attributes {
		carried, metadata = "e.actor_id, e.reason, e.correlation_id", "e.metadata"
	}
	args := []any{after, limit}
	if filter.Type != "" || events != nil {
		args, where = append(args, optional(filter.Type), events), leanFilterSQL
	}
	return s.events(ctx, doing, fmt.Sprintf(leanSQL, carried, metadata, where), args...)
}
