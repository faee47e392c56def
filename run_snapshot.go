package rea

import "context"

// snapshotLook is how many positions one look for snapshots that are due goes over.
const snapshotLook = 5_000

// snapshots stores snapshots of aggregates that come to a multiple of their type's SnapshotEvery while this runs, so that they do not
// wait for the next Load. One of another fold is left alone: two programs would replace each other's for ever.
func (r *runner) snapshots(ctx context.Context) {
	every := r.archive.config.Catalog.snapshotsEvery()
	if len(every) == 0 {
		return
	}
	session := r.archive.store.Autocommit()
	lost := trouble{runner: r, doing: "snapshots"}
	for at := int64(-1); ctx.Err() == nil; {
		head, err := session.Head(ctx)
		if err == nil && (at < 0 || head < at) { // what was there before is for those who load it
			at = head
		}
		if err == nil && head > at {
			to := min(head, at+snapshotLook)
			if err = r.snapshotsDue(ctx, at, to, every); err == nil {
				at = to
			}
		}
		if err != nil {
			lost.wait(ctx, err)
			continue
		}
		lost.over()
		if at == head {
			pause(ctx, r.archive.config.PollEvery) // there is no hurry: a look a poll, however much comes
		}
	}
}

// snapshotsDue stores those of a stretch of positions.
func (r *runner) snapshotsDue(ctx context.Context, after, to int64, every map[string]int) error {
	list, err := r.archive.store.Autocommit().Milestones(ctx, after, to, every)
	if err != nil {
		return err
	}
	for _, aggregate := range list {
		if _, err := r.archive.snapshot(ctx, aggregate, false); err != nil {
			if ctx.Err() != nil || passing(err) {
				return err
			}
			// a state that cannot be folded or stored is no trouble of the runner's: whoever loads it is told
			r.archive.config.Logger.DebugContext(ctx, "rea: a snapshot is not stored", "aggregate", aggregate.String(), "error", err)
		}
	}
	return nil
}

// snapshotsEvery gives SnapshotEvery of the types that have snapshots.
func (c *Catalog) snapshotsEvery() map[string]int {
	every := map[string]int{}
	if c != nil {
		for name, t := range c.types {
			if t.every > 0 {
				every[name] = t.every
			}
		}
	}
	return every
}
