package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
)

// pollEvery is how often a busy runner looks.
const pollEvery = 25 * time.Millisecond

// feed measures what following costs the appenders, and how soon they are followed. n clients append in a closed
// loop, one event a transaction, with a sequencer that calls the pass every 25 ms against none (the limit). The
// sequencer's own connections do not count as backends of the append.
//
// The latency of an event runs from the moment when its appender has the answer to the commit to the moment when the
// sequencer, having called the pass, has read the event's position. It is also taken while another transaction stays
// open that has appended, or that has written to a table of the application.
func (b *bench) feed(ctx context.Context, n int) error {
	d, c, err := b.open(ctx, n)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := d.filler.Exec(ctx, "CREATE TABLE IF NOT EXISTS unrelated (n int)"); err != nil {
		return err
	}

	f := &followed{database: d, flows: newFlows(&d.orders, n), stored: make([][]stamped, n)}
	appends := closedLoop("feed off", n, c.pids, func(ctx context.Context, worker int) (int, error) {
		return 1, f.append(ctx, c, worker)
	})
	off := contender{"feed off", func(ctx context.Context, t time.Duration) (sample, error) {
		s, err := appends.slice(ctx, t)
		return s, errors.Join(err, f.forget(ctx))
	}}
	paths := []contender{
		f.behind("feed on", appends, nil),
		f.behind("behind an open appender", appends, func(ctx context.Context, tx pgx.Tx) error {
			return appendGo(ctx, c.archive.Tx(tx), fact{aggregate: d.orders.Add(1), seq: 1, kind: "OrderPlaced", payload: "{}"})
		}),
		f.behind("behind an unrelated transaction", appends, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO unrelated VALUES (1)")
			return err
		}),
	}
	duels, err := interleave(ctx, b.rounds(), b.slice(), off, paths...)
	if err != nil {
		return err
	}
	b.out.addDuel("feed on, "+many(n, "client"), off.name, duels[0], atLeast(0.90), target{})
	f.report(b, n, paths)
	return nil
}

// stamped is an event with the moment of something.
type stamped struct {
	id int64
	at time.Time
}

// followed is an archive that is appended to and followed at once.
type followed struct {
	database *database
	flows    []*flow
	stored   [][]stamped          // per client, since the last slice
	latency  map[string][]float64 // milliseconds, by contender
}

func (f *followed) append(ctx context.Context, c *clients, worker int) error {
	e := f.flows[worker].next()
	receipt, err := c.archive.Autocommit().With(rea.Expect(e.seq-1)).Append(ctx, rea.Ref{Type: orderType, ID: e.id()},
		rea.NewEvent{Type: e.kind, Payload: []byte(e.payload)})
	if err == nil {
		f.stored[worker] = append(f.stored[worker], stamped{receipt.Events[0].ID, time.Now()})
	}
	return err
}

// forget numbers what a slice has left, outside of the measured time.
func (f *followed) forget(ctx context.Context) error {
	for i := range f.stored {
		f.stored[i] = f.stored[i][:0]
	}
	_, err := f.database.filler.archive.CatchUp(ctx)
	return err
}

// behind makes a contender that appends while a sequencer follows and, where other is not nil, another transaction
// has done that and stays open.
func (f *followed) behind(name string, appends contender, other func(context.Context, pgx.Tx) error) contender {
	return contender{name, func(ctx context.Context, t time.Duration) (s sample, err error) {
		if other != nil {
			tx, err := f.database.filler.Begin(ctx)
			if err != nil {
				return s, err
			}
			defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
			if err := other(ctx, tx); err != nil {
				return s, err
			}
		}
		seen := make(map[int64]time.Time)
		followCtx, stop := context.WithCancel(ctx)
		var wait sync.WaitGroup
		var followErr error
		wait.Go(func() { followErr = f.follow(followCtx, seen) })
		s, err = appends.slice(ctx, t)
		time.Sleep(4 * pollEvery) // what came last is numbered too
		stop()
		wait.Wait()
		if err := errors.Join(err, followErr); err != nil {
			return s, err
		}
		return s, errors.Join(f.note(name, seen), f.forget(ctx))
	}}
}

// follow calls the pass every 25 ms, reads what it has numbered, and notes when.
func (f *followed) follow(ctx context.Context, seen map[int64]time.Time) error {
	archive := f.database.filler.archive
	position, err := archive.Autocommit().Head(ctx)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		numbered, _, err := archive.Number(ctx)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		if numbered == 0 {
			continue
		}
		rows, err := f.database.filler.Query(ctx, "SELECT f.position, f.event_id FROM rea.feed f WHERE f.position > $1 ORDER BY f.position", position)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		at, id := time.Now(), int64(0)
		_, err = pgx.ForEachRow(rows, []any{&position, &id}, func() error {
			seen[id] = at
			return nil
		})
		if err != nil {
			return ignoreEnd(ctx, err)
		}
	}
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (f *followed) note(name string, seen map[int64]time.Time) error {
	if f.latency == nil {
		f.latency = make(map[string][]float64)
	}
	missed := 0
	for _, events := range f.stored {
		for _, e := range events {
			at, ok := seen[e.id]
			if !ok {
				missed++
				continue
			}
			// The pass may number an event before its appender has heard of the commit.
			f.latency[name] = append(f.latency[name], max(0, float64(at.Sub(e.at).Microseconds())/1000))
		}
	}
	if missed > 0 {
		return fmt.Errorf("%s: %d events got no position within %s", name, missed, 4*pollEvery)
	}
	return nil
}

func (f *followed) report(b *bench, n int, paths []contender) {
	medianTarget := atMost(25)
	if n > 8 {
		medianTarget = atMost(40)
	}
	quiet := f.latency[paths[0].name]
	var none [2]float64
	b.out.add("commit -> position, "+many(n, "client")+": median ms", "-", millis(quantile(quiet, 0.5)), quantile(quiet, 0.5), medianTarget, none)
	b.out.add("commit -> position, "+many(n, "client")+": p99 ms", "-", millis(quantile(quiet, 0.99)), quantile(quiet, 0.99), target{}, none)
	for _, path := range paths[1:] {
		p99 := quantile(f.latency[path.name], 0.99)
		b.out.add(fmt.Sprintf("p99 %s, %s", path.name, many(n, "client")), "without "+millis(quantile(quiet, 0.99)), millis(p99),
			p99/quantile(quiet, 0.99), atMost(2), none)
	}
}
