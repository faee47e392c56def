package postgres

import (
	"context"

	"github.com/realtime-event-archive/rea"
)

func (s *ownSession) BeginRebuild(ctx context.Context, f rea.Followed, anew bool) error {
	doing := "rebuild " + f.Name
	x := followedSQL{f}
	if err := s.follow(ctx); err != nil {
		return mapError(doing, err)
	}
	if err := s.own(ctx); err != nil {
		return mapError(doing, err)
	}
	goesOn := false
	err := s.one(ctx, &goesOn, `
INSERT INTO rea.rebuilds AS r (name, definition, fingerprint, version) VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE SET updated_at = clock_timestamp()
RETURNING r.fingerprint = $3 AND to_regclass($5) IS NOT NULL`, f.Name, f.Definition, f.Fingerprint, f.Version, x.table(true))
	if sqlState(err) == "55P03" {
		return retry(doing, err)
	}
	if err != nil || goesOn && !anew {
		return mapError(doing, err)
	}
	if err := s.run(ctx, doing, "DROP TABLE IF EXISTS "+x.table(true)); err != nil {
		return err
	}
	if err := s.BuildTable(ctx, f); err != nil {
		return err
	}
	return mapError(doing, s.db.exec(ctx, `
UPDATE rea.rebuilds r
SET definition = $2, fingerprint = $3, version = $4, position = 0, event_id = 0, failed_position = NULL, error = NULL, skipped = '[]',
    started_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE r.name = $1`, f.Name, f.Definition, f.Fingerprint, f.Version))
}

func (s *ownSession) ClaimRebuild(ctx context.Context, f rea.Followed) (at rea.Offset, there bool, err error) {
	doing := "rebuild " + f.Name
	if err := s.keep(ctx); err != nil {
		return at, false, mapError(doing, err)
	}
	err = each(ctx, s.db, func() error { there = true; return nil }, []any{&at.Position, &at.EventID}, `
SELECT r.position, r.event_id FROM rea.rebuilds r WHERE r.name = $1 AND r.fingerprint = $2 FOR UPDATE`, f.Name, f.Fingerprint)
	if sqlState(err) == "55P03" {
		return at, false, retry(doing, err)
	}
	return at, there, mapError(doing, err)
}

func (s *ownSession) MoveRebuild(ctx context.Context, name string, from, to rea.Offset) error {
	n, err := s.changed(ctx, "rebuild "+name, `
UPDATE rea.rebuilds r SET position = $4, event_id = $5, failed_position = NULL, error = NULL, updated_at = clock_timestamp()
WHERE r.name = $1 AND r.position = $2 AND r.event_id = $3`, name, from.Position, from.EventID, to.Position, to.EventID)
	if err == nil && n != 1 {
		err = rea.ErrRetry
	}
	return err
}

func (s *ownSession) FailRebuild(ctx context.Context, f rea.Followed, position int64, message string) error {
	if err := s.own(ctx); err != nil {
		return mapError("record the failure of the rebuild of "+f.Name, err)
	}
	_, err := s.changed(ctx, "record the failure of the rebuild of "+f.Name, `
INSERT INTO rea.rebuilds AS r (name, definition, fingerprint, version, failed_position, error) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (name) DO UPDATE
SET definition = excluded.definition, fingerprint = excluded.fingerprint, version = excluded.version,
    failed_position = excluded.failed_position, error = excluded.error, updated_at = clock_timestamp(),
    skipped = CASE r.fingerprint WHEN excluded.fingerprint THEN r.skipped ELSE '[]' END
WHERE r.fingerprint = excluded.fingerprint OR $7`, f.Name, f.Definition, f.Fingerprint, f.Version, position, message, f.Kind == rea.KindGo)
	return err
}

func (s *ownSession) SkipInRebuild(ctx context.Context, name string, skip rea.Skipped) error {
	_, err := s.changed(ctx, "skip an event", `
UPDATE rea.rebuilds r
SET skipped = r.skipped || jsonb_build_array(jsonb_build_object('position', $2::bigint, 'error', $3::text, 'by', $4::text,
                  'at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))),
    failed_position = NULL, error = NULL
WHERE r.name = $1`, name, skip.Position, skip.Error, skip.By)
	return err
}

func (s *ownSession) FinishRebuild(ctx context.Context, f rea.Followed, at rea.Offset, runner string, recreate bool) error {
	if err := s.own(ctx); err != nil {
		return mapError("rebuild "+f.Name, err)
	}
	if f.Kind != rea.KindGo {
		if err := s.SwitchTable(ctx, f, recreate); err != nil {
			return err
		}
	}
	_, err := s.changed(ctx, "rebuild "+f.Name, `
UPDATE rea.projections p
SET definition = $2, fingerprint = $3, version = $4, aggregate_type = $5, kind = $6, position = $7, event_id = $8, runner = $9,
    made_by = session_user, made_at = clock_timestamp(), updated_at = clock_timestamp(),
    state = CASE p.state WHEN 'stalled' THEN 'running' ELSE p.state END,
    attempts = 0, failed_position = NULL, error = NULL, failing_since = NULL, next_try_at = NULL,
    skipped = p.skipped || coalesce((SELECT r.skipped FROM rea.rebuilds r WHERE r.name = $1 AND r.fingerprint = $3), '[]')
WHERE p.name = $1`, f.Name, f.Definition, f.Fingerprint, f.Version, f.Of, f.Kind, at.Position, at.EventID, runner)
	if err == nil {
		_, err = s.changed(ctx, "rebuild "+f.Name, `DELETE FROM rea.rebuilds r WHERE r.name = $1`, f.Name)
	}
	return err
}
