package adopt_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea/adopt"
	"github.com/realtime-event-archive/rea/guard"
)

// wait waits until a query gives true.
func wait(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !query[bool](t, pool, sql) {
		if time.Now().After(deadline) {
			t.Fatalf("never true: %s", sql)
		}
	}
}

const somebodyWaits = `SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE NOT l.granted AND a.datname = current_database() AND a.query LIKE '%WITH locked AS%')`

// A row whose key changes while its chunk waits for it must not move the baseline past the rows between.
func TestBaselineIsNotLedAstrayByAKeyThatChanges(t *testing.T) {
	t.Parallel()
	pool := newPool(t, ordersSQL, `INSERT INTO orders SELECT i, 'placed' FROM generate_series(1, 100) i`)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `UPDATE orders SET id = 1000 WHERE id = 10`); err != nil {
		t.Fatal(err)
	}
	done := make(chan adopt.BaselineResult, 1)
	go func() {
		r, err := tryBaseline(t.Context(), pool, "orders", nil, adopt.BaselineOptions{Batch: 10})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	wait(t, pool, somebodyWaits)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.New != 100 || r.Refused != 0 {
		t.Errorf("result: %+v, want 100 new", r)
	}
	if n := query[int](t, pool, `SELECT count(*) FROM orders o WHERE NOT EXISTS (SELECT FROM rea.events e WHERE e.aggregate_id = o.id::text)`); n != 0 {
		t.Errorf("%d rows have no event", n)
	}
}

// While somebody holds one row for long, the baseline holds no other one.
func TestBaselineWaitsForALockedRowWithoutLocksOfItsOwn(t *testing.T) {
	t.Parallel()
	pool := newPool(t, ordersSQL, `INSERT INTO orders SELECT i, 'placed' FROM generate_series(1, 100) i`)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `UPDATE orders SET total = 1 WHERE id = 50`); err != nil {
		t.Fatal(err)
	}
	done := make(chan adopt.BaselineResult, 1)
	go func() {
		r, err := tryBaseline(t.Context(), pool, "orders", nil, adopt.BaselineOptions{})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	wait(t, pool, `SELECT coalesce((SELECT last_key ->> 0 = '49' FROM rea.baselines), false)`)
	wait(t, pool, somebodyWaits)
	run(t, pool, `UPDATE orders SET total = 2 WHERE id <> 50`) // nobody is in the way
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.New != 100 {
		t.Errorf("result: %+v, want 100 new", r)
	}
	if total := query[string](t, pool, `SELECT payload #>> '{row,total}' FROM rea.events WHERE aggregate_id = '50'`); total != "1.00" {
		t.Errorf("the total of order/50 is %s, want that of whoever held it", total)
	}
}

func TestBaselineNeedsTheRightsAndSeesEveryRow(t *testing.T) {
	t.Parallel()
	pool := newPool(t, ordersSQL, `INSERT INTO orders SELECT i, 'placed' FROM generate_series(1, 10) i`, `
DO $$ DECLARE name text := 'clerk_' || (SELECT oid FROM pg_database WHERE datname = current_database()); BEGIN
    EXECUTE format('CREATE ROLE %I LOGIN', name);
    EXECUTE format('GRANT %I TO %I', (SELECT role_name FROM rea.roles WHERE kind = 'operator'), name);
    EXECUTE format('GRANT USAGE ON SCHEMA public TO %I', name);
END $$`)
	clerk := query[string](t, pool, `SELECT 'clerk_' || oid FROM pg_database WHERE datname = current_database()`)
	t.Cleanup(func() {
		_, _ = pool.Exec(context.Background(), `DROP OWNED BY `+clerk)
		_, _ = pool.Exec(context.Background(), `DROP ROLE `+clerk)
	})
	config := pool.Config().Copy()
	config.ConnConfig.RuntimeParams["role"] = clerk
	other, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := tryBaseline(t.Context(), other, "orders", nil, adopt.BaselineOptions{}); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("without rights on the table: %v", err)
	}
	run(t, pool, `GRANT SELECT, UPDATE ON orders TO `+clerk, `ALTER TABLE orders ENABLE ROW LEVEL SECURITY`, `CREATE POLICY half ON orders USING (id > 5)`)
	if _, err := tryBaseline(t.Context(), other, "orders", nil, adopt.BaselineOptions{}); err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("with hidden rows: %v", err)
	}
	run(t, pool, `ALTER TABLE orders DISABLE ROW LEVEL SECURITY`)
	if r := baseline(t, other, "orders", nil, adopt.BaselineOptions{}); r.New != 10 {
		t.Errorf("result: %+v, want 10 new", r)
	}
	if role := query[string](t, pool, `SELECT DISTINCT role FROM rea.contexts`); role != clerk {
		t.Errorf("the context has role %s, want %s", role, clerk)
	}
	if _, err := other.Exec(t.Context(), `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, context_id) VALUES ('a', 'b', 'C', 1)`); err == nil {
		t.Error("an operator may name context_id")
	}
}

func TestBaselineInRefuseModeNamesTheLastEvent(t *testing.T) {
	t.Parallel()
	pool := newPool(t, ordersSQL, `ALTER TABLE orders ADD rea_seq bigint`, `INSERT INTO orders SELECT i, 'placed' FROM generate_series(1, 30) i`,
		`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ('order', '3', 'OrderPlaced'), ('order', '3', 'PaymentReceived')`)
	guardOrders(t, pool, guard.Settings{Mode: guard.Refuse, Status: "status"})
	run(t, pool, `
CREATE FUNCTION public.touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.total := coalesce(NEW.total, 0) + 1; RETURN NEW; END $$`,
		`CREATE TRIGGER touch BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION public.touch()`)
	if r := baseline(t, pool, "orders", nil, adopt.BaselineOptions{Batch: 7}); r.New != 29 || r.Skipped != 1 {
		t.Errorf("result: %+v, want 29 new", r)
	}
	if n := query[int](t, pool, `
SELECT count(*) FROM orders o LEFT JOIN rea.events e ON e.aggregate_id = o.id::text AND e.aggregate_type = 'order' AND e.seq = 1
WHERE o.rea_seq IS DISTINCT FROM CASE o.id WHEN 3 THEN 2 ELSE 1 END
   OR o.id <> 3 AND (e.payload #>> '{row,total}' <> o.total::text OR e.payload -> 'row' ? 'rea_seq' OR e.status IS DISTINCT FROM 'placed')`); n != 0 {
		t.Errorf("%d rows are not what their events say", n)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE orders SET status = 'paid'`); err == nil {
		t.Error("a change without an event is not refused")
	}
}
