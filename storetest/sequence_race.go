package storetest

import (
	"context"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// sequenceRaces hold two transactions open on purpose: the order is forced.
var sequenceRaces = []clause{
	{"P2 whoever waits for a writer that rolls back gets the seq that it left", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("OrderPlaced"))
		first := b.begin(t)
		put(t, first.With(rea.Expect(1)), order1, event("PaymentReceived"))
		second := later(func() (rea.Receipt, error) {
			return b.Autocommit().With(rea.Expect(1)).Append(limited(t), order1, event("OrderCancelled"))
		})
		b.waiting(t)
		first.rollback(t)
		receipt, err := second()
		if err != nil {
			t.Fatal(err)
		}
		same(t, "Seq", receipt.Seq(), 2)
		same(t, "events", story(of(t, b.Autocommit(), order1)), "order/1#1 OrderPlaced, order/1#2 OrderCancelled")
	}},
	{"P2 a batch that loses a race stands whole behind the winner", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("OrderPlaced"))
		first := b.begin(t)
		put(t, first.Tx, order1, event("NoteAdded"))
		second := b.begin(t)
		batch := later(func() (rea.Receipt, error) {
			return second.Append(limited(t), order1, event("A"), event("B"), event("C"))
		})
		b.waiting(t)
		first.commit(t)
		receipt, err := batch()
		if err != nil {
			t.Fatal(err)
		}
		second.commit(t)
		same(t, "seqs of the batch", seqs(receipt), []int64{3, 4, 5})
		same(t, "events", story(of(t, b.Autocommit(), order1)),
			"order/1#1 OrderPlaced, order/1#2 NoteAdded, order/1#3 A, order/1#4 B, order/1#5 C")
		dense(t, b.history(t, rea.Filter{}))
	}},
	{"P2 two first events of one aggregate do not both stand at seq 1", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		first := b.begin(t)
		put(t, first.With(rea.Expect(0)), order1, event("OrderPlaced"))
		second := later(func() (rea.Receipt, error) {
			return b.Autocommit().With(rea.Expect(0)).Append(limited(t), order1, event("OrderPlaced"))
		})
		b.waiting(t)
		first.commit(t)
		_, err := second()
		same(t, "conflict", *refused[*rea.ConflictError](t, "the second", err), rea.ConflictError{Aggregate: order1, Actual: 1})
	}},
	{"P3 a transaction that lost a race goes on and commits", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, `CREATE TABLE business (n int)`)
		first, second := b.begin(t), b.begin(t)
		second.exec(t, `INSERT INTO business VALUES (7)`)
		put(t, first.Tx, order1, event("OrderPlaced"))
		lost := later(func() (rea.Receipt, error) {
			return second.With(rea.Expect(0)).Append(limited(t), order1, event("OrderPlaced"))
		})
		b.waiting(t)
		first.commit(t)
		_, err := lost()
		refused[*rea.ConflictError](t, "the second", err)
		put(t, second.Tx, order2, event("OrderPlaced"))
		second.commit(t)
		same(t, "business rows", b.text(t, `SELECT CAST(sum(n) AS text) FROM business`), "7")
		same(t, "events", story(b.history(t, rea.Filter{})), "order/1#1 OrderPlaced, order/2#1 OrderPlaced")
	}},
	{"P3 a connection that is lost before the commit leaves nothing", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, business)
		tx := b.begin(t)
		writeBoth(t, tx)
		tx.Cut()
		if err := tx.Commit(limited(t)); err == nil {
			t.Errorf("commit on a lost connection: error = nil, want one")
		}
		nothingLeft(t, b)
	}},
	{"P3 what has not committed is seen by its own transaction alone", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.begin(t)
		put(t, tx.Tx, order1, event("OrderPlaced"))
		same(t, "own view", story(of(t, tx.Tx, order1)), "order/1#1 OrderPlaced")
		same(t, "others' view", story(of(t, b.Autocommit(), order1)), "")
		tx.commit(t)
		same(t, "others' view after commit", story(of(t, b.Autocommit(), order1)), "order/1#1 OrderPlaced")
	}},
	{"P4 of two calls with one key in flight one is stored and both get its seq", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("OrderPlaced"))
		first := b.begin(t)
		want := put(t, first.With(rea.Once("req-1")), order1, event("PaymentReceived", `{"amount": 5}`))
		second := later(func() (rea.Receipt, error) {
			return b.Autocommit().With(rea.Once("req-1")).Append(limited(t), order1, event("PaymentReceived", `{"amount": 5}`))
		})
		b.waiting(t)
		first.commit(t)
		got, err := second()
		if err != nil {
			t.Fatal(err)
		}
		same(t, "Duplicate", got.Duplicate, true)
		same(t, "events of the second receipt", got.Events, want.Events)
		same(t, "count", b.count(t), 2)
	}},
	{"P4 a key in flight with other content is reused, and free if its call rolls back", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		race := func(end func(*testing.T)) (rea.Receipt, error) {
			second := later(func() (rea.Receipt, error) {
				return b.Autocommit().With(rea.Once("req-1")).Append(limited(t), order1, event("OrderCancelled"))
			})
			b.waiting(t)
			end(t)
			return second()
		}
		first := b.begin(t)
		put(t, first.With(rea.Once("req-1")), order1, event("PaymentReceived"))
		receipt, err := race(first.rollback)
		if err != nil || receipt.Seq() != 1 || receipt.Duplicate {
			t.Errorf("after a rollback: %+v, %v, want a new event with seq 1", receipt, err)
		}
		b = d.fresh(t)
		first = b.begin(t)
		put(t, first.With(rea.Once("req-1")), order1, event("PaymentReceived"))
		_, err = race(first.commit)
		same(t, "reuse", *refused[*rea.KeyReusedError](t, "after a commit", err), rea.KeyReusedError{Aggregate: order1, Key: "req-1", Seq: 1})
	}},
	{"P5 an append does not wait for an open append to another aggregate", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		first := b.begin(t)
		put(t, first.Tx, order1, event("OrderPlaced"))
		ctx, cancel := context.WithTimeout(t.Context(), waits)
		defer cancel()
		if _, err := b.Autocommit().Append(ctx, order2, event("OrderPlaced")); err != nil {
			t.Errorf("append to order/2 while order/1 is open: %v", err)
		}
		first.commit(t)
		same(t, "count", b.count(t), 2)
	}},
}
