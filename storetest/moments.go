package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// told folds the event types, in order.
func told(state string, e rea.Event) (string, error) { return state + e.Type, nil }

var moments = []clause{
	{"P17 a load says which seq it used, and its append expects that", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("A"), event("B"), event("C"))
		tx := b.begin(t)
		loaded, err := rea.Replay(t.Context(), tx.Tx, order1, told)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "State", loaded.State, "ABC")
		same(t, "Seq", loaded.Seq, 3)
		same(t, "Last", loaded.Last.Type, "C")
		for n := int64(4); n <= 5; n++ {
			receipt, err := loaded.Append(t.Context(), event("D"))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "Seq", fmt.Sprint(receipt.Seq(), loaded.Seq), fmt.Sprint(n, n))
		}
		stale, err := rea.ReplayAt(t.Context(), tx.Tx, order1, rea.AtSeq(4), told)
		if err != nil {
			t.Fatal(err)
		}
		_, err = stale.Append(t.Context(), event("E"))
		same(t, "conflict", *refused[*rea.ConflictError](t, "stale", err), rea.ConflictError{Aggregate: order1, Expected: 4, Actual: 5})
		same(t, "Seq of the stale one", stale.Seq, 4)
		tx.commit(t)
	}},
	{"P17 a load at a seq folds up to it, refuses one beyond the last, and knows of none before the first", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Migrated(t), rea.Config{PageEvents: 2})
		tx := b.Autocommit()
		put(t, tx, order1, event("A"), event("B"), event("C"))
		for seq, want := range map[int64]string{1: "A", 2: "AB", 3: "ABC"} {
			loaded, err := rea.ReplayAt(t.Context(), tx, order1, rea.AtSeq(seq), told)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "State", loaded.State, want)
			same(t, "Seq", loaded.Seq, seq)
		}
		_, err := rea.ReplayAt(t.Context(), tx, order1, rea.AtSeq(5), told)
		same(t, "Last", refused[*rea.NoSuchSeqError](t, "seq 5", err).Last, 3)
		if !strings.Contains(err.Error(), "no such seq 5, the last is 3") {
			t.Errorf("message = %q, want \"no such seq 5, the last is 3\" in it", err)
		}
		_, err = rea.ReplayAt(t.Context(), tx, order1, rea.AtSeq(0), told)
		refused[*rea.NotFoundError](t, "seq 0", err)
		if !strings.Contains(err.Error(), "did not exist") {
			t.Errorf("message = %q, want \"did not exist\" in it", err)
		}
		_, err = rea.ReplayAt(t.Context(), tx, order2, rea.AtSeq(1), told)
		refused[*rea.NotFoundError](t, "seq 1 of an aggregate without events", err)
	}},
	{"P7 a load at a time folds the longest prefix that is not after it", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		noon := time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)
		var lines []rea.Line
		for i, minutes := range []int{0, 10, 5, 20} { // seq 3 was written with a clock that ran behind
			lines = append(lines, line(order1, string(rune('A'+i)), func(l *rea.Line) { l.CreatedAt = noon.Add(time.Duration(minutes) * time.Minute) }))
		}
		imported(t, b, lines...)
		for minutes, want := range map[int]string{0: "A", 5: "A", 9: "A", 10: "ABC", 19: "ABC", 20: "ABCD", 600: "ABCD"} {
			loaded, err := rea.ReplayAt(t.Context(), b.Autocommit(), order1, rea.AtTime(noon.Add(time.Duration(minutes)*time.Minute)), told)
			if err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprint("State after minutes ", minutes), loaded.State, want)
			same(t, "Seq", loaded.Seq, int64(len(want)))
		}
		_, err := rea.ReplayAt(t.Context(), b.Autocommit(), order1, rea.AtTime(noon.Add(-time.Microsecond)), told)
		refused[*rea.NotFoundError](t, "before the first", err)
		now, err := rea.ReplayAt(t.Context(), b.Autocommit(), order1, rea.AtTime(time.Now()), told)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "Seq now", now.Seq, 4)
	}},
	{"P5 a load at a position sees every aggregate as it was then", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit()
		put(t, tx, order1, event("A"))
		put(t, tx, order2, event("X"))
		put(t, tx, order1, event("B"))
		b.history(t, rea.Filter{})
		for position, want := range map[int64]string{1: "A", 2: "A", 3: "AB"} {
			loaded, err := rea.ReplayAt(t.Context(), tx, order1, rea.AtPosition(position), told)
			if err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprint("State at position ", position), loaded.State, want)
		}
		_, err := rea.ReplayAt(t.Context(), tx, order2, rea.AtPosition(1), told)
		refused[*rea.NotFoundError](t, "order/2 at position 1", err)
		_, err = rea.ReplayAt(t.Context(), tx, order1, rea.AtPosition(4), told)
		same(t, "Last", refused[*rea.NoSuchSeqError](t, "position 4", err).Last, 3)
	}},
	{"P17 the fold without a catalog lays keys over each other, null stays null", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("A", `{"a": 1, "b": {"x": 1}, "c": 0.10}`), event("B", `{"a": null, "b": {"y": 2}}`), event("C"))
		loaded, err := rea.Replay(t.Context(), b.Autocommit(), order1, rea.Merge)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "State", loaded.State, rea.Object{"a": json.RawMessage(`null`), "b": json.RawMessage(`{"y": 2}`), "c": json.RawMessage(`0.10`)})
	}},
	{"P17 a fold's error names aggregate, seq, type and version", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("A"), event("B"))
		mine := errors.New("mine")
		_, err := rea.Replay(t.Context(), b.Autocommit(), order1, func(s string, e rea.Event) (string, error) {
			if e.Type == "B" {
				return s, mine
			}
			return s, nil
		})
		if !errors.Is(err, mine) {
			t.Fatalf("error = %v, want %v in it", err, mine)
		}
		same(t, "message", err.Error(), "rea: fold order/1 seq 2 (B version 1): mine")
	}},
}
