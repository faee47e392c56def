package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/realtime-event-archive/rea"
)

// anyValue draws JSON of every kind, with what lies at the edges of columns' types.
var anyValue = rapid.OneOf(
	rapid.SampledFrom([]string{"null", "true", "false", "0", "-0.0", "1.00", "1e2", "0.10", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
		"-9223372036854775809", "9223372036854775807.0", "12345678901234567890.123456789", "1e30", "1e-30", `""`, `"x"`, `"1"`, `"true"`, `"null"`, `"a\\b'c\"d"`, `"é\u0001"`,
		`"2024-02-29"`, `"2023-02-29"`, `"1900-02-29"`, `"2000-02-29"`, `"0001-01-01"`, `"0000-12-31"`, `"9999-12-31"`, `"10000-01-01"`, `"2024-04-31"`, `"2024-00-10"`, `"2024-10-00"`, `"2024-1-1"`, `" 2024-01-01"`, `"２024-01-01"`, `"2024-01-01\n"`,
		`"2024-02-29T23:59:59Z"`, `"2024-02-29T23:59:59.123456+15:59"`, `"2024-02-29T23:59:59.1234567Z"`, `"2024-02-29t23:59:59z"`, `"2024-02-29 23:59:59Z"`, `"2024-02-29T23:59:60Z"`, `"2024-02-29T24:00:00Z"`, `"2024-02-29T23:59:59,5Z"`,
		`"2024-02-29T23:59:59-00:00"`, `"2024-02-30T00:00:00Z"`, `"0001-01-01T00:00:00Z"`, `"0001-01-01T00:30:00+01:00"`, `"9999-12-31T23:30:00-01:00"`, `"9999-12-31T23:59:59.999999Z"`, `"infinity"`, `"now"`, `"epoch"`,
		"[]", "[1, 2.50]", "{}", `{"a": null}`}),
	rapid.Map(rapid.Int64(), func(n int64) string { return fmt.Sprint(n) }),
	rapid.Map(rapid.IntRange(-1000000, 1000000), func(n int) string { return fmt.Sprintf("%d.%02d", n/100, max(n%100, -(n%100))) }),
	rapid.Map(rapid.StringMatching(`[ -~]{0,12}`), func(s string) string { b, _ := json.Marshal(s); return string(b) }),
	rapid.Map(rapid.StringMatching(`20[0-9]{2}-[01][0-9]-[0-3][0-9](T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,7})?(Z|[+-][01][0-9]:[0-5][0-9]))?`), func(s string) string { return `"` + s + `"` }),
)

// drawnType has an event for each type of column, and for each of what else an operation may do.
func drawnType(columns []rea.Column) rea.Type {
	t := rea.Type{Name: "thing"}
	for _, c := range columns {
		t.Events = append(t.Events, does(rea.EventType{Name: "Set" + c.Name}, setTo(c.Name, "$.a.v")), does(rea.EventType{Name: "Unset" + c.Name}, on(rea.OpUnset, c.Name, "")))
		if c.Type == rea.Numeric || c.Type == rea.Bigint {
			t.Events = append(t.Events, does(rea.EventType{Name: "Add" + c.Name}, on(rea.OpAdd, c.Name, "$.v")), does(rea.EventType{Name: "Count" + c.Name}, on(rea.OpCount, c.Name, "")),
				does(rea.EventType{Name: "Less" + c.Name}, on(rea.OpAdd, c.Name, "-2.50")))
		}
	}
	return t
}

