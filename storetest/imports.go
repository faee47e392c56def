package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// line makes a line of an import.
func line(aggregate rea.Ref, kind string, change ...func(*rea.Line)) rea.Line {
	l := rea.Line{Aggregate: aggregate, Event: rea.NewEvent{Type: kind, Payload: json.RawMessage(`{}`)}}
	for _, fn := range change {
		fn(&l)
	}
	return l
}

func at(seq int64) func(*rea.Line) { return func(l *rea.Line) { l.Seq = seq } }

func keyed(key string, events int) func(*rea.Line) {
	return func(l *rea.Line) { l.Key, l.KeyEvents = key, events }
}

func holding(payload string) func(*rea.Line) {
	return func(l *rea.Line) { l.Event.Payload = json.RawMessage(payload) }
}

// imported imports lines in a transaction of REA's and tells their results: "stored", "duplicate" or a class.
func imported(t *testing.T, b *Base, lines ...rea.Line) []string {
	t.Helper()
	var got []string
	err := b.Do(limited(t), func(tx *rea.Tx) error {
		results, err := tx.Import(t.Context(), lines)
		got = nil
		for _, r := range results {
			switch {
			case r.Err != nil:
				got = append(got, rea.Code(r.Err))
			case r.Duplicate:
				got = append(got, "duplicate")
			default:
				got = append(got, "stored")
			}
		}
		return err
	})
	if err != nil {
		t.Fatalf("import: %v", err)
	}
	return got
}

