package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// setTo is {set: {field: $.path}}, or @attribute.
func setTo(field, from string) rea.Operation { return on(rea.OpSet, field, from) }

func on(kind, field, from string) rea.Operation {
	op := rea.Operation{Kind: kind, Field: field}
	if strings.HasPrefix(from, "@") {
		op.Attribute = from
	} else if path, ok := strings.CutPrefix(from, "$."); ok {
		op.Path = strings.Split(path, ".")
	} else if from != "" {
		op.Literal = json.RawMessage(from)
	}
	return op
}

// does gives an event operations, and the fold that they mean in the plainest form.
func does(e rea.EventType, ops ...rea.Operation) rea.EventType {
	e.Operations = ops
	e.Fold = func(state rea.Object, event rea.Event) (rea.Object, error) {
		var payload rea.Object
		if err := json.Unmarshal(event.Payload, &payload); err != nil {
			return nil, err
		}
		for _, op := range ops {
			value, ok := op.Of(event, payload)
			switch {
			case op.Kind == rea.OpUnset:
				delete(state, op.Field)
			case op.Kind == rea.OpCount:
				value, ok = json.RawMessage("1"), true
				fallthrough
			case op.Kind == rea.OpAdd && ok && string(value) != "null":
				sum, err := rea.AddNumbers(state[op.Field], value)
				if err != nil {
					return nil, err
				}
				state[op.Field] = sum
			case op.Kind == rea.OpSet && ok:
				state[op.Field] = value
			case op.Kind == rea.OpAppend && ok:
				list, err := rea.AppendElement(state[op.Field], value)
				if err != nil {
					return nil, err
				}
				state[op.Field] = list
			case op.Kind == rea.OpRemove && ok && len(state[op.Field]) > 0:
				list, err := rea.RemoveElement(state[op.Field], value)
				if err != nil {
					return nil, err
				}
				state[op.Field] = list
			}
		}
		return state, nil
	}
	return e
}

// keptType is an order whose states a table can keep: two versions, an old name, every operation and type of column.
func keptType() rea.Type {
	return rea.Type{Name: "order", Status: "status", Events: []rea.EventType{
		does(rea.EventType{Name: "Placed", From: []string{rea.FromNone, rea.FromAny}, To: "placed", Version: 2, Upcast: map[int]rea.UpcastFunc{
			1: func(payload rea.Object) (rea.Object, error) {
				if old, ok := payload["sum"]; ok {
					payload["total"] = old
					delete(payload, "sum")
				}
				return payload, nil
			}}},
			setTo("total", "$.total"), setTo("placed_at", "@created_at"), setTo("who", "@actor_id"), on(rea.OpUnset, "note", "")),
		{Name: "PlacedV1", AliasOf: "Placed", Version: 1},
		{Name: "Ordered", AliasOf: "Placed"},
		does(rea.EventType{Name: "Paid", To: "paid"}, on(rea.OpAdd, "total", "$.amount"), on(rea.OpCount, "payments", ""), setTo("at", "$.at")),
		does(rea.EventType{Name: "Noted"}, setTo("note", "$.customer.note"), setTo("day", "$.day"), setTo("urgent", "$.urgent"), setTo("data", "$.data"),
			on(rea.OpAdd, "payments", "$.more")),
		{Name: "Touched", Retired: true},
	}}
}

func kept() rea.Projection {
	return rea.Projection{Name: "order_state", Of: "order", Inline: true, Columns: []rea.Column{
		{Name: "status", Type: rea.Text}, {Name: "total", Type: rea.Numeric}, {Name: "payments", Type: rea.Bigint}, {Name: "placed_at", Type: rea.Timestamptz},
		{Name: "at", Type: rea.Timestamptz}, {Name: "note", Type: rea.Text}, {Name: "who", Type: rea.Text}, {Name: "day", Type: rea.Date},
		{Name: "urgent", Type: rea.Boolean}, {Name: "data", Type: rea.JSONB},
	}}
}

