package guard_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/guard"
)

// family are tables whose foreign keys cascade in each way that there is, along two paths to one row.
const family = `CREATE TABLE shops (id int PRIMARY KEY, name text);
CREATE TABLE customers (id int PRIMARY KEY, shop int DEFAULT 0 REFERENCES shops ON DELETE SET DEFAULT ON UPDATE CASCADE, name text);
CREATE TABLE orders (id int PRIMARY KEY, customer int REFERENCES customers ON DELETE CASCADE ON UPDATE CASCADE, shop int REFERENCES shops ON DELETE SET NULL ON UPDATE SET NULL, n int DEFAULT 0);
CREATE TABLE lines (order_id int REFERENCES orders ON DELETE CASCADE ON UPDATE CASCADE, line int, n int DEFAULT 0, PRIMARY KEY (order_id, line));
INSERT INTO shops SELECT n, 'shop' FROM generate_series(0, 9) n;
INSERT INTO customers SELECT n, n % 10, 'customer' FROM generate_series(1, 40) n;
INSERT INTO orders SELECT n, 1 + n % 40, n % 10 FROM generate_series(1, 200) n;
INSERT INTO lines SELECT n, k FROM generate_series(1, 200) n, generate_series(1, 3) k`

// cascading is a statement of a writer.
func cascading(r *rand.Rand) string {
	shop, customer, order := 1+r.IntN(9), 1+r.IntN(40), 1+r.IntN(200)
	statements := []string{
		fmt.Sprintf(`DELETE FROM shops WHERE id = %d`, shop),
		fmt.Sprintf(`INSERT INTO shops VALUES (%d, 'again') ON CONFLICT (id) DO UPDATE SET name = shops.name || '!'`, shop),
		fmt.Sprintf(`UPDATE shops SET id = %d WHERE id = %d`, 100+r.IntN(20), shop),
		fmt.Sprintf(`UPDATE shops SET id = %d WHERE id > 99`, shop),
		fmt.Sprintf(`DELETE FROM customers WHERE id = %d`, customer),
		fmt.Sprintf(`INSERT INTO customers VALUES (%d, %d, 'again') ON CONFLICT (id) DO UPDATE SET shop = excluded.shop`, customer, shop),
		fmt.Sprintf(`UPDATE customers SET id = %d WHERE id = %d`, 1000+r.IntN(1000), customer),
		fmt.Sprintf(`INSERT INTO orders VALUES (%d, %d, %d) ON CONFLICT (id) DO UPDATE SET n = orders.n + 1`, order, customer, shop),
		fmt.Sprintf(`INSERT INTO lines SELECT %d, k FROM generate_series(1, 5) k ON CONFLICT DO NOTHING`, order),
		fmt.Sprintf(`UPDATE lines SET n = n + 1 WHERE order_id BETWEEN %d AND %d`, order, order+20),
		`INSERT INTO customers SELECT n, NULL, 'again' FROM generate_series(1, 40) n ON CONFLICT DO NOTHING`,
		fmt.Sprintf(`DELETE FROM orders WHERE id BETWEEN %d AND %d`, order, order+2),
		fmt.Sprintf(`SELECT rea.append('order', o.id, 'NoteAdded') FROM (SELECT id FROM orders WHERE id BETWEEN %d AND %d FOR KEY SHARE) o`, order, order+5),
		fmt.Sprintf(`BEGIN; UPDATE orders SET n = n + 1 WHERE customer = %d; SAVEPOINT a; DELETE FROM customers WHERE id = %[1]d; ROLLBACK TO a; UPDATE orders SET shop = %d WHERE id = %d; COMMIT`, customer, shop, order),
	}
	return statements[r.IntN(len(statements))]
}

func TestCascadesOfEightWritersThatAreKilledLeaveHistoriesThatFoldToTheTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seeds := seeded(t)
	w.do(family)
	tables := []guarded{{"shops", "shop"}, {"customers", "customer"}, {"orders", "order"}, {"lines", "line"}}
	for _, g := range tables {
		w.add(g.table, guard.Settings{Type: g.kind})
		w.baseline(g.table, g.kind)
	}
	const writers, statements = 8, 60
	var work sync.WaitGroup
	pids := make([]uint32, writers) // each is its writer's until work is done but for the killer's look
	var lock sync.Mutex
	finished := 0
	for n := range writers {
		r := rand.New(rand.NewPCG(seeds.Uint64(), 1))
		work.Go(func() {
			var conn *pgx.Conn
			defer func() {
				if conn != nil {
					_ = conn.Close(context.Background())
				}
				lock.Lock()
				defer lock.Unlock()
				finished++
			}()
			for range statements {
				if conn == nil || conn.IsClosed() {
					var err error
					if conn, err = pgx.Connect(t.Context(), w.url); err != nil {
						t.Error(err)
						return
					}
					lock.Lock()
					pids[n] = conn.PgConn().PID()
					lock.Unlock()
				}
				sql := cascading(r)
				_, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
				if err == nil {
					continue
				}
				// what constraints refuse, deadlocks, and the killer's
				if state := sqlState(err); !strings.HasPrefix(state, "23") && !slices.Contains([]string{"40P01", "57P01", "40001"}, state) && !conn.IsClosed() {
					t.Errorf("%s: %v", sql, err)
				}
				if !conn.IsClosed() {
					_, _ = conn.Exec(t.Context(), `ROLLBACK`)
				}
			}
		})
	}
	kills := 0
	for done := false; !done; {
		lock.Lock()
		pid := pids[seeds.IntN(writers)]
		done = finished == writers
		lock.Unlock()
		if seeds.IntN(20) > 0 { // a look, as long as others work
			w.one(`SELECT count(*) FROM rea.events`)
		} else if w.one(`SELECT coalesce((SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND state = 'active' AND query NOT LIKE 'ROLLBACK%'), false)`, int32(pid)) == "true" {
			kills++
		}
	}
	work.Wait()
	w.do(`INSERT INTO customers VALUES (1) ON CONFLICT DO NOTHING; INSERT INTO orders VALUES (1, 1) ON CONFLICT DO NOTHING; INSERT INTO lines VALUES (1, 1) ON CONFLICT DO NOTHING`)
	for _, g := range tables {
		w.sameAsTable(g.table, g.kind)
	}
	w.want("0 0", `SELECT count(*) FILTER (WHERE x.seq <> x.n) || ' ' || count(*) FILTER (WHERE x.id < x.before) FROM (
		SELECT e.seq, e.id, row_number() OVER a AS n, lag(e.id) OVER a AS before FROM rea.events e WINDOW a AS (PARTITION BY e.aggregate_type, e.aggregate_id ORDER BY e.seq)) x`)
	t.Logf("%d backends killed, %s statements captured", kills, w.one(`SELECT count(*) FROM rea.contexts WHERE operation IN ('INSERT', 'UPDATE', 'DELETE')`))
	if kills == 0 {
		t.Error("nobody was killed")
	}
}
