package guard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/adopt"
	"github.com/realtime-event-archive/rea/guard"
	"github.com/realtime-event-archive/rea/postgres"
)

// legacy is a small schema with an integer, a text and a composite key, for where the sample database is not there. Its names are those
// of the sample's.
const legacy = `
CREATE TABLE customers (customer_id varchar(5) PRIMARY KEY, company_name varchar(40) NOT NULL, city varchar(15), phone varchar(24));
CREATE TABLE products (product_id smallint PRIMARY KEY, product_name varchar(40) NOT NULL, unit_price real, units_in_stock smallint, discontinued integer NOT NULL);
CREATE TABLE orders (order_id smallint PRIMARY KEY, customer_id varchar(5) REFERENCES customers, order_date date, freight real, ship_city varchar(15));
CREATE TABLE order_details (order_id smallint NOT NULL REFERENCES orders, product_id smallint NOT NULL REFERENCES products, unit_price real NOT NULL,
    quantity smallint NOT NULL, discount real NOT NULL, PRIMARY KEY (order_id, product_id));
INSERT INTO customers SELECT 'C' || n, 'Company ' || n, CASE WHEN n % 3 = 0 THEN NULL ELSE 'City/' || n END, NULL FROM generate_series(1, 40) n;
INSERT INTO products SELECT n, 'Product ' || n, n * 1.25, n, n % 2 FROM generate_series(1, 60) n;
INSERT INTO orders SELECT 10247 + n, 'C' || 1 + n % 40, date '1997-01-01' + n, n / 8.0, 'Here' FROM generate_series(1, 300) n;
INSERT INTO order_details SELECT 10247 + n, 1 + (n * k) % 60, 9.5, k, 0.05 FROM generate_series(1, 300) n, generate_series(1, 3) k ON CONFLICT DO NOTHING;
`

// Cascades, so that one statement changes several tables.
const cascades = `
DO $$ DECLARE c record; BEGIN
    FOR c IN SELECT conname, conrelid::regclass AS t, pg_get_constraintdef(oid) AS d FROM pg_constraint
             WHERE contype = 'f' AND conrelid IN ('orders'::regclass, 'order_details'::regclass) AND confrelid IN ('customers'::regclass, 'orders'::regclass, 'products'::regclass) LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I, ADD CONSTRAINT %2$I %s ON UPDATE CASCADE ON DELETE CASCADE', c.t, c.conname, c.d);
    END LOOP;
END $$`

// mixed writes one statement, or a few of a transaction. What a constraint refuses is as good: it changes nothing.
func mixed(r *rand.Rand, n int) string {
	order, product, other := 10248+r.IntN(250), 1+r.IntN(60), 1+r.IntN(60)
	customer := fmt.Sprintf("(SELECT customer_id FROM customers ORDER BY customer_id OFFSET %d LIMIT 1)", r.IntN(30))
	statements := []string{
		fmt.Sprintf(`UPDATE orders SET freight = freight * 1.1, ship_city = NULL WHERE order_id %% 7 = %d`, r.IntN(7)),
		fmt.Sprintf(`UPDATE order_details SET discount = discount + 0.01 WHERE order_id BETWEEN %d AND %d`, order, order+20),
		fmt.Sprintf(`DELETE FROM orders WHERE order_id = %d`, order),
		fmt.Sprintf(`DELETE FROM order_details WHERE product_id = %d AND order_id < %d`, product, order),
		fmt.Sprintf(`INSERT INTO orders (order_id, customer_id, freight) VALUES (%d, %s, 1) ON CONFLICT (order_id) DO UPDATE SET freight = orders.freight + 1`, order, customer),
		fmt.Sprintf(`INSERT INTO products (product_id, product_name, discontinued) VALUES (%d, 'again', 0), (%d, 'new', 0) ON CONFLICT DO NOTHING`, product, 200+n),
		fmt.Sprintf(`UPDATE orders SET order_id = %d WHERE order_id = %d`, 20000+n, order),
		fmt.Sprintf(`UPDATE customers SET customer_id = 'N%d', phone = '%d/%%' WHERE customer_id = %s`, n, n, customer),
		`UPDATE products SET unit_price = unit_price, discontinued = discontinued`,
		fmt.Sprintf(`UPDATE products SET product_id = CASE product_id WHEN %d THEN %d ELSE %[1]d END WHERE product_id IN (%[1]d, %[2]d)`, product, other),
		fmt.Sprintf(`WITH a AS (UPDATE products SET units_in_stock = coalesce(units_in_stock, 0) + 1 WHERE product_id = %d RETURNING product_id),
			b AS (DELETE FROM order_details WHERE order_id = %d RETURNING 1), c AS (INSERT INTO customers (customer_id, company_name) VALUES ('W%d', 'with') RETURNING 1)
			UPDATE orders SET ship_city = 'moved' WHERE order_id IN (%d, %d)`, product, order+1, n, order, order+2),
		fmt.Sprintf(`BEGIN; UPDATE products SET unit_price = 1 WHERE product_id = %d; SAVEPOINT a; DELETE FROM orders; ROLLBACK TO a; SELECT rea.set_context('42', 'spring clean', NULL);
			UPDATE products SET unit_price = NULL WHERE product_id = %[1]d; COMMIT`, product),
		fmt.Sprintf(`DELETE FROM customers WHERE customer_id = %s`, customer),
		`BEGIN; UPDATE orders SET freight = 0; ROLLBACK`,
		fmt.Sprintf(`MERGE INTO orders o USING (VALUES (%d), (%d)) v (id) ON o.order_id = v.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (order_id, freight) VALUES (v.id, 3)`, order, 21000+n),
		fmt.Sprintf("COPY orders (order_id, customer_id, freight) FROM STDIN\n%d\t\\N\t1.5\n%d\t\\N\t\\N\n", 24000+n, 27000+n),
		fmt.Sprintf("COPY order_details (order_id, product_id, unit_price, quantity, discount) FROM STDIN WITH (FORMAT csv)\n%d,%d,9.5,1,0\n%d,%d,9.5,2,0\n", order, product, order+1, other),
	}
	return statements[r.IntN(len(statements))]
}

