package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// rebuilding says where the rebuild of a projection stands.
func (b *Base) rebuilding(t *testing.T, name string) string {
	t.Helper()
	s := b.status(t, name, func(rea.ProjectionStatus) bool { return true })
	if s.Rebuild == nil {
		return "none"
	}
	failing := "nothing"
	if s.RebuildFailing != nil {
		failing = s.RebuildFailing.Aggregate.String()
	}
	return fmt.Sprintf("at %d, fails on %d (%s, %t), skips %d", s.Rebuild.Position, s.Rebuild.FailedPosition, failing, s.Rebuild.Error != "", len(s.Rebuild.Skipped))
}

var rebuildsFailing = []clause{
	{"P11 a rebuild that fails says on which event, goes on behind it once that is skipped, and the projection leaves it out", func(t *testing.T, d *Door) {
		address, types := d.Migrated(t), []rea.Type{keptType()}
		counted := hourly()
		counted.Measures = counted.Measures[:1]
		old := d.Open(t, address, rea.Config{Catalog: keeping(t, types, counted), PollEvery: 5 * time.Millisecond})
		stop := old.start(t)
		old.fill(t, 20)
		put(t, old.Autocommit(), order1, event("Paid", `{"amount": "x"}`))
		old.fill(t, 20)
		put(t, old.Autocommit(), order2, event("Paid", `{"amount": "y"}`))
		old.settled(t, "hourly_sales")

		b := d.Open(t, address, rea.Config{Catalog: keeping(t, types, hourly()), PollEvery: 5 * time.Millisecond, PageEvents: 16})
		fails := func(position int64, want string) {
			t.Helper()
			err := b.Rebuild(limited(t), "hourly_sales", nil)
			if skip := fmt.Sprintf("`rea projection skip hourly_sales --position %d`", position); err == nil || !strings.Contains(err.Error(), skip) || strings.Contains(err.Error(), `"x"`) {
				t.Errorf("rebuild = %v, want %s and nothing of the payload", err, skip)
			}
			same(t, "rebuild", b.rebuilding(t, "hourly_sales"), want)
		}
		fails(21, "at 20, fails on 21 (order/1, true), skips 0")
		fails(21, "at 20, fails on 21 (order/1, true), skips 0")
		same(t, "orders that are read", d.total(t, old), "42")
		for _, position := range []int64{0, 20, 42} {
			if err := b.SkipEvent(limited(t), "hourly_sales", position, "me"); !errors.Is(err, rea.ErrNotFound) {
				t.Errorf("skip position %d = %v, want ErrNotFound", position, err)
			}
		}
		if err := b.SkipEvent(limited(t), "hourly_sales", 21, "me"); err != nil {
			t.Fatal(err)
		}
		fails(42, "at 41, fails on 42 (order/2, true), skips 1")
		if err := b.SkipEvent(limited(t), "hourly_sales", 42, "me"); err != nil {
			t.Fatal(err)
		}
		old.undrifted(t, "hourly_sales") // it has them, until the switch
		stop()
		if err := b.Rebuild(limited(t), "hourly_sales", nil); err != nil {
			t.Fatal(err)
		}
		same(t, "rebuild", b.rebuilding(t, "hourly_sales"), "none")
		b.start(t)
		b.fill(t, 5)
		b.settled(t, "hourly_sales")
		b.undrifted(t, "hourly_sales")
		same(t, "orders", d.total(t, b), "45")
		s := b.status(t, "hourly_sales", func(rea.ProjectionStatus) bool { return true })
		same(t, "skipped", fmt.Sprint(len(s.Skipped), s.Skipped[0].Position, s.Skipped[0].By, s.Skipped[1].Position), "2 21me42")
		if err := b.Rebuild(limited(t), "hourly_sales", nil); err != nil {
			t.Error(err)
		}
		b.undrifted(t, "hourly_sales")
	}},
	{"P11 another definition begins anew, and leaves out nothing of what the one before did", func(t *testing.T, d *Door) {
		address, types := d.Migrated(t), []rea.Type{keptType()}
		counted := hourly()
		counted.Measures = counted.Measures[:1]
		open := func(p rea.Projection) *Base {
			return d.Open(t, address, rea.Config{Catalog: keeping(t, types, p), PollEvery: 5 * time.Millisecond})
		}
		old := open(counted)
		stop := old.start(t)
		put(t, old.Autocommit(), order1, event("Paid", `{"amount": "x"}`), event("Paid", `{"amount": 1}`))
		old.settled(t, "hourly_sales")
		stop()
		bad := open(hourly())
		if err := bad.Rebuild(limited(t), "hourly_sales", nil); err == nil {
			t.Error("the rebuild takes an amount that is no number")
		}
		if err := bad.SkipEvent(limited(t), "hourly_sales", 1, "me"); err != nil {
			t.Fatal(err)
		}
		counted.Version = 2
		b := open(counted)
		if err := b.Rebuild(limited(t), "hourly_sales", nil); err != nil {
			t.Fatal(err)
		}
		same(t, "orders", d.total(t, b), "2")
		b.undrifted(t, "hourly_sales")
	}},
	{"P11 a rebuild of a function's tables that fails says on which event, and leaves it out once that is skipped", func(t *testing.T, d *Door) {
		var bad atomic.Bool
		p1 := counts("p1", func(e rea.Event) error {
			if e.Position == 13 && bad.Load() {
				return errBad
			}
			return nil
		})
		b := d.Open(t, d.Migrated(t), rea.Config{Projections: []rea.GoProjection{p1}, PollEvery: 5 * time.Millisecond, PageEvents: 8})
		b.makeCounts(t, "p1")
		stop := b.start(t)
		b.fill(t, 30)
		b.settled(t, "p1")
		stop()
		bad.Store(true)
		if err := b.Rebuild(limited(t), "p1", nil); !errors.Is(err, errBad) {
			t.Errorf("rebuild = %v, want %v", err, errBad)
		}
		same(t, "rebuild", b.rebuilding(t, "p1"), "at 0, fails on 13 (order/2, true), skips 0")
		same(t, "rows", b.counted(t, "p1"), "1 rows, 30 events")
		if err := b.SkipEvent(limited(t), "p1", 13, "me"); err != nil {
			t.Fatal(err)
		}
		if err := b.Rebuild(limited(t), "p1", nil); err != nil {
			t.Fatal(err)
		}
		same(t, "rows without it", b.counted(t, "p1"), "1 rows, 29 events")
		same(t, "rebuild", b.rebuilding(t, "p1"), "none")
	}},
}
