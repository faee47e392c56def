package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/catalog"
	"github.com/realtime-event-archive/rea/postgres"
)

const followedCatalog = `rea: 1
aggregates:
  order:
    status: status
    events:
      OrderPlaced:     {from: any, to: placed, set: {total_amount: $.total_amount, placed_at: "@created_at"}}
      PaymentReceived: {from: any, to: paid, set: {paid_at: "@created_at"}}
      OrderShipped:    {from: any, to: shipped, set: {shipped_at: "@created_at"}}
      NoteAdded:       {from: any}
projections:
  order_state:  {of: order, columns: {status: text, total_amount: numeric, placed_at: timestamptz, shipped_at: timestamptz}}
  hourly_sales: {on: PaymentReceived, every: 1h, measures: {orders: count, amount: {sum: $.amount}}}
`

var followedNames = []string{"order_state", "hourly_sales"}

// selectBoth fills what the two projections hold by one statement.
const selectBoth = `
WITH states AS (
    INSERT INTO lean.order_state (aggregate_id, status, total_amount, placed_at, shipped_at, rea_seq, rea_updated_at)
    SELECT e.aggregate_id,
           (array_agg(CASE e.event_type WHEN 'OrderPlaced' THEN 'placed' WHEN 'PaymentReceived' THEN 'paid' WHEN 'OrderShipped' THEN 'shipped' END
                      ORDER BY e.seq DESC) FILTER (WHERE e.event_type <> 'NoteAdded'))[1],
           max((e.payload ->> 'total_amount')::numeric) FILTER (WHERE e.event_type = 'OrderPlaced'),
           max(e.created_at) FILTER (WHERE e.event_type = 'OrderPlaced'), max(e.created_at) FILTER (WHERE e.event_type = 'OrderShipped'),
           max(e.seq), max(e.created_at)
    FROM rea.feed f JOIN rea.events e ON e.id = f.event_id
    WHERE e.aggregate_type = 'order'
    GROUP BY e.aggregate_id)
INSERT INTO lean.hourly_sales (bucket, orders, amount)
SELECT date_trunc('hour', e.created_at), count(*), sum((e.payload ->> 'amount')::numeric)
FROM rea.feed f JOIN rea.events e ON e.id = f.event_id
WHERE e.event_type = 'PaymentReceived'
GROUP BY 1`

const selectTables = `
CREATE TABLE lean.order_state (aggregate_id text COLLATE "C" PRIMARY KEY, status text, total_amount numeric, placed_at timestamptz, shipped_at timestamptz,
    rea_seq bigint NOT NULL, rea_updated_at timestamptz NOT NULL);
CREATE TABLE lean.hourly_sales (bucket timestamptz PRIMARY KEY, orders bigint, amount numeric)`

// runnable opens the archive of a pool with the two projections.
func runnable(c *clients) (*postgres.Archive, error) {
	declared, err := catalog.Parse("rea.yaml", []byte(followedCatalog))
	if err != nil {
		return nil, err
	}
	return postgres.New(c.Pool, postgres.Config{Config: rea.Config{Catalog: declared, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}})
}

// running runs the projections while fn works.
func running(ctx context.Context, a *postgres.Archive, fn func(context.Context) error) error {
	runCtx, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	var runErr error
	wait.Go(func() { runErr = a.Run(runCtx) })
	err := fn(ctx)
	stop()
	wait.Wait()
	return errors.Join(err, runErr)
}

func caughtUp(ctx context.Context, a *postgres.Archive) error {
	head, err := a.CatchUp(ctx)
	for _, name := range followedNames {
		if err == nil {
			err = a.WaitFor(ctx, name, head)
		}
	}
	return err
}

// project measures a runner that has the whole archive before it, and rebuilds, of a table of states and hourly statistics. The
// limit fills both by one INSERT ... SELECT. Every slice works on a fresh copy of the same database.
func (b *bench) project(ctx context.Context) error {
	d, err := b.newDatabase(ctx)
	if err != nil {
		return err
	}
	events := 1_000_000
	if b.short {
		events = b.prefilled()
	}
	if err = fill(ctx, d, events); err == nil {
		_, err = d.filler.archive.CatchUp(ctx)
	}
	if err == nil {
		_, err = d.filler.Exec(ctx, selectTables, pgx.QueryExecModeSimpleProtocol)
	}
	if err == nil {
		_, err = d.filler.Exec(ctx, "VACUUM ANALYZE")
	}
	d.close() // nobody may be connected to what is copied
	if err != nil {
		return err
	}
	const connections = 4
	limit := b.onCopy("INSERT ... SELECT", d.name, events, connections, func(ctx context.Context, c *clients) error {
		_, err := c.Exec(ctx, selectBoth)
		return err
	})
	catchUp := b.onCopy("catch-up", d.name, events, connections, func(ctx context.Context, c *clients) error {
		a, err := runnable(c)
		if err != nil {
			return err
		}
		return running(ctx, a, func(ctx context.Context) error { return caughtUp(ctx, a) })
	})
	rebuild := b.onCopy("rebuild", d.name, events, connections, func(ctx context.Context, c *clients) error {
		a, err := runnable(c)
		for _, name := range followedNames {
			if err == nil {
				err = a.Rebuild(ctx, name, nil)
			}
		}
		return err
	})
	duels, err := interleave(ctx, min(b.rounds(), 3), b.slice(), limit, catchUp, rebuild)
	if err == nil {
		b.out.addDuel(fmt.Sprintf("catch-up over %d, states and hours", events), limit.name, duels[0], atLeast(1.0/3), target{})
		b.out.addDuel(fmt.Sprintf("rebuild over %d, one after the other", events), limit.name, duels[1], atLeast(1), target{})
	}
	return err
}

