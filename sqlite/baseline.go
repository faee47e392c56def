package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/realtime-event-archive/rea"
)

// BaselineRow is a row of an application's table in the archive's file.
type BaselineRow struct {
	ID      string          // of its aggregate
	Payload json.RawMessage // of its BaselineCreated, in normal form
	Status  string          // "": what the payload says, or none
}

// BaselineTx is a transaction of a baseline. It reads and writes on the one connection of this process that writes.
type BaselineTx struct {
	SQL
	session *session
}

// Baseline runs fn in a transaction that holds the file's write lock, and commits it.
func (a *Archive) Baseline(ctx context.Context, fn func(tx *BaselineTx) error) error {
	begun, err := a.store.Begin(ctx)
	if err != nil {
		return err
	}
	own := begun.(*ownSession)
	err = own.Ready(ctx, true)
	if err == nil {
		err = fn(&BaselineTx{SQL: own.db, session: &own.session})
	}
	if err != nil {
		return errors.Join(err, own.Rollback(context.WithoutCancel(ctx)))
	}
	return own.Commit(ctx)
}

const (
	baselineContextSQL = `
INSERT INTO rea_contexts (context_id, xid, program, pid, table_name, operation, rows)
VALUES (?1, ?2, ?3, ?4, ?5, 'BASELINE', ?6)`

	baselineSQL = `
INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, payload, actor_id, metadata, xid, status, catalog_version, created_at, context_id)
VALUES (?1, ?2, 1, 'BaselineCreated', ?3, 'baseline', ?4, ?5, ?6, nullif(?7, 0), ?8, ?9)`
)

// Take stores BaselineCreated for those rows whose aggregates have no events. known says which have some, refused why a row
// cannot be taken: nil where it can.
func (tx *BaselineTx) Take(ctx context.Context, table, aggregateType string, metadata json.RawMessage, rows []BaselineRow) (taken int64, known []bool, refused []error, err error) {
	known, refused = make([]bool, len(rows)), make([]error, len(rows))
	if len(rows) == 0 {
		return 0, known, refused, nil
	}
	s := tx.session
	h, err := s.head(ctx, rea.Ref{Type: aggregateType, ID: rows[0].ID}, "")
	if err != nil {
		return 0, nil, nil, s.store.mapError("take a baseline", err)
	}
	m, err := s.machine(ctx, h)
	if err != nil {
		return 0, nil, nil, err
	}
	run := importing{session: s, machine: m, last: map[rea.Ref]place{}, xid: s.transaction(ctx, h.id), now: time.Now().UTC().Truncate(time.Microsecond)}
	var id int64
	if err := one(ctx, s.db, []any{&id}, `SELECT coalesce(max(context_id), 0) + 1 FROM rea_contexts`); err != nil {
		return 0, nil, nil, s.store.mapError("take a baseline", err)
	}
	for i, row := range rows {
		if err := ctx.Err(); err != nil {
			return 0, nil, nil, err
		}
		known[i], refused[i], err = run.baseline(context.WithoutCancel(ctx), rea.Ref{Type: aggregateType, ID: row.ID}, row, metadata, id)
		if err != nil {
			return 0, nil, nil, err
		}
		if !known[i] && refused[i] == nil {
			taken++
		}
	}
	if taken > 0 {
		_, err = s.db.ExecContext(ctx, baselineContextSQL, id, run.xid, filepath.Base(os.Args[0]), int64(os.Getpid()), table, taken)
	}
	return taken, known, refused, s.store.mapError("take a baseline", err)
}

// baseline stores the first event of one aggregate.
func (r *importing) baseline(ctx context.Context, aggregate rea.Ref, row BaselineRow, metadata json.RawMessage, contextID int64) (known bool, refused, err error) {
	at, err := r.lastPlace(ctx, aggregate)
	if err != nil || at.seq > 0 {
		return at.seq > 0, nil, err
	}
	e := rea.NewEvent{Type: "BaselineCreated", Version: 1, Payload: row.Payload}
	if at, refused = r.machine.next(aggregate, at, &e, false); refused != nil {
		return false, refused, nil
	}
	if n := len(row.Status); n > 0 && n <= rea.MaxNameBytes && row.Status != rea.FromNone && row.Status != rea.FromAny {
		at.status = row.Status
	}
	line := rea.Line{Aggregate: aggregate, Event: e, Actor: "baseline", Metadata: metadata}
	kept, err := r.keepLine(ctx, &line, stepped{e, at})
	if errors.Is(err, rea.ErrProjection) {
		return false, err, nil
	}
	if err != nil {
		return false, nil, err
	}
	err = r.together(ctx, kept, func() error {
		_, err := r.db.ExecContext(ctx, baselineSQL, aggregate.Type, aggregate.ID, string(e.Payload), string(metadata), r.xid,
			optional(at.status), int64(at.catalog), rea.FormatTime(r.now), contextID)
		return err
	})
	switch {
	case err == nil:
		r.last[aggregate] = at
		return false, nil, nil
	case r.rolledBack(ctx):
		return false, nil, r.store.mapError("take the baseline of "+aggregate.String(), err)
	}
	if refused = refusedCheck(aggregate, err); refused != nil {
		return false, refused, nil
	}
	if resultCode(err) == sqlite3.SQLITE_TOOBIG {
		return false, &rea.LimitError{Aggregate: aggregate, What: "payload", Problem: "is too big for the database"}, nil
	}
	return false, nil, r.store.mapError("take the baseline of "+aggregate.String(), err)
}

// Read runs fn in one view of the file, in which other writers' later commits are not seen.
func (a *Archive) Read(ctx context.Context, fn func(db SQL) error) error {
	tx, err := a.store.reader.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return a.store.mapError("begin", err)
	}
	defer func() { _ = tx.Rollback() }()
	return fn(tx)
}
