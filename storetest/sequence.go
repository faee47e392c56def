package storetest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/realtime-event-archive/rea"
)

var sequence = []clause{
	{"P2 each aggregate counts 1, 2, 3 whatever the others do", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit()
		for n := int64(1); n <= 4; n++ {
			for _, aggregate := range []rea.Ref{order1, order2} {
				same(t, "Seq of "+aggregate.String(), put(t, tx, aggregate, event("X")).Seq(), n)
			}
		}
		same(t, "seqs of a batch", seqs(put(t, tx, order1, event("A"), event("B"), event("C"))), []int64{5, 6, 7})
		dense(t, b.history(t, rea.Filter{}))
	}},
	{"P2 an expectation of an aggregate that does not exist is a conflict with actual 0", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		aggregate := rea.Ref{Type: "order", ID: "77"}
		_, err := b.Autocommit().With(rea.Expect(5)).Append(t.Context(), aggregate, event("PaymentReceived"))
		same(t, "conflict", *refused[*rea.ConflictError](t, "expect 5", err), rea.ConflictError{Aggregate: aggregate, Expected: 5})
		same(t, "count", b.count(t), 0)
	}},
	{"P2 an expectation that is met appends, and one that is passed conflicts", func(t *testing.T, d *Door) {
		tx := d.fresh(t).Autocommit()
		same(t, "Seq at expect 0", put(t, tx.With(rea.Expect(0)), order1, event("OrderPlaced")).Seq(), 1)
		same(t, "Seq at expect 1", put(t, tx.With(rea.Expect(1)), order1, event("NoteAdded"), event("NoteAdded")).Seq(), 3)
		for _, expected := range []int64{0, 1, 2, 4} {
			_, err := tx.With(rea.Expect(expected)).Append(t.Context(), order1, event("X"))
			same(t, "conflict", *refused[*rea.ConflictError](t, fmt.Sprint("expect ", expected), err),
				rea.ConflictError{Aggregate: order1, Expected: expected, Actual: 3})
		}
		same(t, "events", story(of(t, tx, order1)), "order/1#1 OrderPlaced, order/1#2 NoteAdded, order/1#3 NoteAdded")
	}},
	{"P2 an expectation may be any seq, the largest too", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("OrderPlaced"))
		stored := put(t, b.Autocommit().With(rea.Expect(1), rea.Once("k")), order1, event("PaymentReceived")).Events
		try := func(tx *rea.Tx) {
			for _, expected := range []int64{3, 1 << 40, math.MaxInt64 - 1, math.MaxInt64} {
				tx := tx.With(rea.Expect(expected))
				for _, tx := range []*rea.Tx{tx, tx.With(rea.Once("new"))} {
					_, err := tx.Append(t.Context(), order1, event("X"))
					same(t, "conflict", *refused[*rea.ConflictError](t, fmt.Sprint("expect ", expected), err), rea.ConflictError{Aggregate: order1, Expected: expected, Actual: 2})
				}
				same(t, "a known key", put(t, tx.With(rea.Once("k")), order1, event("PaymentReceived")).Events, stored)
			}
		}
		try(b.Autocommit())
		try(b.begin(t).Tx)
	}},
	{"P2 one id under two types is two aggregates", func(t *testing.T, d *Door) {
		tx := d.fresh(t).Autocommit()
		order7, payment7 := rea.Ref{Type: "order", ID: "7"}, rea.Ref{Type: "payment", ID: "7"}
		same(t, "Seq of order/7", put(t, tx, order7, event("OrderPlaced", `{"total": 1}`)).Seq(), 1)
		same(t, "Seq of payment/7", put(t, tx.With(rea.Expect(0)), payment7, event("PaymentOpened", `{"total": 2}`)).Seq(), 1)
		loaded, err := rea.Replay(t.Context(), tx, order7, rea.Merge)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "state of order/7", string(loaded.State["total"]), "1")
		_, err = rea.Replay(t.Context(), tx, rea.Ref{Type: "invoice", ID: "7"}, rea.Merge)
		refused[*rea.NotFoundError](t, "state of invoice/7", err)
	}},
	{"P2 of two appends with one expectation one is stored and the other conflicts", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("OrderPlaced"))
		first := b.begin(t)
		receipt := put(t, first.With(rea.Expect(1)), order1, event("PaymentReceived"))
		second := later(func() (rea.Receipt, error) {
			return b.Autocommit().With(rea.Expect(1)).Append(limited(t), order1, event("PaymentReceived"))
		})
		if d.Concurrent {
			b.waiting(t)
		}
		first.commit(t)
		_, err := second()
		same(t, "Seq of the first", receipt.Seq(), 2)
		same(t, "conflict", *refused[*rea.ConflictError](t, "the second", err), rea.ConflictError{Aggregate: order1, Expected: 1, Actual: 2})
		same(t, "count", b.count(t), 2)
	}},
	{"P2 twenty sessions without an expectation are all stored, without holes", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("OrderPlaced"))
		const sessions = 20
		start := make(chan struct{})
		answers := make([]func() (rea.Receipt, error), sessions)
		for i := range answers {
			answers[i] = later(func() (rea.Receipt, error) {
				<-start
				return b.Autocommit().Append(limited(t), order1, event("NoteAdded", fmt.Sprintf(`{"n": %d}`, i)))
			})
		}
		close(start)
		stored, taken := 0, map[int64]bool{}
		for i, answer := range answers {
			receipt, err := answer()
			if err != nil {
				t.Logf("session %d: %v", i, err)
				continue
			}
			stored++
			if taken[receipt.Seq()] {
				t.Errorf("seq %d was given twice", receipt.Seq())
			}
			taken[receipt.Seq()] = true
		}
		events := b.history(t, rea.Filter{})
		dense(t, events)
		same(t, "stored events", len(events), stored+1)
		same(t, "successes", stored, sessions)
	}},
	{"P2 load, decide, append by eight sessions at once through Do loses nothing", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("Counted", `{"n": 0}`))
		const sessions, rounds = 8, 10
		answers := make([]func() (int, error), sessions)
		for i := range answers {
			answers[i] = later(func() (int, error) {
				for round := range rounds {
					if err := b.Do(limited(t), addOne(limited(t))); err != nil {
						return round, err
					}
				}
				return rounds, nil
			})
		}
		for i, answer := range answers {
			if done, err := answer(); err != nil {
				t.Errorf("session %d, round %d: %v", i, done, err)
			}
		}
		events := of(t, b.Autocommit(), order1)
		dense(t, events)
		for i, e := range events {
			same(t, fmt.Sprintf("payload of seq %d", e.Seq), string(e.Payload), fmt.Sprintf(`{"n": %d}`, i))
		}
		same(t, "events", len(events), sessions*rounds+1)
	}},
}

// addOne appends one more than what it has loaded.
func addOne(ctx context.Context) func(tx *rea.Tx) error {
	return func(tx *rea.Tx) error {
		loaded, err := rea.Replay(ctx, tx, order1, func(n int, _ rea.Event) (int, error) { return n + 1, nil })
		if err != nil {
			return err
		}
		_, err = loaded.Append(ctx, event("Counted", fmt.Sprintf(`{"n": %d}`, loaded.State)))
		return err
	}
}
