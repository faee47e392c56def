package rea

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// RebuildProgress is how far a rebuild has come.
type RebuildProgress struct {
	Position int64 // of the last event in the new table
	Head     int64 // the last position when it was looked at
}

// Rebuild fills a new table for a followed projection beside the one that is read, catches up, and puts it in the place of
// the other, while appends, readers and runners go on: readers see the old rows until then. Owner, comments, SELECT grants, and the
// indexes, constraints, statistics and triggers that others have made on the table are kept. progress (may be nil) is told after
// each page. Killed, it goes on where it was. Two processes that rebuild one projection share the work. What depends on the table is a
// *DependentsError, unless Config.RecreateViews makes it again; so is what the new table cannot take over. All that is tried before
// anything is filled.
// An event that cannot be taken ends it, and stands in ProjectionOffset.Rebuild: the next call goes on from there, behind the event
// after SkipEvent.
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
	if err := a.patiently(ctx, func() error { return a.beginRebuild(ctx, f) }); err != nil {
		return err
	}
	size := a.pageOf(f)
	feed := a.feedReader(f)
	defer feed.close()
	for tries, copied := 1, false; ; {
		head, err := a.CatchUp(ctx)
		if err != nil {
			return err
		}
		for at, there := int64(0), true; at < head; {
			at, there, err = a.rebuildPage(ctx, f, feed, size)
			if bad := badPage(err); bad != nil && bad.tried > 1 {
				size = bad.tried / 2 // towards the event that it fails on
				continue
			}
			if err != nil || !there { // another process has finished
				return a.failRebuild(ctx, f, err)
			}
			size = min(2*size, a.pageOf(f))
			progress(RebuildProgress{Position: at, Head: max(head, at)})
		}
		if !copied {
			err = a.copyIndexes(ctx, f, func(session OwnSession) (bool, error) {
				_, there, err := session.ClaimRebuild(ctx, f)
				return there, err
			})
			if err == nil {
				copied = true
				continue // with what was appended meanwhile
			}
		} else {
			err = a.finishRebuild(ctx, f, feed, progress)
		}
		if bad := badPage(err); bad != nil {
			size = max(bad.tried/2, 1)
			continue
		}
		if !errors.Is(err, ErrRetry) || tries >= 10*a.config.Attempts {
			return err
		}
		tries++
		if !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// patiently calls fn until the locks come that it does not wait for.
func (a *Archive) patiently(ctx context.Context, fn func() error) error {
	for tries := 1; ; tries++ {
		err := fn()
		if !errors.Is(err, ErrRetry) || tries >= 10*a.config.Attempts || !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// beginRebuild makes the new table, unless it is there, and tries what is to happen at the switch.
func (a *Archive) beginRebuild(ctx context.Context, f Followed) error {
	return a.own(ctx, func(session OwnSession) error {
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
		if err != nil {
			return err
		}
		return session.RehearseSwitch(ctx, f, a.config.RecreateViews)
	})
}

// rebuildPage fills one page in. there is false where nobody rebuilds any more.
func (a *Archive) rebuildPage(ctx context.Context, f Followed, feed *feedReader, size int) (at int64, there bool, err error) {
	feed.wait()
	err = a.own(ctx, func(session OwnSession) (err error) {
		var from Offset
		if from, there, err = session.ClaimRebuild(ctx, f); err != nil || !there {
			return err
		}
		skipped, err := skippedBy(ctx, session, f)
		if err != nil {
			return err
		}
		at, err = a.rebuildOn(ctx, session, f, feed, from, size, skipped)
		return err
	})
	return at, there, err
}

// rebuildOn fills one page in, in a transaction that has claimed the rebuild. At the head it does nothing.
func (a *Archive) rebuildOn(ctx context.Context, session OwnSession, f Followed, feed *feedReader, from Offset, size int, skipped map[int64]bool) (at int64, err error) {
	if err := checkOffset(ctx, session, f.Name, from); err != nil {
		return 0, err
	}
	page, to, err := feed.read(ctx, session, from, size)
	if err != nil || to == from {
		return from.Position, err
	}
	if err := a.applyPage(ctx, session, f, true, skipped, page); err != nil {
		return 0, &pageError{projection: f.Name, page: page, tried: int(to.Position - from.Position), err: noteLost(ctx, session, err)}
	}
	return to.Position, session.MoveRebuild(ctx, f.Name, from, to)
}

func skippedBy(ctx context.Context, session OwnSession, f Followed) (map[int64]bool, error) {
	list, err := session.Offsets(ctx)
	for _, p := range list {
		if p.Name == f.Name {
			return p.rebuildSkips(f), err
		}
	}
	return nil, err
}

// rebuildSkips are the positions that a rebuild leaves out.
func (p ProjectionOffset) rebuildSkips(f Followed) map[int64]bool {
	if p.Rebuild != nil && p.Rebuild.Fingerprint == f.Fingerprint {
		p.Skipped = slices.Concat(p.Skipped, p.Rebuild.Skipped)
	}
	return p.skips()
}

// pageError is a page that a rebuild cannot apply.
type pageError struct {
	projection string
	page       []Event
	tried      int // positions
	err        error
}

func (e *pageError) Error() string {
	text := "rea: rebuild " + clip(e.projection) + ": "
	if e.tried == 1 {
		text += fmt.Sprintf("it fails on position %d, and goes on from there once what follows is mended, or after `rea projection skip %s --position %[1]d`, which leaves the event out for good: ",
			e.page[0].Position, clip(e.projection))
	}
	return text + strings.TrimPrefix(e.err.Error(), "rea: ")
}

func (e *pageError) Unwrap() error { return e.err }

// badPage gives the page that an error is about; nil: it is about none, or another try may succeed without anybody's doing.
func badPage(err error) *pageError {
	bad := new(pageError)
	if !errors.As(err, &bad) || passing(bad.err) {
		return nil
	}
	return bad
}

// failRebuild records the event that a rebuild fails on.
func (a *Archive) failRebuild(ctx context.Context, f Followed, err error) error {
	bad := badPage(err)
	if bad == nil || bad.tried > 1 {
		return err
	}
	recording := a.own(ctx, func(session OwnSession) error {
		return session.FailRebuild(ctx, f, bad.page[0].Position, errorText(bad.err))
	})
	return errors.Join(err, recording)
}

// copyIndexes makes the indexes of others on the table that was filled, which nobody reads yet, each in a transaction of its own, so
// that none is lost with another. claim reports whether there is a table still.
func (a *Archive) copyIndexes(ctx context.Context, f Followed, claim func(OwnSession) (bool, error)) error {
	for tries, most := 0, 0; ; tries++ {
		left := 0
		err := a.own(ctx, func(session OwnSession) error {
			there, err := claim(session)
			if err != nil || !there {
				return err
			}
			left, err = session.CopyIndexes(ctx, f)
			return err
		})
		if tries == 0 {
			most = left
		}
		if err != nil || left == 0 || tries >= most { // one that reads otherwise on the new table would be made for ever
			return err
		}
	}
}

// finishRebuild keeps runners away, fills in what is left, and switches.
func (a *Archive) finishRebuild(ctx context.Context, f Followed, feed *feedReader, progress func(RebuildProgress)) error {
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
			if at, err = a.rebuildOn(ctx, session, f, feed, from, a.pageOf(f), live.rebuildSkips(f)); err != nil {
				return err
			}
			if at == from.Position {
				return session.FinishRebuild(ctx, f, from, whoRuns(), a.config.RecreateViews)
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
		size := a.config.runEvents
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
				page, _, err := session.Page(ctx, Filter{}, at.Position, size)
				if err != nil {
					return err
				}
				if len(page) == 0 {
					return session.FinishRebuild(ctx, f, at, whoRuns(), false)
				}
				err = session.Transaction().Savepoint(ctx, func() error { return a.applyPage(ctx, session, f, false, live.rebuildSkips(f), page) })
				if err != nil {
					bad := &pageError{projection: f.Name, page: page, tried: len(page), err: noteLost(ctx, session, err)}
					if badPage(bad) == nil || bad.tried == 1 {
						return bad
					}
					size = bad.tried / 2
					continue
				}
				size = min(2*size, a.config.runEvents)
				at = Offset{Position: page[len(page)-1].Position, EventID: page[len(page)-1].ID}
				progress(RebuildProgress{Position: at.Position, Head: max(head, at.Position)})
			}
		})
		if !errors.Is(err, ErrRetry) || !pause(ctx, 50*time.Millisecond) {
			return a.failRebuild(ctx, f, err)
		}
	}
}
