package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/realtime-event-archive/rea"
)

var orderRaces = []clause{
	{"P5 an event whose id is lower and whose commit is later is not lost", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		first := b.begin(t)
		put(t, first.Tx, order1, event("OrderPlaced", `{"total": 10}`))
		second := b.begin(t)
		put(t, second.Tx, order2, event("OrderPlaced", `{"total": 20}`))
		second.commit(t)
		before := b.history(t, rea.Filter{})
		same(t, "while the first is open", story(before), "order/2#1 OrderPlaced")
		first.commit(t)
		same(t, "afterwards", story(b.history(t, rea.Filter{After: before[0].Position})), "order/1#1 OrderPlaced")
		same(t, "from the start", story(b.history(t, rea.Filter{})), "order/2#1 OrderPlaced, order/1#1 OrderPlaced")
	}},
	{"P5 ids that are never filled hold nothing up", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, business)
		for n := range 10 {
			aggregate := rea.Ref{Type: "order", ID: fmt.Sprint(n)}
			tx := b.begin(t)
			switch n % 3 {
			case 0:
				put(t, tx.Tx, aggregate, event("Lost"))
				tx.rollback(t)
			case 1:
				tx.exec(t, `SAVEPOINT s`)
				put(t, tx.Tx, aggregate, event("Lost"))
				tx.exec(t, `ROLLBACK TO SAVEPOINT s`)
				tx.exec(t, `INSERT INTO business VALUES ('kept')`)
				tx.commit(t)
			case 2:
				put(t, tx.Tx, aggregate, event("Lost"))
				tx.Cut()
			}
		}
		put(t, b.Autocommit(), rea.Ref{Type: "order", ID: "99"}, event("OrderPlaced"))
		same(t, "history", story(b.history(t, rea.Filter{})), "order/99#1 OrderPlaced")
	}},
	{"P5 an open appender and an open writer of other tables delay nobody's events", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, business)
		unrelated, appender := b.begin(t), b.begin(t)
		unrelated.exec(t, `INSERT INTO business VALUES ('open')`)
		put(t, appender.Tx, order1, event("OrderPlaced"))
		for n := range 5 {
			put(t, b.Autocommit(), order2, event("X"))
			same(t, "events seen", len(b.history(t, rea.Filter{})), n+1)
		}
		appender.commit(t)
		unrelated.commit(t)
		events := b.history(t, rea.Filter{})
		dense(t, events)
		same(t, "last", story(events[5:]), "order/1#1 OrderPlaced")
	}},
	{"P5 an aggregate's events keep their order when their transaction wrote other tables first", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, business)
		early := b.begin(t)
		early.exec(t, `INSERT INTO business VALUES ('early')`) // has its transaction's number before anybody appends
		put(t, b.Autocommit(), order1, event("First"))
		put(t, early.Tx, order1, event("Second"))
		early.commit(t)
		events := b.history(t, rea.Filter{})
		same(t, "history", story(events), "order/1#1 First, order/1#2 Second")
		dense(t, events)
	}},
	{"P5 a follower gets what commits late exactly once, while others commit", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		ctx, cancel := context.WithCancel(limited(t))
		defer cancel()
		seen := make(chan rea.Event)
		done := later(func() (int, error) {
			n := 0
			for e, err := range b.Follow(ctx, rea.Filter{}) {
				if err != nil {
					return n, err
				}
				n++
				seen <- e
			}
			return n, nil
		})
		late := b.begin(t)
		put(t, late.Tx, order1, event("Late"))
		for range 3 {
			put(t, b.Autocommit(), order2, event("X"))
			same(t, "followed", (<-seen).Type, "X")
		}
		late.commit(t)
		same(t, "followed after the late commit", (<-seen).Type, "Late")
		put(t, b.Autocommit(), order2, event("X"))
		last := <-seen
		same(t, "followed last", fmt.Sprint(last.Type, last.Position), "X5")
		cancel()
		n, err := done()
		same(t, "followed in all", fmt.Sprint(n, err), "5 <nil>")
	}},
}
