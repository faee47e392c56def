package adopt_test

import (
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/adopt"
	"github.com/realtime-event-archive/rea/catalog"
	"github.com/realtime-event-archive/rea/guard"
)

func TestInferredCatalogHasTheStepsThatWereSeen(t *testing.T) {
	t.Parallel()
	pool := newPool(t, ordersSQL, `INSERT INTO orders SELECT i, 'placed' FROM generate_series(1, 3000) i`, `INSERT INTO orders VALUES (0, 'PAID '), (-1, NULL), (-2, 'any'), (-3, 'paied')`)
	guardOrders(t, pool, guard.Settings{Status: "status"})
	run(t, pool, `UPDATE orders SET status = 'paid' WHERE id BETWEEN 1 AND 20`, `UPDATE orders SET status = 'in transit: yes' WHERE id BETWEEN 1 AND 15`,
		`UPDATE orders SET status = 'paid' WHERE id IN (1, 0)`, `INSERT INTO orders VALUES (4000, 'placed')`, `UPDATE orders SET total = 3 WHERE id = 5`)
	baseline(t, pool, "orders", nil, adopt.BaselineOptions{Status: "status"})
	in, err := adopt.Infer(t.Context(), pool, describe(t, pool, "orders"), "order", "status")
	if err != nil {
		t.Fatal(err)
	}
	text := in.YAML()
	for _, want := range []string{
		`#   NULL: 1 row, which have no status`, `#   "any": 1 row, which can be none`, `#   "paied": 1 row, which is rare: a slip?`, `#   "placed": 2981 rows`,
		`CreatedAsPlaced: {from: none, to: placed}   # seen: 1`,
		`BecamePaid: {from: [placed, "in transit: yes"], to: paid}   # seen: 20 from "placed", 1 from what is no status, 1 from "in transit: yes"`,
		`BecameInTransitYes: {from: [paid], to: "in transit: yes"}   # seen: 15 from "paid"`, `BecamePaied: {from: any, to: paied}   # not seen yet`,
		`#       total: numeric`, `#       created_at: timestamptz`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the catalog lacks %s", want)
		}
	}
	if _, err := catalog.Parse("rea.yaml", []byte(text)); err != nil {
		t.Errorf("the catalog does not parse: %v", err)
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestInferredCatalogOfHostileStatusesParses(t *testing.T) {
	t.Parallel()
	pool := newPool(t, `CREATE TABLE public."odd: table" (id int PRIMARY KEY, "st: # atus" text, "Name with ""quotes" text)`,
		`INSERT INTO "odd: table" VALUES (1, 'a: b'), (2, '"q"'), (3, '\'), (4, E'tab\tx'), (5, '# c'), (6, 'null'), (7, '1'), (8, '状态'), (9, '!!'), (10, '??'), (11, '{}'), (12, E'two\nlines'), (13, '')`)
	in, err := adopt.Infer(t.Context(), pool, describe(t, pool, `"odd: table"`), "odd: type", "st: # atus")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse("rea.yaml", []byte(in.YAML()))
	if err != nil {
		t.Fatalf("%v\n%s", err, in.YAML())
	}
	declared, _ := c.Type("odd: type")
	if n := len(declared.Statuses()); declared.Status != "st: # atus" || n != 10 {
		t.Errorf("%d statuses in %q, want 10:\n%s", n, declared.Status, in.YAML())
	}
	run(t, pool, `INSERT INTO "odd: table" SELECT i, i::text FROM generate_series(100, 200) i`)
	if in, err = adopt.Infer(t.Context(), pool, describe(t, pool, `"odd: table"`), "odd: type", "st: # atus"); err != nil {
		t.Fatal(err)
	}
	if text := in.YAML(); !strings.Contains(text, "114 different values") || strings.Contains(text, "Became") {
		t.Errorf("a column of ids is a status:\n%s", text)
	}
}
