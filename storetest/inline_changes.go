package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// hostile is a text that ends whatever quotes it badly.
const hostile = `a'b"c\d$rea$ $$ %s {0}; --`

// inlineChanges are about declarations that change, and tables that somebody changes.
var inlineChanges = []clause{
	{"P6 hostile names and literals are names and literals", func(t *testing.T, d *Door) {
		types := []rea.Type{{Name: hostile, Status: hostile, Events: []rea.EventType{
			does(rea.EventType{Name: hostile, To: hostile, Version: 1}, setTo("new", `"a'b\"c\\d$rea$"`), rea.Operation{Kind: rea.OpSet, Field: "rea e", Operand: rea.Operand{Path: []string{hostile, "0"}}},
				setTo("select", "@event_type"), setTo("e", "@aggregate_type")),
			{Name: hostile + "2", AliasOf: hostile},
		}}}
		p := rea.Projection{Name: hostile, Of: hostile, Inline: true, Columns: []rea.Column{{Name: hostile, Type: rea.Text}, {Name: "new", Type: rea.Text}, {Name: "rea e", Type: rea.JSONB},
			{Name: "select", Type: rea.JSONB}, {Name: "e", Type: rea.Text}}}
		address := d.Migrated(t)
		ref := rea.Ref{Type: hostile, ID: hostile}
		b := d.Open(t, address, rea.Config{})
		put(t, b.Autocommit(), ref, event(hostile+"2"))
		b, _ = d.keep(t, address, types, p)
		d.drift(t, b, types, p)
		put(t, b.Autocommit(), ref, event(hostile, fmt.Sprintf(`{%q: {"0": [1]}}`, hostile)))
		d.drift(t, b, types, p)
		put(t, b.Autocommit(), ref, event(hostile, fmt.Sprintf(`{%q: [2]}`, hostile)))
		d.drift(t, b, types, p)
		change, err := b.Apply(limited(t))
		if err != nil || !change.Nothing() {
			t.Errorf("apply again = %+v, %v, want nothing to do", change, err)
		}
	}},
	{"P6 a type may have two tables, and two types one each", func(t *testing.T, d *Door) {
		other := keptType()
		other.Name = "invoice"
		types := []rea.Type{keptType(), other}
		short := kept()
		short.Name, short.Columns = "short", short.Columns[1:2]
		invoices := kept()
		invoices.Name, invoices.Of = "invoices", "invoice"
		b, change := d.keep(t, d.Migrated(t), types, kept(), short, invoices)
		same(t, "changes", len(change.Projections), 3)
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`), event("Paid", `{"amount": 2}`))
		put(t, b.Autocommit(), rea.Ref{Type: "invoice", ID: "7"}, event("Placed", `{"total": 5}`))
		for _, p := range []rea.Projection{kept(), short, invoices} {
			d.drift(t, b, types, p)
			same(t, "rows", len(d.rows(t, b, p)), 1)
		}
	}},
	{"P3 an append whose row the table refuses, by an index of somebody's, leaves nothing", func(t *testing.T, d *Door) {
		b := d.kept(t)
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`))
		b.run(t, "CREATE UNIQUE INDEX one_total ON "+d.view("order_state")+" (total)")
		taken := func(id string) func() (rea.Receipt, error) {
			return later(func() (rea.Receipt, error) {
				return b.Autocommit().Append(limited(t), rea.Ref{Type: "order", ID: id}, event("Placed", `{"total": `+id[1:]+`}`))
			})
		}
		var answers []func() (rea.Receipt, error)
		for _, id := range []string{"a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"} {
			answers = append(answers, taken(id))
		}
		stored := int64(1)
		for _, answer := range answers {
			if _, err := answer(); err == nil {
				stored++
			}
		}
		same(t, "stored", stored, 3)
		same(t, "events", b.count(t), stored)
		tx := b.begin(t)
		if _, err := tx.Append(limited(t), order2, event("Placed", `{"total": 3}`)); err == nil {
			t.Error("append = nil, want the error of the index")
		}
		if !d.Concurrent { // PostgreSQL has ended the transaction
			same(t, "Seq", put(t, tx.Tx, order2, event("Placed", `{"total": 4}`)).Seq(), 1)
			tx.commit(t)
			stored++
		} else {
			tx.rollback(t)
		}
		same(t, "events", b.count(t), stored)
		d.drift(t, b, []rea.Type{keptType()}, kept())
	}},
	{"P11 a projection that is declared no more is kept no more, and its table stays", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		types := []rea.Type{keptType()}
		b, _ := d.keep(t, address, types, kept())
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`))
		_, change := d.keep(t, address, types)
		same(t, "change", []any{change.New, change.Projections[0].Name, change.Projections[0].Action}, []any{false, "order_state", rea.ActionRemove})
		put(t, b.Autocommit(), order1, event("Paid", `{"amount": "none that it would take"}`))
		same(t, "seq", *d.rows(t, b, kept())["1"][0], "1")
		again := d.Open(t, address, rea.Config{Catalog: keeping(t, types, kept())})
		if _, err := again.Apply(limited(t)); err == nil || !strings.Contains(err.Error(), "there already") {
			t.Errorf("apply over a table that nobody keeps = %v, want an error that says so", err)
		}
		b.run(t, "DROP TABLE "+d.view("order_state"))
		_, err := again.Apply(limited(t))
		refused[*rea.ProjectionError](t, "a stored value that it cannot take", err)
		put(t, b.Autocommit(), order1, event("Paid", `{"amount": "nor this"}`))
	}},
	{"P11 a table that was dropped is named, and made again", func(t *testing.T, d *Door) {
		b := d.kept(t)
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`))
		b.run(t, "DROP TABLE "+d.view("order_state"))
		_, err := b.Autocommit().Append(t.Context(), order1, event("Paid", `{"amount": 2}`))
		if err == nil || !strings.Contains(err.Error(), d.view("order_state")) || !strings.Contains(err.Error(), "catalog apply") {
			t.Errorf("append = %v, want an error that names the table and the way out", err)
		}
		same(t, "events", b.count(t), 1)
		change, err := b.Apply(limited(t))
		if err != nil || len(change.Projections) != 1 || change.Projections[0].Action != rea.ActionMake {
			t.Fatalf("apply = %+v, %v, want the table made", change, err)
		}
		put(t, b.Autocommit(), order1, event("Paid", `{"amount": 2}`))
		d.drift(t, b, []rea.Type{keptType()}, kept())
	}},
	{"P11 columns that somebody changed are named", func(t *testing.T, d *Door) {
		b := d.kept(t)
		b.run(t, "ALTER TABLE "+d.view("order_state")+" RENAME COLUMN total TO sum")
		if _, err := b.Apply(limited(t)); err == nil || !strings.Contains(err.Error(), `"total"`) {
			t.Errorf("apply = %v, want an error that names the column", err)
		}
	}},
	{"P18 applying that is cut off again and again comes to its end", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		types := []rea.Type{keptType()}
		b := d.Open(t, address, rea.Config{})
		for n := range 1200 {
			if n%40 == 0 {
				put(t, b.Autocommit(), rea.Ref{Type: "order", ID: fmt.Sprint(n)}, rea.NewEvent{Type: "PlacedV1", Payload: []byte(`{"sum": 1}`)})
			}
			put(t, b.Autocommit(), rea.Ref{Type: "order", ID: fmt.Sprint(n)}, event("Paid", `{"amount": 1}`))
		}
		for cut := time.Millisecond; ; cut = cut * 5 / 4 {
			again := d.Open(t, address, rea.Config{Catalog: keeping(t, types, kept())})
			ctx, cancel := context.WithTimeout(limited(t), cut)
			_, err := again.Apply(ctx)
			cancel()
			again.Close()
			if err == nil {
				break
			}
			if ctx.Err() == nil {
				t.Fatal(err)
			}
			put(t, b.Autocommit(), order1, event("Paid", `{"amount": 1}`))
		}
		put(t, b.Autocommit(), order1, event("Paid", `{"amount": 1}`))
		d.drift(t, b, types, kept())
	}},
}
