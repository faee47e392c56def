package rea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// follower keeps one projection.
type follower struct {
	*runner
	Followed
	feed     *feedReader
	size     int    // of the next page
	known    int64  // the position at the last look; -1: not known
	verified Offset // was compared with the feed
	trying   int    // the page that was tried last
	stuck    int64  // inline: an event at this position could not be folded
	said     string // why it stopped
	failing  bool   // was said
	wake     chan struct{}
}

// errElsewhere: another process moves the projection.
var errElsewhere = errors.New("another process moves the projection")

func (f *follower) run(ctx context.Context) {
	defer f.feed.close()
	idle := idling{most: f.archive.config.PollEvery}
	lost := trouble{runner: f.runner, doing: "projection " + f.Name}
	for ctx.Err() == nil {
		moved, err := f.look(ctx)
		if err == nil || errors.Is(err, errElsewhere) {
			lost.over()
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && moved > 0:
			f.said, idle.now = "", 0
			f.size = min(2*f.size, f.archive.pageOf(f.Followed))
			continue
		case errors.Is(err, ErrNeedsRebuild):
			if f.said != err.Error() {
				f.said = err.Error()
				f.archive.config.Logger.Error("rea: a projection has stopped", "projection", f.Name, "error", f.said)
			}
			pause(ctx, 4*f.archive.config.PollEvery)
		case err == nil, errors.Is(err, errElsewhere):
			f.sleep(ctx, idle.next(false))
		case passing(err):
			f.known = -1
			lost.wait(ctx, err)
		case f.trying > 1:
			f.size = f.trying / 2 // towards the event that it fails on
		default:
			if err := f.fail(ctx, err); err != nil {
				lost.wait(ctx, err)
			}
		}
	}
}

// sleep ends early where something was numbered.
func (f *follower) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-f.wake:
	}
}

// look takes a step, unless there is nothing new.
func (f *follower) look(ctx context.Context) (moved int, err error) {
	f.trying = 0
	if f.known >= 0 {
		head, err := f.archive.Autocommit().Head(ctx)
		if err != nil || head == f.known {
			return 0, err
		}
		if head < f.known {
			f.verified = Offset{}
		}
	}
	return f.step(ctx)
}

// commitLimit is how long a commit may still take once the runner is to stop. Shorter than what a service manager waits.
const commitLimit = 5 * time.Second

// step reads a page, applies it, and moves the offset, in one transaction.
func (f *follower) step(ctx context.Context) (moved int, err error) {
	f.feed.wait()
	session, err := f.archive.store.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = session.Rollback(context.WithoutCancel(ctx)) }()
	if err := session.Ready(ctx, true); err != nil {
		return 0, err
	}
	at, ok, err := session.ClaimProjection(ctx, f.Name, false)
	switch {
	case err != nil:
		return 0, err
	case !ok:
		f.known = -1
		return 0, errElsewhere
	case f.Inline && !at.Inline: // not applied
		return 0, nil
	case at.Name == "", at.Inline && !f.Inline:
		_ = session.Rollback(context.WithoutCancel(ctx))
		return 0, f.archive.makeProjection(ctx, f.Followed)
	case at.Fingerprint != f.Fingerprint:
		return 0, &StaleError{Projection: f.Name, Inline: f.Inline, Applied: at.Version, Declared: f.Version}
	}
	if f.verified != at.Offset || at.Offset == (Offset{}) {
		if err := checkOffset(ctx, session, at.Name, at.Offset); err != nil {
			return 0, inlineOffset(err, f.Inline)
		}
		f.verified = at.Offset
	}
	if at.State != StateRunning || at.Waits {
		return 0, nil
	}
	size := f.size
	if at.Failed.Attempts > 0 {
		size = 1
	}
	if f.Inline {
		return f.lookBehind(ctx, session, at, size)
	}
	page, to, err := f.feed.read(ctx, session, at.Offset, size)
	if err != nil {
		return 0, err
	}
	if to == at.Offset {
		f.known = at.Position
		return 0, nil
	}
	f.trying = int(to.Position - at.Position)
	if err := f.archive.applyPage(ctx, session, f.Followed, false, at.skips(), page); err != nil {
		return 0, failed(at, page, f.trying, noteLost(ctx, session, err))
	}
	if err := f.move(ctx, session, at, to, size); err != nil {
		if !errors.Is(err, errElsewhere) && !passing(err) {
			err = failed(at, page, f.trying, err)
		}
		return 0, err
	}
	return f.trying, nil
}

