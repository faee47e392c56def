package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/realtime-event-archive/rea"
)

const offsetsSQL = `
SELECT name, mode = 'inline', aggregate_type, kind, version, fingerprint, position, event_id, coalesce(updated_at, made_at), coalesce(runner, ''), state,
       coalesce(next_try_at > ?1, 0), attempts, coalesce(failed_position, 0), coalesce(error, ''),
       coalesce(failing_since, ''), coalesce(next_try_at, ''), skipped,
       coalesce((SELECT json_object('version', r.version, 'fingerprint', r.fingerprint, 'position', r.position,
                     'failed_position', r.failed_position, 'error', r.error, 'skipped', json(r.skipped))
                 FROM rea_rebuilds r WHERE r.name = rea_projections.name), 'null')
FROM rea_projections`

func (s *session) offsets(ctx context.Context, doing, query string, args ...any) (list []rea.ProjectionOffset, err error) {
	var (
		p                                           rea.ProjectionOffset
		updated, failing, nextTry, skipped, rebuild string
	)
	err = each(ctx, s.db, func() error {
		p.UpdatedAt, p.Failed.Since, p.Failed.NextTry, p.Skipped, p.Rebuild = moment(updated), moment(failing), moment(nextTry), nil, nil
		list = append(list, p)
		at := &list[len(list)-1]
		return errors.Join(json.Unmarshal([]byte(skipped), &at.Skipped), json.Unmarshal([]byte(rebuild), &at.Rebuild))
	}, []any{&p.Name, &p.Inline, &p.Of, &p.Kind, &p.Version, &p.Fingerprint, &p.Offset.Position, &p.Offset.EventID, &updated, &p.Runner, &p.State,
		&p.Waits, &p.Failed.Attempts, &p.Failed.Position, &p.Failed.Error, &failing, &nextTry, &skipped, &rebuild}, query, append([]any{rea.FormatTime(time.Now())}, args...)...)
	return list, s.store.mapError(doing, err)
}

