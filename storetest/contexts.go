package storetest

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

var contexts = []clause{
	{"P17 an event names what was observed about its statement, and the context is found by it", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("A"))
		tx := b.begin(t)
		tx.exec(t, d.context())
		tx.exec(t, d.observed(2, "DirectUpdate", 7))
		tx.exec(t, d.observed(3, "DirectDelete", 8))
		tx.commit(t)
		put(t, b.Autocommit(), order2, event("D"))
		if _, err := b.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}

		list, err := b.Autocommit().Contexts(t.Context(), 8, 7, 99)
		if err != nil || len(list) != 1 {
			t.Fatalf("Contexts = %+v, %v, want one", list, err)
		}
		c := list[0]
		same(t, "ID", c.ID, 7)
		same(t, "Operation", c.Operation, "UPDATE")
		same(t, "Rows", c.Rows, 2)
		same(t, "Table", c.Table, "public.orders")
		same(t, "Program", c.Program, "psql")
		same(t, "PID", c.PID, 812)
		text, err := json.Marshal(c)
		if err != nil || !strings.HasPrefix(string(text), `{"context_id":7,"xid":"41","login":`) {
			t.Errorf("JSON = %s, %v", text, err)
		}

		same(t, "contexts by seq", byContext(b.Autocommit().Events(t.Context(), order1, 0)), "A0 DirectUpdate7 DirectDelete8 ")
		for id, want := range map[int64]string{0: "A0 DirectUpdate7 DirectDelete8 D0 ", 7: "DirectUpdate7 ", 8: "DirectDelete8 ", 9: ""} {
			same(t, "events by context", byContext(b.Autocommit().History(t.Context(), rea.Filter{Context: id})), want)
		}
		one := rea.Filter{Context: 8, Type: order1.Type, ID: order1.ID}
		same(t, "event of the aggregate and context", byContext(b.Autocommit().History(t.Context(), one)), "DirectDelete8 ")
		tx = b.begin(t)
		seen, err := tx.Text(t.Context(), "SELECT program || ' ' || operation || ' ' || rows FROM "+d.Tables+"history WHERE event_type = 'DirectUpdate'")
		same(t, "history", fmt.Sprint(seen, " ", err), "psql UPDATE 2 <nil>")
		tx.rollback(t)
		for _, err := range b.Autocommit().History(t.Context(), rea.Filter{Context: -1}) {
			refused[*rea.LimitError](t, "context -1", err)
		}
	}},
}

// context inserts the context 7, as the owner can.
func (d *Door) context() string {
	seen, values := "", ""
	if d.Tables == "rea." { // what a server observes
		seen, values = ", login, role, address, depth, statement", ", 'app', 'shop', '10.0.0.3', 1, 'UPDATE orders SET status = 1'"
	}
	return "INSERT INTO " + d.Tables + "contexts (context_id, xid, program, pid, table_name, operation, rows" + seen + ")" +
		" VALUES (7, '41', 'psql', 812, 'public.orders', 'UPDATE', 2" + values + ")"
}

// observed inserts an event of order1 that names a context.
func (d *Door) observed(seq int, event string, context int) string {
	return fmt.Sprintf("INSERT INTO %sevents (aggregate_type, aggregate_id, seq, event_type, context_id) VALUES ('order', '1', %d, '%s', %d)",
		d.Tables, seq, event, context)
}

// byContext tells events by type and context.
func byContext(events iter.Seq2[rea.Event, error]) (told string) {
	for e, err := range events {
		if err != nil {
			return err.Error()
		}
		told += fmt.Sprintf("%s%d ", e.Type, e.ContextID)
	}
	return told
}
