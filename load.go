package rea

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// At is a moment in the life of an aggregate. The zero At is the latest.
type At struct {
	kind    byte // 0 latest, 's' seq, 't' time, 'p' position
	number  int64
	instant time.Time
}

// AtSeq is the moment right after the event with this seq.
func AtSeq(seq int64) At { return At{kind: 's', number: seq} }

// AtTime is a moment by the clock: the longest prefix of the aggregate's events whose created_at are all
// not after t.
func AtTime(t time.Time) At { return At{kind: 't', instant: t} }

// AtPosition is the moment right after the event with this position, for every aggregate alike.
func AtPosition(position int64) At { return At{kind: 'p', number: position} }

// IsZero reports whether a is the latest moment.
func (a At) IsZero() bool { return a == At{} }

// String gives "seq 3", "position 12", a time, or "the latest".
func (a At) String() string {
	switch a.kind {
	case 's':
		return fmt.Sprintf("seq %d", a.number)
	case 'p':
		return fmt.Sprintf("position %d", a.number)
	case 't':
		return FormatTime(a.instant)
	}
	return "the latest"
}

// reached reports whether e lies after the moment, so that folding stops before it.
func (a At) reached(e Event) bool {
	switch a.kind {
	case 's':
		return e.Seq > a.number
	case 'p':
		return e.Position == 0 || e.Position > a.number
	case 't':
		return e.CreatedAt.After(a.instant)
	}
	return false
}

// FoldFunc gives the state after e. It must depend on nothing but its arguments. Of e it sees what belongs to the fact,
// in every copy of the archive: Position, XID, DBUser and RecordedAt are not filled in.
type FoldFunc[S any] func(state S, e Event) (S, error)

// Loaded is an aggregate as it was at one moment.
type Loaded[S any] struct {
	Aggregate Ref
	State     S
	Seq       int64 // of the last event that is folded in
	Last      Event // that event, as folds see it: without XID, DBUser and RecordedAt

	tx *Tx
}

// Append is Tx.Append to the aggregate, expecting it to be still at Seq, and moves Seq on success.
// State and Last stay as they were loaded.
func (l *Loaded[S]) Append(ctx context.Context, events ...any) (Receipt, error) {
	receipt, err := l.tx.With(Expect(l.Seq)).Append(ctx, l.Aggregate, events...)
	if err == nil {
		l.Seq = receipt.Seq()
	}
	return receipt, err
}

// Replay folds all events of an aggregate. An aggregate without events is a *NotFoundError.
func Replay[S any](ctx context.Context, tx *Tx, aggregate Ref, fold FoldFunc[S]) (*Loaded[S], error) {
	return ReplayAt(ctx, tx, aggregate, At{}, fold)
}

// ReplayAt folds the events of an aggregate up to a moment. A moment before its first event is a *NotFoundError,
// a seq or position beyond the last one a *NoSuchSeqError.
func ReplayAt[S any](ctx context.Context, tx *Tx, aggregate Ref, at At, fold FoldFunc[S]) (*Loaded[S], error) {
	loaded := &Loaded[S]{Aggregate: aggregate, tx: tx}
	events := tx.events(ctx, aggregate, 0, at.kind != 'p')
	last, err := tx.replay(ctx, aggregate, at, events, func(e Event) (err error) {
		loaded.State, err = fold(loaded.State, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	loaded.Seq, loaded.Last = last.Seq, last
	return loaded, nil
}

// replay hands the events of an aggregate up to a moment to apply, and gives the last of them.
func (tx *Tx) replay(ctx context.Context, aggregate Ref, at At, events iter.Seq2[Event, error], apply func(Event) error) (last Event, err error) {
	var stored int64
	for e, err := range events {
		if err != nil {
			return Event{}, err
		}
		stored = e.Seq
		if at.reached(e) {
			break
		}
		e.Position, e.XID, e.DBUser, e.RecordedAt = 0, "", "", time.Time{}
		if err := apply(e); err != nil {
			return Event{}, inFold(e, err)
		}
		last = e
	}
	return last, tx.checkMoment(ctx, aggregate, at, last.Seq, stored)
}

// inFold names the event whose fold has failed, where the error does not.
func inFold(e Event, err error) error {
	if errors.As(err, new(*UnknownTypeError)) || errors.As(err, new(*UpcastError)) || errors.As(err, new(*DecodeError)) {
		return err
	}
	return fmt.Errorf("rea: fold %s seq %d (%s version %d): %w", e.Aggregate, e.Seq, e.Type, e.Version, err)
}

func (tx *Tx) checkMoment(ctx context.Context, aggregate Ref, at At, folded, last int64) error {
	switch {
	case last == 0:
		return &NotFoundError{Aggregate: aggregate}
	case at.kind == 's' && at.number > last:
		return &NoSuchSeqError{Aggregate: aggregate, At: at, Last: last}
	case at.kind == 'p':
		head, err := tx.session.Head(ctx)
		if err != nil {
			return err
		}
		if at.number > head {
			return &NoSuchSeqError{Aggregate: aggregate, At: at, Last: head}
		}
	}
	if folded == 0 {
		return &NotFoundError{Aggregate: aggregate, At: at}
	}
	return nil
}
