package storetest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// old is an event that appends do not fold into the row.
func old(sum int) rea.NewEvent {
	return rea.NewEvent{Type: "Placed", Version: 1, Payload: fmt.Appendf(nil, `{"sum": %d}`, sum)}
}

// looked opens the archive of b again, for a runner.
func (d *Door) looked(t *testing.T, address string, config rea.Config) *Base {
	t.Helper()
	config.PollEvery = 5 * time.Millisecond
	if config.Catalog == nil {
		config.Catalog = keeping(t, []rea.Type{keptType()}, kept())
	}
	return d.Open(t, address, config)
}

// inlineBehind are about rows that appends leave behind, and a runner folds.
var inlineBehind = []clause{
	{"P6 an event of an old version, and one past REA, end in the inline row by the runner", func(t *testing.T, d *Door) {
		address, types := d.Migrated(t), []rea.Type{keptType()}
		b, _ := d.keep(t, address, types, kept())
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`))
		put(t, b.Autocommit(), order2, old(5), event("Paid", `{"amount": 0.5}`))
		raw := "INSERT INTO " + d.Tables + "events (aggregate_type, aggregate_id, seq, event_type, event_version, payload, status, catalog_version) VALUES ('order', '%s', %d, '%s', %d, '%s', 'placed', 1)"
		b.run(t, fmt.Sprintf(raw, "1", 2, "Noted", 1, `{"customer": {"note": "past"}}`))
		runner := d.looked(t, address, rea.Config{PageEvents: 2})
		runner.start(t)
		runner.settled(t, "order_state")
		d.drift(t, b, types, kept())
		for n := range 3 {
			b.run(t, fmt.Sprintf(raw, fmt.Sprint("raw-", n), 1, "Placed", 1, `{"sum": 7}`))
			put(t, b.Autocommit(), order1, old(n), event("Paid", `{"amount": 1}`))
			put(t, b.Autocommit(), rea.Ref{Type: "invoice", ID: "1"}, event("Placed"))
			runner.settled(t, "order_state")
			d.drift(t, b, types, kept())
		}
		runner.undrifted(t, "order_state")
		s := runner.status(t, "order_state", func(s rea.ProjectionStatus) bool { return s.Position == s.Head })
		same(t, "Inline", s.Inline, true)
		same(t, "State", s.State, rea.StateRunning)
	}},
	{"P6 rows that are behind are folded once, whatever appends, however many run, wherever they stop", func(t *testing.T, d *Door) {
		address, types := d.Migrated(t), []rea.Type{keptType()}
		b, _ := d.keep(t, address, types, kept())
		one, two := d.looked(t, address, rea.Config{PageEvents: 20}), d.looked(t, address, rea.Config{})
		b.writing(t, func() {
			last := map[string]int{}
			for at := int64(0); at < 200; {
				stop, end := one.start(t), two.start(t)
				at = one.status(t, "order_state", func(s rea.ProjectionStatus) bool { return s.Position > at }).Position
				for id, row := range d.rows(t, b, kept()) {
					seq, err := strconv.Atoi(*row[0])
					if err != nil || seq < last[id] {
						t.Errorf("rea_seq of %s = %s, after %d", id, *row[0], last[id])
					}
					last[id] = seq
				}
				stop()
				end()
			}
		})
		one.start(t)
		two.start(t)
		one.settled(t, "order_state")
		d.drift(t, b, types, kept())
	}},
	{"P6 whoever waits for an inline projection waits for rows that are behind alone", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		b, _ := d.keep(t, address, []rea.Type{keptType()}, kept())
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`), event("Paid", `{"amount": 1}`))
		b.settled(t, "order_state") // nobody runs it
		receipt := put(t, b.Autocommit(), order1, old(3))
		waited := later(func() (struct{}, error) {
			return struct{}{}, b.WaitForEvent(limited(t), "order_state", receipt.Events[0].ID)
		})
		runner := d.looked(t, address, rea.Config{})
		runner.start(t)
		if _, err := waited(); err != nil {
			t.Fatal(err)
		}
		d.drift(t, b, []rea.Type{keptType()}, kept())
	}},
	{"P6 an event that an inline row cannot take stops the looking there, until it is left out", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		b, _ := d.keep(t, address, []rea.Type{keptType()}, kept())
		put(t, b.Autocommit(), order2, old(1))
		bad := rea.NewEvent{Type: "Placed", Version: 1, Payload: []byte(`{"sum": "x"}`)}
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`), bad, event("Paid", `{"amount": 1}`))
		put(t, b.Autocommit(), order2, old(2))
		runner := d.looked(t, address, rea.Config{RetryAfter: time.Millisecond, StallAfter: 3})
		runner.start(t)
		s := runner.status(t, "order_state", func(s rea.ProjectionStatus) bool { return s.State == rea.StateStalled })
		same(t, "offset", s.Position, int64(2))
		same(t, "failed position", s.Failed.Position, int64(3))
		same(t, "attempts", s.Failed.Attempts, 3)
		if err := runner.SkipEvent(limited(t), "order_state", 3, "ada"); err != nil {
			t.Fatal(err)
		}
		runner.settled(t, "order_state")
		rows := d.rows(t, b, kept())
		same(t, "row of 1", *rows["1"][0]+" "+*rows["1"][2], "3 2")
		same(t, "row of 2", *rows["2"][0]+" "+*rows["2"][2], "2 2")
		runner.undrifted(t, "order_state")
		if err := runner.PauseProjection(limited(t), "order_state"); err != nil {
			t.Fatal(err)
		}
		put(t, b.Autocommit(), order2, old(9))
		same(t, "state", runner.status(t, "order_state", func(s rea.ProjectionStatus) bool { return s.Head == 6 || s.Head == 5 }).State, rea.StatePaused)
	}},
	{"P6 a runner leaves rows alone that appends keep by another definition, and applying begins anew", func(t *testing.T, d *Door) {
		address, types := d.Migrated(t), []rea.Type{keptType()}
		b, _ := d.keep(t, address, types, kept())
		raised := kept()
		raised.Version = 2
		runner := d.looked(t, address, rea.Config{Catalog: keeping(t, types, raised)})
		put(t, b.Autocommit(), order1, old(1))
		runner.start(t)
		s := runner.status(t, "order_state", func(s rea.ProjectionStatus) bool { return s.Head == 1 })
		same(t, "State", s.State, rea.StateNeedsRebuild)
		same(t, "rows", len(d.rows(t, b, kept())), 0)
		if _, err := runner.Apply(limited(t)); err != nil {
			t.Fatal(err)
		}
		s = runner.status(t, "order_state", func(s rea.ProjectionStatus) bool { return s.State == rea.StateRunning })
		same(t, "position", s.Position, int64(1))
		put(t, b.Autocommit(), order1, old(2))
		runner.settled(t, "order_state")
		d.drift(t, b, types, kept())
	}},
}
