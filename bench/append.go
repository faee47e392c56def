package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
)

const rawInsert = `
INSERT INTO article.events (aggregate_type, aggregate_id, event_type, seq, payload, actor_id)
VALUES ($1, $2, $3, $4, $5, $6)`

const sqlAppend = `
SELECT id, seq, status, duplicate FROM rea.append($1, $2::text, $3, $4, expect => $5, actor => $6)`

// appends measures one append a transaction, by n clients in a closed loop. The limit is a raw INSERT of the same event
// into the article's table, by the same pool, with the seq that the client has computed. REA's paths expect that seq,
// so they check what the limit only hopes; one of them carries an idempotency key, which the limit has no match for.
// The second half does the same between the user's own BEGIN and COMMIT: three round trips on either side.
func (b *bench) appends(ctx context.Context, n int) error {
	d, c, err := b.open(ctx, n)
	if err != nil {
		return err
	}
	defer c.Close()

	raw, own := newFlows(&d.rows, n), newFlows(&d.orders, n)
	loop := func(name string, op operation) contender { return closedLoop(name, n, c.pids, op) }
	limit := loop("raw INSERT", func(ctx context.Context, worker int) (int, error) {
		return 1, insertRaw(ctx, c, raw[worker].next())
	})
	through := func(flows []*flow, options ...rea.Option) operation {
		return func(ctx context.Context, worker int) (int, error) {
			return 1, appendGo(ctx, c.archive.Autocommit(), flows[worker].next(), options...)
		}
	}
	paths := []contender{
		loop("Go", through(own)),
		loop("rea.append", func(ctx context.Context, worker int) (int, error) {
			return 1, appendSQL(ctx, c, own[worker].next())
		}),
		loop("Go with a key", func(ctx context.Context, worker int) (int, error) {
			e := own[worker].next()
			return 1, appendGo(ctx, c.archive.Autocommit(), e, rea.Once("req-"+e.id()+"-"+strconv.FormatInt(e.seq, 10)))
		}),
	}
	duels, err := interleave(ctx, b.rounds(), b.slice(), limit, paths...)
	if err != nil {
		return err
	}
	for i, path := range paths {
		throughput, cpu := atLeast(0.90), atMost(1.35)
		if i == 2 {
			throughput, cpu = target{}, target{}
		}
		b.out.addDuel(fmt.Sprintf("append %s, %s", path.name, many(n, "client")), limit.name, duels[i], throughput, cpu)
	}
	return b.appendsInTransactions(ctx, n, c, loop, raw, own)
}

func (b *bench) appendsInTransactions(ctx context.Context, n int, c *clients, loop func(string, operation) contender, raw, own []*flow) error {
	limit := loop("BEGIN, INSERT, COMMIT", func(ctx context.Context, worker int) (int, error) {
		return 1, pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return insertRaw(ctx, tx, raw[worker].next()) })
	})
	path := loop("BEGIN, Go, COMMIT", func(ctx context.Context, worker int) (int, error) {
		return 1, pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return appendGo(ctx, c.archive.Tx(tx), own[worker].next()) })
	})
	duels, err := interleave(ctx, b.rounds(), b.slice(), limit, path)
	if err == nil {
		b.out.addDuel(fmt.Sprintf("append %s, %s", path.name, many(n, "client")), limit.name, duels[0], atLeast(0.90), atMost(1.35))
	}
	return err
}

func insertRaw(ctx context.Context, db postgres.Pgx, e fact) error {
	_, err := db.Exec(ctx, rawInsert, orderType, e.aggregate, e.kind, e.seq, e.payload, actor)
	return err
}

func appendGo(ctx context.Context, tx *rea.Tx, e fact, options ...rea.Option) error {
	options = append(options, rea.Expect(e.seq-1), rea.By(strconv.Itoa(actor)))
	receipt, err := tx.With(options...).Append(ctx, rea.Ref{Type: orderType, ID: e.id()},
		rea.NewEvent{Type: e.kind, Payload: json.RawMessage(e.payload)})
	if err == nil && receipt.Seq() != e.seq {
		err = fmt.Errorf("order %d got seq %d, want %d", e.aggregate, receipt.Seq(), e.seq)
	}
	return err
}

func appendSQL(ctx context.Context, db postgres.Pgx, e fact) error {
	rows, err := db.Query(ctx, sqlAppend, orderType, e.id(), e.kind, e.payload, e.seq-1, strconv.Itoa(actor))
	if err != nil {
		return err
	}
	var id, seq int64
	var status *string
	var duplicate bool
	_, err = pgx.ForEachRow(rows, []any{&id, &seq, &status, &duplicate}, func() error { return nil })
	return err
}
