package postgres

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/realtime-event-archive/rea"
)

// The snapshot through snapshots_pkey, its event and the events that follow through events_aggregate_seq_key. What stands
// in rea.snapshots comes on the first row, the state only if it is to be used.
const resumeSQL = `
WITH s AS MATERIALIZED (
    SELECT p.seq, p.state, concat_ws(' ', p.seq, p.event_id, p.fingerprint, p.digest) AS tag,
           p.fingerprint = $3 AND p.seq <= $4 AND EXISTS (
               SELECT FROM rea.events x
               WHERE x.aggregate_type = $1 AND x.aggregate_id = $2 AND x.seq = p.seq AND x.id = p.event_id) AS usable
    FROM rea.snapshots p
    WHERE p.aggregate_type = $1 AND p.aggregate_id = $2
), f AS MATERIALIZED (
    SELECT coalesce((SELECT s.seq FROM s WHERE s.usable), 1) AS seq
)
SELECT` + foldColumns + `,
       CASE WHEN e.seq = (SELECT f.seq FROM f) THEN (SELECT s.tag FROM s) END,
       CASE WHEN e.seq = (SELECT f.seq FROM f) THEN (SELECT s.state FROM s WHERE s.usable) END
FROM rea.events e
WHERE e.aggregate_type = $1 AND e.aggregate_id = $2 AND e.seq >= (SELECT f.seq FROM f)
ORDER BY e.seq
LIMIT $5`

func (s *session) Resume(ctx context.Context, asked rea.Stretch, fingerprint string, upTo int64, page []rea.Event) ([]rea.Event, bool, *rea.Snapshot, error) {
	e := &event{Event: rea.Event{Aggregate: asked.Aggregate}}
	end := len(page) + asked.Limit
	page, cut, err := s.page(ctx, page, "read "+asked.Aggregate.String(), e, append(e.foldDest(), &e.tag, &e.state), resumeSQL,
		asked.Aggregate.Type, asked.Aggregate.ID, fingerprint, upTo, asked.Limit+1)
	if len(page) > end {
		page, cut = page[:end], true
	}
	return page, cut, e.found, err
}

// note keeps what stands in rea.snapshots, if the row that was scanned has it.
func (e *event) note() {
	if e.tag == nil {
		return
	}
	parts := strings.SplitN(*e.tag, " ", 4) // the last two may be anything
	for len(parts) < 4 {
		parts = append(parts, "")
	}
	e.found = &rea.Snapshot{Aggregate: e.Aggregate, Fingerprint: parts[2], Digest: parts[3]}
	e.found.Seq, _ = strconv.ParseInt(parts[0], 10, 64)
	e.found.EventID, _ = strconv.ParseInt(parts[1], 10, 64)
	if e.state != nil {
		e.found.State = []byte(*e.state)
	}
	e.tag, e.state = nil, nil
}

const saveSnapshotSQL = `
INSERT INTO rea.snapshots AS p (aggregate_type, aggregate_id, seq, event_id, fingerprint, digest, state)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
SET seq = excluded.seq, event_id = excluded.event_id, fingerprint = excluded.fingerprint, digest = excluded.digest,
    state = excluded.state, created_at = clock_timestamp()
WHERE p.seq <= excluded.seq OR p.digest = $8`

func (s *store) SaveSnapshot(ctx context.Context, snapshot rea.Snapshot, over string) error {
	_, err := s.pool.Exec(ctx, saveSnapshotSQL, snapshot.Aggregate.Type, snapshot.Aggregate.ID, snapshot.Seq, snapshot.EventID,
		snapshot.Fingerprint, snapshot.Digest, string(snapshot.State), optional(over))
	return mapError("save a snapshot of "+snapshot.Aggregate.String(), err)
}

// milestonesSQL goes by feed_pkey and events_pkey.
const milestonesSQL = `
SELECT DISTINCT e.aggregate_type, e.aggregate_id
FROM (SELECT f.event_id FROM rea.feed f WHERE f.position > $1 AND f.position <= $2 ORDER BY f.position) p
JOIN rea.events e ON e.id = p.event_id
JOIN (SELECT t.key, t.value::bigint AS every FROM jsonb_each_text($3::jsonb) t) t ON t.key = e.aggregate_type AND e.seq % t.every = 0`

func (s *session) Milestones(ctx context.Context, after, to int64, every map[string]int) (list []rea.Ref, err error) {
	text, err := json.Marshal(every)
	if err != nil {
		return nil, err
	}
	var aggregate rea.Ref
	err = each(ctx, s.db, func() error { list = append(list, aggregate); return nil }, []any{&aggregate.Type, &aggregate.ID},
		milestonesSQL, after, to, string(text))
	return list, mapError("look for snapshots that are due", err)
}
