package rea

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Line is one event of an import, with everything that a writer may set.
type Line struct {
	Aggregate   Ref
	Event       NewEvent
	Seq         int64 // 0: the next one; else it must be that
	Actor       string
	Reason      string
	Correlation string
	Key         string
	KeyEvents   int // events of the call that the key stands for, 1 to 10,000; 0: 1
	Metadata    json.RawMessage
	CreatedAt   time.Time // zero: now
	Correction  bool
}

// LineResult says what became of a line: stored, stored before with the same content, or refused.
type LineResult struct {
	Duplicate bool
	Seq       int64 // of the stored event; 0: refused
	Err       error // a typed error; nil: stored
}

// ImportProgress is a row of rea.imports.
type ImportProgress struct {
	Source     string // hash of the file's content
	Name       string // of the file, for people
	Lines      int64  // lines done with, from the first
	Stored     int64  // of them, new events
	Duplicates int64  // of them, stored before
	Rejected   int64  // of them, refused
	Done       bool   // the whole file
}

// Import stores lines in their order, one result each. A line that is stored already, at its seq or under its key, is a
// duplicate; one that is refused has a typed error and leaves nothing. Lines say everything themselves: options of With
// and Config.Actor do not apply. They are brought into normal form in place. It works in a transaction of
// REA's (Archive.Do) alone, for it uses savepoints. Inline functions run for what is stored, when all lines are; an error of one
// is the whole call's, and leaves nothing of it.
func (tx *Tx) Import(ctx context.Context, lines []Line) ([]LineResult, error) {
	session, err := tx.own(ctx)
	if err != nil {
		return nil, err
	}
	results := make([]LineResult, len(lines))
	good := make([]Line, 0, len(lines))
	for i := range lines {
		if results[i].Err = inAppend(lines[i].Aggregate, lines[i].Normalize()); results[i].Err == nil {
			good = append(good, lines[i])
		}
	}
	load := session.Import
	if len(tx.archive.config.Inline) > 0 {
		load = tx.importInline
	}
	stored, err := load(ctx, good)
	if err != nil {
		return nil, err
	}
	for i, n := 0, 0; n < len(stored); i++ {
		if results[i].Err == nil {
			results[i] = stored[n]
			n++
		}
	}
	return results, nil
}

// ImportProgress gives what is recorded of the file with this hash, zero where nothing is. In a transaction of REA's
// (Archive.Do) other imports of the file then wait until it ends.
func (tx *Tx) ImportProgress(ctx context.Context, source string) (ImportProgress, error) {
	if err := tx.session.Ready(ctx, false); err != nil {
		return ImportProgress{}, err
	}
	return tx.session.ImportProgress(ctx, source)
}

// SaveImportProgress records how far the import of a file has come, in this transaction, one of REA's (Archive.Do).
func (tx *Tx) SaveImportProgress(ctx context.Context, p ImportProgress) error {
	session, err := tx.own(ctx)
	if err != nil {
		return err
	}
	return session.SaveImportProgress(ctx, p)
}

func (tx *Tx) own(ctx context.Context) (OwnSession, error) {
	session, ok := tx.session.(OwnSession)
	if !ok {
		return nil, errors.New("rea: import needs a transaction of REA's own: call it inside archive.Do")
	}
	return session, session.Ready(ctx, true)
}

// Normalize checks a line against REA's limits and brings its payload and metadata into jsonb's text form, in place.
func (l *Line) Normalize() error {
	if err := checkNames(l.Aggregate, l.Actor, l.Reason, l.Correlation, l.Key); err != nil {
		return err
	}
	if l.Seq < 0 {
		return &LimitError{What: "seq", Problem: "is negative: it counts from 1"}
	}
	if l.KeyEvents < 0 || l.KeyEvents > MaxCallEvents {
		return &LimitError{What: "key_events", Limit: MaxCallEvents, Problem: fmt.Sprintf("is %d, not 1 to %d", l.KeyEvents, MaxCallEvents)}
	}
	if l.KeyEvents > 0 && l.Key == "" {
		return &LimitError{What: "key_events", Problem: "needs an idempotency_key"}
	}
	if l.Correction && (l.Actor == "" || l.Reason == "") {
		return &LimitError{What: "correction", Problem: "needs an actor and a reason"}
	}
	if err := checkEvent(l.Event); err != nil {
		return err
	}
	if l.CreatedAt.IsZero() && BuiltIn(l.Event.Type) {
		return ownName(l.Event.Type)
	}
	if !l.CreatedAt.IsZero() {
		if err := checkTime("created_at", l.CreatedAt); err != nil {
			return err
		}
	}
	payload, err := normalPayload(l.Event.Payload)
	if err != nil {
		return err
	}
	l.Event.Payload = payload
	if l.Metadata != nil {
		l.Metadata, err = NormalizeObject(l.Metadata, "metadata", MaxMetadataBytes)
	}
	return err
}
