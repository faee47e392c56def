package sqlite

import (
	"context"
	"encoding/json"

	"github.com/realtime-event-archive/rea"
)

// resumeSQL reads the snapshot through its primary key, its event and those that follow through
// events_aggregate_seq_key. What stands in rea_snapshots comes on the first row, the state only if it is to be used.
const resumeSQL = `
WITH s AS MATERIALIZED (
    SELECT p.seq, p.event_id, p.fingerprint, p.digest, p.state,
           p.fingerprint = ?3 AND p.seq <= ?4 AND EXISTS (
               SELECT 1 FROM rea_events x
               WHERE x.aggregate_type = ?1 AND x.aggregate_id = ?2 AND x.seq = p.seq AND x.id = p.event_id) AS usable
    FROM rea_snapshots p
    WHERE p.aggregate_type = ?1 AND p.aggregate_id = ?2
), f AS MATERIALIZED (
    SELECT coalesce((SELECT seq FROM s WHERE usable), 1) AS seq
)` + foldColumns + `,
       iif(seq = (SELECT seq FROM f), (SELECT s.seq FROM s), NULL),
       iif(seq = (SELECT seq FROM f), (SELECT s.event_id FROM s), NULL),
       iif(seq = (SELECT seq FROM f), (SELECT s.fingerprint FROM s), NULL),
       iif(seq = (SELECT seq FROM f), (SELECT s.digest FROM s), NULL),
       iif(seq = (SELECT seq FROM f), (SELECT s.state FROM s WHERE usable), NULL)
FROM rea_events
WHERE aggregate_type = ?1 AND aggregate_id = ?2 AND seq >= (SELECT seq FROM f)
ORDER BY seq
LIMIT ?5`

func (s *session) Resume(ctx context.Context, asked rea.Stretch, fingerprint string, upTo int64, page []rea.Event) ([]rea.Event, bool, *rea.Snapshot, error) {
	r := &row{Event: rea.Event{Aggregate: asked.Aggregate}}
	end := len(page) + asked.Limit
	page, cut, err := s.page(ctx, page, r, append(r.foldDest(), &r.at, &r.of, &r.fingerprint, &r.digest, &r.state), resumeSQL,
		asked.Aggregate.Type, asked.Aggregate.ID, fingerprint, upTo, int64(asked.Limit)+1)
	if len(page) > end {
		page, cut = page[:end], true
	}
	return page, cut, r.found, err
}

// note keeps what stands in rea_snapshots, if the row that was scanned has it.
func (r *row) note() {
	if r.at == nil {
		return
	}
	r.found = &rea.Snapshot{Aggregate: r.Aggregate, Seq: *r.at, EventID: *r.of, Fingerprint: *r.fingerprint, Digest: *r.digest}
	if r.state != nil {
		r.found.State = []byte(*r.state)
	}
}

const saveSnapshotSQL = `
INSERT INTO rea_snapshots AS p (aggregate_type, aggregate_id, seq, event_id, fingerprint, digest, state)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
SET seq = excluded.seq, event_id = excluded.event_id, fingerprint = excluded.fingerprint, digest = excluded.digest,
    state = excluded.state, created_at = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
WHERE p.seq <= excluded.seq OR p.digest = ?8`

func (s *store) SaveSnapshot(ctx context.Context, snapshot rea.Snapshot, over string) error {
	doing := "save a snapshot of " + snapshot.Aggregate.String()
	if err := s.writer.begin(ctx); err != nil {
		return s.mapError(doing, err)
	}
	_, err := s.writer.ExecContext(ctx, saveSnapshotSQL, snapshot.Aggregate.Type, snapshot.Aggregate.ID, snapshot.Seq, snapshot.EventID,
		snapshot.Fingerprint, snapshot.Digest, string(snapshot.State), over)
	if err != nil {
		s.writer.rollback(ctx)
		return s.mapError(doing, err)
	}
	return s.mapError(doing, s.writer.commit(ctx))
}

func (s *session) Milestones(ctx context.Context, after, to int64, every map[string]int) (list []rea.Ref, err error) {
	text, err := json.Marshal(every)
	if err != nil {
		return nil, err
	}
	var aggregate rea.Ref
	err = each(ctx, s.db, func() error { list = append(list, aggregate); return nil }, []any{&aggregate.Type, &aggregate.ID}, `
SELECT DISTINCT e.aggregate_type, e.aggregate_id
FROM rea_events e JOIN json_each(?3) t ON t.key = e.aggregate_type AND e.seq % t.value = 0
WHERE e.id > ?1 AND e.id <= ?2`, after, to, string(text))
	return list, s.store.mapError("look for snapshots that are due", err)
}

func (a *autocommit) Milestones(ctx context.Context, after, to int64, every map[string]int) ([]rea.Ref, error) {
	return a.reading().Milestones(ctx, after, to, every)
}
