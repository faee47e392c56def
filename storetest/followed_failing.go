package storetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// counts counts the events of each aggregate in a table of the program's.
func counts(name string, fail func(rea.Event) error) rea.GoProjection {
	return rea.GoProjection{
		Name: name,
		Apply: func(ctx context.Context, tx rea.SQL, events []rea.Event) error {
			for _, e := range events {
				if fail != nil {
					if err := fail(e); err != nil {
						return err
					}
				}
				if _, err := tx.Exec(ctx, fmt.Sprintf("INSERT INTO %s VALUES ('%s', 1) ON CONFLICT (k) DO UPDATE SET n = %[1]s.n + 1", name, e.Aggregate.ID)); err != nil {
					return err
				}
			}
			return nil
		},
		Reset: func(ctx context.Context, tx rea.SQL) error {
			_, err := tx.Exec(ctx, "DELETE FROM "+name)
			return err
		},
	}
}

func (b *Base) makeCounts(t *testing.T, name string) {
	t.Helper()
	b.run(t, "CREATE TABLE "+name+" (k TEXT PRIMARY KEY, n BIGINT NOT NULL)")
}

func (b *Base) counted(t *testing.T, name string) string {
	t.Helper()
	return b.text(t, "SELECT CAST(count(*) AS TEXT) || ' rows, ' || CAST(coalesce(sum(n), 0) AS TEXT) || ' events' FROM "+name)
}

