package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
)

// page measures History of 5,000 events from a random position on, in one page. The limit reads 5,000 events by id
// from a random one on, the same columns but for the position, through pgx into the same struct.
func (b *bench) page(ctx context.Context) error {
	const size = 5_000
	_, c, err := b.open(ctx, 1)
	if err != nil {
		return err
	}
	defer c.Close()
	archive, err := postgres.New(c.Pool, postgres.Config{Config: rea.Config{PageEvents: size}})
	if err != nil {
		return err
	}
	head, err := archive.CatchUp(ctx)
	if err != nil {
		return err
	}
	from := func() int64 { return rand.Int64N(head - size) }
	exactly := func(n int, err error) (int, error) {
		if err == nil && n != size {
			err = fmt.Errorf("a page of %d events, want %d", n, size)
		}
		return n, err
	}
	limit := closedLoop("events by id", 1, c.pids, func(ctx context.Context, _ int) (int, error) {
		// Ids have holes where positions have none, so the last page would be short.
		events, err := eventsByID(ctx, c, from()/2, size)
		return exactly(len(events), err)
	})
	path := closedLoop("page", 1, c.pids, func(ctx context.Context, _ int) (n int, err error) {
		for _, err = range archive.Autocommit().History(ctx, rea.Filter{After: from() / 2, Limit: size}) {
			if err != nil {
				break
			}
			n++
		}
		return exactly(n, err)
	})
	duels, err := interleave(ctx, b.rounds(), b.slice(), limit, path)
	if err == nil {
		b.addTimes("page of 5,000 by position", limit.name, duels[0], atMost(1.70))
	}
	return err
}

func eventsByID(ctx context.Context, c *clients, after int64, limit int) ([]rea.Event, error) {
	rows, err := c.Query(ctx, `
SELECT e.id, e.aggregate_type, e.aggregate_id, e.seq, e.event_type, e.event_version, e.payload,
       coalesce(e.status, ''), coalesce(e.catalog_version, 0), e.correction, coalesce(e.actor_id, ''), coalesce(e.reason, ''),
       coalesce(e.correlation_id, ''), coalesce(e.idempotency_key, ''), coalesce(e.key_events, 0), e.metadata,
       e.xid::text, e.db_user, e.created_at, e.recorded_at
FROM rea.events e
WHERE e.id > $1
ORDER BY e.id
LIMIT $2`, after, limit)
	if err != nil {
		return nil, err
	}
	var page []rea.Event
	var e rea.Event
	var payload, metadata []byte
	var recorded *time.Time
	_, err = pgx.ForEachRow(rows, []any{
		&e.ID, &e.Aggregate.Type, &e.Aggregate.ID, &e.Seq, &e.Type, &e.Version, &payload,
		&e.Status, &e.CatalogVersion, &e.Correction, &e.Actor, &e.Reason,
		&e.Correlation, &e.Key, &e.KeyEvents, &metadata,
		&e.XID, &e.DBUser, &e.CreatedAt, &recorded,
	}, func() error {
		e.Payload, e.Metadata, e.RecordedAt = payload, metadata, time.Time{}
		if recorded != nil {
			e.RecordedAt = *recorded
		}
		page = append(page, e)
		payload, metadata, recorded = nil, nil, nil
		return nil
	})
	return page, err
}

// addTimes records time and CPU per event of a path over its limit's.
func (b *bench) addTimes(name, limit string, d duel, time target) {
	perEvent := func(s sample) float64 { return s.elapsed.Seconds() * 1e6 / float64(s.events) }
	ratio, band := d.ratio(perEvent)
	b.out.add(name+": time per event", limit+" "+micros(mediansOf(d.first, perEvent)), micros(mediansOf(d.path, perEvent)), ratio, time, band)
	if d.path[0].cpu > 0 {
		ratio, band = d.ratio(sample.cpuPerEvent)
		b.out.add(name+": CPU per event", limit+" "+micros(mediansOf(d.first, sample.cpuPerEvent)),
			micros(mediansOf(d.path, sample.cpuPerEvent)), ratio, target{}, band)
	}
}
