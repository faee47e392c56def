package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// orderType is the order of the specification; change makes another catalog of it.
func orderType(change ...func(*rea.Type)) rea.Type {
	t := rea.Type{Name: "order", Status: "status", Events: []rea.EventType{
		{Name: "OrderPlaced", From: []string{rea.FromNone}, To: "placed", Version: 2, Upcast: map[int]rea.UpcastFunc{
			1: func(payload rea.Object) (rea.Object, error) { return payload, nil }}},
		{Name: "OrderPlacedV1", AliasOf: "OrderPlaced", Version: 1},
		{Name: "PaymentReceived", From: []string{"placed"}, To: "paid"},
		{Name: "OrderShipped", From: []string{"paid"}, To: "shipped"},
		{Name: "OrderCancelled", From: []string{"placed", "paid"}, To: "cancelled"},
		{Name: "NoteAdded", From: []string{rea.FromAny}},
		{Name: "Tagged"},
		{Name: "CouponTouched", Retired: true},
	}}
	for _, fn := range change {
		fn(&t)
	}
	return t
}

// settled is the catalog that calls paid settled.
func settled(renamed map[string]string) func(*rea.Type) {
	return func(t *rea.Type) {
		t.Renamed = renamed
		for i := range t.Events {
			e := &t.Events[i]
			if e.To == "paid" {
				e.To = "settled"
			}
			for n, from := range e.From {
				if from == "paid" {
					e.From[n] = "settled"
				}
			}
		}
	}
}

