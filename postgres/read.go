package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/realtime-event-archive/rea"
)

// errPageFull ends a page before its last row: it holds MaxPageBytes of payload.
var errPageFull = errors.New("page full")

// events runs a query for eventColumns. cut: it stopped before the last row, at MaxPageBytes.
func (s *session) events(ctx context.Context, doing, sql string, args ...any) (page []rea.Event, cut bool, err error) {
	e := &event{}
	return s.page(ctx, nil, doing, e, e.dest(), sql, args...)
}

// page runs a query whose rows e scans, where need be into dest, and appends them to page.
func (s *session) page(ctx context.Context, page []rea.Event, doing string, e *event, dest []any, sql string, args ...any) (_ []rea.Event, cut bool, err error) {
	size := 0
	err = eachRow(ctx, s.db, func(r rows) error {
		page = append(page, rea.Event{})
		v := &page[len(page)-1]
		if err := e.scan(r, dest, v); err != nil {
			return err
		}
		e.note()
		if size += len(v.Payload) + len(v.Metadata); size >= rea.MaxPageBytes {
			return errPageFull
		}
		return nil
	}, sql, args...)
	if err == errPageFull {
		return page, true, nil
	}
	return page, false, mapError(doing, err)
}

// Through events_aggregate_seq_key.
const aggregateSQL = `
SELECT` + eventColumns + `
FROM rea.events e LEFT JOIN rea.feed f ON f.event_id = e.id` + ofAggregateSQL

const foldSQL = `
SELECT` + foldColumns + `
FROM rea.events e` + ofAggregateSQL

const ofAggregateSQL = `
WHERE e.aggregate_type = $1 AND e.aggregate_id = $2 AND e.seq > $3
ORDER BY e.seq
LIMIT $4`

func (s *session) Events(ctx context.Context, asked rea.Stretch, page []rea.Event) ([]rea.Event, bool, error) {
	e := &event{Event: rea.Event{Aggregate: asked.Aggregate}}
	sql, dest := aggregateSQL, e.dest()
	if asked.Folding {
		sql, dest = foldSQL, e.foldDest()
	}
	end := len(page) + asked.Limit
	page, cut, err := s.page(ctx, page, "read "+asked.Aggregate.String(), e, dest, sql, asked.Aggregate.Type, asked.Aggregate.ID, asked.After, asked.Limit+1)
	if len(page) > end {
		return page[:end], true, err
	}
	return page, cut, err
}

const filterSQL = `  AND ($5::text IS NULL OR starts_with(e.aggregate_type, $5))
  AND ($6::text IS NULL OR e.event_type = $6 OR e.event_type = ANY (ARRAY(SELECT jsonb_array_elements_text($14::jsonb)))) AND ($7::text IS NULL OR starts_with(e.event_type, $7))
  AND ($8::text IS NULL OR e.actor_id = $8) AND ($9::text IS NULL OR strpos(e.reason, $9) > 0)
  AND ($10::text IS NULL OR e.correlation_id = $10) AND ($11::text IS NULL OR e.xid::text = $11)
  AND ($15::bigint IS NULL OR e.context_id = $15)
  AND ($12::timestamptz IS NULL OR e.created_at >= $12) AND ($13::timestamptz IS NULL OR e.created_at < $13)`

// The page of the feed first (feed_pkey), then its events (events_pkey): the other way round the planner may
// read the whole archive in parallel for one page. LIMIT 1 keeps it from doing so for a page of thousands.
const pageSQL = `
SELECT` + eventColumns + `
FROM (SELECT p.position, p.event_id FROM rea.feed p WHERE p.position > $1 ORDER BY p.position LIMIT $2) f
CROSS JOIN LATERAL (SELECT x.* FROM rea.events x WHERE x.id = f.event_id LIMIT 1) e
WHERE ($3::text IS NULL OR e.aggregate_type = $3) AND ($4::text IS NULL OR e.aggregate_id = $4)
` + filterSQL + `
ORDER BY f.position`

