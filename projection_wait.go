package rea

import (
	"context"
	"fmt"
	"slices"
)

// WaitFor returns when a projection has come to a position. Somebody must run it (Run), unless it is inline and has no row that is
// behind. Where the program declares
// projections, a name that is neither among them nor in the database is ErrNotFound.
func (a *Archive) WaitFor(ctx context.Context, name string, position int64) error {
	return a.wait(ctx, name, func(context.Context) (int64, error) { return position, nil })
}

// WaitForEvent returns when a projection has the event with an id, which a Receipt has. The event must have committed: one that is not
// there, or not yet, is ErrNotFound. A standby server may have it later, and is waited for.
func (a *Archive) WaitForEvent(ctx context.Context, name string, eventID int64) error {
	position := int64(0)
	return a.wait(ctx, name, func(ctx context.Context) (_ int64, err error) {
		if position == 0 {
			position, err = a.store.Autocommit().PositionOf(ctx, eventID)
		}
		return position, err
	})
}

// wait polls; wanted gives 0 for what has no position yet.
func (a *Archive) wait(ctx context.Context, name string, wanted func(context.Context) (int64, error)) error {
	idle := idling{most: a.config.PollEvery}
	var looked Offset // of an inline one
	_, undeclared := a.named(name)
	if list, err := a.followed(); err == nil && len(list) == 0 {
		undeclared = nil // this program does not know what others declare
	}
	for {
		position, err := wanted(ctx)
		if err != nil {
			return err
		}
		list, err := a.store.Autocommit().Offsets(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(list, func(p ProjectionOffset) bool { return p.Name == name })
		if at >= 0 && list[at].Inline && position > 0 {
			if looked, err = a.lookUpTo(ctx, list[at], looked, position); err != nil {
				return err
			}
			list[at].Position = max(list[at].Position, looked.Position)
		}
		switch {
		case at >= 0 && position > 0 && list[at].Position >= position:
			return nil
		case at < 0 && undeclared != nil: // nobody will ever make it
			return undeclared
		}
		if !pause(ctx, idle.next(false)) {
			return fmt.Errorf("rea: wait for the projection %s: %w", clip(name), ctx.Err())
		}
	}
}

// lookUpTo looks for rows of an inline projection that are behind, up to a position, and says up to where there is none. Whoever
// runs the projection may be behind with looking while no row is.
func (a *Archive) lookUpTo(ctx context.Context, p ProjectionOffset, from Offset, position int64) (Offset, error) {
	if from.Position < p.Position {
		from = p.Offset
	}
	for from.Position < position {
		moved := false
		err := a.store.Snapshot(ctx, func(session SnapshotSession) error {
			rows, to, err := session.RowsBehind(ctx, StateTable{Name: p.Name, Of: p.Of}, from, a.config.runEvents)
			if moved = err == nil && len(rows) == 0 && to != from; moved {
				from = to
			}
			return err
		})
		if err != nil || !moved {
			return from, err
		}
	}
	return from, nil
}