var imports = []clause{
	{"P17 an import stores lines in their order, with every field that they name", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		created := time.Date(2020, 1, 2, 3, 4, 5, 678901000, time.UTC)
		full := rea.Line{
			Aggregate: order1, Event: rea.NewEvent{Type: "OrderPlaced", Version: 3, Payload: json.RawMessage(`{"a": 0.10}`)}, Seq: 1, Actor: "42",
			Reason: "why", Correlation: "c", Key: "k", KeyEvents: 2, Metadata: json.RawMessage(`{"m": 1}`), CreatedAt: created, Correction: true,
		}
		same(t, "results", imported(t, b, full, line(order2, "A"), line(order1, "B"), line(order2, "C", at(2))), []string{"stored", "stored", "stored", "stored"})
		events := b.history(t, rea.Filter{})
		same(t, "history", story(events), "order/1#1 OrderPlaced, order/2#1 A, order/1#2 B, order/2#2 C")
		e := events[0]
		same(t, "event", e, rea.Event{
			ID: e.ID, Position: 1, Aggregate: order1, Seq: 1, Type: "OrderPlaced", Version: 3, Payload: full.Event.Payload, Correction: true,
			Actor: "42", Reason: "why", Correlation: "c", Key: "k", KeyEvents: 2, Metadata: full.Metadata, XID: e.XID, DBUser: e.DBUser,
			CreatedAt: created, RecordedAt: e.RecordedAt,
		})
		same(t, "RecordedAt of a line without a time", events[1].RecordedAt, time.Time{})
	}},
	{"P4 a repeated import with seqs stores nothing twice", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		created := func(l *rea.Line) { l.CreatedAt = time.Date(2020, 1, 1, 0, 0, 0, 1000, time.UTC) }
		lines := []rea.Line{
			line(order1, "A", at(1), holding(`{"n": 1.0}`), created), line(order1, "B", at(2)), line(order2, "A", at(1), keyed("k", 1)), line(order1, "C", at(3)),
		}
		same(t, "first time", imported(t, b, lines...), []string{"stored", "stored", "stored", "stored"})
		lines[0].Event.Payload = json.RawMessage(`{"n": 1.00}`)
		same(t, "second time", imported(t, b, lines...), []string{"duplicate", "duplicate", "duplicate", "duplicate"})
		more := append(lines, line(order1, "D", at(4)))
		same(t, "with one more", imported(t, b, more...), []string{"duplicate", "duplicate", "duplicate", "duplicate", "stored"})
		same(t, "count", b.count(t), 5)
	}},
	{"P17 lines that cannot stand are refused one by one, the others keep their order", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit().With(rea.Once("used")), order1, event("A"), event("B"), event("C"))
		var errs []error
		lines := []rea.Line{
			line(order1, "D", at(4)),
			line(order1, "Other", at(2)),              // taken, with other content
			line(order1, "E"),                         // 5
			line(order1, "Hole", at(9)),               // after 5 comes 6
			line(order1, "Other", keyed("used", 1)),   // the key stands on other content
			line(order1, "A", keyed("used", 3)),       // the key stands on this
			line(order2, "First", at(2)),              // a hole: nothing there yet
			line(order2, "First", at(1)),              // fine
			line(order2, "Second"),                    // fine
			line(order1, "F", at(6), keyed("new", 1)), // fine
		}
		err := b.Do(limited(t), func(tx *rea.Tx) error {
			results, err := tx.Import(t.Context(), lines)
			errs = nil
			for _, r := range results {
				errs = append(errs, r.Err)
			}
			if err == nil {
				same(t, "Duplicate of the stored key", results[5].Duplicate, true)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "Expected of a taken seq", refused[*rea.ConflictError](t, "taken", errs[1]).Expected, 1)
		same(t, "a hole", *refused[*rea.HoleError](t, "hole", errs[3]), rea.HoleError{Aggregate: order1, Seq: 9, Actual: 5})
		same(t, "a reused key", *refused[*rea.KeyReusedError](t, "key", errs[4]), rea.KeyReusedError{Aggregate: order1, Key: "used", Seq: 1})
		same(t, "a hole at the start", *refused[*rea.HoleError](t, "hole", errs[6]), rea.HoleError{Aggregate: order2, Seq: 2})
		for _, i := range []int{0, 2, 5, 7, 8, 9} {
			same(t, fmt.Sprintf("error of line %d", i), errs[i], nil)
		}
		same(t, "order/1", story(of(t, b.Autocommit(), order1)), "order/1#1 A, order/1#2 B, order/1#3 C, order/1#4 D, order/1#5 E, order/1#6 F")
		same(t, "order/2", story(of(t, b.Autocommit(), order2)), "order/2#1 First, order/2#2 Second")
	}},
	{"P17 a line at a taken seq conflicts with the last seq that is stored", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("A"), event("B"), event("C"))
		for seq := int64(1); seq <= 3; seq++ {
			err := b.Do(limited(t), func(tx *rea.Tx) error {
				results, err := tx.Import(t.Context(), []rea.Line{line(order1, "Other", at(seq))})
				if err != nil {
					return err
				}
				return results[0].Err
			})
			same(t, "conflict", *refused[*rea.ConflictError](t, "taken", err), rea.ConflictError{Aggregate: order1, Expected: seq - 1, Actual: 3})
		}
	}},
	{"P17 a line at a taken seq conflicts although its key stands elsewhere", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit().With(rea.Once("k")), order1, event("A"))
		put(t, b.Autocommit(), order1, event("B"))
		same(t, "results", imported(t, b,
			line(order1, "A", at(2), keyed("k", 1)), // seq 2 holds another event
			line(order1, "B", at(2), keyed("k", 1)), // seq 2 holds this event, without the key
			line(order1, "A", at(3), keyed("k", 1)), // seq 3 is free, the key is not
			line(order1, "A", at(1)),                // seq 1 holds this event, with a key
		), []string{"conflict", "duplicate", "duplicate", "duplicate"})
		same(t, "count", b.count(t), 2)
	}},
	{"P17 two lines of one import under one key or at one seq are stored once", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		same(t, "results", imported(t, b,
			line(order1, "A", keyed("k", 1)), line(order1, "A", keyed("k", 1)), line(order1, "B", keyed("k", 1)),
			line(order2, "A", at(1)), line(order2, "A", at(1)), line(order2, "B", at(1)),
		), []string{"stored", "duplicate", "key_reused", "stored", "duplicate", "conflict"})
		same(t, "history", story(b.history(t, rea.Filter{})), "order/1#1 A, order/2#1 A")
	}},
	{"P4 a call that came in by import answers to its key", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		same(t, "results", imported(t, b, line(order1, "A", keyed("k", 2), holding(`{"n": 1}`)), line(order1, "B"), line(order1, "C")),
			[]string{"stored", "stored", "stored"})
		again := put(t, b.Autocommit().With(rea.Once("k")), order1, event("A", `{"n":1.0}`), event("B"))
		same(t, "Duplicate", again.Duplicate, true)
		same(t, "seqs", seqs(again), []int64{1, 2})
		_, err := b.Autocommit().With(rea.Once("k")).Append(t.Context(), order1, event("A", `{"n":1}`))
		refused[*rea.KeyReusedError](t, "one event", err)
	}},
	{"P3 an import that is rolled back leaves neither events nor progress", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		err := b.Do(t.Context(), func(tx *rea.Tx) error {
			if _, err := tx.Import(t.Context(), []rea.Line{line(order1, "A"), line(order1, "Hole", at(9))}); err != nil {
				return err
			}
			if err := tx.SaveImportProgress(t.Context(), rea.ImportProgress{Source: "hash", Name: "file", Lines: 2, Stored: 1, Rejected: 1}); err != nil {
				return err
			}
			return errStop
		})
		same(t, "error", err, errStop)
		same(t, "count", b.count(t), 0)
		p, err := b.Autocommit().ImportProgress(t.Context(), "hash")
		same(t, "progress", fmt.Sprintf("%d %v", p.Lines, err), "0 <nil>")
	}},
	{"P17 an import of nothing is nothing", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		same(t, "results", len(imported(t, b)), 0)
		same(t, "count", b.count(t), 0)
	}},
	{"P17 an import of many lines with a few bad ones among them refuses exactly those", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("Taken"))
		var lines []rea.Line
		var want []string
		for n := range 1000 {
			l, result := line(rea.Ref{Type: "bulk", ID: fmt.Sprint(n % 50)}, "X"), "stored"
			switch {
			case n%333 == 5:
				l, result = line(order1, "Other", at(1)), "conflict"
			case n%333 == 6:
				l, result = line(order1, "Taken", at(1)), "duplicate"
			case n%333 == 7:
				l, result = line(order2, "Hole", at(5)), "hole"
			}
			lines, want = append(lines, l), append(want, result)
		}
		same(t, "results", imported(t, b, lines...), want)
		dense(t, b.history(t, rea.Filter{}))
	}},
}

var progress = []clause{
	{"P18 the progress of an import is kept with its lines", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		b := d.Open(t, address, rea.Config{})
		want := rea.ImportProgress{Source: "hash", Name: "loans's \"file\".ndjson.gz", Lines: 5, Stored: 2, Duplicates: 2, Rejected: 1}
		save := func(p rea.ImportProgress) {
			t.Helper()
			if err := b.Do(t.Context(), func(tx *rea.Tx) error { return tx.SaveImportProgress(t.Context(), p) }); err != nil {
				t.Fatal(err)
			}
			got, err := d.Open(t, address, rea.Config{}).Autocommit().ImportProgress(t.Context(), "hash")
			if err != nil {
				t.Fatal(err)
			}
			same(t, "progress", got, p)
		}
		save(want)
		want.Lines, want.Stored, want.Done = 1<<40, 1<<33, true
		save(want)
		other, err := b.Autocommit().ImportProgress(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "progress of another file", other, rea.ImportProgress{})
	}},
}