var inlineModels = []clause{
	{"P6 an inline row takes what its columns' types take, whatever comes", func(t *testing.T, d *Door) {
		p := rea.Projection{Name: "things", Of: "thing", Inline: true}
		for _, kind := range []rea.ColumnType{rea.Text, rea.Bigint, rea.Numeric, rea.Boolean, rea.Timestamptz, rea.Date, rea.JSONB} {
			p.Columns = append(p.Columns, rea.Column{Name: string(kind), Type: kind})
		}
		types := []rea.Type{drawnType(p.Columns)}
		for i := range types[0].Events { // a literal that a bigint cannot take is refused when the catalog is made
			if types[0].Events[i].Name == "Lessbigint" {
				types[0].Events[i] = does(types[0].Events[i], on(rea.OpAdd, "bigint", "-2"))
			}
		}
		c := keeping(t, types, p)
		b, _ := d.keep(t, d.Migrated(t), types, p)
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			ref := rea.Ref{Type: "thing", ID: fmt.Sprint(n)}
			var state rea.Object
			seq := int64(0)
			for range rapid.IntRange(1, 12).Draw(rt, "events") {
				kind := rapid.SampledFrom(types[0].Events).Draw(rt, "event").Name
				value := anyValue.Draw(rt, "value")
				text := fmt.Sprintf(`{"v": %s, "a": {"v": %[1]s}}`, value)
				if rapid.IntRange(0, 9).Draw(rt, "absent") == 0 {
					text = `{"a": [{"v": 1}]}`
				}
				payload, err := rea.NormalizeJSON([]byte(text), "payload", 0)
				if err != nil {
					rt.Fatal(err)
				}
				before := rea.Object{}
				for k, v := range state {
					before[k] = v
				}
				after, want := c.Fold(before, rea.Event{Aggregate: ref, Type: kind, Version: 1, Payload: payload})
				for _, column := range p.Columns {
					if _, _, ok := column.Type.Literal(after[column.Name]); !ok {
						want = rea.ErrProjection
					}
				}
				_, err = b.Autocommit().Append(t.Context(), ref, rea.NewEvent{Type: kind, Payload: payload})
				if (want != nil) != (rea.Code(err) == "projection") || want == nil && err != nil {
					rt.Fatalf("%s of %s in state %s = %v, want %v", kind, text, before, err, want)
				}
				if err == nil {
					state, seq = after, seq+1
				}
			}
		})
		d.drift(t, b, types, p)
	}},
	{"P9 random histories of old and new events come to the fold when a catalog is applied", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		b := d.Open(t, address, rea.Config{})
		known := []rea.NewEvent{event("Paid", `{"amount": 1.50}`), event("Paid", `{"amount": null}`), event("Noted", `{"customer": {"note": "x"}, "more": 1}`), event("Other"),
			{Type: "Placed", Version: 1, Payload: json.RawMessage(`{"sum": 3}`)}, {Type: "Placed", Version: 2, Payload: json.RawMessage(`{"total": 4.0}`)}}
		old := append([]rea.NewEvent{{Type: "PlacedV1", Payload: json.RawMessage(`{"sum": 5}`)}, {Type: "Ordered", Version: 2, Payload: json.RawMessage(`{"total": 6}`)},
			{Type: "Ordered", Version: 1, Payload: json.RawMessage(`{"sum": 6}`)}, event("Touched")}, known...)
		types := []rea.Type{keptType()}
		random := func(events []rea.NewEvent) {
			rapid.Check(t, func(rt *rapid.T) {
				ref := rea.Ref{Type: "order", ID: rapid.SampledFrom(strings.Fields("1 2 3 4 5 6 7 8 9 a b c d e f g h")).Draw(rt, "id")}
				var drawn []any
				for _, e := range rapid.SliceOfN(rapid.SampledFrom(events), 1, 4).Draw(rt, "events") {
					drawn = append(drawn, e)
				}
				if _, err := b.Autocommit().Append(t.Context(), ref, drawn...); err != nil {
					rt.Fatal(err)
				}
			})
		}
		random(old)
		d.keep(t, address, types, kept())
		d.drift(t, b, types, kept())
		random(known)
		d.keep(t, address, types, kept())
		d.drift(t, b, types, kept())
		raised := kept()
		raised.Version = 2
		_, change := d.keep(t, address, types, raised)
		same(t, "Action", change.Projections[0].Action, rea.ActionRebuild)
		d.drift(t, b, types, raised)
	}},
}
