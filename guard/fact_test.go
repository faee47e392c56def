package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/catalog"
	"github.com/realtime-event-archive/rea/guard"
	"github.com/realtime-event-archive/rea/postgres"
)

// machine is a catalog of orders, with a table of their states.
const machine = `rea: 1
aggregates:
  order:
    status: status
    events:
      OrderPlaced: {from: [none], to: placed, set: {amount: $.amount, note: $.note}}
      PaymentReceived: {from: [placed], to: paid}
projections:
  order_state: {of: order, mode: inline, columns: {status: text, amount: bigint, note: text}}
`

func (w world) apply(text string) *postgres.Archive {
	w.t.Helper()
	parsed, err := catalog.Parse("rea.yaml", []byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	archive, err := postgres.New(w.pool(4), postgres.Config{Config: rea.Config{Catalog: parsed}})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := archive.Apply(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return archive
}

func TestAValueThatAProjectionCannotTakeKeepsNoWriteBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(`CREATE TABLE orders (id bigint PRIMARY KEY, status text, amount numeric, note text)`)
	archive := w.apply(machine)
	w.add("orders", guard.Settings{Type: "order", Status: "status"})
	w.do(`INSERT INTO orders VALUES (1, 'placed', 5, NULL), (2, 'placed', 6, NULL)`)
	const states = `SELECT string_agg(concat_ws(' ', aggregate_id, rea_seq, status, amount), ', ' ORDER BY aggregate_id) FROM rea_views.order_state`
	w.want("1 1 placed 5, 2 1 placed 6", states)
	w.do(`UPDATE orders SET amount = CASE id WHEN 1 THEN 5.5 ELSE 7 END`) // bigint takes no 5.5
	w.want("1 1 placed 5, 2 2 placed 7", states)
	w.do(`UPDATE orders SET status = 'paid'`)
	w.want("1 1 placed 5, 2 3 paid 7", states)
	change, err := archive.Apply(t.Context())
	if err != nil || len(change.Behind) != 1 || !strings.Contains(fmt.Sprint(change.Behind), "amount") {
		t.Errorf("Apply says %+v, %v, want the row that is behind", change.Behind, err)
	}
	w.do(`UPDATE orders SET amount = 8`) // and what comes later does not mend it: the event is what it is
	w.want("1 1 placed 5, 2 4 paid 8", states)
	w.want("4", `SELECT max(seq) FROM rea.events WHERE aggregate_type = 'order' AND aggregate_id = '1'`)
	w.same("the check", w.differences("orders", "order"), "")
}

func TestAProjectionThatSomebodyDroppedIsNamedAndMadeAgain(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	archive := w.apply(machine)
	w.do(`ALTER TABLE rea_views.order_state DROP note`)
	if e := w.refused("42703", `UPDATE orders SET status = 'paid'`); !strings.Contains(e.Message, "order_state") {
		t.Errorf("%s, want the projection's name", e.Message)
	}
	w.do(`DROP TABLE rea_views.order_state`)
	if e := w.refused("42P01", `UPDATE orders SET status = 'paid'`); !strings.Contains(e.Message, "order_state") {
		t.Errorf("%s, want the projection's name", e.Message)
	}
	w.want("", kinds)
	if _, err := archive.Apply(t.Context()); err != nil {
		t.Error(err)
	}
	w.do(`UPDATE orders SET status = 'paid'`)
	w.want("2", `SELECT count(*) FROM rea_views.order_state WHERE status = 'paid'`)
}
