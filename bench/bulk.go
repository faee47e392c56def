package main

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
)

// leanColumns are what COPY writes; created_at only where the path gives it too.
var leanColumns = []string{"aggregate_type", "aggregate_id", "event_type", "seq", "payload", "actor_id", "created_at"}

// batch measures one append of 1,000 events of one order through Go, one transaction each, by one client. The limit
// is a COPY (binary, pgx.CopyFrom) of the same 1,000 rows into the lean table, one transaction each.
func (b *bench) batch(ctx context.Context) error {
	const size = 1_000
	d, c, err := b.open(ctx, 1)
	if err != nil {
		return err
	}
	defer c.Close()

	facts := make([]fact, size)
	for i := range facts {
		seq := int64(i) + 1
		facts[i] = fact{seq: seq, kind: kindOf(seq), payload: payloadOf(0, seq, i)}
	}
	limit := closedLoop("COPY", 1, c.pids, func(ctx context.Context, _ int) (int, error) {
		return size, copyFacts(ctx, c, facts, d.rows.Add(1), time.Time{})
	})
	path := closedLoop("batch", 1, c.pids, func(ctx context.Context, _ int) (int, error) {
		events := make([]rea.NewEvent, size)
		for i, e := range facts {
			events[i] = rea.NewEvent{Type: e.kind, Payload: json.RawMessage(e.payload)}
		}
		ref := rea.Ref{Type: orderType, ID: strconv.FormatInt(d.orders.Add(1), 10)}
		_, err := c.archive.Autocommit().With(rea.Expect(0), rea.By(strconv.Itoa(actor))).Append(ctx, ref, events)
		return size, err
	})
	duels, err := interleave(ctx, b.rounds(), b.slice(), limit, path)
	if err == nil {
		b.out.addDuel("batch of 1,000 through Go", limit.name, duels[0], atLeast(0.35), target{})
	}
	return err
}

// imports measures an import: batches of 5,000 lines of many orders with created_at and without seq, each
// checked, stored and committed. The limit is a COPY of the same rows, seqs computed, into the lean table.
func (b *bench) imports(ctx context.Context) error {
	const size = 5_000
	d, c, err := b.open(ctx, 1)
	if err != nil {
		return err
	}
	defer c.Close()

	facts := someFacts(size)
	limit := closedLoop("COPY", 1, c.pids, func(ctx context.Context, _ int) (int, error) {
		return size, copyFacts(ctx, c, facts, d.rows.Add(size)-size, anHourAgo())
	})
	path := closedLoop("import", 1, c.pids, func(ctx context.Context, _ int) (int, error) {
		return size, importAll(ctx, c, importLines(facts, d.orders.Add(size)-size))
	})
	duels, err := interleave(ctx, b.rounds(), b.slice(), limit, path)
	if err == nil {
		b.out.addDuel("import, batches of 5,000", limit.name, duels[0], atLeast(0.35), target{})
	}
	return err
}

// copyFacts copies events of orders from base on into the lean table; at of zero: created_at is the table's default.
func copyFacts(ctx context.Context, c *clients, facts []fact, base int64, at time.Time) error {
	columns := leanColumns
	if at.IsZero() {
		columns = columns[:len(columns)-1]
	}
	_, err := c.CopyFrom(ctx, pgx.Identifier{"lean", "events"}, columns, pgx.CopyFromSlice(len(facts), func(i int) ([]any, error) {
		e := facts[i]
		row := []any{orderType, base + e.aggregate, e.kind, e.seq, e.payload, int64(actor)}
		if !at.IsZero() {
			row = append(row, at.Add(time.Duration(i)*time.Microsecond))
		}
		return row, nil
	}))
	return err
}

func anHourAgo() time.Time { return time.Now().UTC().Truncate(time.Microsecond).Add(-time.Hour) }
