package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/realtime-event-archive/rea"
)

// Import looks up an aggregate's last seq once: nobody else writes while this transaction does.
func (s *session) Import(ctx context.Context, lines []rea.Line) ([]rea.LineResult, error) {
	results := make([]rea.LineResult, len(lines))
	if len(lines) == 0 {
		return results, nil
	}
	h, err := s.head(ctx, lines[0].Aggregate, "")
	if err != nil {
		return nil, err
	}
	m, err := s.machine(ctx, h)
	if err != nil {
		return nil, err
	}
	run := importing{session: s, machine: m, last: map[rea.Ref]place{}, xid: s.transaction(ctx, h.id), now: time.Now().UTC().Truncate(time.Microsecond)}
	for i := range lines {
		if err := ctx.Err(); err != nil {
			return nil, s.store.mapError("import", err)
		}
		if results[i], err = run.line(context.WithoutCancel(ctx), &lines[i]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

type importing struct {
	*session
	machine *machine
	last    map[rea.Ref]place
	xid     string
	now     time.Time // recorded_at of the lines that say when they happened, created_at of the others
}

// line gives the result of one line, or an error that ends the import.
func (r *importing) line(ctx context.Context, line *rea.Line) (result rea.LineResult, err error) {
	at, err := r.lastPlace(ctx, line.Aggregate)
	if err != nil {
		return result, err
	}
	last := at.seq
	if line.Seq > last+1 {
		return rea.LineResult{Err: &rea.HoleError{Aggregate: line.Aggregate, Seq: line.Seq, Actual: last}}, nil
	}
	if line.Seq > 0 && line.Seq <= last {
		_, same, err := r.stored(ctx, storedAtSQL, line, line.Seq)
		if err == nil && !same {
			result.Err = &rea.ConflictError{Aggregate: line.Aggregate, Expected: line.Seq - 1, Actual: last}
		}
		if same {
			result.Duplicate, result.Seq = true, line.Seq
		}
		return result, err
	}
	if line.Key != "" && last > 0 {
		seq, same, err := r.stored(ctx, storedUnderSQL, line, line.Key)
		if err != nil || same {
			return rea.LineResult{Duplicate: same, Seq: seq}, err
		}
		if seq > 0 {
			return rea.LineResult{Err: &rea.KeyReusedError{Aggregate: line.Aggregate, Key: line.Key, Seq: seq}}, nil
		}
	}
	e := rea.NewEvent{Type: line.Event.Type, Version: max(line.Event.Version, 1), Payload: line.Event.Payload}
	if at, result.Err = r.machine.next(line.Aggregate, at, &e, line.Correction); result.Err != nil {
		return result, nil
	}
	kept, err := r.keepLine(ctx, line, stepped{e, at})
	if errors.Is(err, rea.ErrProjection) {
		return rea.LineResult{Err: err}, nil
	}
	if err != nil {
		return result, err
	}
	if err = r.insert(ctx, line, stepped{e, at}); err == nil {
		err = r.saveKept(ctx, kept)
	}
	if err == nil {
		r.last[line.Aggregate] = at
		return rea.LineResult{Seq: at.seq}, nil
	}
	if r.rolledBack(ctx) { // no line of this transaction is stored
		return result, r.store.mapError("import into "+line.Aggregate.String(), err)
	}
	if result.Err = refusedCheck(line.Aggregate, err); result.Err != nil {
		return result, nil
	}
	if resultCode(err) == sqlite3.SQLITE_TOOBIG {
		return rea.LineResult{Err: &rea.LimitError{Aggregate: line.Aggregate, What: "payload", Problem: "is too big for the database"}}, nil
	}
	return result, r.store.mapError("import into "+line.Aggregate.String(), err)
}

const lastPlaceSQL = `
SELECT seq, coalesce(status, ''), coalesce(catalog_version, 0)
FROM rea_events
WHERE aggregate_type = ?1 AND aggregate_id = ?2
ORDER BY seq DESC
LIMIT 1`

// lastPlace is where an aggregate stands, in the words of the present catalog.
func (r *importing) lastPlace(ctx context.Context, aggregate rea.Ref) (place, error) {
	at, known := r.last[aggregate]
	if known {
		return at, nil
	}
	err := each(ctx, r.db, func() error { return nil }, []any{&at.seq, &at.status, &at.catalog}, lastPlaceSQL, aggregate.Type, aggregate.ID)
	if err != nil {
		return at, r.store.mapError("import into "+aggregate.String(), err)
	}
	if at, err = r.present(ctx, r.machine, aggregate, at); err == nil {
		r.last[aggregate] = at
	}
	return at, err
}

const (
	storedAtSQL = `
SELECT seq, event_type, event_version, payload, created_at
FROM rea_events
WHERE aggregate_type = ?1 AND aggregate_id = ?2 AND seq = ?3`

	storedUnderSQL = `
SELECT seq, event_type, event_version, payload, created_at
FROM rea_events
WHERE aggregate_type = ?1 AND aggregate_id = ?2 AND idempotency_key = ?3`
)

// stored compares line with the event that stands where it would: the seq of that event, 0 where there is none.
func (r *importing) stored(ctx context.Context, query string, line *rea.Line, place any) (seq int64, same bool, err error) {
	var (
		event   rea.NewEvent
		created string
	)
	err = each(ctx, r.db, func() error { return nil }, []any{&seq, &event.Type, &event.Version, (*[]byte)(&event.Payload), &created},
		query, line.Aggregate.Type, line.Aggregate.ID, place)
	if err != nil {
		return 0, false, r.store.mapError("import into "+line.Aggregate.String(), err)
	}
	same = seq > 0 && sameEvent(line.Event, event, 1) && (line.CreatedAt.IsZero() || created == rea.FormatTime(line.CreatedAt))
	return seq, same, nil
}

// keepLine is keep for a line.
func (r *importing) keepLine(ctx context.Context, line *rea.Line, e stepped) ([]keptRow, error) {
	if len(r.machine.tables[line.Aggregate.Type]) == 0 {
		return nil, nil
	}
	created := line.CreatedAt
	if created.IsZero() {
		created = r.now
	}
	return r.keep(ctx, r.machine, line.Aggregate, []rea.Event{{Aggregate: line.Aggregate, Seq: e.seq, Type: e.Type, Version: e.Version, Payload: e.Payload,
		Actor: line.Actor, Reason: line.Reason, Correlation: line.Correlation, Metadata: line.Metadata, CreatedAt: created}})
}

// importSQL: a time that was given is not the time of recording.
const importSQL = `
INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, event_version, payload, correction,
                        actor_id, reason, correlation_id, idempotency_key, key_events, metadata, xid, status, catalog_version,
                        created_at, recorded_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, nullif(?16, 0), ?17, ?18)`

func (r *importing) insert(ctx context.Context, line *rea.Line, e stepped) error {
	var keyEvents any
	if line.Key != "" {
		keyEvents = int64(max(line.KeyEvents, 1))
	}
	args := []any{line.Aggregate.Type, line.Aggregate.ID, e.seq, e.Type, int64(e.Version), string(e.Payload), number(line.Correction),
		optional(line.Actor), optional(line.Reason), optional(line.Correlation), optional(line.Key), keyEvents, optional(string(line.Metadata)), r.xid,
		optional(e.status), int64(e.catalog), rea.FormatTime(r.now)}
	query := insertSQL
	if !line.CreatedAt.IsZero() {
		args[len(args)-1] = rea.FormatTime(line.CreatedAt)
		query, args = importSQL, append(args, rea.FormatTime(r.now))
	}
	_, err := r.db.ExecContext(ctx, query, args...)
	return err
}

const progressSQL = `SELECT name, lines, stored, duplicates, rejected, done FROM rea_imports WHERE source = ?1`

func (s *session) ImportProgress(ctx context.Context, source string) (rea.ImportProgress, error) {
	p := rea.ImportProgress{Source: source}
	err := one(ctx, s.db, []any{&p.Name, &p.Lines, &p.Stored, &p.Duplicates, &p.Rejected, &p.Done}, progressSQL, source)
	if errors.Is(err, sql.ErrNoRows) {
		return rea.ImportProgress{}, nil
	}
	return p, s.store.mapError("read the progress of an import", err)
}

const saveProgressSQL = `
INSERT INTO rea_imports (source, name, lines, stored, duplicates, rejected, done)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (source) DO UPDATE
SET name = excluded.name, lines = excluded.lines, stored = excluded.stored, duplicates = excluded.duplicates,
    rejected = excluded.rejected, done = excluded.done, updated_at = ?8`

func (s *session) SaveImportProgress(ctx context.Context, p rea.ImportProgress) error {
	_, err := s.db.ExecContext(context.WithoutCancel(ctx), saveProgressSQL, p.Source, p.Name, p.Lines, p.Stored, p.Duplicates, p.Rejected,
		number(p.Done), rea.FormatTime(time.Now()))
	return s.store.mapError("record the progress of an import", err)
}
