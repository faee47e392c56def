package rea

import (
	"context"
	"errors"
	"fmt"
)

// lookBehind looks for rows of an inline projection that have not all of the next events, and folds each in a transaction of its
// own, so that no append waits for two of them. Where there is none it moves the offset: appends take rows forward alone, so
// that a row that has an event keeps it.
func (f *follower) lookBehind(ctx context.Context, session OwnSession, at ProjectionOffset, size int) (moved int, err error) {
	if before := f.stuck - at.Position - 1; before > 0 {
		size = min(size, int(before))
	}
	rows, to, err := session.RowsBehind(ctx, *f.State, at.Offset, size)
	if err != nil {
		return 0, err
	}
	if to == at.Offset {
		f.known = at.Position
		return 0, nil
	}
	if len(rows) == 0 {
		return int(to.Position - at.Position), f.move(ctx, session, at, to, size)
	}
	f.known = -1
	_ = session.Rollback(context.WithoutCancel(ctx))
	var first *failure
	for _, row := range rows {
		var failed *failure
		switch e := f.foldBehind(ctx, row); {
		case errors.As(e, &failed):
			if first == nil || failed.event.Position < first.event.Position {
				first = failed
			}
		case errors.Is(e, ErrRetry): // an open append holds the row: the others first
			err = e
		case e != nil:
			return 0, e
		}
	}
	if first == nil || err != nil {
		return 1, err
	}
	if f.stuck = first.event.Position; f.stuck > at.Position+1 {
		return 1, nil // up to there nothing is behind
	}
	first.at = at
	return 0, first
}

// foldBehind takes a row up to a seq. What it cannot fold is a *failure, and the row then stands before that event.
func (f *follower) foldBehind(ctx context.Context, place RowPlace) error {
	var stuck *failure
	err := f.archive.own(ctx, func(session OwnSession) error {
		stuck = nil
		at, ok, err := session.ClaimProjection(ctx, f.Name, false)
		switch {
		case err != nil:
			return err
		case !ok:
			return errElsewhere
		case at.Fingerprint != f.Fingerprint, at.State != StateRunning:
			return nil // the next look says so
		}
		row := StateRow{ID: place.ID, Values: make([]*string, len(f.State.Columns))}
		rows, err := session.ReadStateRows(ctx, *f.State, false, []string{place.ID})
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			row = rows[0]
		}
		var last Event
		if last, stuck, err = f.stepBehind(ctx, session, &row, place.Last, at.skips()); err != nil || row.Seq == row.Was {
			return err
		}
		_, err = session.SaveStateRows(ctx, *f.State, false, []StateRow{row})
		if err != nil && !passing(err) { // an index of somebody's refuses the row
			return &failure{event: last, err: err}
		}
		return err
	})
	if err == nil && stuck != nil {
		return stuck
	}
	return err
}

// stepBehind folds the events up to a seq into a row, and gives the last of them.
func (f *follower) stepBehind(ctx context.Context, session OwnSession, row *StateRow, to int64, skips map[int64]bool) (last Event, stuck *failure, err error) {
	aggregate := Ref{f.Of, row.ID}
	for row.Seq < to {
		events, _, err := session.Events(ctx, Stretch{Aggregate: aggregate, After: row.Seq, Limit: fillPage}, nil)
		if err != nil {
			return last, nil, err
		}
		if len(events) == 0 || events[0].Seq != row.Seq+1 {
			return last, nil, fmt.Errorf("rea: %s: seq %d is not there any more", aggregate, row.Seq+1)
		}
		for _, e := range events {
			if e.Seq > to {
				break
			}
			if err := f.archive.stepRow(*f.State, row, e, skips); err != nil {
				return last, &failure{event: e, err: err}, nil
			}
			last = e
		}
	}
	return last, nil, nil
}

// inlineOffset says of an offset that is none of this archive's that it is an inline projection's.
func inlineOffset(err error, inline bool) error {
	var foreign *OffsetError
	if errors.As(err, &foreign) {
		foreign.Inline = inline
	}
	return err
}

// passed records that the rows of an inline projection have all events up to an offset, which was the head before a look that
// found nothing behind.
func (a *Archive) passed(ctx context.Context, name string, to Offset) error {
	return a.own(ctx, func(session OwnSession) error {
		at, _, err := session.ClaimProjection(ctx, name, true)
		if err != nil || !at.Inline {
			return err
		}
		err = checkOffset(ctx, session, name, at.Offset)
		if err == nil && to.Position <= at.Position || err != nil && !errors.Is(err, ErrNeedsRebuild) {
			return err
		}
		if _, err := session.MoveProjection(ctx, name, at.Runner, at.Offset, to); err != nil || at.State != StateStalled {
			return err
		}
		return session.SetProjection(ctx, name, StateRunning)
	})
}

// headOffset is the last position and its event.
func (a *Archive) headOffset(ctx context.Context) (at Offset, err error) {
	session := a.store.Autocommit()
	if at.Position, err = session.Head(ctx); err != nil || at.Position == 0 {
		return at, err
	}
	at.EventID, err = session.EventAt(ctx, at.Position)
	return at, err
}
