package main

import (
	"context"
	"fmt"

	"github.com/realtime-event-archive/rea/adopt"
)

const baselineTable = `
CREATE TABLE public.legacy (
    id bigint PRIMARY KEY, customer bigint NOT NULL, status text, total numeric(12,2), note text, placed_at timestamptz, paid_at timestamptz, data jsonb
)`

const fillLegacy = `
INSERT INTO public.legacy
SELECT i, i % 5000, (ARRAY['placed', 'paid', 'shipped'])[i % 3 + 1], i / 7.0, md5(i::text), timestamptz '2020-01-01' + i * interval '1 minute',
       CASE WHEN i % 3 > 0 THEN timestamptz '2020-01-02' + i * interval '1 minute' END, jsonb_build_object('channel', i % 4)
FROM generate_series(1, $1::bigint) i`

// plainBaseline is what somebody would type at night, with the system stopped.
const plainBaseline = `
INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type, payload, actor_id, context_id)
SELECT 'legacy', l.id::text, 1, 'BaselineCreated',
       jsonb_build_object('row', jsonb_build_object('id', l.id, 'customer', l.customer, 'status', l.status, 'total', l.total, 'note', l.note,
                                                    'placed_at', l.placed_at, 'paid_at', l.paid_at, 'data', l.data)), 'baseline', 1
FROM public.legacy l
ORDER BY l.id`

// baseline measures the baseline of a table, in chunks of 5,000 rows that are locked, each a transaction. The limit is
// one INSERT ... SELECT of the same events. Every slice works on a fresh copy of the same database, made before the clock runs.
func (b *bench) baseline(ctx context.Context) error {
	d, err := b.newDatabase(ctx)
	if err != nil {
		return err
	}
	rows := 1_000_000
	if b.short {
		rows = 50_000
	}
	_, err = d.filler.Exec(ctx, baselineTable)
	if err == nil {
		_, err = d.filler.Exec(ctx, fillLegacy, rows)
	}
	if err == nil {
		_, err = d.filler.Exec(ctx, "VACUUM ANALYZE public.legacy")
	}
	d.close() // nobody may be connected to what is copied
	if err != nil {
		return err
	}
	limit := b.onCopy("INSERT ... SELECT", d.name, rows, 1, func(ctx context.Context, c *clients) error {
		_, err := c.Exec(ctx, plainBaseline)
		return err
	})
	path := b.onCopy("baseline", d.name, rows, 1, func(ctx context.Context, c *clients) error {
		table, err := adopt.Describe(ctx, c, "public.legacy", nil)
		if err != nil {
			return err
		}
		taking, err := adopt.NewBaseline(ctx, c.Pool, table, adopt.BaselineOptions{Type: "legacy", Version: "bench"})
		if err != nil {
			return err
		}
		result, err := taking.Run(ctx)
		if err == nil && result.New != int64(rows) {
			err = fmt.Errorf("%d of %d rows were taken", result.New, rows)
		}
		return err
	})
	duels, err := interleave(ctx, min(b.rounds(), 2), b.slice(), limit, path)
	if err == nil {
		b.out.addDuel(fmt.Sprintf("baseline of %d rows", rows), limit.name, duels[0], atLeast(1/1.3), target{})
	}
	return err
}
