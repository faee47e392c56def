package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

var builtInNames = []string{"BaselineCreated", "DirectInsert", "DirectUpdate", "DirectDelete", "Reverted"}

// factAt makes a line of REA's own events: one that says when it happened.
func factAt(aggregate rea.Ref, kind, payload string) rea.Line {
	return line(aggregate, kind, holding(payload), func(l *rea.Line) { l.CreatedAt = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) })
}

// statuses tells the status after each event of an aggregate, "-" where there is none.
func (b *Base) statuses(t *testing.T, aggregate rea.Ref) string {
	t.Helper()
	var list []string
	for _, e := range of(t, b.Autocommit(), aggregate) {
		if e.Status == "" {
			e.Status = "-"
		}
		list = append(list, e.Status)
	}
	return strings.Join(list, " ")
}

var builtIns = []clause{
	{"P17 nobody appends an event with a name of REA's own, with a machine and without", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		plain, _ := d.applied(t, address, orderType(func(t *rea.Type) { t.Name = "other" }))
		for _, aggregate := range []rea.Ref{order1, {Type: "other", ID: "1"}} {
			for _, name := range builtInNames {
				for _, events := range [][]rea.NewEvent{{event(name)}, {event("A"), event(name)}} {
					_, err := plain.Autocommit().Append(limited(t), aggregate, events)
					same(t, "What", refused[*rea.LimitError](t, name, err).What, "event_type")
				}
				same(t, "a line without a time", imported(t, plain, line(aggregate, name)), []string{"limit"})
			}
		}
		same(t, "count", plain.count(t), 0)
	}},
	{"P10 an imported fact is stored in any status, and leaves the aggregate in the one that its row says", func(t *testing.T, d *Door) {
		b, _ := d.applied(t, d.Migrated(t), orderType(func(t *rea.Type) { t.Strict = true }))
		lines := []rea.Line{
			factAt(order1, "BaselineCreated", `{"row": {"status": "shipped", "n": 1}}`),
			factAt(order1, "DirectUpdate", `{"old": {"status": "shipped"}, "new": {"status": "placed"}}`),
			factAt(order1, "DirectUpdate", `{"old": {"n": 1}, "new": {"n": 2}}`),
			line(order1, "PaymentReceived"),
			factAt(order1, "DirectUpdate", `{"old": {"status": "paid"}, "new": {"status": 7}}`),
			factAt(order1, "DirectUpdate", `{"old": {"status": 7}, "new": {"status": "PAID "}}`),
			line(order1, "OrderShipped"),
			line(order1, "NoteAdded"),
			factAt(order1, "Reverted", `{"set": {"status": "paid"}, "unset": ["n"], "undoes": [6], "was": {}}`),
			factAt(order1, "DirectDelete", `{"old": {"status": "paid"}}`),
			line(order1, "OrderShipped"),
			line(order1, "NoteAdded"),
			factAt(order1, "DirectInsert", `{"new": {"status": "paid"}}`),
			line(order1, "OrderShipped"),
			factAt(order2, "DirectUpdate", `{"old": {"status": "paid", "n": 1}, "new": {"n": 2}}`),
			factAt(order2, "DirectInsert", `{"new": {"n": 2}}`),
		}
		results := imported(t, b, lines...)
		same(t, "results", strings.Join(results, " "),
			"stored stored stored stored stored stored illegal_step stored stored stored illegal_step stored stored stored stored stored")
		same(t, "statuses of 1", b.statuses(t, order1), "shipped placed placed paid paid PAID  PAID  paid - - paid shipped")
		same(t, "statuses of 2", b.statuses(t, order2), "paid -")
		for _, e := range of(t, b.Autocommit(), order1) {
			same(t, "CatalogVersion", e.CatalogVersion, 1)
			same(t, "Correction", e.Correction, false)
		}
		_, err := b.Autocommit().Append(limited(t), order1, event("OrderShipped"))
		same(t, "Legal", refused[*rea.TransitionError](t, "shipped twice", err).Status, "shipped")
	}},
	{"P10 facts from before the first catalog tell it the status, by its names", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		before := d.Open(t, address, rea.Config{})
		ref := func(n int) rea.Ref { return rea.Ref{Type: "order", ID: fmt.Sprint(n)} }
		imported(t, before,
			factAt(ref(1), "BaselineCreated", `{"row": {"status": "paid"}}`),
			factAt(ref(2), "BaselineCreated", `{"row": {"status": "placed"}}`),
			factAt(ref(2), "DirectUpdate", `{"old": {"n": 1}, "new": {"n": 2}}`),
			factAt(ref(3), "BaselineCreated", `{"row": {"status": "placed"}}`),
			factAt(ref(3), "DirectDelete", `{"old": {"status": "placed"}}`),
			factAt(ref(4), "BaselineCreated", `{"row": {"status": "Paid!"}}`),
			line(ref(5), "OrderPlaced"), factAt(ref(5), "DirectUpdate", `{"old": {}, "new": {"status": "paid"}}`),
			line(ref(6), "OrderPlaced"), factAt(ref(6), "DirectInsert", `{"new": {}}`))
		same(t, "without a machine", before.statuses(t, ref(1)), "-")
		wrong := d.Open(t, address, rea.Config{Catalog: catalogOf(t, orderType())})
		_, err := wrong.Apply(limited(t))
		same(t, "Statuses", refused[*rea.UnknownStatusError](t, "apply", err).Statuses, []rea.PresentStatus{{Type: "order", Status: "Paid!", Aggregates: 1}})
		b, _ := d.applied(t, address, orderType(func(t *rea.Type) { t.Renamed = map[string]string{"Paid!": "paid"} }))
		for n, legal := range map[int]bool{1: true, 2: false, 3: false, 4: true, 5: true, 6: false} {
			_, err := b.Autocommit().Append(limited(t), ref(n), event("OrderShipped"))
			same(t, fmt.Sprintf("OrderShipped of %d is legal: %v", n, err), err == nil, legal)
		}
		put(t, b.Autocommit(), ref(2), event("PaymentReceived"))
		put(t, b.Autocommit(), ref(3), event("NoteAdded"))
		same(t, "statuses of 2", b.statuses(t, ref(2)), "- - paid")
		same(t, "statuses of 3", b.statuses(t, ref(3)), "- - -")
		again, _ := d.applied(t, address, orderType(settled(map[string]string{"paid": "settled", "Paid!": "settled"})))
		put(t, again.Autocommit(), ref(2), event("OrderShipped"))
	}},
}
