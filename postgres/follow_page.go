package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/realtime-event-archive/rea"
)

// nextIDsSQL gives the ids of the events at the next positions, in order, and that of the last of them anew, through
// feed_pkey: it is the same where the positions have no hole.
const nextIDsSQL = `
SELECT r.ids, (SELECT p.event_id FROM rea.feed p WHERE p.position = $1 + cardinality(r.ids))
FROM (SELECT ARRAY(SELECT p.event_id FROM rea.feed p WHERE p.position > $1 ORDER BY p.position LIMIT $2) AS ids OFFSET 0) r`

// What a page is read from, by id: a stretch of events_pkey, or, where that has many ids of others, each of its events.
// OFFSET 0 and LIMIT 1 leave the planner no other way. A join with rea.feed takes it twice as long.
const (
	stretchSQL = `(SELECT x.* FROM rea.events x WHERE x.id BETWEEN $1 AND $2 ORDER BY x.id OFFSET 0) e`
	singlySQL  = `unnest($1::bigint[]) i(id) CROSS JOIN LATERAL (SELECT x.* FROM rea.events x WHERE x.id = i.id LIMIT 1) e`
)

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
	if !filter.Lean {
		page, _, err = s.events(ctx, doing, unfilteredPageSQL, from.Position, limit)
		if len(page) > 0 {
			to = rea.Offset{Position: page[len(page)-1].Position, EventID: page[len(page)-1].ID}
		}
		return page, to, err
	}
	if !s.follows {
		if err := s.db.exec(ctx, `SET LOCAL enable_seqscan = off`); err != nil {
			return nil, to, mapError(doing, err)
		}
	}
	var ids []int64 // what is numbered meanwhile is not passed over
	var last *int64
	if err := each(ctx, s.db, func() error { return nil }, []any{&ids, &last}, nextIDsSQL, from.Position, limit); err != nil || len(ids) == 0 {
		return nil, to, mapError(doing, err)
	}
	to = rea.Offset{Position: from.Position + int64(len(ids)), EventID: ids[len(ids)-1]}
	if last == nil || *last != to.EventID {
		return nil, from, fmt.Errorf("rea: %s: rea.feed lacks positions after %d: bring it back from the backup that the events are from", doing, from.Position)
	}
	places := make([]place, len(ids))
	for i, id := range ids {
		places[i] = place{id, from.Position + 1 + int64(i)}
	}
	inOrder := slices.IsSorted(ids)
	if !inOrder {
		slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.id, b.id) })
	}
	page, cut, err := s.leanPage(ctx, doing, filter, places)
	switch {
	case err != nil:
		return nil, from, err
	case cut && inOrder:
		to = rea.Offset{Position: page[len(page)-1].Position, EventID: page[len(page)-1].ID}
	case cut: // what was read is no stretch of positions
		return s.FollowPage(ctx, filter, from, len(ids)/2)
	case !inOrder:
		slices.SortFunc(page, func(a, b rea.Event) int { return cmp.Compare(a.Position, b.Position) })
	}
	return page, to, nil
}

// place is where an event stands in the feed.
type place struct{ id, position int64 }

// leanPage reads the events at places, which come by id, in the order of their ids.
func (s *ownSession) leanPage(ctx context.Context, doing string, filter rea.FollowFilter, places []place) (page []rea.Event, cut bool, err error) {
	first, last := places[0].id, places[len(places)-1].id
	source, args := stretchSQL, []any{first, last}
	if last-first >= 2*int64(len(places)) {
		ids := make([]int64, len(places))
		for i, p := range places {
			ids[i] = p.id
		}
		source, args = singlySQL, []any{ids}
	}
	var where []string
	if filter.Type != "" {
		args = append(args, filter.Type)
		where = append(where, fmt.Sprintf("e.aggregate_type = $%d", len(args)))
	}
	if filter.Events != nil {
		text, err := json.Marshal(filter.Events)
		if err != nil {
			return nil, false, err
		}
		args = append(args, string(text))
		where = append(where, fmt.Sprintf("e.event_type = ANY (ARRAY(SELECT jsonb_array_elements_text($%d::jsonb)))", len(args)))
	} else {
		page = make([]rea.Event, 0, len(places))
	}
	columns := "e.id, e.seq, e.event_type, e.event_version, " + neededSQL(filter) + ", e.created_at, e.aggregate_type, e.aggregate_id"
	if filter.Attributes {
		columns += ", e.actor_id, e.reason, e.correlation_id, e.metadata::text"
	}
	query := "SELECT " + columns + "\nFROM " + source
	if len(where) > 0 {
		query += "\nWHERE " + strings.Join(where, " AND ")
	}
	l := &leanEvent{places: places}
	size := 0
	err = eachRow(ctx, s.db, func(r rows) error {
		v, err := l.scan(r, filter.Attributes)
		if err != nil || v.Position == 0 {
			return err
		}
		page = append(page, v)
		if size += len(v.Payload) + len(v.Metadata); size >= rea.MaxPageBytes {
			return errPageFull
		}
		return nil
	}, query+"\nORDER BY e.id", args...)
	if err == errPageFull {
		return page, true, nil
	}
	return page, false, mapError(doing, err)
}

