package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/realtime-event-archive/rea"
)

// foldColumns are what folding takes.
const foldColumns = `
SELECT id, seq, event_type, event_version, payload, created_at, coalesce(status, ''), coalesce(catalog_version, 0), correction,
       coalesce(actor_id, ''), coalesce(reason, ''), coalesce(correlation_id, ''), coalesce(idempotency_key, ''), coalesce(key_events, 0), metadata`

const columns = foldColumns + `, aggregate_type, aggregate_id, coalesce(xid, ''), coalesce(db_user, ''), coalesce(recorded_at, ''), coalesce(context_id, 0)
FROM rea_events`

// row scans one row of columns, or of foldColumns.
type row struct {
	rea.Event
	metadata          []byte
	created, recorded string

	at, of                     *int64 // of resumeSQL: seq and event id of the snapshot
	fingerprint, digest, state *string
	found                      *rea.Snapshot
}

func (r *row) foldDest() []any {
	return []any{
		&r.ID, &r.Seq, &r.Type, &r.Version, (*[]byte)(&r.Payload), &r.created, &r.Status, &r.CatalogVersion, &r.Correction,
		&r.Actor, &r.Reason, &r.Correlation, &r.Key, &r.KeyEvents, &r.metadata,
	}
}

func (r *row) dest() []any {
	return append(r.foldDest(), &r.Aggregate.Type, &r.Aggregate.ID, &r.XID, &r.DBUser, &r.recorded, &r.ContextID)
}

// value gives the event that was scanned, and its position.
func (r *row) value() (v rea.Event, err error) {
	v = r.Event
	v.Position, v.Metadata = v.ID, json.RawMessage(r.metadata)
	if v.CreatedAt, err = time.Parse(rea.TimeLayout, r.created); err == nil && r.recorded != "" {
		v.RecordedAt, err = time.Parse(rea.TimeLayout, r.recorded)
	}
	if err != nil { // the CHECKs were switched off
		err = fmt.Errorf("the times of %s at seq %d are damaged: %w", v.Aggregate, v.Seq, err)
	}
	return v, err
}

// errPageFull ends a page before its last row: it holds MaxPageBytes of payload.
var errPageFull = errors.New("page full")

// events runs a query for columns. cut: it stopped before the last row, at MaxPageBytes.
func (s *session) events(ctx context.Context, query string, args ...any) (list []rea.Event, cut bool, err error) {
	r := &row{}
	return s.page(ctx, nil, r, r.dest(), query, args...)
}

// page runs a query whose rows are scanned into dest, and thereby into r, and appends them to list.
func (s *session) page(ctx context.Context, list []rea.Event, r *row, dest []any, query string, args ...any) (_ []rea.Event, cut bool, err error) {
	size := 0
	err = each(ctx, s.db, func() error {
		v, err := r.value()
		if err != nil {
			return err
		}
		list = append(list, v)
		r.note()
		if size += len(v.Payload) + len(v.Metadata); size >= rea.MaxPageBytes {
			return errPageFull
		}
		return nil
	}, dest, query, args...)
	if err == errPageFull {
		return list, true, nil
	}
	return list, false, s.store.mapError("read events", err)
}

// eventsSQL and foldSQL read through events_aggregate_seq_key.
const (
	eventsSQL = columns + ofAggregateSQL
	foldSQL   = foldColumns + `
FROM rea_events` + ofAggregateSQL
	ofAggregateSQL = `
WHERE aggregate_type = ?1 AND aggregate_id = ?2 AND seq > ?3
ORDER BY seq
LIMIT ?4`
)

func (s *session) Events(ctx context.Context, asked rea.Stretch, page []rea.Event) ([]rea.Event, bool, error) {
	r := &row{Event: rea.Event{Aggregate: asked.Aggregate}}
	query, dest := eventsSQL, r.dest()
	if asked.Folding {
		query, dest = foldSQL, r.foldDest()
	}
	end := len(page) + asked.Limit
	page, cut, err := s.page(ctx, page, r, dest, query, asked.Aggregate.Type, asked.Aggregate.ID, asked.After, int64(asked.Limit)+1)
	if len(page) > end {
		return page[:end], true, err
	}
	return page, cut, err
}

