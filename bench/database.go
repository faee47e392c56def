package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
)

// database holds an archive, the article's table and the lean table side by side.
type database struct {
	name         string
	orders, rows atomic.Int64 // ids given out: of the archive's orders, of the other tables' orders
	filler       *clients
}

func (d *database) close() { d.filler.Close() }

// database is the one that most groups share: archive and article's table with the same events.
func (b *bench) database(ctx context.Context) (*database, error) {
	if b.server.archive != nil {
		return b.server.archive, nil
	}
	d, err := b.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	b.server.archive = d
	if err := fill(ctx, d, b.prefilled()); err != nil {
		return nil, fmt.Errorf("prefill: %w", err)
	}
	if _, err := d.filler.archive.CatchUp(ctx); err != nil {
		return nil, err
	}
	d.rows.Store(d.orders.Load())
	_, err = d.filler.Exec(ctx, `
INSERT INTO article.events (aggregate_type, aggregate_id, event_type, seq, payload, actor_id, created_at)
SELECT aggregate_type, aggregate_id::bigint, event_type, seq, payload, actor_id::bigint, created_at FROM rea.events ORDER BY id`)
	if err != nil {
		return nil, err
	}
	// So that no slice has to do it: autovacuum would.
	_, err = d.filler.Exec(ctx, "VACUUM ANALYZE")
	return d, err
}

// open gives the database of database, and n clients of it.
func (b *bench) open(ctx context.Context, n int) (*database, *clients, error) {
	d, err := b.database(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, err := b.server.connect(ctx, d.name, n)
	return d, c, err
}

func (b *bench) newDatabase(ctx context.Context) (*database, error) {
	name, err := b.server.create(ctx, "")
	if err != nil {
		return nil, err
	}
	d := &database{name: name}
	if d.filler, err = b.server.connect(ctx, name, 2); err != nil {
		return nil, err
	}
	if err := d.filler.archive.Migrate(ctx, nil); err != nil {
		return nil, err
	}
	_, err = d.filler.Exec(ctx, articleTable+leanTable, pgx.QueryExecModeSimpleProtocol)
	return d, err
}

// fill imports n events of many orders.
func fill(ctx context.Context, d *database, n int) error {
	const size = 5_000
	facts := someFacts(size)
	for ; n > 0; n -= size {
		if err := importAll(ctx, d.filler, importLines(facts, d.orders.Add(size)-size)); err != nil {
			return err
		}
	}
	return nil
}

// someFacts are n events of fewer than n orders, numbered from 1.
func someFacts(n int) []fact {
	f := newFlow(new(atomic.Int64), 1000)
	facts := make([]fact, n)
	for i := range facts {
		facts[i] = f.next()
	}
	return facts
}

// importLines are lines as a file has them, with created_at and without seq, of orders from base on.
func importLines(facts []fact, base int64) []rea.Line {
	lines := make([]rea.Line, len(facts))
	at := anHourAgo()
	for i, e := range facts {
		e.aggregate += base
		lines[i] = rea.Line{
			Aggregate: rea.Ref{Type: orderType, ID: e.id()},
			Event:     rea.NewEvent{Type: e.kind, Payload: json.RawMessage(e.payload)},
			Actor:     strconv.Itoa(actor), CreatedAt: at.Add(time.Duration(i) * time.Microsecond),
		}
	}
	return lines
}

func importAll(ctx context.Context, c *clients, lines []rea.Line) error {
	return c.archive.Do(ctx, func(tx *rea.Tx) error {
		for i := range lines {
			if err := lines[i].Normalize(); err != nil {
				return err
			}
		}
		results, err := tx.Import(ctx, lines)
		if err != nil {
			return err
		}
		for i, r := range results {
			if r.Duplicate || r.Err != nil {
				return fmt.Errorf("line %d was not stored (duplicate %v): %w", i, r.Duplicate, r.Err)
			}
		}
		return nil
	})
}
