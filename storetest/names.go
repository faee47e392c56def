package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

var names = []clause{
	{"P17 names are compared byte by byte: nothing is merged, trimmed or cut", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit()
		kept := []string{
			"Order", "order", "ORDER", "caf\u00e9", "cafe\u0301", "order/", "or der", "or  der", "x'; drop table events;--", `a"b`, "$1", "50%_off",
			`back\slash`, "😀", "\u200b", "\u00a0", "ß", "ss", "ı", "i", "İ", "null", "0", "00", "true", "{}", strings.Repeat("x", 200),
			strings.Repeat("é", 100), strings.Repeat("x", 199) + "y",
		}
		for i, name := range kept {
			by := tx.With(rea.By(name), rea.Correlate(name), rea.Once(name))
			put(t, by, rea.Ref{Type: name, ID: "1"}, event(name, fmt.Sprintf(`{"n": %d}`, i)))
			put(t, by, rea.Ref{Type: "type", ID: name}, event(name))
		}
		for i, name := range kept {
			events := of(t, tx, rea.Ref{Type: name, ID: "1"})
			same(t, fmt.Sprintf("number of events of %q", name), len(events), 1)
			e := events[0]
			same(t, "payload", string(e.Payload), fmt.Sprintf(`{"n": %d}`, i))
			same(t, "names", [6]string{e.Aggregate.Type, e.Aggregate.ID, e.Type, e.Actor, e.Correlation, e.Key}, [6]string{name, "1", name, name, name, name})
			same(t, fmt.Sprintf("number of events of id %q", name), len(of(t, tx, rea.Ref{Type: "type", ID: name})), 1)
			same(t, fmt.Sprintf("number of events found by type %q", name), len(b.history(t, rea.Filter{Type: name})), 1)
			same(t, fmt.Sprintf("number of events found by event %q", name), len(b.history(t, rea.Filter{Event: name})), 2)
			same(t, fmt.Sprintf("number of events found by actor %q", name), len(b.history(t, rea.Filter{Actor: name})), 2)
		}
	}},
	{"P17 names outside the rule are refused before any SQL, with what and why", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.begin(t)
		for name, problem := range map[string]string{
			"order ": "trailing space", " order": "leading space", "a\tb": "U+0009", "a\nb": "U+000A", "a\x00b": "U+0000", "a\x7fb": "U+007F",
			"a\u0085b": "U+0085", "\xff": "not valid UTF-8", "a\xc3": "not valid UTF-8", strings.Repeat("x", 201): "201 bytes",
			strings.Repeat("é", 100) + "x": "201 bytes", strings.Repeat("x", 3_000): "3000 bytes", strings.Repeat("x", 100_000): "100000 bytes",
		} {
			for what, call := range map[string]func() error{
				"aggregate_type": func() error { _, err := tx.Append(t.Context(), rea.Ref{Type: name, ID: "1"}, event("X")); return err },
				"aggregate_id": func() error {
					_, err := tx.Append(t.Context(), rea.Ref{Type: "order", ID: name}, event("X"))
					return err
				},
				"event_type": func() error { _, err := tx.Append(t.Context(), order1, event(name)); return err },
				"actor_id":   func() error { _, err := tx.With(rea.By(name)).Append(t.Context(), order1, event("X")); return err },
				"correlation_id": func() error {
					_, err := tx.With(rea.Correlate(name)).Append(t.Context(), order1, event("X"))
					return err
				},
				"idempotency_key": func() error { _, err := tx.With(rea.Once(name)).Append(t.Context(), order1, event("X")); return err },
			} {
				limit := refused[*rea.LimitError](t, fmt.Sprintf("%s %.40q", what, name), call())
				same(t, "What", limit.What, what)
				if !strings.Contains(limit.Problem, problem) {
					t.Errorf("Problem of %s %.40q = %q, want %q in it", what, name, limit.Problem, problem)
				}
				if len(limit.Error()) > 400 {
					t.Errorf("message of %s %.40q has %d bytes, want at most 400", what, name, len(limit.Error()))
				}
			}
		}
		for what, aggregate := range map[string]rea.Ref{"aggregate_type": {ID: "1"}, "aggregate_id": {Type: "order"}} {
			_, err := tx.Append(t.Context(), aggregate, event("X"))
			same(t, "What", refused[*rea.LimitError](t, "an empty "+what, err).What, what)
		}
		put(t, tx.Tx, order1, event("Good"))
		tx.commit(t)
		same(t, "count", b.count(t), 1)
	}},
	{"P17 a reason has up to 4,096 bytes, one more is refused", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit()
		for _, reason := range []string{strings.Repeat("é", 2048), " a\n\tb ", "x"} {
			seq := put(t, tx.With(rea.Because(reason)), order1, event("X")).Seq()
			same(t, "Reason", of(t, tx, order1)[seq-1].Reason, reason)
		}
		for _, reason := range []string{strings.Repeat("x", 4097), "a\x00b", "\xff"} {
			_, err := tx.With(rea.Because(reason)).Append(t.Context(), order1, event("X"))
			same(t, "What", refused[*rea.LimitError](t, fmt.Sprintf("reason %.20q", reason), err).What, "reason")
		}
		same(t, "count", b.count(t), 3)
	}},
	{"P17 an event's version counts from 1 to the largest int", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		for version, want := range map[int]int{0: 1, 1: 1, 2: 2, 1<<31 - 1: 1<<31 - 1} {
			e := event("X")
			e.Version = version
			seq := put(t, b.Autocommit(), order1, e).Seq()
			same(t, "Version", of(t, b.Autocommit(), order1)[seq-1].Version, want)
		}
		for _, version := range []int{-1, 1 << 31} {
			e := event("X")
			e.Version = version
			_, err := b.Autocommit().Append(t.Context(), order1, e)
			same(t, "What", refused[*rea.LimitError](t, fmt.Sprint("version ", version), err).What, "event_version")
		}
	}},
}