const unfilteredPageSQL = `
SELECT` + eventColumns + `
FROM (SELECT p.position, p.event_id FROM rea.feed p WHERE p.position > $1 ORDER BY p.position LIMIT $2) f
CROSS JOIN LATERAL (SELECT x.* FROM rea.events x WHERE x.id = f.event_id LIMIT 1) e
ORDER BY f.position`

const pageEndSQL = `
SELECT coalesce(max(p.position), $1) FROM (SELECT p.position FROM rea.feed p WHERE p.position > $1 ORDER BY p.position LIMIT $2) p`

// Through events_aggregate_seq_key and feed_event_id_key: an aggregate's positions rise with its seqs.
const aggregatePageSQL = `
SELECT` + eventColumns + `
FROM rea.events e JOIN rea.feed f ON f.event_id = e.id
WHERE e.aggregate_type = $3 AND e.aggregate_id = $4 AND f.position > $1
` + filterSQL + `
ORDER BY e.seq
LIMIT $2`

// Through events_context: the events of one statement, whose positions rise with their ids.
const contextPageSQL = `
SELECT` + eventColumns + `
FROM rea.events e JOIN rea.feed f ON f.event_id = e.id
WHERE e.context_id = $15 AND f.position > $1
  AND ($3::text IS NULL OR e.aggregate_type = $3) AND ($4::text IS NULL OR e.aggregate_id = $4)
` + filterSQL + `
ORDER BY e.id
LIMIT $2`

func (s *session) Page(ctx context.Context, f rea.Filter, after int64, limit int) ([]rea.Event, int64, error) {
	const doing = "read by position"
	if !f.Selective() {
		page, _, err := s.events(ctx, doing, unfilteredPageSQL, after, limit)
		return page, lastPosition(page, after), err
	}
	args := []any{
		after, limit, optional(f.Type), optional(f.ID), optional(f.TypePrefix), optional(f.Event), optional(f.EventPrefix),
		optional(f.Actor), optional(f.Reason), optional(f.Correlation), optional(f.XID), optionalTime(f.Since), optionalTime(f.Until),
		names(f.Aliases()), optionalID(f.Context),
	}
	few := ""
	switch {
	case f.Type != "" && f.ID != "":
		few = aggregatePageSQL
	case f.Context != 0:
		few = contextPageSQL
	}
	if few != "" {
		page, _, err := s.events(ctx, doing, few, args...)
		return page, lastPosition(page, after), err
	}
	// The end first: what is numbered in between is then looked at again, never passed over.
	last := after
	if err := s.one(ctx, &last, pageEndSQL, after, limit); err != nil {
		return nil, 0, mapError(doing, err)
	}
	if last == after {
		return nil, after, nil
	}
	args[1] = last - after // positions are dense
	page, cut, err := s.events(ctx, doing, pageSQL, args...)
	if cut {
		last = lastPosition(page, after)
	}
	return page, last, err
}

// names is a JSON array of texts, or NULL.
func names(list []string) any {
	if len(list) == 0 {
		return nil
	}
	text, _ := json.Marshal(list) // texts always marshal
	return string(text)
}

func lastPosition(page []rea.Event, after int64) int64 {
	if len(page) == 0 {
		return after
	}
	return page[len(page)-1].Position
}

func (s *session) Head(ctx context.Context) (int64, error) {
	var head int64
	err := s.one(ctx, &head, `SELECT coalesce((SELECT f.position FROM rea.feed f ORDER BY f.position DESC LIMIT 1), 0)`)
	return head, mapError("read the head", err)
}

func (s *session) Count(ctx context.Context) (int64, error) {
	var n int64
	err := s.one(ctx, &n, `SELECT count(*) FROM rea.events`)
	return n, mapError("count events", err)
}

func (s *session) one(ctx context.Context, dest any, sql string, args ...any) error {
	return each(ctx, s.db, func() error { return nil }, []any{dest}, sql, args...)
}

func optionalID(id int64) *int64 {
	if id == 0 {
		return nil
	}
	return &id
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
