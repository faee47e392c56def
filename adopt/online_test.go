package adopt_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea/adopt"
	"github.com/realtime-event-archive/rea/guard"
)

// onlineRows is the size of the table that is changed while its baseline is taken; REA_CHAOS=long: 100,000.
func onlineRows() int {
	if os.Getenv("REA_CHAOS") == "long" {
		return 100_000
	}
	return 20_000
}

// TestBaselineWhileTheTableChanges: no statement of the application's waits longer than a chunk takes, and in the end the
// events say what the table holds, row by row.
func TestBaselineWhileTheTableChanges(t *testing.T) {
	t.Parallel()
	n := onlineRows()
	pool := newPool(t, ordersSQL, fmt.Sprintf(`INSERT INTO orders SELECT i, 'placed', i, now() FROM generate_series(1, %d) i`, n), `ANALYZE orders`)
	guardOrders(t, pool, guard.Settings{Status: "status"})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var work sync.WaitGroup
	var changes atomic.Int64
	const workers = 40
	for range workers { // 500 changes a second together
		work.Go(func() { change(ctx, t, pool, n, workers*time.Second/500, &changes) })
	}
	var waited time.Duration
	work.Go(func() { waited = longestWait(ctx, t, pool) })

	var longest time.Duration
	began := time.Now()
	last := began
	r := baseline(t, pool, "orders", nil, adopt.BaselineOptions{Batch: 2_000, Progress: func(adopt.BaselineProgress) {
		longest, last = max(longest, time.Since(last)), time.Now()
	}})
	took := time.Since(began)
	stop()
	work.Wait()
	if r.New == 0 || r.Refused > 0 || changes.Load() == 0 {
		t.Errorf("result: %+v with %d changes", r, changes.Load())
	}
	t.Logf("%d rows in %v, %d changes; the longest chunk took %v, the longest wait of a statement %v", n, took, changes.Load(), longest, waited)
	if waited > longest {
		t.Errorf("a statement waited %v, longer than the longest chunk, %v", waited, longest)
	}
	wantNoDifference(t, pool, "orders")
}

// change changes a row each time, until ctx ends. A statement that has begun is waited for: the server might commit it later.
func change(ctx context.Context, t *testing.T, pool *pgxpool.Pool, n int, each time.Duration, changes *atomic.Int64) {
	whole := context.WithoutCancel(ctx)
	tick := time.NewTicker(each)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		id := rand.IntN(n) + 1
		var err error
		switch rand.IntN(10) {
		case 0:
			_, err = pool.Exec(whole, `DELETE FROM orders WHERE id = $1`, id)
		case 1:
			_, err = pool.Exec(whole, `INSERT INTO orders VALUES ($1, 'new', 0, now()) ON CONFLICT (id) DO UPDATE SET total = orders.total + 1`, rand.IntN(2*n)+1)
		case 2:
			_, err = pool.Exec(whole, `UPDATE orders SET status = 'late' WHERE id BETWEEN $1 AND $1 + 20`, id)
		default:
			_, err = pool.Exec(whole, `UPDATE orders SET total = total + 1, status = 'paid' WHERE id = $1`, id)
		}
		if err != nil {
			t.Errorf("a change: %v", err)
			return
		}
		changes.Add(1)
	}
}

// longestWait looks every 10 ms who waits for a lock, and gives the longest time that somebody of the application's did.
func longestWait(ctx context.Context, t *testing.T, pool *pgxpool.Pool) (longest time.Duration) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return longest
		case <-tick.C:
		}
		var waits *time.Duration
		err := pool.QueryRow(ctx, `
SELECT max(clock_timestamp() - l.waitstart) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE NOT l.granted AND a.datname = current_database() AND a.wait_event_type = 'Lock' AND a.query NOT LIKE '%WITH locked AS%'`).Scan(&waits)
		if err != nil && ctx.Err() == nil {
			t.Errorf("look who waits: %v", err)
			return longest
		}
		if waits != nil {
			longest = max(longest, *waits)
		}
	}
}

// wantNoDifference checks that the events say what the table holds.
func wantNoDifference(t *testing.T, pool *pgxpool.Pool, table string) {
	t.Helper()
	described, err := adopt.Describe(t.Context(), pool, table, nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	result, err := adopt.Check(t.Context(), pool, described, adopt.CheckOptions{Type: "order", Report: func(d adopt.Difference) {
		if shown++; shown < 10 {
			t.Errorf("%s: %s at seq %d: %+v", d.Aggregate, d.Kind, d.Seq, d.Columns)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if result.Found() || result.Rows != query[int64](t, pool, "SELECT count(*) FROM "+table) {
		t.Errorf("check: %+v", result)
	}
}
