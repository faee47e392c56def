package main

import (
	"context"
	"fmt"
	"time"
)

// backlog measures the pass over events that nobody has followed yet: CatchUp, in passes of 10,000 that are each a
// transaction. The limit is one INSERT ... SELECT of the same two columns, position and id, in id order into a table
// with the feed's primary key. Every slice works on a fresh copy of the same database, made before the clock runs.
func (b *bench) backlog(ctx context.Context) error {
	d, err := b.newDatabase(ctx)
	if err != nil {
		return err
	}
	events := b.prefilled()
	err = fill(ctx, d, events)
	if err == nil {
		_, err = d.filler.Exec(ctx, "VACUUM ANALYZE rea.events")
	}
	if err == nil {
		_, err = d.filler.Exec(ctx, "CREATE TABLE lean.feed (position bigint NOT NULL PRIMARY KEY, event_id bigint NOT NULL)")
	}
	d.close() // nobody may be connected to what is copied
	if err != nil {
		return err
	}
	limit := b.onCopy("INSERT ... SELECT", d.name, events, 1, func(ctx context.Context, c *clients) error {
		_, err := c.Exec(ctx, `
INSERT INTO lean.feed (position, event_id)
SELECT row_number() OVER (ORDER BY e.id), e.id FROM rea.events e ORDER BY e.id`)
		return err
	})
	path := b.onCopy("pass", d.name, events, 1, func(ctx context.Context, c *clients) error {
		head, err := c.archive.CatchUp(ctx)
		if err == nil && head != int64(events) {
			err = fmt.Errorf("the head is %d after a pass over %d events", head, events)
		}
		return err
	})
	duels, err := interleave(ctx, min(b.rounds(), 5), b.slice(), limit, path)
	if err == nil {
		b.out.addDuel(fmt.Sprintf("pass over a backlog of %d", events), limit.name, duels[0], atLeast(0.50), target{})
	}
	return err
}

// onCopy makes a contender that does its work once, on a copy of a database. How long a slice is does not matter.
func (b *bench) onCopy(name, template string, events, connections int, work func(context.Context, *clients) error) contender {
	return contender{name, func(ctx context.Context, _ time.Duration) (s sample, err error) {
		copied, err := b.server.create(ctx, template)
		if err != nil {
			return s, err
		}
		c, err := b.server.connect(ctx, copied, connections)
		if err != nil {
			return s, err
		}
		one := closedLoop(name, 1, c.pids, func(ctx context.Context, _ int) (int, error) { return events, work(ctx, c) })
		// The pages of the copy come into memory first, for either side.
		if _, err = c.Exec(ctx, "SELECT count(*), max(id) FROM rea.events"); err == nil {
			s, err = one.slice(ctx, time.Nanosecond)
		}
		c.Close()
		if err != nil {
			return s, err
		}
		return s, b.server.drop(ctx, copied)
	}}
}