// matches is a filter. Each text is compared literally and byte by byte; ” and NULL ask for nothing.
const matches = `
  AND (?4 = '' OR aggregate_type = ?4)
  AND (?5 = '' OR aggregate_id = ?5)
  AND (?6 = '' OR substr(aggregate_type, 1, length(?6)) = ?6)
  AND (?7 = '' OR event_type = ?7 OR event_type IN (SELECT value FROM json_each(?15)))
  AND (?8 = '' OR substr(event_type, 1, length(?8)) = ?8)
  AND (?9 = '' OR actor_id = ?9)
  AND (?10 = '' OR instr(reason, ?10) > 0)
  AND (?11 = '' OR correlation_id = ?11)
  AND (?12 = '' OR xid = ?12)
  AND (?13 IS NULL OR created_at >= ?13)
  AND (?14 IS NULL OR created_at < ?14)
  AND (?16 = 0 OR context_id = ?16)`

// pageSQL looks at a stretch of positions.
const pageSQL = columns + `
WHERE id > ?1 AND id <= ?2` + matches + `
ORDER BY id
LIMIT ?3`

// pageOfSQL reads one aggregate through events_aggregate_seq_key, where seq has the order of id.
const pageOfSQL = columns + `
WHERE aggregate_type = ?4 AND aggregate_id = ?5 AND +id > ?1 AND +id <= ?2` + matches + `
ORDER BY seq
LIMIT ?3`

// pageOfContextSQL reads what one statement wrote through rea_events_context.
const pageOfContextSQL = columns + `
WHERE context_id = ?16 AND +id > ?1 AND +id <= ?2` + matches + `
ORDER BY id
LIMIT ?3`

func (s *session) Page(ctx context.Context, filter rea.Filter, after int64, limit int) ([]rea.Event, int64, error) {
	last, err := s.Head(ctx) // ids have no holes, and what stands up to here stays as it is
	if err != nil || last <= after {
		return nil, after, err
	}
	query, few := pageSQL, true
	switch {
	case filter.Type != "" && filter.ID != "":
		query = pageOfSQL
	case filter.Context != 0:
		query = pageOfContextSQL
	default:
		few = false
		last = min(last, after+int64(limit))
	}
	aliases, _ := json.Marshal(filter.Aliases()) // texts always marshal
	events, cut, err := s.events(ctx, query, after, last, int64(limit), filter.Type, filter.ID, filter.TypePrefix, filter.Event, filter.EventPrefix,
		filter.Actor, filter.Reason, filter.Correlation, filter.XID, bound(filter.Since), bound(filter.Until), string(aliases), filter.Context)
	if err != nil {
		return nil, after, err
	}
	if cut || few && len(events) == limit {
		last = events[len(events)-1].ID
	}
	return events, last, nil
}

// bound gives t in the form of created_at, the next microsecond where it is between two. NULL: no bound.
func bound(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	t = t.Add(time.Microsecond - 1).UTC()
	switch y := t.Year(); {
	case y < 0:
		return ""
	case y > 9999:
		return "9999-12-31T23:59:59.999999Z~" // after every created_at
	}
	return rea.FormatTime(t)
}

const headSQL = `SELECT coalesce(max(id), 0) FROM rea_events`

// Head is the highest id: every event of this transaction's view has its position.
func (s *session) Head(ctx context.Context) (head int64, err error) {
	err = one(ctx, s.db, []any{&head}, headSQL)
	return head, s.store.mapError("read the head", err)
}

const countSQL = `SELECT count(*) FROM rea_events`

func (s *session) Count(ctx context.Context) (count int64, err error) {
	err = one(ctx, s.db, []any{&count}, countSQL)
	return count, s.store.mapError("count events", err)
}
