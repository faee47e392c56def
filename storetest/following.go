package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

var following = []clause{
	{"P5 Follow gives what is there, then what commits later, and ends with its context", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Migrated(t), rea.Config{PollEvery: 5 * time.Millisecond, PageEvents: 2})
		put(t, b.Autocommit(), order1, event("A"), event("B"), event("C"))
		ctx, cancel := context.WithCancel(limited(t))
		defer cancel()
		n := int64(0)
		for e, err := range b.Follow(ctx, rea.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			same(t, "Position", e.Position, n)
			switch {
			case n >= 3 && n < 8:
				put(t, b.Autocommit(), order2, event(fmt.Sprintf("Later%d", n)))
			case n == 8:
				cancel()
			}
		}
		same(t, "followed", n, 8)
	}},
	{"P5 Follow counts only matching events towards its limit, and goes on after a position", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Migrated(t), rea.Config{PollEvery: 5 * time.Millisecond})
		put(t, b.Autocommit(), order1, event("A"), event("Other"), event("A"), event("Other"))
		var got []int64
		for e, err := range b.Follow(limited(t), rea.Filter{Event: "A", After: 1, Limit: 3}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Position)
			if len(got) < 3 {
				put(t, b.Autocommit(), order2, event("Other"), event("A"))
			}
		}
		same(t, "positions", got, []int64{3, 6, 8})
	}},
	{"P5 Follow of a context that has ended gives nothing", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("A"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for e, err := range b.Follow(ctx, rea.Filter{}) {
			t.Errorf("followed %v, %v, want nothing", e, err)
		}
	}},
	{"P5 CatchUp gives all that has committed a position and says the last", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		for n := int64(1); n <= 3; n++ {
			put(t, b.Autocommit(), order1, event("A"))
			head, err := b.CatchUp(t.Context())
			same(t, "CatchUp", fmt.Sprint(head, err), fmt.Sprint(n, " <nil>"))
		}
		head, err := b.CatchUp(t.Context())
		same(t, "CatchUp without news", fmt.Sprint(head, err), "3 <nil>")
	}},
	{"P18 a follower that starts again after a position misses and repeats nothing", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		b := d.Open(t, address, rea.Config{})
		var got []rea.Event
		for round := range 4 {
			put(t, b.Autocommit(), rea.Ref{Type: "order", ID: fmt.Sprint(round)}, event("A"), event("B"))
			after := int64(0)
			if len(got) > 0 {
				after = got[len(got)-1].Position
			}
			for e, err := range d.Open(t, address, rea.Config{}).Follow(limited(t), rea.Filter{After: after, Limit: 1 + round%2}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e)
			}
		}
		whole := b.history(t, rea.Filter{})
		same(t, "followed", story(got), story(whole[:len(got)]))
		same(t, "number", len(got), 6)
	}},
}