// ddl are changes of the tables, after which their guards are regenerated.
var ddl = []string{
	`ALTER TABLE products ADD COLUMN colour text`,
	`ALTER TABLE orders ADD COLUMN priority int DEFAULT 5`,
	`ALTER TABLE customers RENAME phone TO telephone; ALTER TABLE customers RENAME telephone TO phone; ALTER TABLE customers ADD COLUMN note jsonb DEFAULT '[]'`,
	`ALTER TABLE order_details ALTER COLUMN quantity TYPE int; ALTER TABLE order_details ADD COLUMN line_total numeric GENERATED ALWAYS AS (quantity * 2.50) STORED`,
	`ALTER TABLE products DROP COLUMN colour; ALTER TABLE products RENAME product_name TO title; ALTER TABLE products RENAME title TO product_name`,
	`ALTER TABLE orders RENAME ship_city TO ship_town; ALTER TABLE orders RENAME ship_town TO ship_city`,
}

func TestASchemaOfOthersIsAdoptedWhole(t *testing.T) {
	t.Parallel()
	for name, load := range map[string]func(t *testing.T) string{"a small one": func(*testing.T) string { return legacy }, "northwind": northwind} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := load(t)
			if text == "" {
				return
			}
			r := seeded(t)
			w := newWorld(t)
			w.do(text)
			w.do(`SET search_path = public; ` + cascades)
			tables := []guarded{{"orders", "order"}, {"order_details", "order_line"}, {"products", "product"}, {"customers", "customer"}}
			for _, g := range tables {
				w.add("public."+g.table, guard.Settings{Type: g.kind})
			}
			s := w.session()
			login := w.login()
			w.do(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ` + login + `; GRANT USAGE, CREATE ON SCHEMA public TO ` + login + `;
				GRANT USAGE ON SCHEMA rea TO ` + login) // for rea.set_context
			s.do(`SET SESSION AUTHORIZATION ` + login + `; SET TimeZone = 'Asia/Kolkata'; SET DateStyle = 'German, DMY'; SET extra_float_digits = -10; SET search_path = public`)
			for n := range 20 { // some rows change before their baseline
				s.mixed(r, 1000+n)
			}
			for _, g := range tables {
				w.baseline(g.table, g.kind)
			}
			changes := ddl
			for n := range 100 {
				if n%16 == 15 && len(changes) > 0 {
					w.do(changes[0])
					changes = changes[1:]
					s.mixed(r, 2000+n) // before the guards know
					for _, g := range tables {
						if _, _, err := guard.Regenerate(t.Context(), w, g.table, guard.By{Actor: "42"}); err != nil {
							t.Fatalf("regenerate %s: %v", g.table, err)
						}
					}
				}
				[]world{w, s}[r.IntN(2)].mixed(r, n)
			}
			for _, g := range tables {
				w.sameAsTable(g.table, g.kind)
			}
			w.want("true", `SELECT count(DISTINCT c.login) > 1 FROM rea.contexts c WHERE c.operation IN ('UPDATE', 'INSERT', 'DELETE')`)
		})
	}
}

// guarded is a table, and the type of its rows.
type guarded struct{ table, kind string }

// seeded gives random numbers, and says at the end of a test that failed which ones they were.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

// mixed runs a statement, which a constraint may refuse.
func (w world) mixed(r *rand.Rand, n int) {
	w.t.Helper()
	sql := mixed(r, n)
	if strings.HasPrefix(sql, "MERGE") && w.older(15) {
		return
	}
	var err error
	if copying, rows, ok := strings.Cut(sql, "\n"); ok && strings.HasPrefix(sql, "COPY") {
		_, err = w.PgConn().CopyFrom(w.t.Context(), strings.NewReader(rows), copying)
	} else {
		err = w.try(sql)
	}
	var e *pgconn.PgError
	if errors.As(err, &e) && strings.HasPrefix(e.Code, "23") {
		_ = w.try("ROLLBACK")
		err = nil
	}
	if err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w world) baseline(table, kind string) {
	w.t.Helper()
	pool := w.pool(2)
	described, err := adopt.Describe(w.t.Context(), pool, "public."+table, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := adopt.NewBaseline(w.t.Context(), pool, described, adopt.BaselineOptions{Type: kind, Batch: 97})
	if err != nil {
		w.t.Fatal(err)
	}
	if result, err := b.Run(w.t.Context()); err != nil || result.Refused > 0 {
		w.t.Fatalf("baseline of %s: %+v, %v", table, result, err)
	}
}

// sameAsTable compares by the check, and by replaying each object on its own.
func (w world) sameAsTable(table, kind string) {
	w.t.Helper()
	pool := w.pool(2)
	described, err := adopt.Describe(w.t.Context(), pool, "public."+table, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	result, err := adopt.Check(w.t.Context(), pool, described, adopt.CheckOptions{Type: kind, Report: func(d adopt.Difference) {
		w.t.Errorf("%s: %s %s at seq %d: %s", table, d.Kind, d.Aggregate, d.Seq, d.Columns)
	}})
	if err != nil || result.Found() || result.Rows == 0 {
		w.t.Errorf("check of %s: %+v, %v", table, result, err)
	}

	archive, err := postgres.New(pool, postgres.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, setting := range adopt.Settings {
		w.do(`SELECT set_config('` + setting[0] + `', '` + setting[1] + `', false)`)
	}
	rows, err := w.Query(w.t.Context(), "SELECT "+described.ID("o")+", ("+described.Row("o")+")::text FROM "+described.SQL()+" o")
	if err != nil {
		w.t.Fatal(err)
	}
	alive := 0
	var id, text string
	list := map[string]string{}
	if _, err := pgx.ForEachRow(rows, []any{&id, &text}, func() error { list[id] = text; return nil }); err != nil {
		w.t.Fatal(err)
	}
	for id, text := range list {
		loaded, err := archive.Autocommit().Load(w.t.Context(), rea.Ref{Type: kind, ID: id})
		if err != nil {
			w.t.Fatalf("%s: %v", id, err)
		}
		state, err := json.Marshal(loaded.State)
		if err != nil {
			w.t.Fatal(err)
		}
		if got := w.one(`SELECT $1::jsonb = $2::jsonb`, string(state), text); got != "true" {
			w.t.Errorf("%s/%s\nfolds to %s\n table has %s", kind, id, state, text)
		}
		alive++
	}
	w.want(fmt.Sprint(alive), `SELECT count(*) FROM (SELECT DISTINCT ON (aggregate_id) event_type FROM rea.events WHERE aggregate_type = $1 ORDER BY aggregate_id, seq DESC) e
WHERE event_type <> 'DirectDelete'`, kind)
}

// northwind is a sample database that none of us wrote, where it is beside the clone; "": it is not.
func northwind(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash("../../shared/data/northwind.sql"))
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "NOT TESTED: northwind.sql is not beside this clone; the same went over a smaller schema of our own")
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
