package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
)

// load measures Replay with Merge of an order with n events, and Tx.Load of the same with a snapshot: at the last event,
// and as far back as it is in the middle between two. The limit drains the rows of the order by seq through
// pgx, the five columns that any fold needs, and does nothing with them.
func (b *bench) load(ctx context.Context, n int) error {
	d, c, err := b.open(ctx, 1)
	if err != nil {
		return err
	}
	defer c.Close()
	var events []rea.EventType
	for seq := int64(1); seq <= 4; seq++ {
		events = append(events, rea.EventType{Name: kindOf(seq), Fold: rea.Merge})
	}
	catalog, err := rea.NewCatalog(rea.Type{Name: orderType, SnapshotEvery: 1, FoldVersion: 1, Events: events})
	if err != nil {
		return err
	}
	// No snapshot is stored while the time runs.
	archive, err := postgres.New(c.Pool, postgres.Config{Config: rea.Config{Catalog: catalog, NoSnapshots: true}})
	if err != nil {
		return err
	}
	ref, err := ordered(ctx, d, archive, n, 0)
	if err != nil {
		return err
	}
	limit := closedLoop("draining the rows", 1, c.pids, func(ctx context.Context, _ int) (int, error) {
		return drain(ctx, c, ref)
	})
	paths := []contender{closedLoop("load and fold", 1, c.pids, func(ctx context.Context, _ int) (int, error) {
		loaded, err := rea.Replay(ctx, c.archive.Autocommit(), ref, rea.Merge)
		if err != nil {
			return 0, err
		}
		return int(loaded.Seq), nil
	})}
	targets := []target{atMost(1.50)}
	if n < 1_000 { // too few for a snapshot: what it costs to look for one
		if _, err := c.Exec(ctx, `DELETE FROM rea.snapshots`); err != nil {
			return err
		}
		paths = append(paths, closedLoop("load, looking for a snapshot", 1, c.pids, func(ctx context.Context, _ int) (int, error) {
			loaded, err := archive.Autocommit().Load(ctx, ref)
			if err != nil {
				return 0, err
			}
			return int(loaded.Seq), nil
		}))
		targets = append(targets, target{})
	}
	if n >= 1_000 {
		for _, back := range []int{0, 50} {
			name := fmt.Sprintf("load from a snapshot %d events back", back)
			ref, err := ordered(ctx, d, archive, n, back)
			if err != nil {
				return err
			}
			paths = append(paths, closedLoop(name, 1, c.pids, func(ctx context.Context, _ int) (int, error) {
				loaded, err := archive.Autocommit().Load(ctx, ref)
				if err != nil {
					return 0, err
				}
				return int(loaded.Seq), nil
			}))
			targets = append(targets, atMost(map[int]float64{1_000: 0.10, 10_000: 0.02}[n]))
		}
	}
	duels, err := interleave(ctx, b.rounds(), b.slice(), limit, paths...)
	for i := range duels {
		b.addTimes(fmt.Sprintf("%s, %d events", paths[i].name, n), limit.name, duels[i], targets[i])
	}
	return err
}

// ordered makes an order of n events with a snapshot so many events back.
func ordered(ctx context.Context, d *database, archive *postgres.Archive, n, back int) (rea.Ref, error) {
	ref := rea.Ref{Type: orderType, ID: strconv.FormatInt(d.orders.Add(1), 10)}
	events := make([]rea.NewEvent, n)
	for i := range events {
		seq := int64(i) + 1
		events[i] = rea.NewEvent{Type: kindOf(seq), Payload: json.RawMessage(payloadOf(0, seq, i))}
	}
	tx := archive.Autocommit()
	if _, err := tx.Append(ctx, ref, events[:max(n-back, 0)]); err != nil {
		return ref, err
	}
	if _, err := archive.Snapshot(ctx, ref); err != nil {
		return ref, err
	}
	if back > 0 {
		if _, err := tx.Append(ctx, ref, events[n-back:]); err != nil {
			return ref, err
		}
	}
	_, err := archive.CatchUp(ctx)
	return ref, err
}

func drain(ctx context.Context, c *clients, ref rea.Ref) (n int, err error) {
	rows, err := c.Query(ctx, `
SELECT e.seq, e.event_type, e.event_version, e.payload, e.created_at
FROM rea.events e
WHERE e.aggregate_type = $1 AND e.aggregate_id = $2
ORDER BY e.seq`, ref.Type, ref.ID)
	if err != nil {
		return 0, err
	}
	var seq int64
	var kind string
	var version int
	var payload []byte
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&seq, &kind, &version, &payload, &at}, func() error {
		n++
		return nil
	})
	return n, err
}
