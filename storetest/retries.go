package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/realtime-event-archive/rea"
)

var retries = []clause{
	{"P3 Do commits what its function did, once", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		runs := 0
		err := b.Do(t.Context(), func(tx *rea.Tx) error {
			runs++
			put(t, tx, order1, event("OrderPlaced"))
			put(t, tx, order2, event("OrderPlaced"))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "runs", runs, 1)
		same(t, "count", b.count(t), 2)
	}},
	{"P3 Do runs its function again from the start after a conflict", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		runs := 0
		err := b.Do(limited(t), func(tx *rea.Tx) error {
			runs++
			put(t, tx, order2, event("Tried"))
			expect := int64(7)
			if runs == 3 {
				expect = 0
			} else if runs == 2 {
				expect = 8
			}
			_, err := tx.With(rea.Expect(expect)).Append(t.Context(), order1, event("OrderPlaced"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "runs", runs, 3)
		same(t, "history", story(b.history(t, rea.Filter{})), "order/2#1 Tried, order/1#1 OrderPlaced")
	}},
	{"P3 Do returns a conflict that comes back with the same expectation", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		runs := 0
		err := b.Do(limited(t), func(tx *rea.Tx) error {
			runs++
			put(t, tx, order2, event("Tried"))
			_, err := tx.With(rea.Expect(7)).Append(t.Context(), order1, event("OrderPlaced"))
			return err
		})
		same(t, "conflict", *refused[*rea.ConflictError](t, "Do", err), rea.ConflictError{Aggregate: order1, Expected: 7})
		same(t, "runs", runs, 2)
		same(t, "count", b.count(t), 0)
	}},
	{"P3 Do gives up after Config.Attempts", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Migrated(t), rea.Config{Attempts: 4})
		runs := int64(0)
		err := b.Do(limited(t), func(tx *rea.Tx) error {
			runs++
			_, err := tx.With(rea.Expect(10*runs)).Append(t.Context(), order1, event("X"))
			return err
		})
		refused[*rea.ConflictError](t, "Do", err)
		same(t, "runs", runs, 4)
	}},
	{"P3 Do rolls back on any other error and does not run again", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		runs := 0
		mine := errors.New("mine")
		err := b.Do(t.Context(), func(tx *rea.Tx) error {
			runs++
			put(t, tx.With(rea.Once("k")), order1, event("OrderPlaced"))
			return mine
		})
		same(t, "error", err, mine)
		same(t, "runs", runs, 1)
		same(t, "count", b.count(t), 0)
		same(t, "Duplicate of the key afterwards", put(t, b.Autocommit().With(rea.Once("k")), order1, event("X")).Duplicate, false)
	}},
	{"P3 a conflict that Do's function swallows does not run it again", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		runs := 0
		err := b.Do(t.Context(), func(tx *rea.Tx) error {
			runs++
			_, err := tx.With(rea.Expect(7)).Append(t.Context(), order1, event("X"))
			refused[*rea.ConflictError](t, "inside", err)
			_, err = tx.Append(t.Context(), order1, event("OrderPlaced"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "runs", runs, 1)
		same(t, "count", b.count(t), 1)
	}},
	{"P3 Do does not begin when its context has ended", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		runs := 0
		err := b.Do(ctx, func(*rea.Tx) error { runs++; return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Do = %v, want %v", err, context.Canceled)
		}
		same(t, "runs", runs, 0)
	}},
}
