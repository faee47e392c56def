package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/catalog"
	"github.com/realtime-event-archive/rea/postgres"
)

const keptType = "kept"

const keptCatalog = `rea: 1
aggregates:
  kept:
    status: status
    events:
      OrderPlaced:     {from: [none], to: placed, set: {total_amount: $.total_amount, placed_at: "@created_at"}}
      PaymentReceived: {from: [placed], to: paid, set: {paid_at: "@created_at"}}
      OrderShipped:    {from: [paid], to: shipped, set: {shipped_at: "@created_at"}}
      NoteAdded:       {from: any, set: {note: $.text}}
projections:
  kept_state: {of: kept, mode: inline, columns: {status: text, total_amount: numeric, placed_at: timestamptz, shipped_at: timestamptz}}
`

// rowTable is what the application would keep by itself.
const rowTable = `
CREATE TABLE IF NOT EXISTS article.order_projection ( order_id BIGINT PRIMARY KEY, status TEXT NOT NULL, total_amount NUMERIC, placed_at TIMESTAMPTZ, shipped_at TIMESTAMPTZ, updated_at TIMESTAMPTZ NOT NULL )`

const (
	insertRow = `INSERT INTO article.order_projection VALUES ($1, $2, 9980, now(), NULL, now())`
	updateRow = `UPDATE article.order_projection SET status = $2, shipped_at = now(), updated_at = now() WHERE order_id = $1`
)

// inline measures an append that keeps an inline projection, in one transaction. The limit keeps the row alone: an UPDATE
// by its key for each event, an INSERT for the first. The second half does the same between the user's own BEGIN and COMMIT.
func (b *bench) inline(ctx context.Context, n int) error {
	d, c, err := b.open(ctx, n)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := d.filler.Exec(ctx, rowTable); err != nil {
		return err
	}
	declared, err := catalog.Parse("rea.yaml", []byte(keptCatalog))
	if err != nil {
		return err
	}
	applying, err := postgres.New(d.filler.Pool, postgres.Config{Config: rea.Config{Catalog: declared}})
	if err != nil {
		return err
	}
	if _, err := applying.Apply(ctx); err != nil {
		return err
	}
	raw, own := newFlows(&d.rows, n), newFlows(&d.orders, n)
	loop := func(name string, op operation) contender { return closedLoop(name, n, c.pids, op) }
	duel := func(limit, path contender, one, more float64) error {
		duels, err := interleave(ctx, b.rounds(), b.slice(), limit, path)
		if err == nil {
			goal := one
			if n > 1 {
				goal = more
			}
			b.out.addDuel(fmt.Sprintf("%s, %s", path.name, many(n, "client")), limit.name, duels[0], atLeast(goal), target{})
		}
		return err
	}
	err = duel(loop("UPDATE of the row", func(ctx context.Context, worker int) (int, error) {
		return 1, keepRow(ctx, c, raw[worker].next())
	}), loop("append + inline", func(ctx context.Context, worker int) (int, error) {
		return 1, appendKept(ctx, c.archive.Autocommit(), own[worker].next())
	}), 0.80, 0.55)
	if err != nil {
		return err
	}
	return duel(loop("BEGIN, UPDATE, COMMIT", func(ctx context.Context, worker int) (int, error) {
		return 1, pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return keepRow(ctx, tx, raw[worker].next()) })
	}), loop("BEGIN, append + inline, COMMIT", func(ctx context.Context, worker int) (int, error) {
		return 1, pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return appendKept(ctx, c.archive.Tx(tx), own[worker].next()) })
	}), 0.75, 0.65)
}

func keepRow(ctx context.Context, db postgres.Pgx, e fact) error {
	query := updateRow
	if e.seq == 1 {
		query = insertRow
	}
	tag, err := db.Exec(ctx, query, e.aggregate, e.kind)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("order %d has no row", e.aggregate)
	}
	return err
}

func appendKept(ctx context.Context, tx *rea.Tx, e fact) error {
	receipt, err := tx.With(rea.Expect(e.seq-1), rea.By(strconv.Itoa(actor))).Append(ctx, rea.Ref{Type: keptType, ID: e.id()},
		rea.NewEvent{Type: e.kind, Payload: json.RawMessage(e.payload)})
	if err == nil && receipt.Status() == "" {
		err = fmt.Errorf("order %d has no status", e.aggregate)
	}
	return err
}
