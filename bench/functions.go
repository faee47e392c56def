package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
)

// currentSlots is how many rows the table of current states has: enough that clients seldom meet at one.
const currentSlots = 10_000

const currentTable = `
CREATE TABLE IF NOT EXISTS article.current ( slot BIGINT PRIMARY KEY, status TEXT NOT NULL, seq BIGINT NOT NULL, updated_at TIMESTAMPTZ NOT NULL ) WITH (fillfactor = 50);
INSERT INTO article.current SELECT n, 'placed', 0, now() FROM generate_series(0, 9999) n ON CONFLICT DO NOTHING`

const updateCurrent = `UPDATE article.current SET status = $2, seq = $3, updated_at = now() WHERE slot = $1`

// functions measures an append with an inline function that updates one row. The limit is the UPDATE without the event, between
// BEGIN and COMMIT. The second path is in the user's own transaction, with the savepoint that takes.
func (b *bench) functions(ctx context.Context, n int) error {
	d, err := b.database(ctx)
	if err != nil {
		return err
	}
	if _, err := d.filler.Exec(ctx, currentTable, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	c, err := b.server.connect(ctx, d.name, n)
	if err != nil {
		return err
	}
	defer c.Close()
	archive, err := postgres.New(c.Pool, postgres.Config{Config: rea.Config{Inline: []rea.Inline{{Name: "current", Of: orderType, Apply: keepCurrent}}}})
	if err != nil {
		return err
	}

	raw, own := newFlows(&d.rows, n), newFlows(&d.orders, n)
	loop := func(name string, op operation) contender { return closedLoop(name, n, c.pids, op) }
	limit := loop("BEGIN, UPDATE, COMMIT", func(ctx context.Context, worker int) (int, error) {
		e := raw[worker].next()
		return 1, pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, updateCurrent, e.aggregate%currentSlots, e.kind, e.seq)
			return err
		})
	})
	paths := []contender{
		loop("append with a function", func(ctx context.Context, worker int) (int, error) {
			return 1, appendGo(ctx, archive.Autocommit(), own[worker].next())
		}),
		loop("BEGIN, append with a function, COMMIT", func(ctx context.Context, worker int) (int, error) {
			return 1, pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return appendGo(ctx, archive.Tx(tx), own[worker].next()) })
		}),
	}
	duels, err := interleave(ctx, b.rounds(), b.slice(), limit, paths...)
	if err != nil {
		return err
	}
	for i, path := range paths {
		b.out.addDuel(fmt.Sprintf("%s, %s", path.name, many(n, "client")), limit.name, duels[i], target{}, target{})
	}
	return nil
}

func keepCurrent(ctx context.Context, tx rea.SQL, e rea.Event) error {
	id, err := strconv.ParseInt(e.Aggregate.ID, 10, 64)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, updateCurrent, id%currentSlots, e.Type, e.Seq)
	return err
}
