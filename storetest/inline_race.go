package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// write appends until ctx ends: old versions, old names, what nobody declares; to two hot aggregates and to many.
func (b *Base) write(t *testing.T, ctx context.Context, w int) {
	random := rand.New(rand.NewPCG(uint64(w), 7))
	for n := 0; ctx.Err() == nil; n++ {
		ref := rea.Ref{Type: "order", ID: fmt.Sprint(random.IntN(2))}
		if n%2 == 0 {
			ref.ID = fmt.Sprintf("%d-%d", w, n/4)
		}
		events := []rea.NewEvent{event("Paid", `{"amount": 0.25}`), event("Placed", `{"total": 3}`), event("Noted", `{"customer": {"note": "x"}, "more": 2}`),
			{Type: "Placed", Version: 1, Payload: []byte(`{"sum": 7}`)}, event("Other")}
		e := events[random.IntN(len(events))]
		if e.Version == 1 && random.IntN(4) > 0 {
			e = events[0]
		}
		var err error
		if n%6 == 0 { // one of its own and a hot one, in any order: two hot ones would deadlock, a second each time
			refs := []rea.Ref{ref, {Type: "order", ID: fmt.Sprint(random.IntN(2))}}
			if n%12 == 0 {
				refs[0], refs[1] = refs[1], refs[0]
			}
			err = b.Do(context.WithoutCancel(ctx), func(tx *rea.Tx) error {
				_, err := tx.Append(context.WithoutCancel(ctx), refs[0], e)
				if err == nil {
					_, err = tx.Append(context.WithoutCancel(ctx), refs[1], events[0])
				}
				return err
			})
		} else {
			_, err = b.Autocommit().Append(context.WithoutCancel(ctx), ref, e)
		}
		if err != nil && !errors.Is(err, rea.ErrRetry) {
			t.Errorf("append: %v", err)
			return
		}
	}
}

// writing runs eight writers beside fn.
func (b *Base) writing(t *testing.T, fn func()) {
	ctx, stop := context.WithCancel(limited(t))
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() { b.write(t, ctx, w) })
	}
	fn()
	stop()
	writers.Wait()
}

var inlineRaces = []clause{
	{"P11 a catalog is applied over events under eight writers, and every inline row is the fold", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		for range 3 {
			address := d.Migrated(t)
			b := d.Open(t, address, rea.Config{})
			for n := range 30 {
				put(t, b.Autocommit(), rea.Ref{Type: "order", ID: fmt.Sprint(n)}, rea.NewEvent{Type: "PlacedV1", Payload: []byte(`{"sum": 1}`)}, event("Paid", `{"amount": 1}`), event("Touched"))
			}
			short := kept()
			short.Columns = short.Columns[:3]
			b.writing(t, func() {
				d.keep(t, address, types, short)
				d.keep(t, address, types, kept())
			})
			last, change := d.keep(t, address, types, kept()) // what writers of old versions left behind since
			same(t, "projections", len(change.Projections), 0)
			d.drift(t, last, types, kept())
		}
	}},
	{"P11 with events in their newest form alone, applying once is enough", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		for round := range 3 {
			address := d.Migrated(t)
			b := d.Open(t, address, rea.Config{})
			for n := range 20 {
				put(t, b.Autocommit(), rea.Ref{Type: "order", ID: fmt.Sprint(n)}, rea.NewEvent{Type: "PlacedV1", Payload: []byte(`{"sum": 1}`)}, event("Paid", `{"amount": 1}`))
			}
			ctx, stop := context.WithCancel(limited(t))
			var writers sync.WaitGroup
			for w := range 8 {
				writers.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						id := []string{fmt.Sprint(n % 2), fmt.Sprint(n % 20), fmt.Sprintf("%d-%d", w, n/5)}[n%3]
						_, err := b.Autocommit().Append(context.WithoutCancel(ctx), rea.Ref{Type: "order", ID: id}, event("Paid", `{"amount": 0.5}`))
						if err != nil && !errors.Is(err, rea.ErrRetry) {
							t.Errorf("append: %v", err)
							return
						}
					}
				})
			}
			_, change := d.keep(t, address, types, kept())
			same(t, "behind", len(change.Behind), 0)
			if round > 0 {
				d.keep(t, address, types, kept()) // and again, while they write
			}
			stop()
			writers.Wait()
			d.drift(t, b, types, kept())
		}
	}},
	{"P11 several processes apply one catalog at once under writers", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		address := d.Migrated(t)
		b := d.Open(t, address, rea.Config{})
		for n := range 20 {
			put(t, b.Autocommit(), rea.Ref{Type: "order", ID: fmt.Sprint(n)}, event("Paid", `{"amount": 1}`))
		}
		b.writing(t, func() {
			var appliers sync.WaitGroup
			for range 3 {
				other := d.Open(t, address, rea.Config{Catalog: keeping(t, types, kept())})
				appliers.Go(func() {
					if _, err := other.Apply(limited(t)); err != nil {
						t.Errorf("apply: %v", err)
					}
				})
			}
			appliers.Wait()
		})
		last, _ := d.keep(t, address, types, kept())
		d.drift(t, last, types, kept())
	}},
	{"P11 no reader sees an inline row go back while its table is rebuilt under writers", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		address := d.Migrated(t)
		b, _ := d.keep(t, address, types, kept())
		for n := range 20 {
			put(t, b.Autocommit(), rea.Ref{Type: "order", ID: fmt.Sprint(n)}, event("Paid", `{"amount": 1}`))
		}
		ctx, stop := context.WithCancel(limited(t))
		var others sync.WaitGroup
		for range 3 {
			others.Go(func() {
				for ctx.Err() == nil {
					if _, err := b.Autocommit().Append(context.WithoutCancel(ctx), order1, event("Paid", `{"amount": 1}`)); err != nil && !errors.Is(err, rea.ErrRetry) {
						t.Errorf("append: %v", err)
						return
					}
				}
			})
		}
		others.Go(func() {
			for last := 0; ctx.Err() == nil; {
				tx, err := b.Begin(context.WithoutCancel(ctx))
				if err != nil {
					t.Error(err)
					return
				}
				text, err := tx.Text(context.WithoutCancel(ctx), "SELECT CAST(rea_seq AS TEXT) FROM "+d.view("order_state")+" WHERE aggregate_id = '1'")
				_ = tx.Rollback(context.WithoutCancel(ctx))
				seq, wrong := strconv.Atoi(text)
				if err != nil || wrong != nil || seq < last {
					t.Errorf("rea_seq = %s, %v, after %d", text, err, last)
					return
				}
				last = seq
			}
		})
		for version := 2; version < 6; version++ {
			raised := kept()
			raised.Version = version
			d.keep(t, address, types, raised)
		}
		stop()
		others.Wait()
		d.drift(t, b, types, kept())
	}},
}