// status waits until a projection is as ok says.
func (b *Base) status(t *testing.T, name string, ok func(rea.ProjectionStatus) bool) rea.ProjectionStatus {
	t.Helper()
	ctx := limited(t)
	for {
		list, err := b.Projections(ctx)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(s rea.ProjectionStatus) bool { return s.Name == name })
		if i >= 0 && ok(list[i]) {
			return list[i]
		}
		select {
		case <-ctx.Done():
			t.Fatalf("projections = %+v, and %s does not become as it should", list, name)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// lines keeps what is logged.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, r.Message)
	return nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

var errBad = errors.New("this one cannot be taken")

var followedFailing = []clause{
	{"P5 a bad event stops its projection alone, and after a retry nothing is lost", func(t *testing.T, d *Door) {
		var fixed atomic.Bool
		p1 := counts("p1", func(e rea.Event) error {
			if e.Aggregate.ID == "13" && e.Seq == 2 && !fixed.Load() {
				return errBad
			}
			return nil
		})
		b := d.Open(t, d.Migrated(t), rea.Config{Projections: []rea.GoProjection{p1, counts("p2", nil)}, PollEvery: 5 * time.Millisecond,
			RetryAfter: time.Millisecond, StallAfter: 3})
		b.makeCounts(t, "p1")
		b.makeCounts(t, "p2")
		for n := range 50 {
			put(t, b.Autocommit(), rea.Ref{Type: "order", ID: fmt.Sprint(n + 1)}, event("A"), event("B"))
		}
		b.start(t)
		b.settled(t, "p2")
		same(t, "p2", b.counted(t, "p2"), "50 rows, 100 events")
		s := b.status(t, "p1", func(s rea.ProjectionStatus) bool { return s.State == rea.StateStalled })
		same(t, "failing", fmt.Sprint(s.Position, s.Failed.Position, s.Failing.Aggregate, s.Failing.Seq, s.Failed.Attempts, s.Failed.Error), fmt.Sprint("25 26 order/13 2 3", errBad))
		same(t, "since", s.Failed.Since.IsZero(), false)
		same(t, "p1", b.counted(t, "p1"), "13 rows, 25 events")
		if !strings.Contains(s.Trouble, "rea projection retry p1") || !strings.Contains(s.Trouble, "rea projection skip p1") {
			t.Errorf("Trouble = %q, want what to type", s.Trouble)
		}
		fixed.Store(true)
		if err := b.RetryProjection(limited(t), "p1"); err != nil {
			t.Fatal(err)
		}
		b.settled(t, "p1")
		same(t, "p1 after the retry", b.counted(t, "p1"), "50 rows, 100 events")
		s = b.status(t, "p1", func(s rea.ProjectionStatus) bool { return true })
		same(t, "after", fmt.Sprint(s.State, s.Trouble, s.Failed.Attempts, s.Failed.Error), fmt.Sprint(rea.StateRunning, "", 0, ""))
	}},
	{"P5 tries of a bad event come slower and slower, and the log is short", func(t *testing.T, d *Door) {
		var mu sync.Mutex
		var tries []time.Time
		log := &lines{}
		p1 := counts("p1", func(e rea.Event) error {
			mu.Lock()
			defer mu.Unlock()
			tries = append(tries, time.Now())
			return errBad
		})
		const first = 20 * time.Millisecond
		b := d.Open(t, d.Migrated(t), rea.Config{Projections: []rea.GoProjection{p1}, PollEvery: 2 * time.Millisecond, RetryAfter: first, StallAfter: 5, Logger: slog.New(log)})
		b.makeCounts(t, "p1")
		put(t, b.Autocommit(), order1, event("A"))
		b.start(t)
		s := b.status(t, "p1", func(s rea.ProjectionStatus) bool { return s.State == rea.StateStalled })
		since := s.Failed.Since
		mu.Lock()
		same(t, "tries", len(tries), 5)
		for i := 1; i < len(tries); i++ {
			if gap, least := tries[i].Sub(tries[i-1]), first<<(i-1); gap < least-2*time.Millisecond {
				t.Errorf("try %d came after %s, want at least %s", i+1, gap, least)
			}
		}
		mu.Unlock()
		put(t, b.Autocommit(), order1, event("B"))
		if _, err := b.CatchUp(limited(t)); err != nil {
			t.Fatal(err)
		}
		s = b.status(t, "p1", func(s rea.ProjectionStatus) bool { return true })
		lag, known := s.Lag()
		same(t, "stalled", fmt.Sprint(s.State, s.Failed.Since.Equal(since), lag, known, s.Failed.Position), fmt.Sprint(rea.StateStalled, true, 2, true, 1))
		if got := log.all(); len(got) > 3 {
			t.Errorf("log = %q, want one line at the first try and one where it stalls", got)
		}
	}},
	{"P5 an event that is skipped is left out, by rebuilds and checks too, and said", func(t *testing.T, d *Door) {
		types, log := []rea.Type{keptType()}, &lines{}
		b := d.running(t, d.Migrated(t), rea.Config{Catalog: keeping(t, types, followedState(), hourly()), PollEvery: 5 * time.Millisecond, RetryAfter: time.Millisecond, StallAfter: 2, Logger: slogOf(log)})
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`), event("Paid", `{"amount": "x"}`), event("Paid", `{"amount": 2}`))
		for _, name := range []string{"order_state", "hourly_sales"} {
			s := b.status(t, name, func(s rea.ProjectionStatus) bool { return s.State == rea.StateStalled })
			if strings.Contains(s.Failed.Error, `"x"`) {
				t.Errorf("error = %q, want none of the payload", s.Failed.Error)
			}
			if err := b.WaitFor(limited(t), name+"s", 1); !errors.Is(err, rea.ErrNotFound) {
				t.Errorf("wait for a projection that nobody has declared = %v, want rea.ErrNotFound", err)
			}
			if err := b.SkipEvent(limited(t), name, 1, "me"); !errors.Is(err, rea.ErrNotFound) {
				t.Errorf("skip another event = %v, want rea.ErrNotFound", err)
			}
			if err := b.SkipEvent(limited(t), name, 2, "me"); err != nil {
				t.Fatal(err)
			}
		}
		b.settled(t, "order_state", "hourly_sales")
		b.status(t, "hourly_sales", func(rea.ProjectionStatus) bool { // that each goes on is logged
			return strings.Count(strings.Join(log.all(), "\n"), "a projection goes on") == 2
		})
		for range 2 {
			same(t, "row", *d.rows(t, b, followedState())["1"][2], "3")
			same(t, "hours", b.text(t, "SELECT CAST(orders AS TEXT) || ' ' || CAST(amount AS TEXT) FROM "+d.view("hourly_sales")), "1 2")
			for _, name := range []string{"order_state", "hourly_sales"} {
				b.undrifted(t, name)
				if err := b.Rebuild(limited(t), name, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		s := b.status(t, "hourly_sales", func(s rea.ProjectionStatus) bool { return true })
		same(t, "skipped", fmt.Sprint(len(s.Skipped), s.Skipped[0].Position, s.Skipped[0].By), "1 2me")
	}},
	{"P6 a paused projection stays where it is, and goes on when it is resumed", func(t *testing.T, d *Door) {
		b := d.running(t, d.Migrated(t), rea.Config{Projections: []rea.GoProjection{counts("p1", nil), counts("p2", nil)}, PollEvery: 5 * time.Millisecond})
		b.makeCounts(t, "p1")
		b.makeCounts(t, "p2")
		put(t, b.Autocommit(), order1, event("A"))
		b.settled(t, "p1", "p2")
		if err := b.PauseProjection(limited(t), "p1"); err != nil {
			t.Fatal(err)
		}
		put(t, b.Autocommit(), order1, event("B"))
		b.settled(t, "p2")
		same(t, "paused", b.counted(t, "p1"), "1 rows, 1 events")
		if err := b.ResumeProjection(limited(t), "p1"); err != nil {
			t.Fatal(err)
		}
		b.settled(t, "p1")
		same(t, "resumed", b.counted(t, "p1"), "1 rows, 2 events")
		if err := b.PauseProjection(limited(t), "nobody"); !errors.Is(err, rea.ErrNotFound) {
			t.Errorf("pause one that is not there = %v, want ErrNotFound", err)
		}
	}},
	{"P6 a try that failed at the end leaves nothing, in tables or in what the next one is given", func(t *testing.T, d *Door) {
		var tries, applied atomic.Int64
		total := counts("p1", nil)
		apply := total.Apply
		total.Apply = func(ctx context.Context, tx rea.SQL, events []rea.Event) error {
			memory := int64(0) // fresh for each call
			for range events {
				memory++
			}
			if err := apply(ctx, tx, events); err != nil {
				return err
			}
			if events[len(events)-1].Position >= 10 && tries.Add(1) == 1 {
				return fmt.Errorf("at the end: %w", rea.ErrRetry)
			}
			applied.Add(memory)
			return nil
		}
		b := d.Open(t, d.Migrated(t), rea.Config{Projections: []rea.GoProjection{total}, PollEvery: 5 * time.Millisecond, PageEvents: 4})
		b.makeCounts(t, "p1")
		for range 20 {
			put(t, b.Autocommit(), order1, event("A"))
		}
		b.start(t)
		b.settled(t, "p1")
		same(t, "stored", b.counted(t, "p1"), "1 rows, 20 events")
		same(t, "applied", applied.Load(), int64(20))
		s := b.status(t, "p1", func(s rea.ProjectionStatus) bool { return true })
		same(t, "attempts", s.Failed.Attempts, 0)
	}},
}

// undrifted checks a projection against its events.
func (b *Base) undrifted(t *testing.T, name string) {
	t.Helper()
	err := b.CheckProjection(limited(t), name, func(d rea.Drift) { t.Errorf("%s: %+v", name, d) })
	if err != nil {
		t.Fatal(err)
	}
}

func slogOf(l *lines) *slog.Logger { return slog.New(l) }
