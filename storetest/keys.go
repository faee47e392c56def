package storetest

import (
	"testing"

	"github.com/realtime-event-archive/rea"
)

var keys = []clause{
	{"P4 the same key with the same content gives the first result again", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		b := d.Open(t, address, rea.Config{})
		call := func(b *Base) rea.Receipt {
			t.Helper()
			return put(t, b.Autocommit().With(rea.Once("req-1")), order1, event("PaymentReceived", `{"amount":5}`))
		}
		first := call(b)
		same(t, "Duplicate of the first call", first.Duplicate, false)
		for _, again := range []rea.Receipt{call(b), call(d.Open(t, address, rea.Config{}))} {
			same(t, "Duplicate", again.Duplicate, true)
			same(t, "events", again.Events, first.Events)
			same(t, "aggregate", again.Aggregate, order1)
		}
		same(t, "count", b.count(t), 1)
	}},
	{"P4 a known key answers whatever the call expects and whoever calls", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit()
		first := put(t, tx.With(rea.Once("req-1"), rea.Expect(0), rea.By("1")), order1, event("A", `{"n": 1}`))
		put(t, tx, order1, event("B"), event("C"))
		for _, options := range [][]rea.Option{
			{rea.Expect(0)}, {rea.Expect(1)}, {rea.Expect(77)}, {rea.By("2")}, {rea.Because("again")},
			{rea.Correlate("c")}, {rea.Metadata([]byte(`{"try": 2}`))},
		} {
			again := put(t, tx.With(rea.Once("req-1")).With(options...), order1, event("A", `{"n": 1}`))
			same(t, "Duplicate", again.Duplicate, true)
			same(t, "events", again.Events, first.Events)
		}
		same(t, "actor", of(t, tx, order1)[0].Actor, "1")
		same(t, "count", b.count(t), 3)
	}},
	{"P4 the same key with other content is refused and names the stored event", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit()
		put(t, tx, order1, event("OrderPlaced"))
		put(t, tx.With(rea.Once("req-1")), order1, event("PaymentReceived", `{"amount":5, "list":[1,2]}`), event("NoteAdded"))
		note := event("NoteAdded")
		two := note
		two.Version = 2
		for name, events := range map[string][]rea.NewEvent{
			"another amount":        {event("PaymentReceived", `{"amount":6, "list":[1,2]}`), note},
			"another order":         {event("PaymentReceived", `{"amount":5, "list":[2,1]}`), note},
			"amount as text":        {event("PaymentReceived", `{"amount":"5", "list":[1,2]}`), note},
			"a key more":            {event("PaymentReceived", `{"amount":5, "list":[1,2], "x":null}`), note},
			"another type":          {event("OrderCancelled", `{"amount":5, "list":[1,2]}`), note},
			"another version":       {event("PaymentReceived", `{"amount":5, "list":[1,2]}`), two},
			"fewer events":          {event("PaymentReceived", `{"amount":5, "list":[1,2]}`)},
			"more events":           {event("PaymentReceived", `{"amount":5, "list":[1,2]}`), note, note},
			"events in other order": {note, event("PaymentReceived", `{"amount":5, "list":[1,2]}`)},
		} {
			_, err := tx.With(rea.Once("req-1")).Append(t.Context(), order1, events)
			same(t, "reuse with "+name, *refused[*rea.KeyReusedError](t, name, err), rea.KeyReusedError{Aggregate: order1, Key: "req-1", Seq: 2})
		}
		same(t, "count", b.count(t), 3)
	}},
	{"P4 another spelling of the same JSON is the same content", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit().With(rea.Once("req-1"))
		first := put(t, tx, order1, event("X", `{"a": 1.50, "bb": {"c": [1e2, "é"]}}`))
		for _, spelling := range []string{
			`{"bb":{"c":[100,"\u00e9"]},"a":1.5}`, " {\n\"a\" : 1.500, \"bb\": {\"c\": [100.0, \"é\"]}}\n", `{"a":15e-1,"bb":{"c":[1E+2,"é"]}}`,
		} {
			again := put(t, tx, order1, event("X", spelling))
			same(t, "Duplicate of "+spelling, again.Duplicate, true)
			same(t, "events", again.Events, first.Events)
		}
		same(t, "payload", string(of(t, b.Autocommit(), order1)[0].Payload), `{"a": 1.50, "bb": {"c": [100, "é"]}}`)
	}},
	{"P4 no payload and an empty one, no version and version 1 are the same content", func(t *testing.T, d *Door) {
		tx := d.fresh(t).Autocommit().With(rea.Once("req-1"))
		put(t, tx, order1, event("X"))
		one := event("X", `{}`)
		one.Version = 1
		same(t, "Duplicate", put(t, tx, order1, one).Duplicate, true)
	}},
	{"P4 a key belongs to one aggregate", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit().With(rea.Once("req-1"))
		put(t, tx, order1, event("X"))
		for _, aggregate := range []rea.Ref{order2, {Type: "payment", ID: "1"}} {
			same(t, "Duplicate on "+aggregate.String(), put(t, tx, aggregate, event("Y")).Duplicate, false)
		}
		same(t, "count", b.count(t), 3)
	}},
	{"P4 a key stands on the first event of its call, with their number", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit()
		first := put(t, tx.With(rea.Once("req-1")), order1, event("A"), event("B"), event("C"))
		put(t, tx.With(rea.Once("req-2")), order1, event("D"))
		for i, want := range []struct {
			key    string
			events int
		}{{"req-1", 3}, {"", 0}, {"", 0}, {"req-2", 1}} {
			e := of(t, tx, order1)[i]
			same(t, "Key of "+e.Type, e.Key, want.key)
			same(t, "KeyEvents of "+e.Type, e.KeyEvents, want.events)
		}
		again := put(t, tx.With(rea.Once("req-1")), order1, event("A"), event("B"), event("C"))
		same(t, "events", again.Events, first.Events)
		same(t, "Seq", again.Seq(), 3)
	}},
	{"P4 a key works within one transaction", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.begin(t)
		put(t, tx.With(rea.Once("req-1")), order1, event("A"))
		same(t, "Duplicate", put(t, tx.With(rea.Once("req-1")), order1, event("A")).Duplicate, true)
		_, err := tx.With(rea.Once("req-1")).Append(t.Context(), order1, event("B"))
		refused[*rea.KeyReusedError](t, "other content", err)
		tx.commit(t)
		same(t, "count", b.count(t), 1)
	}},
}
