package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/realtime-event-archive/rea"
)

const offsetsSQL = `
SELECT p.name, p.mode = 'inline', p.aggregate_type, p.kind, p.version, p.fingerprint, p.position, p.event_id, p.updated_at, coalesce(p.runner, ''), p.state,
       coalesce(p.next_try_at > clock_timestamp(), false), p.attempts, coalesce(p.failed_position, 0), coalesce(p.error, ''),
       p.failing_since, p.next_try_at, p.skipped::text,
       coalesce((SELECT jsonb_build_object('version', r.version, 'fingerprint', r.fingerprint, 'position', r.position,
                     'failed_position', r.failed_position, 'error', r.error, 'skipped', r.skipped)::text
                 FROM rea.rebuilds r WHERE r.name = p.name), 'null')
FROM rea.projections p`

func (s *session) offsets(ctx context.Context, doing, query string, args ...any) (list []rea.ProjectionOffset, err error) {
	var (
		p                rea.ProjectionOffset
		failing, nextTry *time.Time
		skipped, rebuild string
	)
	err = each(ctx, s.db, func() error {
		p.UpdatedAt, p.Failed.Since, p.Failed.NextTry, p.Skipped, p.Rebuild = p.UpdatedAt.UTC(), orZero(failing), orZero(nextTry), nil, nil
		list = append(list, p)
		at := &list[len(list)-1]
		return errors.Join(json.Unmarshal([]byte(skipped), &at.Skipped), json.Unmarshal([]byte(rebuild), &at.Rebuild))
	}, []any{&p.Name, &p.Inline, &p.Of, &p.Kind, &p.Version, &p.Fingerprint, &p.Offset.Position, &p.Offset.EventID, &p.UpdatedAt, &p.Runner, &p.State,
		&p.Waits, &p.Failed.Attempts, &p.Failed.Position, &p.Failed.Error, &failing, &nextTry, &skipped, &rebuild}, query, args...)
	return list, mapError(doing, err)
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func (s *session) Offsets(ctx context.Context) ([]rea.ProjectionOffset, error) {
	return s.offsets(ctx, "read the projections", offsetsSQL+"\nORDER BY p.name")
}

func (s *session) EventAt(ctx context.Context, position int64) (id int64, err error) {
	err = s.one(ctx, &id, `SELECT f.event_id FROM rea.feed f WHERE f.position = $1`, position)
	return id, mapError("read by position", err)
}

func (s *session) PositionOf(ctx context.Context, eventID int64) (position int64, err error) {
	var found *int64
	err = s.one(ctx, &found, positionOfSQL, eventID)
	switch {
	case err != nil:
		return 0, mapError("read a position", err)
	case found == nil:
		return 0, fmt.Errorf("%w: there is no event with the id %d, or it has not committed", rea.ErrNotFound, eventID)
	}
	return *found, nil
}

// positionOfSQL goes by feed_event_id_key and events_pkey.
const positionOfSQL = `
SELECT coalesce((SELECT f.position FROM rea.feed f WHERE f.event_id = $1),
                CASE WHEN pg_is_in_recovery() OR EXISTS (SELECT FROM rea.events e WHERE e.id = $1) THEN 0 END)`

// followSQL makes the transaction act as the runner's role, which may move what moves and no more, or where the login may not, as the
// owner of the archive; and frees what it holds within 15 seconds of its program's death, whether the connection says so or not. A
// new table without statistics is not read as a whole for a page of rows. It gives what was set before. Whoever made a role is a
// member, and from version 16 on may yet not act as it.
const followSQL = `
WITH was AS MATERIALIZED (
    SELECT current_setting('role') AS r, current_setting('search_path') AS s, current_setting('lock_timeout') AS l, current_setting('jit') AS j,
           current_setting('enable_seqscan') AS q, current_setting('idle_in_transaction_session_timeout') AS i)
SELECT w.r, w.s, w.l, w.j, w.q, w.i,
       concat(set_config('search_path', 'pg_catalog, pg_temp', true), set_config('lock_timeout', '1s', true), set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true),
              set_config('tcp_keepalives_idle', '5', true), set_config('tcp_keepalives_interval', '2', true), set_config('tcp_keepalives_count', '3', true),
              set_config('tcp_user_timeout', '12000', true), set_config('idle_in_transaction_session_timeout', '15s', true),
              set_config('role', coalesce(m.rolname, a.rolname), true))
FROM was w
CROSS JOIN pg_catalog.pg_class c
JOIN pg_catalog.pg_roles a ON a.oid = c.relowner
LEFT JOIN rea.roles k ON k.kind = 'runner'
LEFT JOIN pg_catalog.pg_roles m ON m.rolname::text = k.role_name
    AND pg_catalog.pg_has_role(session_user, m.oid, CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END)
WHERE c.oid = 'rea.events'::regclass`

// lent are settings of the connection that REA has changed for the time being.
type lent struct{ role, path, lock, jit, scans, idle string }

const restoreSQL = `
SELECT pg_catalog.set_config('search_path', $2, true), pg_catalog.set_config('lock_timeout', $3, true), pg_catalog.set_config('jit', $4, true),
       pg_catalog.set_config('enable_seqscan', $5, true), pg_catalog.set_config('idle_in_transaction_session_timeout', $6, true), pg_catalog.set_config('role', $1, true)`

// follow is followSQL.
func (s *ownSession) follow(ctx context.Context) error {
	s.owner, s.follows = false, true
	w, all := &s.was, ""
	return each(ctx, s.db, func() error { return nil }, []any{&w.role, &w.path, &w.lock, &w.jit, &w.scans, &w.idle, &all}, followSQL)
}

// keep makes the transaction act as who may move offsets and rows.
func (s *ownSession) keep(ctx context.Context) error {
	if s.owner || s.follows {
		return nil
	}
	return s.follow(ctx)
}

func (s *ownSession) ClaimProjection(ctx context.Context, name string, wait bool) (p rea.ProjectionOffset, ok bool, err error) {
	doing := "claim the projection " + name
	if err := s.follow(ctx); err != nil {
		return p, false, mapError(doing, err)
	}
	lock := " FOR UPDATE SKIP LOCKED"
	if wait {
		lock = " FOR UPDATE"
	}
	list, err := s.offsets(ctx, doing, offsetsSQL+"\nWHERE p.name = $1"+lock, name)
	switch {
	case sqlState(err) == "55P03":
		return p, false, retry(doing, err)
	case err != nil:
		return p, false, err
	case len(list) == 1:
		return list[0], true, nil
	}
	there := false
	err = s.one(ctx, &there, `SELECT EXISTS (SELECT FROM rea.projections p WHERE p.name = $1)`, name)
	return p, !there, mapError(doing, err)
}

// changed runs an UPDATE and gives the number of rows.
func (s *ownSession) changed(ctx context.Context, doing, update string, args ...any) (n int, err error) {
	if err := s.keep(ctx); err != nil {
		return 0, mapError(doing, err)
	}
	err = s.one(ctx, &n, "WITH u AS ("+update+" RETURNING 1) SELECT count(*) FROM u", args...)
	if sqlState(err) == "55P03" {
		return 0, retry(doing, err)
	}
	return n, mapError(doing, err)
}

func (s *ownSession) MoveProjection(ctx context.Context, name, runner string, from, to rea.Offset) (bool, error) {
	n, err := s.changed(ctx, "move the projection "+name, `
UPDATE rea.projections p
SET position = $4, event_id = $5, updated_at = clock_timestamp(), runner = $6,
    attempts = 0, failed_position = NULL, error = NULL, failing_since = NULL, next_try_at = NULL
WHERE p.name = $1 AND p.position = $2 AND p.event_id = $3`, name, from.Position, from.EventID, to.Position, to.EventID, runner)
	return n == 1, err
}

func (s *ownSession) FailProjection(ctx context.Context, name string, from rea.Offset, f rea.Failure, most int) (attempts int, err error) {
	doing := "record the failure of " + name
	if err := s.keep(ctx); err != nil {
		return 0, mapError(doing, err)
	}
	err = s.one(ctx, &attempts, `
UPDATE rea.projections p
SET attempts = p.attempts + 1, failed_position = $4, error = $5, failing_since = coalesce(p.failing_since, clock_timestamp()),
    state = CASE WHEN p.state = 'running' AND p.attempts + 1 >= $7 THEN 'stalled' ELSE p.state END,
    next_try_at = CASE WHEN p.attempts + 1 >= $7 THEN NULL ELSE clock_timestamp() + $6 * interval '1 microsecond' END
WHERE p.name = $1 AND p.position = $2 AND p.event_id = $3
RETURNING p.attempts`, name, from.Position, from.EventID, f.Position, f.Error, f.Delay.Microseconds(), most)
	return attempts, mapError(doing, err)
}

func (s *ownSession) SetProjection(ctx context.Context, name, state string) error {
	_, err := s.changed(ctx, "change the projection "+name, `
UPDATE rea.projections p
SET state = $2, next_try_at = NULL, attempts = CASE WHEN p.state = 'stalled' THEN 0 ELSE p.attempts END
WHERE p.name = $1`, name, state)
	return err
}

func (s *ownSession) SkipEvent(ctx context.Context, name string, skip rea.Skipped) error {
	_, err := s.changed(ctx, "skip an event", `
UPDATE rea.projections p
SET skipped = p.skipped || jsonb_build_array(jsonb_build_object('position', $2::bigint, 'error', $3::text, 'by', $4::text,
                  'at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))),
    state = 'running', attempts = 0, failed_position = NULL, error = NULL, failing_since = NULL, next_try_at = NULL
WHERE p.name = $1`, name, skip.Position, skip.Error, skip.By)
	return err
}

func (s *ownSession) MakeProjection(ctx context.Context, f rea.Followed) error {
	doing := "make the projection " + f.Name
	if err := s.own(ctx); err != nil {
		return mapError(doing, err)
	}
	return mapError(doing, s.db.exec(ctx, `
INSERT INTO rea.projections (name, mode, kind, aggregate_type, version, definition, fingerprint)
VALUES ($1, 'followed', $2, $3, $4, $5, $6)`, f.Name, f.Kind, f.Of, f.Version, f.Definition, f.Fingerprint))
}

// UserSQL gives the rights and settings back that the connection had: its program may have set them in the session.
func (s *ownSession) UserSQL(ctx context.Context) (rea.SQL, error) {
	if w := s.was; s.owner || s.follows {
		s.owner, s.follows = false, false
		if err := s.db.exec(ctx, restoreSQL, w.role, w.path, w.lock, w.jit, w.scans, w.idle); err != nil {
			return nil, mapError("run the program's function", err)
		}
	}
	return s.Transaction(), nil
}
