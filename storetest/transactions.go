package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/realtime-event-archive/rea"
)

const business = `CREATE TABLE business (name text)`

// writeBoth does what users do: a row of their own, an event, a key, in one transaction.
func writeBoth(t *testing.T, tx *Transaction) rea.Receipt {
	t.Helper()
	tx.exec(t, `INSERT INTO business VALUES ('paid')`)
	return put(t, tx.With(rea.Once("req-1")), order1, event("OrderPlaced"), event("PaymentReceived"))
}

// nothingLeft checks that no trace of writeBoth is left, and that the seq and the key are free.
func nothingLeft(t *testing.T, b *Base) {
	t.Helper()
	same(t, "count", b.count(t), 0)
	same(t, "business rows", b.text(t, `SELECT CAST(count(*) AS text) FROM business`), "0")
	same(t, "history", story(b.history(t, rea.Filter{})), "")
	receipt := put(t, b.Autocommit().With(rea.Once("req-1")), order1, event("Other"))
	same(t, "Seq of the next append", receipt.Seq(), 1)
	same(t, "Duplicate of the next append", receipt.Duplicate, false)
}

var transactions = []clause{
	{"P3 an event commits with the caller's rows", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, business)
		tx := b.begin(t)
		same(t, "seqs", seqs(writeBoth(t, tx)), []int64{1, 2})
		same(t, "own view", story(of(t, tx.Tx, order1)), "order/1#1 OrderPlaced, order/1#2 PaymentReceived")
		tx.commit(t)
		same(t, "count", b.count(t), 2)
		same(t, "business rows", b.text(t, `SELECT CAST(count(*) AS text) FROM business`), "1")
	}},
	{"P3 a rollback takes event, key and the caller's rows along", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, business)
		tx := b.begin(t)
		writeBoth(t, tx)
		tx.rollback(t)
		nothingLeft(t, b)
	}},
	{"P3 a rollback to a savepoint takes event and key along, and the transaction goes on", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, business)
		tx := b.begin(t)
		tx.exec(t, `SAVEPOINT s`)
		writeBoth(t, tx)
		tx.exec(t, `ROLLBACK TO SAVEPOINT s`)
		same(t, "own view", story(of(t, tx.Tx, order1)), "")
		same(t, "Seq inside", put(t, tx.With(rea.Once("req-1")), order2, event("OrderPlaced")).Seq(), 1)
		tx.exec(t, `ROLLBACK TO SAVEPOINT s`)
		tx.commit(t)
		nothingLeft(t, b)
	}},
	{"P3 a panic after the append leaves nothing, in the user's transaction and in Do", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, business)
		caught := func(fn func()) (what any) {
			defer func() { what = recover() }()
			fn()
			return nil
		}
		same(t, "panic", caught(func() {
			tx := b.begin(t)
			defer func() { _ = tx.Rollback(t.Context()) }()
			writeBoth(t, tx)
			panic("user")
		}), any("user"))
		same(t, "panic of Do", caught(func() {
			_ = b.Do(t.Context(), func(tx *rea.Tx) error {
				put(t, tx.With(rea.Once("req-1")), order1, event("OrderPlaced"))
				panic("inside")
			})
		}), any("inside"))
		nothingLeft(t, b)
	}},
	{"P3 a context that ends before the commit leaves nothing", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, business)
		ctx, cancel := context.WithCancel(t.Context())
		tx, err := b.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		writeBoth(t, tx)
		cancel()
		if _, err := tx.Append(ctx, order1, event("X")); err == nil {
			t.Errorf("append with an ended context: error = nil, want one")
		}
		if err := tx.Commit(ctx); err == nil {
			t.Errorf("commit with an ended context: error = nil, want one")
		}
		_ = tx.Rollback(context.Background())
		nothingLeft(t, b)
	}},
	{"P3 a context that ends inside Do rolls back and its error comes out", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, business)
		ctx, cancel := context.WithCancel(t.Context())
		err := b.Do(ctx, func(tx *rea.Tx) error {
			put(t, tx, order1, event("OrderPlaced"))
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Do = %v, want %v", err, context.Canceled)
		}
		nothingLeft(t, b)
	}},
	{"P3 a batch is all or nothing", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.begin(t)
		_, err := tx.Append(t.Context(), order1, event("OrderPlaced"), event("NoteAdded", `{"a": 1, "a": 2}`), event("X"))
		refused[*rea.PayloadError](t, "second event", err)
		_, err = tx.Append(t.Context(), order1, event("OrderPlaced"), event(""))
		refused[*rea.LimitError](t, "second event", err)
		tx.commit(t)
		same(t, "count", b.count(t), 0)
	}},
	{"P3 a transaction may append to many aggregates and to one again", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.begin(t)
		put(t, tx.Tx, order1, event("OrderPlaced"))
		put(t, tx.Tx, order2, event("OrderPlaced"))
		same(t, "Seq", put(t, tx.With(rea.Expect(1)), order1, event("PaymentReceived")).Seq(), 2)
		same(t, "Seq", put(t, tx.With(rea.Expect(2)), order1, event("OrderShipped")).Seq(), 3)
		tx.commit(t)
		events := b.history(t, rea.Filter{})
		same(t, "history", story(events),
			"order/1#1 OrderPlaced, order/2#1 OrderPlaced, order/1#2 PaymentReceived, order/1#3 OrderShipped")
		for _, e := range events {
			same(t, "xid of "+story([]rea.Event{e}), e.XID, events[0].XID)
		}
		put(t, b.Autocommit(), order2, event("NoteAdded"))
		if later := of(t, b.Autocommit(), order2)[1].XID; later == events[0].XID || later == "" {
			t.Errorf("xid of another transaction = %q, want another one than %q", later, events[0].XID)
		}
	}},
	{"P3 an iterator holds no rows open while the caller's code appends", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Migrated(t), rea.Config{PageEvents: 2})
		for n := range 5 {
			put(t, b.Autocommit(), order1, event("X", fmt.Sprintf(`{"n": %d}`, n)))
		}
		b.history(t, rea.Filter{})
		tx := b.begin(t)
		got := int64(0)
		for e, err := range tx.Events(t.Context(), order1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			got++
			same(t, "Seq", e.Seq, got)
			if e.Seq <= 3 {
				put(t, tx.Tx, order1, event("Inside"))
				put(t, tx.Tx, order2, event("Inside"))
			}
		}
		if got < 5 {
			t.Errorf("events seen = %d, want at least 5", got)
		}
		positions := int64(0)
		for e, err := range tx.History(t.Context(), rea.Filter{Limit: 5}) {
			if err != nil {
				t.Fatal(err)
			}
			positions++
			same(t, "Position", e.Position, positions)
			put(t, tx.Tx, order2, event("Inside"))
		}
		tx.commit(t)
		same(t, "count", b.count(t), 5+3+3+5)
	}},
	{"P3 leaving an iterator early leaves the transaction usable", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Migrated(t), rea.Config{PageEvents: 2})
		put(t, b.Autocommit(), order1, event("A"), event("B"), event("C"), event("D"))
		tx := b.begin(t)
		for e, err := range tx.Events(t.Context(), order1, 1) {
			if err != nil {
				t.Fatal(err)
			}
			same(t, "Seq", e.Seq, 2)
			break
		}
		put(t, tx.Tx, order1, event("E"))
		tx.commit(t)
		same(t, "count", b.count(t), 5)
	}},
}
