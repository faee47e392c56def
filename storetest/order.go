package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

var order = []clause{
	{"P5 positions are 1, 2, 3 and keep each aggregate's seq order", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Migrated(t), rea.Config{PageEvents: 3})
		for n := range 10 {
			put(t, b.Autocommit(), rea.Ref{Type: "order", ID: fmt.Sprint(n % 3)}, event("A"), event("B"))
		}
		events := b.history(t, rea.Filter{})
		for i, e := range events {
			same(t, "Position", e.Position, int64(i+1))
		}
		dense(t, events)
		same(t, "events", len(events), 20)
		head, err := b.Autocommit().Head(t.Context())
		same(t, "Head", fmt.Sprint(head, err), "20 <nil>")
	}},
	{"P5 a rolled back append leaves no gap in the positions", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		for n := range 3 {
			tx := b.begin(t)
			put(t, tx.Tx, rea.Ref{Type: "order", ID: fmt.Sprint(n)}, event("Lost"))
			tx.rollback(t)
			put(t, b.Autocommit(), order1, event("Kept"))
		}
		for i, e := range b.history(t, rea.Filter{}) {
			same(t, "Position", e.Position, int64(i+1))
		}
		same(t, "history", story(b.history(t, rea.Filter{})), "order/1#1 Kept, order/1#2 Kept, order/1#3 Kept")
	}},
	{"P5 a page after a position goes on where the last one ended", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Migrated(t), rea.Config{PageEvents: 2})
		for n := range 7 {
			put(t, b.Autocommit(), order1, event(fmt.Sprintf("E%d", n)))
		}
		whole := b.history(t, rea.Filter{})
		for _, limit := range []int{1, 2, 3, 7, 8} {
			var got []rea.Event
			for after := int64(0); ; {
				page := b.history(t, rea.Filter{After: after, Limit: limit})
				if len(page) > limit {
					t.Fatalf("page = %d events, want at most %d", len(page), limit)
				}
				if len(page) == 0 {
					break
				}
				got = append(got, page...)
				after = page[len(page)-1].Position
			}
			same(t, fmt.Sprintf("pages of %d", limit), got, whole)
		}
		same(t, "after the head", story(b.history(t, rea.Filter{After: 7})), "")
		same(t, "far after the head", story(b.history(t, rea.Filter{After: 1 << 40})), "")
	}},
	{"P5 filters match literally, byte by byte, and all at once", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit()
		put(t, tx.With(rea.By("ann"), rea.Because("50%_off today")), rea.Ref{Type: "50%_off", ID: "1"}, event(`back\slash`))
		put(t, tx.With(rea.By("Ann"), rea.Because("50x_off")), rea.Ref{Type: "50x_off", ID: "1"}, event(`back\\slash`))
		put(t, tx.With(rea.Correlate("c-1")), rea.Ref{Type: "Order", ID: "1"}, event("Placed"))
		put(t, tx.With(rea.Correlate("C-1")), rea.Ref{Type: "order", ID: "1"}, event("placed"))
		put(t, tx, rea.Ref{Type: "order", ID: "10"}, event("Placed'; DROP TABLE x;--"))
		whole := b.history(t, rea.Filter{})
		for _, c := range []struct {
			name   string
			filter rea.Filter
			want   []int
		}{
			{"prefix 50%_", rea.Filter{TypePrefix: "50%_"}, []int{1}},
			{"prefix 50", rea.Filter{TypePrefix: "50"}, []int{1, 2}},
			{"prefix 50%%", rea.Filter{TypePrefix: "50%%"}, nil},
			{"prefix *", rea.Filter{TypePrefix: "*"}, nil},
			{"prefix [5]", rea.Filter{TypePrefix: "[5]"}, nil},
			{"type 50%_off", rea.Filter{Type: "50%_off"}, []int{1}},
			{`event back\slash`, rea.Filter{Event: `back\slash`}, []int{1}},
			{`event prefix back\`, rea.Filter{EventPrefix: `back\`}, []int{1, 2}},
			{`event prefix back\\`, rea.Filter{EventPrefix: `back\\`}, []int{2}},
			{"type order", rea.Filter{Type: "order"}, []int{4, 5}},
			{"type Order", rea.Filter{Type: "Order"}, []int{3}},
			{"type prefix o", rea.Filter{TypePrefix: "o"}, []int{4, 5}},
			{"event placed", rea.Filter{Event: "placed"}, []int{4}},
			{"event prefix P", rea.Filter{EventPrefix: "P"}, []int{3, 5}},
			{"event with a quote", rea.Filter{Event: "Placed'; DROP TABLE x;--"}, []int{5}},
			{"actor ann", rea.Filter{Actor: "ann"}, []int{1}},
			{"reason % ", rea.Filter{Reason: "%_off"}, []int{1}},
			{"reason off", rea.Filter{Reason: "off"}, []int{1, 2}},
			{"reason OFF", rea.Filter{Reason: "OFF"}, nil},
			{"correlation c-1", rea.Filter{Correlation: "c-1"}, []int{3}},
			{"aggregate order/1", rea.Filter{Type: "order", ID: "1"}, []int{4}},
			{"aggregate order/1 and event", rea.Filter{Type: "order", ID: "1", Event: "Placed"}, nil},
			{"id alone", rea.Filter{ID: "1"}, []int{1, 2, 3, 4}},
			{"several at once", rea.Filter{TypePrefix: "50", Actor: "Ann", EventPrefix: "back"}, []int{2}},
			{"xid of the third", rea.Filter{XID: whole[2].XID}, []int{3}},
			{"after and filter", rea.Filter{ID: "1", After: 2}, []int{3, 4}},
			{"limit and filter", rea.Filter{ID: "1", Limit: 2}, []int{1, 2}},
		} {
			var got []int
			for _, e := range b.history(t, c.filter) {
				got = append(got, int(e.Position))
			}
			same(t, "positions for "+c.name, got, c.want)
		}
	}},
	{"P5 a sparse filter finds the events on both sides of a long range of others", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("OrderPlaced"))
		many := make([]rea.NewEvent, rea.MaxCallEvents)
		for i := range many {
			many[i] = event("Other")
		}
		put(t, b.Autocommit(), order2, many...)
		put(t, b.Autocommit(), order1, event("OrderPlaced"))
		same(t, "history", story(b.history(t, rea.Filter{Event: "OrderPlaced"})), "order/1#1 OrderPlaced, order/1#2 OrderPlaced")
		same(t, "history of one aggregate", story(b.history(t, rea.Filter{Type: "order", ID: "1"})), "order/1#1 OrderPlaced, order/1#2 OrderPlaced")
	}},
	{"P7 a window of time takes its beginning and leaves its end out", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		noon := time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)
		for _, seconds := range []int{0, 2, 1, 3} {
			imported(t, b, line(order1, "X", func(l *rea.Line) { l.CreatedAt = noon.Add(time.Duration(seconds) * time.Second) }))
		}
		for _, c := range []struct {
			filter rea.Filter
			want   []int64
		}{
			{rea.Filter{Since: noon.Add(time.Second)}, []int64{2, 3, 4}},
			{rea.Filter{Since: noon.Add(time.Second + time.Microsecond)}, []int64{2, 4}},
			{rea.Filter{Until: noon.Add(time.Second)}, []int64{1}},
			{rea.Filter{Until: noon.Add(time.Second + time.Microsecond)}, []int64{1, 3}},
			{rea.Filter{Since: noon.Add(time.Second), Until: noon.Add(3 * time.Second).In(time.FixedZone("west", -8*3600))}, []int64{2, 3}},
			{rea.Filter{Type: "order", ID: "1", Since: noon.Add(2 * time.Second)}, []int64{2, 4}},
			{rea.Filter{Since: noon.Add(time.Hour)}, nil},
		} {
			var got []int64
			for _, e := range b.history(t, c.filter) {
				got = append(got, e.Position)
			}
			same(t, fmt.Sprintf("positions for %+v", c.filter), got, c.want)
		}
	}},
	{"P7 times do not order anything", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		at := time.Date(2024, 6, 1, 12, 0, 0, 123456000, time.UTC)
		imported(t, b,
			line(order1, "OrderPlaced", func(l *rea.Line) { l.CreatedAt = at }),
			line(order1, "PaymentReceived", func(l *rea.Line) { l.CreatedAt = at }),
			line(order1, "OrderShipped", func(l *rea.Line) { l.CreatedAt = at.Add(-time.Hour) }),
			line(order1, "NoteAdded", func(l *rea.Line) { l.CreatedAt = at }))
		const want = "order/1#1 OrderPlaced, order/1#2 PaymentReceived, order/1#3 OrderShipped, order/1#4 NoteAdded"
		events := of(t, b.Autocommit(), order1)
		same(t, "by seq", story(events), want)
		same(t, "by position", story(b.history(t, rea.Filter{})), want)
		same(t, "time of seq 3", events[2].CreatedAt, at.Add(-time.Hour))
		put(t, b.Autocommit(), order1, event("Now"))
		same(t, "by position, with one of now", story(b.history(t, rea.Filter{})), want+", order/1#5 Now")
	}},
}
