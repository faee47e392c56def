package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/guard"
)

// guardedRows is how many rows a guarded table has, and a bulk UPDATE changes.
const guardedRows = 100_000

// guardTables are a table of the application's, three times: as it was, captured, and refusing.
const guardTables = `
CREATE SCHEMA shop;
CREATE TABLE shop.plain ( id bigint PRIMARY KEY, customer_id bigint NOT NULL, status text NOT NULL, amount numeric NOT NULL, currency text NOT NULL, note text, created_at timestamptz NOT NULL, updated_at timestamptz, rea_seq bigint );
CREATE INDEX ON shop.plain (status);
CREATE INDEX ON shop.plain (customer_id, created_at);
CREATE TABLE shop.captured (LIKE shop.plain INCLUDING ALL);
CREATE TABLE shop.refusing (LIKE shop.plain INCLUDING ALL);
INSERT INTO shop.plain SELECT n, n %% 977, 'placed', n * 1.01, 'EUR', 'note ' || n, now(), now(), 0 FROM generate_series(1, %d) n;
INSERT INTO shop.captured SELECT * FROM shop.plain;
INSERT INTO shop.refusing SELECT * FROM shop.plain;
UPDATE shop.refusing SET rea_seq = 1`

// refusingBaseline lets the program append to the objects that the rows are.
const refusingBaseline = `
INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, payload, context_id)
SELECT 'refusing', r.id::text, 'BaselineCreated', jsonb_build_object('row', to_jsonb(r) - 'rea_seq'), 1 FROM shop.refusing r`

// guarded measures what a guard costs: an UPDATE of one column of 100,000 rows, and UPDATEs of one row each, against the same on a table that
// nobody guards. The archive is empty and vacuumed when it begins. What a refused row needs, an event of its own, another connection appends,
// or the transaction itself on both sides: the guard alone is measured.
func (b *bench) guarded(ctx context.Context) error {
	d, err := b.newDatabase(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	if _, err := d.filler.Exec(ctx, fmt.Sprintf(guardTables, guardedRows), pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	if _, err := d.filler.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return err
	}
	for table, mode := range map[string]guard.Mode{"captured": guard.Capture, "refusing": guard.Refuse} {
		if _, err := guard.Add(ctx, d.filler.Pool, "shop."+table, guard.Settings{Type: table, Status: "status", Mode: mode}, guard.By{}); err != nil {
			return err
		}
	}
	if _, err := d.filler.Exec(ctx, refusingBaseline); err != nil {
		return err
	}
	if err := b.guardedBulk(ctx, d); err != nil {
		return err
	}
	for _, n := range []int{1, 32} {
		if err := b.guardedSingle(ctx, d, n); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) guardedBulk(ctx context.Context, d *database) error {
	c, err := b.server.connect(ctx, d.name, 1)
	if err != nil {
		return err
	}
	defer c.Close()
	var turn atomic.Int64
	update := func(table string) contender {
		return contender{table, func(ctx context.Context, _ time.Duration) (sample, error) {
			if _, err := d.filler.Exec(ctx, "VACUUM shop."+table); err != nil {
				return sample{}, err
			}
			if table == "refusing" {
				if _, err := d.filler.Exec(ctx, `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) SELECT 'refusing', r.id::text, 'StatusChanged' FROM shop.refusing r`); err != nil {
					return sample{}, err
				}
			}
			return once(c.pids, func() error {
				_, err := c.Exec(ctx, "UPDATE shop."+table+" SET status = $1, rea_seq = rea_seq + 1", fmt.Sprint("s", turn.Add(1)))
				return err
			})
		}}
	}
	duels, err := interleave(ctx, b.rounds(), b.slice(), update("plain"), update("captured"), update("refusing"))
	if err != nil {
		return err
	}
	b.out.addDuel("guard: UPDATE of 100,000 rows, captured", "unguarded", duels[0], target{}, atMost(3.3))
	b.out.addDuel("guard: UPDATE of 100,000 rows, not refused", "unguarded", duels[1], target{}, atMost(1.9))
	return nil
}

// once measures one run.
func once(pids []uint32, run func() error) (sample, error) {
	before, err := cpuOf(pids)
	if err != nil {
		return sample{}, err
	}
	start := time.Now()
	if err := run(); err != nil {
		return sample{}, err
	}
	s := sample{events: guardedRows, elapsed: time.Since(start)}
	after, err := cpuOf(pids)
	s.cpu = after - before
	return s, err
}

func (b *bench) guardedSingle(ctx context.Context, d *database, n int) error {
	c, err := b.server.connect(ctx, d.name, n)
	if err != nil {
		return err
	}
	defer c.Close()
	var turn atomic.Int64
	single := func(table string) contender {
		return closedLoop(table, n, c.pids, func(ctx context.Context, _ int) (int, error) {
			_, err := c.Exec(ctx, "UPDATE shop."+table+" SET status = $1 WHERE id = $2", fmt.Sprint("t", turn.Add(1)), rand.Int64N(guardedRows)+1)
			return 1, err
		})
	}
	duels, err := interleave(ctx, b.rounds(), b.slice(), single("plain"), single("captured"))
	if err != nil {
		return err
	}
	floor := 0.65
	if n > 1 {
		floor = 0.40
	}
	b.out.addDuel(fmt.Sprintf("guard: UPDATE of 1 row, captured, %d clients", n), "unguarded", duels[0], atLeast(floor), target{})

	// each client has rows of its own: an event and its row are one transaction
	var next atomic.Int64
	appended := func(table string) contender {
		return closedLoop(table, n, c.pids, func(ctx context.Context, worker int) (int, error) {
			id := int64(worker) + int64(n)*(next.Add(1)%(guardedRows/int64(n))) + 1
			if id > guardedRows {
				id = int64(worker) + 1
			}
			return 1, pgx.BeginFunc(ctx, c.Pool, func(tx pgx.Tx) error {
				var seq int64
				if err := tx.QueryRow(ctx, `SELECT seq FROM rea.append('`+table+`', $1::text, 'StatusChanged')`, fmt.Sprint(id)).Scan(&seq); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, "UPDATE shop."+table+" SET status = $1, rea_seq = $2 WHERE id = $3", fmt.Sprint("u", seq), seq, id)
				return err
			})
		})
	}
	if duels, err = interleave(ctx, b.rounds(), b.slice(), appended("plain"), appended("refusing")); err != nil {
		return err
	}
	b.out.addDuel(fmt.Sprintf("guard: append and UPDATE of 1 row, not refused, %d clients", n), "unguarded", duels[0], target{}, target{})
	return nil
}
