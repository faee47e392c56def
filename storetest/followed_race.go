package storetest

import (
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// followedRaces are of stores where several transactions write at the same time.
var followedRaces = []clause{
	{"P5 a projection has what commits late, and an open appender delays nobody else's events", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		b := d.running(t, d.Migrated(t), rea.Config{PollEvery: 5 * time.Millisecond, PageEvents: 3, Catalog: keeping(t, types, hourly(), followedState())})
		late := b.begin(t)
		put(t, late.Tx, order1, event("Paid", `{"amount": 1}`))
		for range 20 { // ids that are never filled
			tx := b.begin(t)
			put(t, tx.Tx, rea.Ref{Type: "order", ID: "none"}, event("Paid", `{"amount": 100}`), event("Other"))
			tx.rollback(t)
		}
		put(t, b.Autocommit(), order2, event("Paid", `{"amount": 2}`), event("Paid", `{"amount": 4}`))
		b.settled(t, "hourly_sales", "order_state")
		same(t, "orders while the appender is open", d.total(t, b), "2")
		late.commit(t)
		b.settled(t, "hourly_sales", "order_state")
		same(t, "orders", d.total(t, b), "3")
		b.undrifted(t, "hourly_sales")
		d.drift(t, b, types, followedState())
	}},
}