// projected measures what a runner with the two projections costs the appenders, and how soon after its commit an event is in
// both tables: until the later of the two offsets, which is looked at every two milliseconds, has come to it.
func (b *bench) projected(ctx context.Context, n int) error {
	d, c, err := b.open(ctx, n)
	if err != nil {
		return err
	}
	defer c.Close()
	runs, err := b.server.connect(ctx, d.name, 6)
	if err != nil {
		return err
	}
	defer runs.Close()
	a, err := runnable(runs)
	if err != nil {
		return err
	}
	f := &followed{database: d, flows: newFlows(&d.orders, n), stored: make([][]stamped, n)}
	appends := closedLoop("runner off", n, c.pids, func(ctx context.Context, worker int) (int, error) { return 1, f.append(ctx, c, worker) })
	off := contender{appends.name, func(ctx context.Context, t time.Duration) (sample, error) {
		s, err := appends.slice(ctx, t)
		return s, errors.Join(err, f.forget(ctx))
	}}
	beside := func(name string, open bool) contender {
		return contender{name, func(ctx context.Context, t time.Duration) (s sample, err error) {
			if open {
				tx, err := d.filler.Begin(ctx)
				if err != nil {
					return s, err
				}
				defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
				if err := appendGo(ctx, c.archive.Tx(tx), fact{aggregate: d.orders.Add(1), seq: 1, kind: "OrderPlaced", payload: "{}"}); err != nil {
					return s, err
				}
			}
			return s, running(ctx, a, func(ctx context.Context) error {
				if err := caughtUp(ctx, a); err != nil {
					return err
				}
				seen := make(map[int64]time.Time)
				seeCtx, stop := context.WithCancel(ctx)
				var wait sync.WaitGroup
				var seeErr error
				wait.Go(func() { seeErr = f.see(seeCtx, runs, seen) })
				s, err = appends.slice(ctx, t)
				err = errors.Join(err, caughtUp(ctx, a))
				time.Sleep(pollEvery)
				stop()
				wait.Wait()
				if err := errors.Join(err, seeErr); err != nil {
					return err
				}
				return errors.Join(f.note(name, seen), f.forget(ctx))
			})
		}}
	}
	paths := []contender{beside("runner on", false), beside("behind an open appender", true)}
	duels, err := interleave(ctx, b.rounds(), b.slice(), off, paths...)
	if err != nil {
		return err
	}
	b.out.addDuel("runner on, "+many(n, "client"), off.name, duels[0], target{}, target{})
	var none [2]float64
	quiet, behind := f.latency[paths[0].name], f.latency[paths[1].name]
	b.out.add("commit -> projected, "+many(n, "client")+": median ms", "-", millis(quantile(quiet, 0.5)), quantile(quiet, 0.5), target{}, none)
	b.out.add("commit -> projected, "+many(n, "client")+": p99 ms", "-", millis(quantile(quiet, 0.99)), quantile(quiet, 0.99), target{}, none)
	b.out.add("projected p99 behind an open appender, "+many(n, "client"), "without "+millis(quantile(quiet, 0.99)), millis(quantile(behind, 0.99)),
		quantile(behind, 0.99)/quantile(quiet, 0.99), atMost(2), none)
	return nil
}

// see notes when events are in both tables.
func (f *followed) see(ctx context.Context, c *clients, seen map[int64]time.Time) error {
	position, err := c.archive.Autocommit().Head(ctx)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		rows, err := c.Query(ctx, `SELECT f.position, f.event_id FROM rea.feed f
			WHERE f.position > $1 AND f.position <= (SELECT min(p.position) FROM rea.projections p WHERE p.mode = 'followed') ORDER BY f.position`, position)
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
