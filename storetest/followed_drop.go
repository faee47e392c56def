package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

var followedDrops = []clause{
	{"P5 a stalled projection that nobody declares any more says so, and can be dropped", func(t *testing.T, d *Door) {
		address, types := d.Migrated(t), []rea.Type{keptType()}
		all := d.Open(t, address, rea.Config{Catalog: keeping(t, types, followedState(), hourly()), PollEvery: 5 * time.Millisecond, RetryAfter: time.Millisecond, StallAfter: 1})
		stop := all.start(t)
		put(t, all.Autocommit(), order1, event("Paid", `{"amount": "x"}`))
		all.status(t, "hourly_sales", func(s rea.ProjectionStatus) bool { return s.State == rea.StateStalled })
		stop()
		if err := all.DropProjection(limited(t), "hourly_sales"); err == nil || !strings.Contains(err.Error(), "is declared") {
			t.Errorf("drop a declared one = %v, want a refusal", err)
		}
		if err := all.Rebuild(limited(t), "hourly_sales", nil); err == nil { // leaves a table beside it
			t.Error("the rebuild takes an amount that is no number")
		}
		b := d.Open(t, address, rea.Config{Catalog: keeping(t, types, followedState()), PollEvery: 5 * time.Millisecond})
		s := b.status(t, "hourly_sales", func(rea.ProjectionStatus) bool { return true })
		same(t, "state", s.State, rea.StateStalled)
		if !strings.Contains(s.Trouble, "`rea projection drop hourly_sales`") || strings.Contains(s.Trouble, "retry") {
			t.Errorf("Trouble = %q, want that nobody keeps it, and the way out", s.Trouble)
		}
		b.run(t, "CREATE VIEW my_sales AS SELECT sum(orders) AS n FROM "+d.view("hourly_sales"))
		if e := refused[*rea.DependentsError](t, "drop", b.DropProjection(limited(t), "hourly_sales")); len(e.Dependents) != 1 || !strings.Contains(e.Dependents[0], "my_sales") {
			t.Errorf("dependents = %q, want the view", e.Dependents)
		}
		b.run(t, "DROP VIEW my_sales")
		if err := b.DropProjection(limited(t), "hourly_sales"); err != nil {
			t.Fatal(err)
		}
		if err := b.DropProjection(limited(t), "hourly_sales"); !errors.Is(err, rea.ErrNotFound) {
			t.Errorf("drop it again = %v, want ErrNotFound", err)
		}
		list, err := b.Projections(limited(t))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "projections", fmt.Sprint(len(list), list[0].Name), "1order_state")
		// The name is free, and nothing of the old one is left.
		counted := hourly()
		counted.Measures = counted.Measures[:1]
		again := d.running(t, address, rea.Config{Catalog: keeping(t, types, followedState(), counted), PollEvery: 5 * time.Millisecond})
		again.settled(t, "hourly_sales")
		same(t, "orders", d.total(t, again), "1")
		again.undrifted(t, "hourly_sales")
	}},
	{"P5 the tables of a program's function stay when its projection is dropped", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		b := d.Open(t, address, rea.Config{Projections: []rea.GoProjection{counts("p1", nil)}, PollEvery: 5 * time.Millisecond})
		b.makeCounts(t, "p1")
		stop := b.start(t)
		put(t, b.Autocommit(), order1, event("A"))
		b.settled(t, "p1")
		stop()
		if err := d.Open(t, address, rea.Config{}).DropProjection(limited(t), "p1"); err != nil {
			t.Fatal(err)
		}
		same(t, "rows", b.counted(t, "p1"), "1 rows, 1 events")
		same(t, "recorded", b.text(t, "SELECT CAST(count(*) AS TEXT) FROM "+d.Tables+"projections"), "0")
	}},
}