// move moves the offset, and commits.
func (f *follower) move(ctx context.Context, session OwnSession, at ProjectionOffset, to Offset, size int) error {
	if ok, err := session.MoveProjection(ctx, f.Name, f.who, at.Offset, to); err != nil || !ok {
		return cmp.Or(err, errElsewhere)
	}
	// Not interrupted: whoever has stopped the runner finds what it has done, and nothing comes after.
	ending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(commitLimit, cancel) })()
	if err := session.Commit(ending); err != nil {
		return err
	}
	if at.Failed.Attempts > 0 || f.failing || f.said != "" {
		f.failing = false
		f.archive.config.Logger.Info("rea: a projection goes on", "projection", f.Name, "position", to.Position)
	}
	f.verified, f.known = to, -1
	if to.Position-at.Position < int64(size) { // the head was near
		f.known = to.Position
	}
	return nil
}

// failed names the event, where one alone was tried.
func failed(at ProjectionOffset, page []Event, tried int, err error) error {
	if tried == 1 && len(page) == 1 {
		return &failure{at: at, event: page[0], err: err}
	}
	return err
}

// pageOf is how many events a projection is given at a time.
func (a *Archive) pageOf(f Followed) int {
	if f.Kind == KindGo {
		return a.config.runEvents
	}
	return a.config.bulkEvents
}

// skips are the positions that are left out.
func (p ProjectionOffset) skips() map[int64]bool {
	if len(p.Skipped) == 0 {
		return nil
	}
	skips := make(map[int64]bool, len(p.Skipped))
	for _, s := range p.Skipped {
		skips[s.Position] = true
	}
	return skips
}

// checkOffset compares an offset with the feed.
func checkOffset(ctx context.Context, session Session, name string, at Offset) error {
	if at.Position == 0 {
		return nil
	}
	id, err := session.EventAt(ctx, at.Position)
	if err != nil || id == at.EventID {
		return err
	}
	head, err := session.Head(ctx)
	if err != nil {
		return err
	}
	return &OffsetError{Projection: name, Offset: at, Head: head, EventID: id}
}

// makeProjection makes the table of a new projection, and records it at position 0.
func (a *Archive) makeProjection(ctx context.Context, f Followed) error {
	err := a.own(ctx, func(session OwnSession) error {
		if err := session.LockProjections(ctx); err != nil {
			return err
		}
		recorded, err := session.Offsets(ctx)
		if err != nil {
			return err
		}
		for _, p := range recorded {
			if p.Name == f.Name && !p.Inline {
				return nil
			}
		}
		inline, err := session.Projections(ctx)
		if err != nil {
			return err
		}
		for _, p := range inline {
			if p.Name == f.Name {
				return fmt.Errorf("rea: the projection %s is kept inline in the database: apply the catalog, and drop or rename its table", clip(f.Name))
			}
		}
		if f.Kind != KindGo {
			there, err := session.TableThere(ctx, f)
			if err != nil {
				return err
			}
			if there {
				return fmt.Errorf("rea: the table of the projection %s is there already, and none that REA keeps: drop or rename it", clip(f.Name))
			}
			if err := session.BuildTable(ctx, f); err != nil {
				return err
			}
			if err := session.SwitchTable(ctx, f); err != nil {
				return err
			}
		}
		return session.MakeProjection(ctx, f)
	})
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) && coded.SQLState() == "42501" {
		return &OwnerError{Projection: f.Name, Err: err}
	}
	return err
}
