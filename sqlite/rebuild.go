package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/realtime-event-archive/rea"
)

func (s *session) BeginRebuild(ctx context.Context, f rea.Followed, anew bool) error {
	doing, beside := "rebuild "+f.Name, followedTable(f.Name, f.Fingerprint, true)
	goesOn := 0
	err := one(ctx, s.db, []any{&goesOn}, `
SELECT count(*) FROM rea_rebuilds WHERE name = ?1 AND fingerprint = ?2 AND EXISTS (SELECT 1 FROM sqlite_master WHERE name = ?3)`, f.Name, f.Fingerprint, beside)
	if err != nil || goesOn > 0 && !anew {
		return s.store.mapError(doing, err)
	}
	if _, err := s.change(ctx, doing, "DROP TABLE IF EXISTS "+quoteName(beside)); err != nil {
		return err
	}
	if err := s.BuildTable(ctx, f); err != nil {
		return err
	}
	_, err = s.change(ctx, doing, `
INSERT INTO rea_rebuilds (name, definition, fingerprint, version) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE
SET definition = excluded.definition, fingerprint = excluded.fingerprint, version = excluded.version, position = 0, event_id = 0,
    failed_position = NULL, error = NULL, skipped = '[]', started_at = excluded.started_at, updated_at = excluded.updated_at`, f.Name, f.Definition, f.Fingerprint, int64(f.Version))
	return err
}

func (s *session) ClaimRebuild(ctx context.Context, f rea.Followed) (at rea.Offset, there bool, err error) {
	err = one(ctx, s.db, []any{&at.Position, &at.EventID}, `SELECT position, event_id FROM rea_rebuilds WHERE name = ?1 AND fingerprint = ?2`, f.Name, f.Fingerprint)
	if errors.Is(err, sql.ErrNoRows) {
		return at, false, nil
	}
	return at, err == nil, s.store.mapError("rebuild "+f.Name, err)
}

func (s *session) MoveRebuild(ctx context.Context, name string, from, to rea.Offset) error {
	n, err := s.change(ctx, "rebuild "+name, `
UPDATE rea_rebuilds SET position = ?4, event_id = ?5, failed_position = NULL, error = NULL, updated_at = ?6
WHERE name = ?1 AND position = ?2 AND event_id = ?3`, name, from.Position, from.EventID, to.Position, to.EventID, rea.FormatTime(time.Now()))
	if err == nil && n != 1 {
		err = rea.ErrRetry
	}
	return err
}

func (s *session) FailRebuild(ctx context.Context, f rea.Followed, position int64, message string) error {
	_, err := s.change(ctx, "record the failure of the rebuild of "+f.Name, `
INSERT INTO rea_rebuilds (name, definition, fingerprint, version, failed_position, error) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (name) DO UPDATE
SET definition = excluded.definition, fingerprint = excluded.fingerprint, version = excluded.version,
    failed_position = excluded.failed_position, error = excluded.error, updated_at = ?7,
    skipped = CASE fingerprint WHEN excluded.fingerprint THEN skipped ELSE '[]' END
WHERE fingerprint = excluded.fingerprint OR ?8`,
		f.Name, f.Definition, f.Fingerprint, int64(f.Version), position, message, rea.FormatTime(time.Now()), f.Kind == rea.KindGo)
	return err
}

func (s *session) SkipInRebuild(ctx context.Context, name string, skip rea.Skipped) error {
	_, err := s.change(ctx, "skip an event", `
UPDATE rea_rebuilds
SET skipped = json_insert(skipped, '$[#]', json_object('position', ?2, 'error', ?3, 'by', ?4, 'at', ?5)), failed_position = NULL, error = NULL
WHERE name = ?1`, name, skip.Position, skip.Error, skip.By, rea.FormatTime(time.Now()))
	return err
}

func (s *session) FinishRebuild(ctx context.Context, f rea.Followed, at rea.Offset, runner string, recreate bool) error {
	if f.Kind != rea.KindGo {
		if err := s.SwitchTable(ctx, f, recreate); err != nil {
			return err
		}
	}
	_, err := s.change(ctx, "rebuild "+f.Name, `
UPDATE rea_projections
SET definition = ?2, fingerprint = ?3, version = ?4, aggregate_type = ?5, kind = ?6, position = ?7, event_id = ?8, runner = ?9,
    made_at = ?10, updated_at = ?10,
    state = CASE state WHEN 'stalled' THEN 'running' ELSE state END,
    attempts = 0, failed_position = NULL, error = NULL, failing_since = NULL, next_try_at = NULL,
    skipped = (SELECT coalesce(json_group_array(json(s.value)), '[]')
               FROM (SELECT j.value FROM json_each(rea_projections.skipped) j
                     UNION ALL
                     SELECT j.value FROM rea_rebuilds r, json_each(r.skipped) j WHERE r.name = ?1 AND r.fingerprint = ?3) s)
WHERE name = ?1`, f.Name, f.Definition, f.Fingerprint, int64(f.Version), f.Of, f.Kind, at.Position, at.EventID, runner, rea.FormatTime(time.Now()))
	if err == nil {
		_, err = s.change(ctx, "rebuild "+f.Name, `DELETE FROM rea_rebuilds WHERE name = ?1`, f.Name)
	}
	return err
}

func (s *ownSession) Dependents(ctx context.Context, f rea.Followed) (list []rea.Dependent, err error) {
	err = s.do(func() error { list, err = s.session.Dependents(ctx, f); return err })
	return list, err
}

func (s *ownSession) BeginRebuild(ctx context.Context, f rea.Followed, anew bool) error {
	return s.do(func() error { return s.session.BeginRebuild(ctx, f, anew) })
}

func (s *ownSession) ClaimRebuild(ctx context.Context, f rea.Followed) (at rea.Offset, there bool, err error) {
	err = s.do(func() error { at, there, err = s.session.ClaimRebuild(ctx, f); return err })
	return at, there, err
}

func (s *ownSession) MoveRebuild(ctx context.Context, name string, from, to rea.Offset) error {
	return s.do(func() error { return s.session.MoveRebuild(ctx, name, from, to) })
}

func (s *ownSession) FailRebuild(ctx context.Context, f rea.Followed, position int64, message string) error {
	return s.do(func() error { return s.session.FailRebuild(ctx, f, position, message) })
}

func (s *ownSession) SkipInRebuild(ctx context.Context, name string, skip rea.Skipped) error {
	return s.do(func() error { return s.session.SkipInRebuild(ctx, name, skip) })
}

func (s *ownSession) FinishRebuild(ctx context.Context, f rea.Followed, at rea.Offset, runner string, recreate bool) error {
	return s.do(func() error { return s.session.FinishRebuild(ctx, f, at, runner, recreate) })
}
