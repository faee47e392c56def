package storetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// inline are the promises of tables that are kept in the transaction of each append.
var inline = []clause{
	{"P6 an inline row is the fold of its events at every commit", func(t *testing.T, d *Door) {
		b := d.kept(t)
		types := []rea.Type{keptType()}
		tx := b.Autocommit()
		put(t, tx.With(rea.By("42")), order1, event("Placed", `{"total": 10.50}`))
		d.drift(t, b, types, kept())
		put(t, tx, order1, event("Paid", `{"amount": 0.005, "at": "2024-02-29T23:59:59.5+01:00"}`), event("Noted", `{"customer": {"note": "é\n"}, "day": "2024-02-29", "urgent": true, "data": {"b": [1, 2.50]}}`))
		d.drift(t, b, types, kept())
		put(t, tx, order2, event("Placed", `{}`))
		put(t, tx, order2, event("Noted", `{"customer": {"note": 12.0}, "more": 3}`), event("Other"), event("Noted", `{"customer": {"note": null}, "more": null, "urgent": false, "data": null}`))
		put(t, tx, rea.Ref{Type: "invoice", ID: "1"}, event("Placed"))
		d.drift(t, b, types, kept())
		put(t, tx, order1, event("Placed", `{"total": 12345678901234567890.1234567890}`))
		d.drift(t, b, types, kept())
		same(t, "rows", len(d.rows(t, b, kept())), 2)
	}},
	{"P3 an inline row goes with its transaction, and with a savepoint", func(t *testing.T, d *Door) {
		b := d.kept(t)
		types := []rea.Type{keptType()}
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`))
		tx := b.begin(t)
		put(t, tx.Tx, order1, event("Paid", `{"amount": 1}`))
		put(t, tx.Tx, order2, event("Placed", `{"total": 2}`))
		tx.rollback(t)
		d.drift(t, b, types, kept())
		tx = b.begin(t)
		put(t, tx.Tx, order1, event("Paid", `{"amount": 1}`))
		tx.exec(t, "SAVEPOINT a")
		put(t, tx.Tx, order1, event("Paid", `{"amount": 1}`))
		put(t, tx.Tx, order2, event("Placed", `{"total": 2}`))
		tx.exec(t, "ROLLBACK TO SAVEPOINT a")
		put(t, tx.Tx, order1, event("Paid", `{"amount": 5}`))
		tx.commit(t)
		d.drift(t, b, types, kept())
		same(t, "rows", len(d.rows(t, b, kept())), 1)
	}},
	{"P3 a refused append leaves the inline row", func(t *testing.T, d *Door) {
		b := d.kept(t)
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`))
		tx := b.begin(t)
		_, err := tx.With(rea.Expect(7)).Append(t.Context(), order1, event("Paid", `{"amount": 1}`))
		refused[*rea.ConflictError](t, "expect", err)
		_, err = tx.Append(t.Context(), order1, event("PlacedV1"))
		refused[*rea.TransitionError](t, "old name", err)
		put(t, tx.With(rea.Once("k")), order1, event("Paid", `{"amount": 1}`))
		put(t, tx.With(rea.Once("k")), order1, event("Paid", `{"amount": 1}`))
		tx.commit(t)
		d.drift(t, b, []rea.Type{keptType()}, kept())
	}},
	{"P3 a value that an inline column cannot take is an error that names it, and stores nothing", func(t *testing.T, d *Door) {
		b := d.kept(t)
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`))
		for column, wrong := range map[string][]rea.NewEvent{
			"total":    {event("Placed", `{"total": "1"}`), event("Placed", `{"total": true}`), event("Paid", `{"amount": "x"}`), event("Paid", `{"amount": {}}`)},
			"payments": {event("Noted", `{"more": 0.5}`), event("Noted", `{"more": 9223372036854775808}`), event("Noted", `{"more": "1"}`)},
			"at": {event("Paid", `{"amount": 1, "at": "2024-02-30T00:00:00Z"}`), event("Paid", `{"amount": 1, "at": "2024-01-01T00:00:00"}`),
				event("Paid", `{"amount": 1, "at": "2024-01-01T24:00:00Z"}`), event("Paid", `{"amount": 1, "at": 5}`), event("Paid", `{"at": "0000-01-01T00:00:00Z"}`),
				event("Paid", `{"at": "0001-01-01T00:00:00+01:00"}`), event("Paid", `{"at": "2024-01-01T00:00:00.1234567Z"}`), event("Paid", `{"at": "now"}`),
				event("Paid", `{"at": "9999-12-31T23:59:59-01:00"}`), event("Paid", `{"at": "2024-13-01T00:00:00Z"}`), event("Paid", `{"at": "2024-01-01T00:00:00+16:00"}`)},
			"note":   {event("Noted", `{"customer": {"note": {}}}`), event("Noted", `{"customer": {"note": [1]}}`)},
			"day":    {event("Noted", `{"day": "2023-02-29"}`), event("Noted", `{"day": "infinity"}`), event("Noted", `{"day": "2024-2-1"}`), event("Noted", `{"day": "0000-01-01"}`), event("Noted", `{"day": 20240101}`)},
			"urgent": {event("Noted", `{"urgent": 1}`), event("Noted", `{"urgent": "true"}`)},
		} {
			for _, e := range wrong {
				tx := b.begin(t)
				_, err := tx.Append(t.Context(), order1, event("Paid", `{"amount": 1}`), e)
				got := refused[*rea.ProjectionError](t, string(e.Payload), err)
				same(t, string(e.Payload), *got, rea.ProjectionError{Aggregate: order1, Projection: "order_state", Table: d.view("order_state"), Column: column, Type: got.Type, Event: e.Type, Seq: 3})
				same(t, "errors.Is", errors.Is(err, rea.ErrProjection), true)
				same(t, "Code", rea.Code(err), "projection")
				tx.rollback(t)
				_, err = b.Autocommit().Append(t.Context(), order1, e)
				refused[*rea.ProjectionError](t, string(e.Payload), err)
			}
		}
		same(t, "events", b.count(t), 1)
		d.drift(t, b, []rea.Type{keptType()}, kept())
		err := b.Do(limited(t), func(tx *rea.Tx) error {
			results, err := tx.Import(limited(t), []rea.Line{{Aggregate: order1, Event: event("Paid", `{"amount": 2}`)}, {Aggregate: order1, Event: event("Paid", `{"amount": "x"}`)},
				{Aggregate: order2, Event: rea.NewEvent{Type: "Placed", Version: 2, Payload: []byte(`{"total": 2}`)}}})
			if err == nil {
				same(t, "line 2", errors.Is(results[1].Err, rea.ErrProjection), true)
				same(t, "others", errors.Join(results[0].Err, results[2].Err), nil)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		d.drift(t, b, []rea.Type{keptType()}, kept())
		same(t, "events", b.count(t), 3)
	}},
	{"P8 a sum that numeric cannot hold is refused like any other value, and one that it just holds is kept", func(t *testing.T, d *Door) {
		b := d.kept(t)
		nines := strings.Repeat("9", 131_072) // the longest number
		put(t, b.Autocommit(), order1, event("Placed", `{"total": `+nines+`}`))
		for column, wrong := range map[string]rea.NewEvent{"total": event("Paid", `{"amount": 1}`), "payments": event("Noted", `{"more": `+nines+`}`)} {
			put(t, b.Autocommit(), order2, event("Paid"))
			for _, aggregate := range []rea.Ref{order1, order2} {
				if aggregate == order2 && column == "total" {
					continue
				}
				_, err := b.Autocommit().Append(t.Context(), aggregate, wrong)
				same(t, "Column", refused[*rea.ProjectionError](t, column, err).Column, column)
			}
		}
		put(t, b.Autocommit(), order1, event("Paid", `{"amount": 0.`+strings.Repeat("0", 16_382)+`1}`), event("Paid", `{"amount": -1}`), event("Paid", `{"amount": 0.5}`))
		put(t, b.Autocommit(), order2, event("Placed", `{"total": 5`+nines[1:]+`}`), event("Paid", `{"amount": 3`+nines[1:]+`}`), event("Paid", `{"amount": -`+nines+`}`))
		d.drift(t, b, []rea.Type{keptType()}, kept())
	}},
	{"P10 a correction and a renamed status are in the inline row", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		p := kept()
		b, _ := d.keep(t, address, []rea.Type{keptType()}, p)
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`), event("Paid", `{"amount": 1}`))
		put(t, b.Autocommit().With(rea.Correction(), rea.By("42"), rea.Because("test")), order1, event("Placed", `{"total": 3}`))
		put(t, b.Autocommit(), order2, event("Placed"), event("Paid"))
		d.drift(t, b, []rea.Type{keptType()}, p)
		renamed := keptType()
		renamed.Renamed = map[string]string{"paid": "settled"}
		for i := range renamed.Events {
			if renamed.Events[i].To == "paid" {
				renamed.Events[i].To = "settled"
			}
		}
		b, change := d.keep(t, address, []rea.Type{renamed}, p)
		same(t, "Action", change.Projections[0].Action, rea.ActionRebuild)
		same(t, "status", *d.rows(t, b, p)["2"][1], "settled")
		put(t, b.Autocommit(), order1, event("Paid", `{"amount": 1}`))
		d.drift(t, b, []rea.Type{renamed}, p)
	}},
	{"P9 an event of an older version leaves the row behind, and applying catches it up", func(t *testing.T, d *Door) {
		b := d.kept(t)
		types := []rea.Type{keptType()}
		put(t, b.Autocommit(), order1, rea.NewEvent{Type: "Placed", Version: 1, Payload: []byte(`{"sum": 5}`)})
		same(t, "rows", len(d.rows(t, b, kept())), 0)
		put(t, b.Autocommit(), order1, event("Paid", `{"amount": 1}`))
		same(t, "rows", len(d.rows(t, b, kept())), 0)
		put(t, b.Autocommit(), order2, event("Placed", `{"total": 5}`))
		put(t, b.Autocommit(), order2, rea.NewEvent{Type: "Placed", Version: 1, Payload: []byte(`{"sum": 7}`)}, event("Paid", `{"amount": 1}`))
		same(t, "seq", *d.rows(t, b, kept())["2"][0], "1")
		change, err := b.Apply(limited(t))
		if err != nil || !change.Nothing() || len(change.Behind) > 0 {
			t.Fatalf("apply = %+v, %v, want nothing to do", change, err)
		}
		d.drift(t, b, types, kept())
		put(t, b.Autocommit(), order1, event("Paid", `{"amount": 1}`))
		d.drift(t, b, types, kept())
		put(t, b.Autocommit(), order1, rea.NewEvent{Type: "Placed", Version: 9})
		change, err = b.Apply(limited(t))
		if err != nil || len(change.Behind) != 1 || change.Behind[0].Rows != 1 || change.Behind[0].First != order1 {
			t.Errorf("behind = %+v, %v, want one row of order/1", change.Behind, err)
		}
	}},
}