func catalogOf(t *testing.T, types ...rea.Type) *rea.Catalog {
	t.Helper()
	c, err := rea.NewCatalog(types...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// applied opens an archive again, and applies a catalog through it.
func (d *Door) applied(t *testing.T, address string, types ...rea.Type) (*Base, rea.Change) {
	t.Helper()
	b := d.Open(t, address, rea.Config{Catalog: catalogOf(t, types...)})
	change, err := b.Apply(limited(t))
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return b, change
}

// statuses tells the stored statuses of an aggregate, and the catalogs that gave them.
func statuses(events []rea.Event) string {
	var told string
	for _, e := range events {
		told += fmt.Sprintf("%s/%d ", e.Status, e.CatalogVersion)
	}
	return told
}

var machines = []clause{
	{"P10 an illegal step is refused with the present status and the legal steps", func(t *testing.T, d *Door) {
		b, change := d.applied(t, d.Migrated(t), orderType())
		same(t, "Number", change.Number, 1)
		tx := b.begin(t)
		_, err := tx.Append(t.Context(), order1, event("PaymentReceived"))
		same(t, "refusal of the first event", *refused[*rea.TransitionError](t, "first", err),
			rea.TransitionError{Aggregate: order1, Event: "PaymentReceived", Legal: []string{"OrderPlaced"}})
		same(t, "Status", put(t, tx.Tx, order1, event("OrderPlaced")).Status(), "placed")
		same(t, "Status", put(t, tx.Tx, order1, event("PaymentReceived")).Status(), "paid")
		same(t, "Status after a note", put(t, tx.Tx, order1, event("NoteAdded")).Status(), "paid")
		same(t, "Status after a tag", put(t, tx.Tx, order1, event("Tagged")).Status(), "paid")
		same(t, "Status after what is not declared", put(t, tx.Tx, order1, event("Other")).Status(), "paid")
		_, err = tx.Append(t.Context(), order1, event("PaymentReceived"))
		same(t, "refusal", *refused[*rea.TransitionError](t, "paid twice", err), rea.TransitionError{Aggregate: order1, Event: "PaymentReceived",
			Status: "paid", Seq: 5, Legal: []string{"OrderShipped", "OrderCancelled", "NoteAdded"}})
		same(t, "errors.Is", errors.Is(err, rea.ErrIllegalStep), true)
		same(t, "Status", put(t, tx.Tx, order1, event("OrderShipped")).Status(), "shipped")
		tx.commit(t)
		same(t, "statuses", statuses(of(t, b.Autocommit(), order1)), "placed/1 paid/1 paid/1 paid/1 paid/1 shipped/1 ")
		same(t, "version", of(t, b.Autocommit(), order1)[0].Version, 2)
	}},
	{"P10 old names and retired events are not appended, also as a correction", func(t *testing.T, d *Door) {
		b, _ := d.applied(t, d.Migrated(t), orderType())
		for _, tx := range []*rea.Tx{b.Autocommit(), b.Autocommit().With(rea.Correction(), rea.By("42"), rea.Because("test"))} {
			_, err := tx.Append(t.Context(), order1, event("OrderPlacedV1"))
			same(t, "AliasOf", refused[*rea.TransitionError](t, "old name", err).AliasOf, "OrderPlaced")
			_, err = tx.Append(t.Context(), order1, event("CouponTouched"))
			same(t, "Retired", refused[*rea.TransitionError](t, "retired", err).Retired, true)
		}
	}},
	{"P10 a strict type refuses what is not declared", func(t *testing.T, d *Door) {
		b, _ := d.applied(t, d.Migrated(t), orderType(func(t *rea.Type) { t.Strict = true }))
		put(t, b.Autocommit(), order1, event("OrderPlaced"))
		_, err := b.Autocommit().Append(t.Context(), order1, event("Other"))
		same(t, "refusal", *refused[*rea.UnknownTypeError](t, "other", err), rea.UnknownTypeError{Aggregate: order1, Event: "Other"})
		put(t, b.Autocommit(), rea.Ref{Type: "payment", ID: "1"}, event("Other"))
	}},
	{"P10 a type without a machine has neither status nor catalog_version", func(t *testing.T, d *Door) {
		b, _ := d.applied(t, d.Migrated(t), orderType(), rea.Type{Name: "payment", Events: []rea.EventType{{Name: "Paid", Version: 1}}})
		for _, kind := range []string{"payment", "other"} {
			ref := rea.Ref{Type: kind, ID: "1"}
			put(t, b.Autocommit(), ref, event("Paid"), event("More"))
			same(t, "statuses", statuses(of(t, b.Autocommit(), ref)), "/0 /0 ")
		}
	}},
	{"P10 a correction takes an illegal step, where it leads", func(t *testing.T, d *Door) {
		b, _ := d.applied(t, d.Migrated(t), orderType())
		tx := b.Autocommit()
		put(t, tx, order1, event("OrderPlaced"), event("PaymentReceived"), event("OrderShipped"))
		put(t, tx.With(rea.Correction(), rea.By("42"), rea.Because("came back")), order1, event("PaymentReceived"))
		put(t, tx, order1, event("OrderShipped"))
		same(t, "statuses", statuses(of(t, tx, order1)), "placed/1 paid/1 shipped/1 paid/1 shipped/1 ")
	}},
	{"P10 each event of a batch steps from the one before, all or nothing", func(t *testing.T, d *Door) {
		b, _ := d.applied(t, d.Migrated(t), orderType())
		receipt := put(t, b.Autocommit(), order1, event("OrderPlaced"), event("NoteAdded"), event("PaymentReceived"))
		same(t, "Status of the second", receipt.Events[1].Status, "placed")
		same(t, "Status", receipt.Status(), "paid")
		_, err := b.Autocommit().Append(t.Context(), order1, event("OrderShipped"), event("OrderCancelled"))
		same(t, "Status", refused[*rea.TransitionError](t, "batch", err).Status, "shipped")
		same(t, "count", b.count(t), 3)
	}},
	{"P10 conflict and key come before the step", func(t *testing.T, d *Door) {
		b, _ := d.applied(t, d.Migrated(t), orderType())
		tx := b.Autocommit()
		put(t, tx.With(rea.Once("k")), order1, event("OrderPlaced"))
		again := put(t, tx.With(rea.Once("k")), order1, event("OrderPlaced"))
		same(t, "Duplicate", again.Duplicate, true)
		same(t, "Status", again.Status(), "placed")
		_, err := tx.With(rea.Expect(7)).Append(t.Context(), order1, event("OrderShipped"))
		refused[*rea.ConflictError](t, "expect", err)
	}},
	{"P10 events from before the catalog tell the status by their types", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		b := d.Open(t, address, rea.Config{})
		put(t, b.Autocommit(), order1, event("OrderPlacedV1"), event("PaymentReceived"), event("Other"))
		put(t, b.Autocommit(), order2, event("Other"))
		d.applied(t, address, orderType())
		_, err := b.Autocommit().Append(t.Context(), order1, event("PaymentReceived"))
		same(t, "Status", refused[*rea.TransitionError](t, "paid twice", err).Status, "paid")
		same(t, "Status", put(t, b.Autocommit(), order1, event("NoteAdded"), event("OrderShipped")).Status(), "shipped")
		same(t, "statuses", statuses(of(t, b.Autocommit(), order1)), "/0 /0 /0 paid/1 shipped/1 ")
		_, err = b.Autocommit().Append(t.Context(), order2, event("OrderShipped"))
		same(t, "Status", refused[*rea.TransitionError](t, "without a status", err).Status, "")
		put(t, b.Autocommit(), order2, event("NoteAdded"), event("NoteAdded"))
		same(t, "statuses", statuses(of(t, b.Autocommit(), order2)), "/0 /1 /1 ")
	}},
	{"P10 a status is carried through what was renamed", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		b, _ := d.applied(t, address, orderType())
		put(t, b.Autocommit(), order1, event("OrderPlaced"), event("PaymentReceived"))
		put(t, b.Autocommit(), order2, event("OrderPlaced"))
		other := d.Open(t, address, rea.Config{Catalog: catalogOf(t, orderType(settled(nil)))})
		plan, err := other.PlanApply(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		same(t, "Unknown", plan.Unknown, []rea.PresentStatus{{Type: "order", Status: "paid", Catalog: 1, Aggregates: 1}})
		_, err = other.Apply(t.Context())
		same(t, "Statuses", refused[*rea.UnknownStatusError](t, "paid is unknown", err).Statuses, plan.Unknown)
		_, change := d.applied(t, address, orderType(settled(map[string]string{"paid": "settled"})))
		same(t, "Number", change.Number, 2)
		_, change = d.applied(t, address, orderType(settled(map[string]string{"paid": "settled"}), func(t *rea.Type) { t.Strict = true }))
		same(t, "Number", change.Number, 3)
		_, err = b.Autocommit().Append(t.Context(), order1, event("PaymentReceived"))
		same(t, "Status", refused[*rea.TransitionError](t, "paid twice", err).Status, "settled")
		put(t, b.Autocommit(), order1, event("NoteAdded"), event("OrderShipped"))
		put(t, b.Autocommit(), order2, event("PaymentReceived"))
		same(t, "statuses", statuses(of(t, b.Autocommit(), order1)), "placed/1 paid/1 settled/3 shipped/3 ")
		same(t, "statuses", statuses(of(t, b.Autocommit(), order2)), "placed/1 settled/3 ")
	}},
	{"P10 a status that shows again when an event leads nowhere any more is looked at", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		of := func(status string, events ...rea.EventType) rea.Type {
			return rea.Type{Name: "order", Status: status, Events: events}
		}
		b, _ := d.applied(t, address, of("status", rea.EventType{Name: "A", To: "z"}))
		put(t, b.Autocommit(), order1, event("A"))
		d.applied(t, address, of("", rea.EventType{Name: "A"}))
		put(t, b.Autocommit(), order1, event("B"))
		d.applied(t, address, of("status", rea.EventType{Name: "B", To: "x"}))
		last := d.Open(t, address, rea.Config{Catalog: catalogOf(t, of("status", rea.EventType{Name: "B"}, rea.EventType{Name: "C", To: "x"}))})
		_, err := last.Apply(limited(t))
		same(t, "Statuses", refused[*rea.UnknownStatusError](t, "z", err).Statuses, []rea.PresentStatus{{Type: "order", Status: "z", Catalog: 1, Aggregates: 1}})
	}},
	{"P10 applying the same catalog again does nothing, also at once", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		var wait sync.WaitGroup
		var mu sync.Mutex
		news := 0
		for range 4 {
			b := d.Open(t, address, rea.Config{Catalog: catalogOf(t, orderType())})
			wait.Go(func() {
				change, err := b.Apply(limited(t))
				if err != nil || change.Number != 1 {
					t.Errorf("apply = %d, %v, want catalog 1", change.Number, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if change.New {
					news++
				}
			})
		}
		wait.Wait()
		same(t, "catalogs applied", news, 1)
	}},
	{"P10 import lines go through the same machine", func(t *testing.T, d *Door) {
		b, _ := d.applied(t, d.Migrated(t), orderType())
		lines := []rea.Line{
			{Aggregate: order1, Event: event("OrderPlaced"), Seq: 1}, {Aggregate: order1, Event: event("OrderShipped"), Seq: 2},
			{Aggregate: order1, Event: event("PaymentReceived"), Seq: 2}, {Aggregate: order2, Event: event("PaymentReceived")},
			{Aggregate: order2, Event: event("OrderPlaced")},
		}
		var results []rea.LineResult
		err := b.Do(limited(t), func(tx *rea.Tx) (err error) {
			results, err = tx.Import(limited(t), lines)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{false, true, false, true, false} {
			same(t, fmt.Sprintf("line %d illegal", i), errors.Is(results[i].Err, rea.ErrIllegalStep), want)
		}
		same(t, "refusal", *refused[*rea.TransitionError](t, "line 1", results[1].Err), rea.TransitionError{Aggregate: order1, Event: "OrderShipped",
			Status: "placed", Seq: 1, Legal: []string{"PaymentReceived", "OrderCancelled", "NoteAdded"}})
		same(t, "statuses", statuses(of(t, b.Autocommit(), order1)), "placed/1 paid/1 ")
	}},
	{"P10 catalogs change under eight writers, and each event is by one of them", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		strict := func(t *rea.Type) { t.Strict = true }
		gift := func(t *rea.Type) {
			t.Strict, t.Events = true, append(t.Events, rea.EventType{Name: "Gift", From: []string{rea.FromAny}, To: "placed"})
		}
		rules := func(number int) rea.Type { return orderType([]func(*rea.Type){gift, strict}[number%2]) }
		b, _ := d.applied(t, address, rules(1))
		ctx, stop := context.WithCancel(limited(t))
		kinds := []string{"OrderPlaced", "PaymentReceived", "NoteAdded", "OrderShipped", "Gift"}
		var writers sync.WaitGroup
		for w := range 8 {
			writers.Go(func() {
				for n := w; ctx.Err() == nil; n++ {
					ref := rea.Ref{Type: "order", ID: fmt.Sprint(n / 7 % 40)}
					_, err := b.Autocommit().Append(context.WithoutCancel(ctx), ref, event(kinds[n*(w+1)%len(kinds)]))
					if err != nil && !errors.Is(err, rea.ErrIllegalStep) && !errors.Is(err, rea.ErrUnknownType) {
						t.Errorf("append: %v", err)
						return
					}
				}
			})
		}
		for number := 2; number < 10; number++ {
			_, change := d.applied(t, address, rules(number))
			same(t, "Number", change.Number, number)
		}
		stop()
		writers.Wait()
		events := map[rea.Ref]string{}
		last := 0
		for _, e := range b.history(t, rea.Filter{}) {
			if e.CatalogVersion < last {
				t.Fatalf("position %d is by catalog %d, after an event by %d", e.Position, e.CatalogVersion, last)
			}
			last = e.CatalogVersion
			status := events[e.Aggregate]
			taken, err := catalogOf(t, rules(e.CatalogVersion)).Take(e.Aggregate, rea.NewEvent{Type: e.Type}, status, e.Seq-1, false)
			if err != nil || taken.Status != e.Status {
				t.Fatalf("%s seq %d: %s from %q is stored with %q, want %q, %v", e.Aggregate, e.Seq, e.Type, status, e.Status, taken.Status, err)
			}
			events[e.Aggregate] = e.Status
		}
		same(t, "catalogs in use", last > 1, true)
	}},
	{"P10 of ten payments at once one is stored (FSM-1)", func(t *testing.T, d *Door) {
		b, _ := d.applied(t, d.Migrated(t), orderType())
		put(t, b.Autocommit(), order1, event("OrderPlaced"))
		stored, errs := atOnce(t, 10, func(ctx context.Context, _ int) error {
			_, err := b.Autocommit().Append(ctx, order1, event("PaymentReceived"))
			return err
		})
		same(t, "stored", stored, 1)
		for _, err := range errs {
			loser := refused[*rea.TransitionError](t, "loser", err)
			same(t, "Status", fmt.Sprint(loser.Status, " at ", loser.Seq), "paid at 2")
		}
	}},
	{"P10 of two different steps at once one is stored (FSM-2)", func(t *testing.T, d *Door) {
		b, _ := d.applied(t, d.Migrated(t), orderType())
		for n := range 200 {
			ref := rea.Ref{Type: "order", ID: fmt.Sprint(n)}
			put(t, b.Autocommit(), ref, event("OrderPlaced"), event("PaymentReceived"))
			stored, errs := atOnce(t, 2, func(ctx context.Context, i int) error {
				_, err := b.Autocommit().Append(ctx, ref, event([]string{"OrderShipped", "OrderCancelled"}[i]))
				return err
			})
			same(t, "stored", stored, 1)
			last := of(t, b.Autocommit(), ref)[2]
			for _, err := range errs {
				loser := refused[*rea.TransitionError](t, "loser", err)
				same(t, "Status", fmt.Sprint(loser.Status, " at ", loser.Seq), fmt.Sprint(last.Status, " at ", last.Seq))
			}
		}
	}},
}

// atOnce runs fn n times at once, and gives how many succeeded, and the other errors.
func atOnce(t *testing.T, n int, fn func(ctx context.Context, i int) error) (succeeded int, errs []error) {
	ctx := limited(t)
	answers := make(chan error, n)
	for i := range n {
		go func() { answers <- fn(ctx, i) }()
	}
	for range n {
		if err := <-answers; err != nil {
			errs = append(errs, err)
		} else {
			succeeded++
		}
	}
	return succeeded, errs
}
