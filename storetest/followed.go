package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// followedState is the table of kept, by a runner.
func followedState() rea.Projection {
	p := kept()
	p.Inline = false
	return p
}

// hourly counts and sums the payments of each hour.
func hourly() rea.Projection {
	return rea.Projection{Name: "hourly_sales", On: []string{"Paid"}, Every: time.Hour, Measures: []rea.Measure{
		{Name: "orders", Kind: rea.MeasureCount},
		{Name: "amount", Kind: rea.MeasureSum, Operand: rea.Operand{Path: []string{"amount"}}},
		{Name: "least", Kind: rea.MeasureMin, Operand: rea.Operand{Path: []string{"amount"}}},
		{Name: "most", Kind: rea.MeasureMax, Operand: rea.Operand{Path: []string{"amount"}}},
	}}
}

// running is an archive whose projections somebody runs.
func (d *Door) running(t *testing.T, address string, config rea.Config) *Base {
	t.Helper()
	b := d.Open(t, address, config)
	b.start(t)
	return b
}

// start runs the projections of b until stop is called, or t ends.
func (b *Base) start(t *testing.T, names ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := later(func() (struct{}, error) { return struct{}{}, b.Run(ctx, names...) })
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if _, err := ended(); err != nil {
			t.Errorf("run: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// settled returns when every named projection has all that has committed.
func (b *Base) settled(t *testing.T, names ...string) {
	t.Helper()
	head, err := b.CatchUp(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := b.WaitFor(limited(t), name, head); err != nil {
			t.Fatal(err)
		}
	}
}

var followed = []clause{
	{"P5 a followed table of states is the fold of its events, and catches up", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		c := keeping(t, types, followedState())
		address := d.Migrated(t)
		b := d.Open(t, address, rea.Config{Catalog: c, PollEvery: 5 * time.Millisecond})
		tx := b.Autocommit()
		put(t, tx.With(rea.By("42")), order1, event("Placed", `{"total": 10.50}`))
		put(t, tx, order1, event("Paid", `{"amount": 0.005, "at": "2024-02-29T23:59:59.5+01:00"}`), event("Noted", `{"customer": {"note": "é\n"}, "day": "2024-02-29", "urgent": true, "data": {"b": [1, 2.50]}}`))
		put(t, tx, order2, rea.NewEvent{Type: "Placed", Version: 1, Payload: []byte(`{"sum": 12345678901234567890.1234567890}`)}, event("Other"))
		stop := b.start(t)
		b.settled(t, "order_state")
		d.drift(t, b, types, followedState())
		put(t, tx, order1, event("Noted", `{"urgent": null, "data": null, "more": 3}`))
		put(t, tx, rea.Ref{Type: "invoice", ID: "1"}, event("Placed"))
		b.settled(t, "order_state")
		stop()
		put(t, tx, order2, event("Paid", `{"amount": 1.5}`))
		b.start(t)
		b.settled(t, "order_state")
		d.drift(t, b, types, followedState())
	}},
	{"P6 a followed table of statistics is the sum of its events", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		b := d.running(t, d.Migrated(t), rea.Config{Catalog: keeping(t, types, followedState(), hourly()), PollEvery: 5 * time.Millisecond, PageEvents: 3})
		for n, amount := range []string{"1", "0.005", "12345678901234567890.10", "-3.1", "null"} {
			put(t, b.Autocommit(), rea.Ref{Type: "order", ID: string(rune('a' + n))}, event("Placed", `{"total": 1}`), event("Paid", `{"amount": `+amount+`}`), event("Paid"))
		}
		b.settled(t, "order_state", "hourly_sales")
		d.drift(t, b, types, followedState())
		got := b.text(t, `SELECT CAST(sum(orders) AS TEXT) || ' ' || CAST(max(amount) AS TEXT) || ' ' || CAST(min(least) AS TEXT) || ' ' || CAST(max(most) AS TEXT) FROM `+d.view("hourly_sales"))
		same(t, "orders, amount, least, most", got, "10 12345678901234567888.005 -3.1 12345678901234567890.10")
	}},
}
