package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// fill appends events of amount 1 to ten orders, many a call.
func (b *Base) fill(t *testing.T, events int) {
	t.Helper()
	for n := 0; n < events; {
		var list []rea.NewEvent
		for ; len(list) < 500 && n < events; n++ {
			list = append(list, event("Paid", `{"amount": 1}`))
		}
		put(t, b.Autocommit(), rea.Ref{Type: "order", ID: fmt.Sprint(n % 7)}, list...)
	}
}

func (d *Door) total(t *testing.T, b *Base) string {
	t.Helper()
	return b.text(t, "SELECT CAST(coalesce(sum(orders), 0) AS TEXT) FROM "+d.view("hourly_sales"))
}

var followedRebuilds = []clause{
	{"P6 catching up that is stopped again and again ends at the fold", func(t *testing.T, d *Door) {
		events := 20_000
		if testing.Short() {
			events = 2_000
		}
		types := []rea.Type{keptType()}
		b := d.Open(t, d.Migrated(t), rea.Config{Catalog: keeping(t, types, followedState(), hourly()), PollEvery: 5 * time.Millisecond, PageEvents: 100})
		b.fill(t, events)
		done := make(chan struct{})
		appended := later(func() (n int, err error) {
			for {
				select {
				case <-done:
					return n, nil
				case <-time.After(20 * time.Millisecond):
				}
				if _, err := b.Autocommit().Append(context.Background(), order1, event("Paid", `{"amount": 1}`)); err != nil {
					return n, err
				}
				n++
			}
		})
		for round := range 5 {
			stop := b.start(t)
			b.status(t, "hourly_sales", func(s rea.ProjectionStatus) bool { return s.Position >= int64((round+1)*events/8) })
			stop()
			list, err := b.Projections(limited(t))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "sum is the position", d.total(t, b), fmt.Sprint(list[0].Position))
		}
		close(done)
		more, err := appended()
		if err != nil {
			t.Fatal(err)
		}
		b.start(t)
		b.settled(t, "hourly_sales", "order_state")
		same(t, "orders", d.total(t, b), fmt.Sprint(events+more))
		b.undrifted(t, "hourly_sales")
		b.undrifted(t, "order_state")
	}},
	{"P11 a rebuild goes on beside appends, and readers never see less", func(t *testing.T, d *Door) {
		events := 100_000
		if testing.Short() {
			events = 2_000
		}
		b := d.running(t, d.Migrated(t), rea.Config{Catalog: keeping(t, []rea.Type{keptType()}, hourly()), PollEvery: 5 * time.Millisecond})
		b.fill(t, events)
		b.settled(t, "hourly_sales")
		done := make(chan struct{})
		appended := later(func() (n int, err error) {
			for {
				select {
				case <-done:
					return n, nil
				case <-time.After(20 * time.Millisecond):
				}
				if _, err := b.Autocommit().Append(context.Background(), order1, event("Paid", `{"amount": 1}`)); err != nil {
					return n, err
				}
				n++
			}
		})
		read := later(func() (least int, err error) {
			for {
				select {
				case <-done:
					return least, nil
				case <-time.After(10 * time.Millisecond):
				}
				n, err := strconv.Atoi(d.total(t, b))
				if err != nil || n < events {
					return n, fmt.Errorf("a reader saw %d orders, want at least %d: %v", n, events, err)
				}
				least = max(least, n)
			}
		})
		last := rea.RebuildProgress{}
		for range 2 {
			if err := b.Rebuild(limited(t), "hourly_sales", func(p rea.RebuildProgress) { last = p }); err != nil {
				t.Fatal(err)
			}
		}
		close(done)
		more, err := appended()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read(); err != nil {
			t.Error(err)
		}
		if last.Position < int64(events) || last.Position != last.Head {
			t.Errorf("progress = %+v, want all %d events", last, events)
		}
		b.settled(t, "hourly_sales")
		same(t, "orders", d.total(t, b), fmt.Sprint(events+more))
		b.undrifted(t, "hourly_sales")
	}},
	{"P11 one projection is rebuilt, the other stays, again and again", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		b := d.running(t, d.Migrated(t), rea.Config{Catalog: keeping(t, types, followedState(), hourly()), PollEvery: 5 * time.Millisecond, PageEvents: 7})
		names := []string{"order_state", "hourly_sales"}
		for _, name := range []string{"order_state", "hourly_sales", "order_state", "order_state"} {
			b.fill(t, 20)
			b.settled(t, names...)
			if err := b.Rebuild(limited(t), name, nil); err != nil {
				t.Fatal(err)
			}
			put(t, b.Autocommit(), order1, event("Paid", `{"amount": 0.5}`))
			b.settled(t, names...)
			for _, name := range names {
				b.undrifted(t, name)
			}
			d.drift(t, b, types, followedState())
		}
	}},
	{"P11 a rebuild waits for who is applying, and each event is there once", func(t *testing.T, d *Door) {
		applying, release := make(chan struct{}, 100), make(chan struct{})
		slow := counts("p1", func(rea.Event) error {
			select {
			case applying <- struct{}{}:
			default:
			}
			<-release
			return nil
		})
		b := d.Open(t, d.Migrated(t), rea.Config{Projections: []rea.GoProjection{slow}, PollEvery: 5 * time.Millisecond, PageEvents: 10})
		b.makeCounts(t, "p1")
		for range 100 {
			put(t, b.Autocommit(), order1, event("A"))
		}
		b.start(t)
		<-applying
		rebuilt := later(func() (struct{}, error) { return struct{}{}, b.Rebuild(limited(t), "p1", nil) })
		if d.Concurrent {
			b.waiting(t)
		}
		close(release)
		if _, err := rebuilt(); err != nil {
			t.Fatal(err)
		}
		b.settled(t, "p1")
		same(t, "rows", b.counted(t, "p1"), "1 rows, 100 events")
	}},
	{"P11 another definition never patches rows: the projection stops, and a rebuild helps", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		types := []rea.Type{keptType()}
		old := d.Open(t, address, rea.Config{Catalog: keeping(t, types, hourly()), PollEvery: 5 * time.Millisecond})
		stop := old.start(t)
		old.fill(t, 10)
		old.settled(t, "hourly_sales")
		changed := hourly()
		changed.Version, changed.Measures = 2, changed.Measures[:1]
		log := &lines{}
		b := d.running(t, address, rea.Config{Catalog: keeping(t, types, changed), PollEvery: 5 * time.Millisecond, Logger: slogOf(log)})
		s := b.status(t, "hourly_sales", func(s rea.ProjectionStatus) bool { return s.State == rea.StateNeedsRebuild })
		if !strings.Contains(s.Trouble, "`rea projection rebuild hourly_sales`") || !strings.Contains(s.Trouble, "version 2") {
			t.Errorf("Trouble = %q, want the sentence that helps", s.Trouble)
		}
		if err := b.CheckProjection(limited(t), "hourly_sales", nil); !errors.Is(err, rea.ErrNeedsRebuild) {
			t.Errorf("check = %v, want ErrNeedsRebuild", err)
		}
		if err := b.Rebuild(limited(t), "hourly_sales", nil); err != nil {
			t.Fatal(err)
		}
		b.fill(t, 5) // the old program runs on, and may not write
		b.settled(t, "hourly_sales")
		b.undrifted(t, "hourly_sales")
		same(t, "orders", d.total(t, b), "15")
		stop()
	}},
	{"P6 an offset that somebody has moved, or beyond the end, is found at the start, and a rebuild helps", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Migrated(t), rea.Config{Catalog: keeping(t, []rea.Type{keptType()}, hourly()), PollEvery: 5 * time.Millisecond})
		b.fill(t, 50)
		stop := b.start(t)
		b.settled(t, "hourly_sales")
		stop()
		for _, place := range []string{"position = 25", "position = 100, event_id = 100"} {
			b.run(t, "UPDATE "+d.Tables+"projections SET "+place)
			b.fill(t, 10)
			if _, err := b.CatchUp(limited(t)); err != nil {
				t.Fatal(err)
			}
			before := d.total(t, b)
			stop := b.start(t)
			s := b.status(t, "hourly_sales", func(s rea.ProjectionStatus) bool { return s.State == rea.StateNeedsRebuild })
			if _, known := s.Lag(); known != (s.Position == 25) {
				t.Errorf("lag is known at position %d of %d", s.Position, s.Head)
			}
			if !strings.Contains(s.Trouble, "`rea projection rebuild hourly_sales`") {
				t.Errorf("Trouble = %q, want the sentence that helps", s.Trouble)
			}
			stop()
			same(t, "orders", d.total(t, b), before)
			if err := b.Rebuild(limited(t), "hourly_sales", nil); err != nil {
				t.Fatal(err)
			}
			b.undrifted(t, "hourly_sales")
		}
		same(t, "orders", d.total(t, b), "70")
	}},
	{"P6 rows that somebody has edited are found", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		b := d.running(t, d.Migrated(t), rea.Config{Catalog: keeping(t, types, followedState(), hourly()), PollEvery: 5 * time.Millisecond})
		b.fill(t, 20)
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`))
		b.settled(t, "order_state", "hourly_sales")
		b.run(t, "UPDATE "+d.view("hourly_sales")+" SET orders = 7")
		b.run(t, "UPDATE "+d.view("order_state")+" SET status = 'paid' WHERE aggregate_id = '1'")
		b.run(t, "INSERT INTO "+d.view("order_state")+" (aggregate_id, rea_seq, rea_updated_at) VALUES ('x', 1, '2024-01-01T00:00:00.000000Z')")
		var found []string
		for _, name := range []string{"order_state", "hourly_sales"} {
			if err := b.CheckProjection(limited(t), name, func(d rea.Drift) { found = append(found, d.Kind+" "+d.Column) }); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "drift", strings.Join(found, ", "), "different status, extra , different orders")
		b.run(t, "DELETE FROM "+d.view("order_state"))
		found = nil
		if err := b.CheckProjection(limited(t), "order_state", func(d rea.Drift) { found = append(found, d.Kind) }); err != nil {
			t.Fatal(err)
		}
		same(t, "drift of an empty table", strings.Join(found, " "), strings.TrimSpace(strings.Repeat("missing ", len(found))))
		same(t, "any", len(found) > 0, true)
	}},
	{"P11 a rebuild names what depends on the table", func(t *testing.T, d *Door) {
		b := d.running(t, d.Migrated(t), rea.Config{Catalog: keeping(t, []rea.Type{keptType()}, hourly()), PollEvery: 5 * time.Millisecond})
		b.fill(t, 5)
		b.settled(t, "hourly_sales")
		b.run(t, "CREATE VIEW my_sales AS SELECT sum(orders) AS n FROM "+d.view("hourly_sales"))
		err := b.Rebuild(limited(t), "hourly_sales", nil)
		if e := refused[*rea.DependentsError](t, "rebuild", err); len(e.Dependents) != 1 || !strings.Contains(e.Dependents[0], "my_sales") {
			t.Errorf("dependents = %q, want the view", e.Dependents)
		}
		b.run(t, "DROP VIEW my_sales")
		if err := b.Rebuild(limited(t), "hourly_sales", nil); err != nil {
			t.Fatal(err)
		}
		b.undrifted(t, "hourly_sales")
	}},
	{"P11 a rebuild that is cut off goes on", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Migrated(t), rea.Config{Catalog: keeping(t, []rea.Type{keptType()}, hourly(), followedState()), PollEvery: 5 * time.Millisecond, PageEvents: 10})
		b.fill(t, 200)
		for _, name := range []string{"hourly_sales", "order_state"} {
			var begins []int64
			for cut := int64(40); ; cut += 40 {
				ctx, cancel := context.WithCancel(limited(t))
				first := int64(0)
				err := b.Rebuild(ctx, name, func(p rea.RebuildProgress) {
					if first == 0 {
						first = p.Position
					}
					if p.Position >= cut {
						cancel()
					}
				})
				cancel()
				begins = append(begins, first)
				if err == nil {
					break
				}
			}
			if len(begins) < 3 || begins[1] < 40 {
				t.Errorf("the first pages ended at %v, want each rebuild to go on where it was", begins)
			}
			b.undrifted(t, name)
		}
		same(t, "orders", d.total(t, b), "200")
	}},
}
