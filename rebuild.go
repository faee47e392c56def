package rea

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// RebuildProgress is how far a rebuild has come.
type RebuildProgress struct {
	Position int64 // of the last event in the new table
	Head     int64 // the last position when it was looked at
}

// DependentsError says what depends on the table of a projection, and would keep the old rows or be lost.
type DependentsError struct {
	Projection string
	Dependents []string // such as "view public.sales"
}

func (e *DependentsError) Error() string {
	return fmt.Sprintf("rea: rebuild %s: drop what depends on its table, and make it again afterwards: %s", clip(e.Projection), strings.Join(e.Dependents, ", "))
}

// Rebuild fills a new table for a followed projection beside the one that is read, catches up, and puts it in the place of
// the other, while appends, readers and runners go on: readers see the old rows until then. Owner, comments and SELECT grants are
// kept, indexes of somebody else's are not. progress (may be nil) is told after each page. Killed, it goes on
// where it was. Two processes that rebuild one projection share the work. What depends on the table is a *DependentsError.
//
// A Go projection is emptied by its Reset and filled again in one transaction, which begins anew when it is killed, and on
// SQLite keeps every other writer waiting.
func (a *Archive) Rebuild(ctx context.Context, name string, progress func(RebuildProgress)) error {
	f, err := a.named(name)
	if err != nil {
		return err
	}
	if f.Inline {
		return fmt.Errorf("rea: rebuild %s: appends keep it: raise its version in the catalog, and apply that", clip(name))
	}
	if err := a.store.Autocommit().Ready(ctx, true); err != nil {
		return err
	}
	if progress == nil {
		progress = func(RebuildProgress) {}
	}
	if err := a.makeProjection(ctx, f); err != nil {
		return err
	}
	if f.Kind == KindGo {
		return a.rebuildGo(ctx, f, progress)
	}
	err = a.own(ctx, func(session OwnSession) error {
		dependents, err := session.Dependents(ctx, f)
		if err == nil && len(dependents) > 0 {
			err = &DependentsError{Projection: f.Name, Dependents: dependents}
		}
		if err != nil {
			return err
		}
		if err := session.BeginRebuild(ctx, f, false); err != nil {
			return err
		}
		at, _, err := session.ClaimRebuild(ctx, f)
		if err == nil {
			err = checkOffset(ctx, session, f.Name, at)
		}
		if errors.Is(err, ErrNeedsRebuild) { // the events were restored while it was built
			err = session.BeginRebuild(ctx, f, true)
		}
		return err
	})
	if err != nil {
		return err
	}
	for tries := 1; ; {
		head, err := a.CatchUp(ctx)
		if err != nil {
			return err
		}
		for at, there := int64(0), true; at < head; {
			if at, there, err = a.rebuildPage(ctx, f); err != nil || !there {
				return err // another process has finished
			}
			progress(RebuildProgress{Position: at, Head: max(head, at)})
		}
		err = a.finishRebuild(ctx, f, progress)
		if !errors.Is(err, ErrRetry) || tries >= 10*a.config.Attempts {
			return err
		}
		tries++
		if !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// rebuildPage fills one page in. there is false where nobody rebuilds any more.
func (a *Archive) rebuildPage(ctx context.Context, f Followed) (at int64, there bool, err error) {
	err = a.own(ctx, func(session OwnSession) (err error) {
		var from Offset
		if from, there, err = session.ClaimRebuild(ctx, f); err != nil || !there {
			return err
		}
		skipped, err := skippedBy(ctx, session, f.Name)
		if err != nil {
			return err
		}
		at, err = a.rebuildOn(ctx, session, f, from, skipped)
		return err
	})
	return at, there, err
}

// rebuildOn fills one page in, in a transaction that has claimed the rebuild. At the head it does nothing.
func (a *Archive) rebuildOn(ctx context.Context, session OwnSession, f Followed, from Offset, skipped map[int64]bool) (at int64, err error) {
	if err := checkOffset(ctx, session, f.Name, from); err != nil {
		return 0, err
	}
	page, to, err := session.FollowPage(ctx, a.filter(f), from, a.config.runEvents)
	if err != nil || to == from {
		return from.Position, err
	}
	if err := a.applyPage(ctx, session, f, true, skipped, page); err != nil {
		return 0, fmt.Errorf("rea: rebuild %s: %w", clip(f.Name), err)
	}
	return to.Position, session.MoveRebuild(ctx, f.Name, from, to)
}

func skippedBy(ctx context.Context, session OwnSession, name string) (map[int64]bool, error) {
	list, err := session.Offsets(ctx)
	for _, p := range list {
		if p.Name == name {
			return p.skips(), err
		}
	}
	return nil, err
}

// finishRebuild keeps runners away, fills in what is left, and switches.
func (a *Archive) finishRebuild(ctx context.Context, f Followed, progress func(RebuildProgress)) error {
	at := int64(0)
	err := a.own(ctx, func(session OwnSession) error {
		live, _, err := session.ClaimProjection(ctx, f.Name, true)
		if err != nil {
			return err
		}
		for {
			from, there, err := session.ClaimRebuild(ctx, f)
			if err != nil || !there {
				return err
			}
			if at, err = a.rebuildOn(ctx, session, f, from, live.skips()); err != nil {
				return err
			}
			if at == from.Position {
				return session.FinishRebuild(ctx, f, from, whoRuns())
			}
		}
	})
	if err == nil {
		progress(RebuildProgress{Position: at, Head: at})
	}
	return err
}

// rebuildGo empties and fills the tables of the program's in one transaction.
func (a *Archive) rebuildGo(ctx context.Context, f Followed, progress func(RebuildProgress)) error {
	if f.apply.Reset == nil {
		return fmt.Errorf("rea: the projection %s cannot be rebuilt: it has no function Reset", clip(f.Name))
	}
	head, err := a.CatchUp(ctx)
	if err != nil {
		return err
	}
	for {
		err := a.own(ctx, func(session OwnSession) error {
			live, _, err := session.ClaimProjection(ctx, f.Name, true)
			if err != nil {
				return err
			}
			tx, err := session.UserSQL(ctx)
			if err != nil {
				return err
			}
			if err := f.apply.Reset(ctx, tx); err != nil {
				return err
			}
			at := Offset{}
			for {
				page, _, err := session.Page(ctx, Filter{}, at.Position, a.config.runEvents)
				if err != nil {
					return err
				}
				if len(page) == 0 {
					return session.FinishRebuild(ctx, f, at, whoRuns())
				}
				if err := a.applyPage(ctx, session, f, false, live.skips(), page); err != nil {
					return fmt.Errorf("rea: rebuild %s: %w", clip(f.Name), err)
				}
				at = Offset{Position: page[len(page)-1].Position, EventID: page[len(page)-1].ID}
				progress(RebuildProgress{Position: at.Position, Head: max(head, at.Position)})
			}
		})
		if !errors.Is(err, ErrRetry) || !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}