// keeping gives a catalog with projections.
func keeping(t *testing.T, types []rea.Type, projections ...rea.Projection) *rea.Catalog {
	t.Helper()
	c, err := catalogOf(t, types...).WithProjections(projections...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// keep opens an archive again, and applies a catalog with projections through it.
func (d *Door) keep(t *testing.T, address string, types []rea.Type, projections ...rea.Projection) (*Base, rea.Change) {
	t.Helper()
	b := d.Open(t, address, rea.Config{Catalog: keeping(t, types, projections...)})
	change, err := b.Apply(limited(t))
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return b, change
}

// kept opens an archive in a database of its own whose orders have a table.
func (d *Door) kept(t *testing.T) *Base {
	t.Helper()
	b, _ := d.keep(t, d.Migrated(t), []rea.Type{keptType()}, kept())
	return b
}

func (d *Door) view(name string) string {
	return strings.Replace(d.Tables, "rea", "rea_views", 1) + name
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quotedView is view for a name that has to be quoted.
func (d *Door) quotedView(name string) string {
	if d.Concurrent {
		return "rea_views." + quoted(name)
	}
	return quoted("rea_views_" + name)
}

// rowText is the row as one JSON array of texts.
func (d *Door) rowText(p rea.Projection) string {
	texts := "aggregate_id, CAST(rea_seq AS TEXT)"
	array, all := "json_array", "json_group_array"
	if d.Concurrent {
		array, all = "json_build_array", "json_agg"
	}
	for _, c := range p.Columns {
		switch name := quoted(c.Name); {
		case c.Type == rea.Boolean && !d.Concurrent:
			texts += ", CASE " + name + " WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"
		case c.Type == rea.Timestamptz && d.Concurrent:
			texts += ", to_char(" + name + ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
		default:
			texts += ", CAST(" + name + " AS TEXT)"
		}
	}
	return fmt.Sprintf("SELECT coalesce(%s(%s(%s)), '[]') FROM (SELECT * FROM %s ORDER BY aggregate_id) x", all, array, texts, d.quotedView(p.Name))
}

func (d *Door) rows(t *testing.T, b *Base, p rea.Projection) map[string][]*string {
	t.Helper()
	query := d.rowText(p)
	if d.Concurrent {
		query = strings.Replace(query, "), '[]')", "), '[]')::text", 1)
	}
	var list [][]*string
	if err := json.Unmarshal([]byte(b.text(t, query)), &list); err != nil {
		t.Fatal(err)
	}
	rows := make(map[string][]*string, len(list))
	for _, row := range list {
		rows[*row[0]] = row[1:]
	}
	return rows
}

// folded is what the row of an aggregate must be: seq, and each column, by folding its events.
func folded(t *testing.T, c *rea.Catalog, p rea.Projection, events []rea.Event) []*string {
	t.Helper()
	var state rea.Object
	var seq int64
	for _, e := range events {
		next, err := c.Fold(state, e)
		if unknown := new(rea.UnknownTypeError); errors.As(err, &unknown) && unknown.Newest == 0 {
			next, err = state, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		state, seq = next, e.Seq
	}
	number := fmt.Sprint(seq)
	row := []*string{&number}
	for _, column := range p.Columns {
		text, null, ok := column.Type.Literal(state[column.Name])
		if !ok {
			t.Fatalf("%s: the state's %s = %s is none for %s", events[0].Aggregate, column.Name, state[column.Name], column.Type)
		}
		if null {
			row = append(row, nil)
		} else {
			row = append(row, &text)
		}
	}
	return row
}

func rowLine(row []*string) string {
	var b strings.Builder
	for _, v := range row {
		if v == nil {
			b.WriteString("NULL | ")
		} else {
			b.WriteString(*v + " | ")
		}
	}
	return b.String()
}

// drift checks that every row is what its aggregate's events fold to, and that none lacks or is too many.
func (d *Door) drift(t *testing.T, b *Base, types []rea.Type, p rea.Projection) {
	t.Helper()
	c := keeping(t, types, p)
	rows := d.rows(t, b, p)
	aggregates := map[string][]rea.Event{}
	for _, e := range b.history(t, rea.Filter{Type: p.Of}) {
		aggregates[e.Aggregate.ID] = append(aggregates[e.Aggregate.ID], e) // by position, and so by seq
	}
	for id, events := range aggregates {
		row, ok := rows[id]
		if want := rowLine(folded(t, c, p, events)); !ok || rowLine(row) != want {
			t.Errorf("row of %s = %s, want %s", id, rowLine(row), want)
		}
		delete(rows, id)
	}
	for id, row := range rows {
		t.Errorf("row of %s = %s, want none", id, rowLine(row))
	}
}
