package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// strange are names of fields that a query would have to quote.
var strange = []string{`a'b"c\d`, "é\n$1", "a b", "?"}

// said is a type whose events are taken apart by path, and one that is taken whole.
func said() (rea.Type, []rea.Projection) {
	set := func(field string, path ...string) rea.Operation {
		return rea.Operation{Kind: rea.OpSet, Field: field, Operand: rea.Operand{Path: append([]string{}, path...)}}
	}
	order := rea.Type{Name: "order", Events: []rea.EventType{
		does(rea.EventType{Name: "Said", Version: 2, Upcast: map[int]rea.UpcastFunc{1: func(p rea.Object) (rea.Object, error) {
			p[strange[0]] = p["old"]
			return p, nil
		}}}, set("first", strange[0]), set("second", strange[1], strange[2]), set("third", strange[3])),
		does(rea.EventType{Name: "Kept"}, set("whole")),
		{Name: "Nothing"},
	}}
	return order, []rea.Projection{
		{Name: "said", Of: "order", Columns: []rea.Column{{Name: "first", Type: rea.JSONB}, {Name: "second", Type: rea.Numeric}, {Name: "third", Type: rea.Text}, {Name: "whole", Type: rea.JSONB}}},
		{Name: "sums", On: []string{"Said"}, By: []rea.Dimension{{Name: "third", Operand: rea.Operand{Path: []string{strange[3]}}}},
			Measures: []rea.Measure{{Name: "n", Kind: rea.MeasureCount}, {Name: "second", Kind: rea.MeasureSum, Operand: rea.Operand{Path: []string{strange[1], strange[2]}}}}},
	}
}

var followedPages = []clause{
	{"P8 what a projection takes of a payload is exact, whatever its fields are called and whatever stands beside", func(t *testing.T, d *Door) {
		order, projections := said()
		b := d.running(t, d.Migrated(t), rea.Config{Catalog: keeping(t, []rea.Type{order}, projections...), PollEvery: 5 * time.Millisecond, PageEvents: 3})
		for n, first := range []string{`1.10`, `null`, `[]`, `{}`, `"\\\" é\t"`, `{"b": [1, 2.50], "aa": null}`, `12345678901234567890.12345678901234567890`} {
			ref := rea.Ref{Type: "order", ID: fmt.Sprint(`\N \t `, n)}
			put(t, b.Autocommit(), ref, event("Said", `{"a'b\"c\\d": `+first+`, "é\n$1": {"a b": 0.10, "x": 2}, "?": "\\N\n", "more": [1]}`), event("Nothing", `{"?": 1}`))
			put(t, b.Autocommit(), ref, rea.NewEvent{Type: "Said", Version: 1, Payload: []byte(`{"old": ` + first + `}`)}, event("Said", `{"é\n$1": 5, "?": null}`), event("Said"))
			put(t, b.Autocommit(), ref, event("Kept", `{"whole": `+first+`}`), event("Unheard", `{"?": "no"}`))
		}
		for range 2 {
			b.settled(t, "said", "sums")
			for _, p := range projections {
				b.undrifted(t, p.Name)
				if err := b.Rebuild(limited(t), p.Name, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		same(t, "rows", b.text(t, "SELECT CAST(count(*) AS TEXT) FROM "+d.view("said")+" WHERE rea_seq = 7"), "7")
		same(t, "sums", b.text(t, "SELECT CAST(sum(n) AS TEXT) FROM "+d.view("sums")), "28")
	}},
	{"P11 a rebuild has what is appended to aggregates that it has folded, and aggregates longer than a page", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		b := d.running(t, d.Migrated(t), rea.Config{Catalog: keeping(t, types, followedState(), hourly()), PollEvery: 5 * time.Millisecond, PageEvents: 4})
		b.fill(t, 60)
		for _, name := range []string{"order_state", "hourly_sales"} {
			pages := 0
			err := b.Rebuild(limited(t), name, func(rea.RebuildProgress) {
				if pages++; pages < 6 {
					put(t, b.Autocommit(), order1, event("Paid", `{"amount": 1}`))
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		b.settled(t, "order_state", "hourly_sales")
		same(t, "orders", d.total(t, b), "70")
		b.undrifted(t, "order_state")
		b.undrifted(t, "hourly_sales")
	}},
}

// followedPageRaces are of stores where events commit in another order than that of their ids.
var followedPageRaces = []clause{
	{"P11 a rebuild has what commits late, beside many ids that nobody has", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		b := d.running(t, d.Migrated(t), rea.Config{Catalog: keeping(t, types, followedState(), hourly()), PollEvery: 5 * time.Millisecond, PageEvents: 10})
		late := b.begin(t)
		put(t, late.Tx, order1, event("Paid", `{"amount": 1}`), event("Placed", `{"total": 2}`), event("Paid", `{"amount": 3}`))
		for range 40 { // ids that are never filled
			tx := b.begin(t)
			put(t, tx.Tx, rea.Ref{Type: "order", ID: "none"}, event("Paid", `{"amount": 100}`))
			tx.rollback(t)
		}
		for n := range 3 {
			put(t, b.Autocommit(), order2, event("Paid", `{"amount": 2}`), event("Other"), event("Paid", fmt.Sprintf(`{"amount": %d}`, n)))
		}
		b.settled(t, "order_state", "hourly_sales")
		pages := 0
		if err := b.Rebuild(limited(t), "order_state", func(rea.RebuildProgress) {
			if pages++; pages == 1 {
				late.commit(t)
			}
		}); err != nil {
			t.Fatal(err)
		}
		put(t, b.Autocommit(), order1, event("Paid", `{"amount": 4}`))
		for range 2 {
			b.settled(t, "order_state", "hourly_sales")
			for _, name := range []string{"order_state", "hourly_sales"} {
				b.undrifted(t, name)
				if err := b.Rebuild(limited(t), name, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		same(t, "orders", d.total(t, b), "9")
	}},
	{"P8 payloads that fill a page and commit in another order than that of their ids are projected", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		b := d.Open(t, d.Migrated(t), rea.Config{Catalog: keeping(t, types, followedState(), hourly()), PollEvery: 5 * time.Millisecond})
		large := `{"text": "` + strings.Repeat("x", rea.MaxPageBytes*5/8) + `"}`
		late := b.begin(t)
		put(t, late.Tx, order1, event("Paid", `{"amount": 1}`), event("Other", large))
		put(t, b.Autocommit(), order2, event("Other", large), event("Paid", `{"amount": 2}`), event("Other", large))
		if _, err := b.CatchUp(limited(t)); err != nil {
			t.Fatal(err)
		}
		late.commit(t)
		b.start(t)
		b.settled(t, "order_state", "hourly_sales")
		same(t, "orders", d.total(t, b), "2")
		b.undrifted(t, "order_state")
		b.undrifted(t, "hourly_sales")
	}},
}
