package storetest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// bad are calls that are refused, with the class of the refusal. order/1 has one event under the key "used".
var bad = []struct {
	name, code string
	call       func(t *testing.T, tx *rea.Tx) error
}{
	{"a conflict", "conflict", func(t *testing.T, tx *rea.Tx) error {
		_, err := tx.With(rea.Expect(99)).Append(t.Context(), order1, event("X"))
		return err
	}},
	{"a reused key", "key_reused", func(t *testing.T, tx *rea.Tx) error {
		_, err := tx.With(rea.Once("used")).Append(t.Context(), order1, event("Other"))
		return err
	}},
	{"a bad payload", "bad_payload", func(t *testing.T, tx *rea.Tx) error {
		_, err := tx.Append(t.Context(), order1, event("X", `{"a": "\u0000"}`))
		return err
	}},
	{"bad metadata", "bad_payload", func(t *testing.T, tx *rea.Tx) error {
		_, err := tx.With(rea.Metadata([]byte(`[1]`))).Append(t.Context(), order1, event("X"))
		return err
	}},
	{"a long name", "limit", func(t *testing.T, tx *rea.Tx) error {
		_, err := tx.Append(t.Context(), rea.Ref{Type: strings.Repeat("x", 201), ID: "1"}, event("X"))
		return err
	}},
	{"no events", "limit", func(t *testing.T, tx *rea.Tx) error {
		_, err := tx.Append(t.Context(), order1)
		return err
	}},
	{"a negative expectation", "limit", func(t *testing.T, tx *rea.Tx) error {
		_, err := tx.With(rea.Expect(-1)).Append(t.Context(), order1, event("X"))
		return err
	}},
	{"a correction without a reason", "limit", func(t *testing.T, tx *rea.Tx) error {
		_, err := tx.With(rea.Correction(), rea.By("42")).Append(t.Context(), order1, event("X"))
		return err
	}},
	{"an aggregate that is not there", "not_found", func(t *testing.T, tx *rea.Tx) error {
		_, err := rea.Replay(t.Context(), tx, order2, rea.Merge)
		return err
	}},
	{"a seq that is not there", "no_such_seq", func(t *testing.T, tx *rea.Tx) error {
		_, err := rea.ReplayAt(t.Context(), tx, order1, rea.AtSeq(99), rea.Merge)
		return err
	}},
}

var refusals = []clause{
	{"P3 a refusal leaves nothing behind and the caller's transaction usable", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, business)
		put(t, b.Autocommit().With(rea.Once("used")), order1, event("OrderPlaced"))
		for n, c := range bad {
			tx := b.begin(t)
			tx.exec(t, `INSERT INTO business VALUES ('before')`)
			err := c.call(t, tx.Tx)
			same(t, "code of "+c.name, rea.Code(err), c.code)
			tx.exec(t, `INSERT INTO business VALUES ('after')`)
			put(t, tx.With(rea.Expect(int64(n+1))), order1, event("After"))
			tx.commit(t)
			same(t, "count after "+c.name, b.count(t), int64(n+2))
		}
		same(t, "business rows", b.text(t, `SELECT CAST(count(*) AS text) FROM business`), strconv.Itoa(2*len(bad)))
	}},
	{"P3 a refusal in a transaction that has written takes none of it along", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.begin(t)
		put(t, tx.With(rea.Once("used")), order1, event("OrderPlaced"))
		for _, c := range bad {
			same(t, "code of "+c.name, rea.Code(c.call(t, tx.Tx)), c.code)
		}
		put(t, tx.Tx, order1, event("PaymentReceived"))
		tx.commit(t)
		same(t, "events", story(of(t, b.Autocommit(), order1)), "order/1#1 OrderPlaced, order/1#2 PaymentReceived")
	}},
	{"P17 several things wrong with one call are reported in the specified order", func(t *testing.T, d *Door) {
		tx := d.fresh(t).Autocommit()
		put(t, tx.With(rea.Once("used")), order1, event("OrderPlaced"))
		long := strings.Repeat("x", 201)
		for _, c := range []struct {
			name, code string
			tx         *rea.Tx
			event      rea.NewEvent
		}{
			{"name before payload", "limit", tx.With(rea.By(long), rea.Once("used"), rea.Expect(9)), event("X", `{"a":1,"a":2}`)},
			{"event type before payload", "limit", tx.With(rea.Once("used"), rea.Expect(9)), event(long, `{"a":1,"a":2}`)},
			{"payload before key", "bad_payload", tx.With(rea.Once("used"), rea.Expect(9)), event("X", `{"a":1,"a":2}`)},
			{"metadata before key", "bad_payload", tx.With(rea.Once("used"), rea.Metadata([]byte(`1`))), event("X")},
			{"key before expectation", "key_reused", tx.With(rea.Once("used"), rea.Expect(9)), event("X")},
			{"expectation last", "conflict", tx.With(rea.Once("new"), rea.Expect(9)), event("X")},
		} {
			_, err := c.tx.Append(t.Context(), order1, c.event)
			same(t, c.name, rea.Code(err), c.code)
		}
	}},
}