// neededSQL is the payload, or what of it is needed, as text: the fields that are not absent, digit for digit.
func neededSQL(filter rea.FollowFilter) string {
	var b strings.Builder
	for _, n := range filter.Needs {
		b.WriteString(" WHEN ")
		if filter.Type == "" {
			fmt.Fprintf(&b, "e.aggregate_type = %s AND ", quoteText(n.Type))
		}
		versions := strings.Trim(strings.ReplaceAll(fmt.Sprint(n.Versions), " ", ", "), "[]")
		names := make([]string, len(n.Events))
		for i, name := range n.Events {
			names[i] = quoteText(name)
		}
		fmt.Fprintf(&b, "e.event_type IN (%s) AND e.event_version IN (%s) THEN ", strings.Join(names, ", "), versions)
		fields := make([]string, len(n.Keys))
		for i, key := range n.Keys {
			name, _ := json.Marshal(key) // a string always has a form
			fields[i] = fmt.Sprintf("%s || (e.payload -> %s::text)::text", quoteText(string(name)+": "), quoteText(key))
		}
		switch len(fields) {
		case 0:
			b.WriteString("'{}'")
		case 1:
			fmt.Fprintf(&b, "coalesce('{' || %s || '}', '{}')", fields[0])
		default:
			fmt.Fprintf(&b, "'{' || concat_ws(', ', %s) || '}'", strings.Join(fields, ", "))
		}
	}
	if b.Len() == 0 {
		return "e.payload::text"
	}
	return "CASE" + b.String() + " ELSE e.payload::text END"
}

// leanEvent reads rows of leanPage, one after the other.
type leanEvent struct {
	event
	places []place // from the next row's on
}

var leanTypes = []uint32{
	pgtype.Int8OID, pgtype.Int8OID, pgtype.TextOID, pgtype.Int4OID, pgtype.TextOID, pgtype.TimestamptzOID, pgtype.TextOID, pgtype.TextOID,
	pgtype.TextOID, pgtype.TextOID, pgtype.TextOID, pgtype.TextOID,
}

// scan gives the event of the present row; without a position where it is not on the page.
func (l *leanEvent) scan(r rows, attributes bool) (v rea.Event, err error) {
	read := false
	if p, ok := r.(pgxRows); ok {
		if l.usual == nil {
			usual := formats(p.FieldDescriptions(), leanTypes)
			l.usual = &usual
		}
		read = *l.usual && l.read(p.RawValues(), &v)
	}
	if !read {
		dest := []any{&l.ID, &l.Seq, &l.Type, &l.Version, &l.payload, &l.CreatedAt, &l.Aggregate.Type, &l.Aggregate.ID}
		if attributes {
			dest = append(dest, &l.actor, &l.reason, &l.correlation, &l.metadata)
		}
		if err := r.Scan(dest...); err != nil {
			return v, err
		}
		v = l.value()
	}
	for len(l.places) > 0 && l.places[0].id < v.ID {
		l.places = l.places[1:]
	}
	if len(l.places) > 0 && l.places[0].id == v.ID {
		v.Position = l.places[0].position
	}
	return v, nil
}

func (l *leanEvent) read(raw [][]byte, v *rea.Event) bool {
	v.ID, v.Seq, v.Type, v.Version, v.Payload = l.int8(raw[0]), l.int8(raw[1]), l.name(raw[2]), l.int4(raw[3]), l.bytes(raw[4])
	v.Aggregate = rea.Ref{Type: l.name(raw[6]), ID: string(raw[7])}
	if len(raw) > 8 {
		v.Actor, v.Reason, v.Correlation, v.Metadata = l.name(raw[8]), string(raw[9]), string(raw[10]), l.bytes(raw[11])
	}
	return l.time(&v.CreatedAt, raw[5])
}