// moment reads a time that REA has written; others are zero.
func moment(text string) time.Time {
	t, err := time.Parse(rea.TimeLayout, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

func (s *session) Offsets(ctx context.Context) ([]rea.ProjectionOffset, error) {
	return s.offsets(ctx, "read the projections", offsetsSQL+" ORDER BY name")
}

// EventAt: an event's position is its id.
func (s *session) EventAt(ctx context.Context, position int64) (id int64, err error) {
	err = one(ctx, s.db, []any{&id}, `SELECT coalesce(max(id), 0) FROM rea_events WHERE id = ?1`, position)
	return id, s.store.mapError("read by position", err)
}

func (s *session) PositionOf(ctx context.Context, eventID int64) (int64, error) {
	position, err := s.EventAt(ctx, eventID)
	if err == nil && position == 0 {
		err = fmt.Errorf("%w: there is no event with the id %d, or it has not committed", rea.ErrNotFound, eventID)
	}
	return position, err
}

// ClaimProjection: this transaction has the file's write lock.
func (s *session) ClaimProjection(ctx context.Context, name string, _ bool) (p rea.ProjectionOffset, ok bool, err error) {
	list, err := s.offsets(ctx, "claim the projection "+name, offsetsSQL+" WHERE name = ?2", name)
	if err != nil || len(list) == 0 {
		return p, true, err
	}
	return list[0], true, nil
}

func (s *session) change(ctx context.Context, doing, query string, args ...any) (n int64, err error) {
	result, err := s.db.ExecContext(context.WithoutCancel(ctx), query, args...)
	if err == nil {
		n, err = result.RowsAffected()
	}
	return n, s.store.mapError(doing, err)
}

func (s *session) MoveProjection(ctx context.Context, name, runner string, from, to rea.Offset) (bool, error) {
	n, err := s.change(ctx, "move the projection "+name, `
UPDATE rea_projections
SET position = ?4, event_id = ?5, updated_at = ?6, runner = ?7,
    attempts = 0, failed_position = NULL, error = NULL, failing_since = NULL, next_try_at = NULL
WHERE name = ?1 AND position = ?2 AND event_id = ?3`,
		name, from.Position, from.EventID, to.Position, to.EventID, rea.FormatTime(time.Now()), runner)
	return n == 1, err
}

func (s *session) FailProjection(ctx context.Context, name string, from rea.Offset, f rea.Failure, most int) (attempts int, err error) {
	now := time.Now()
	_, err = s.change(ctx, "record the failure of "+name, `
UPDATE rea_projections
SET attempts = attempts + 1, failed_position = ?4, error = ?5, failing_since = coalesce(failing_since, ?6),
    state = CASE WHEN state = 'running' AND attempts + 1 >= ?8 THEN 'stalled' ELSE state END,
    next_try_at = CASE WHEN attempts + 1 >= ?8 THEN NULL ELSE ?7 END
WHERE name = ?1 AND position = ?2 AND event_id = ?3`,
		name, from.Position, from.EventID, f.Position, f.Error, rea.FormatTime(now), rea.FormatTime(now.Add(f.Delay)), int64(most))
	if err == nil {
		err = one(ctx, s.db, []any{&attempts}, `SELECT attempts FROM rea_projections WHERE name = ?1`, name)
	}
	return attempts, s.store.mapError("record the failure of "+name, err)
}

func (s *session) SetProjection(ctx context.Context, name, state string) error {
	_, err := s.change(ctx, "change the projection "+name, `
UPDATE rea_projections
SET state = ?2, next_try_at = NULL, attempts = CASE WHEN state = 'stalled' THEN 0 ELSE attempts END
WHERE name = ?1`, name, state)
	return err
}

func (s *session) SkipEvent(ctx context.Context, name string, skip rea.Skipped) error {
	_, err := s.change(ctx, "skip an event", `
UPDATE rea_projections
SET skipped = json_insert(skipped, '$[#]', json_object('position', ?2, 'error', ?3, 'by', ?4, 'at', ?5)),
    state = 'running', attempts = 0, failed_position = NULL, error = NULL, failing_since = NULL, next_try_at = NULL
WHERE name = ?1`, name, skip.Position, skip.Error, skip.By, rea.FormatTime(time.Now()))
	return err
}

func (s *session) MakeProjection(ctx context.Context, f rea.Followed) error {
	_, err := s.change(ctx, "make the projection "+f.Name, `
INSERT INTO rea_projections (name, mode, kind, aggregate_type, version, definition, fingerprint)
VALUES (?1, 'followed', ?2, ?3, ?4, ?5, ?6)`, f.Name, f.Kind, f.Of, int64(f.Version), f.Definition, f.Fingerprint)
	return err
}

// FollowPage: a position is the id of its event.
func (s *session) FollowPage(ctx context.Context, filter rea.FollowFilter, from rea.Offset, limit int) ([]rea.Event, rea.Offset, error) {
	f := rea.Filter{Type: filter.Type}
	if len(filter.Events) == 1 {
		f.Event = filter.Events[0]
	}
	page, last, err := s.Page(ctx, f, from.Position, limit)
	if err != nil || last == from.Position {
		return nil, from, err
	}
	return page, rea.Offset{Position: last, EventID: last}, nil
}

// rowsBehindSQL reads events by their ids, which are positions, and the rows by their primary key.
const rowsBehindSQL = `
SELECT a.aggregate_id, coalesce(v.rea_seq, 0), a.seq
FROM (SELECT aggregate_id, max(seq) AS seq FROM rea_events WHERE id > ?1 AND id <= ?2 AND +aggregate_type = ?3 GROUP BY aggregate_id) a
LEFT JOIN %s v ON v.aggregate_id = a.aggregate_id
WHERE v.rea_seq IS NULL OR v.rea_seq < a.seq
ORDER BY a.aggregate_id`

func (s *session) RowsBehind(ctx context.Context, t rea.StateTable, from rea.Offset, limit int) (rows []rea.RowPlace, to rea.Offset, err error) {
	last := from.Position
	err = one(ctx, s.db, []any{&last}, `SELECT coalesce(max(id), ?1) FROM (SELECT id FROM rea_events WHERE id > ?1 ORDER BY id LIMIT ?2)`, from.Position, int64(limit))
	if err != nil || last == from.Position {
		return nil, from, s.store.mapError("read by position", err)
	}
	rows, err = s.places(ctx, rowsBehindSQL, tableOf(t, false), from.Position, last, t.Of)
	return rows, rea.Offset{Position: last, EventID: last}, err
}
