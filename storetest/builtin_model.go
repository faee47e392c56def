package storetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/realtime-event-archive/rea"
)

// columnOf draws a row's value for a field of keptType, or one that its column cannot take.
func columnOf(rt *rapid.T, field string) string {
	values := map[string]string{
		"status": `"paid" "placed" "PAID " null`, "total": `1.50 1.5 0 12345678901234567890.10 null`, "payments": `0 7 null`, "note": `"x" "" null 1.0`,
		"day": `"2024-02-29" null`, "urgent": `true false null`, "data": `[] {} null [1] 1.00`, "other": `1.0 [] null`,
	}
	return rapid.SampledFrom(strings.Split(strings.ReplaceAll(values[field], `"PAID "`, `"PAID_"`), " ")).Draw(rt, field)
}

// factOf draws one of REA's own events.
func factOf(rt *rapid.T) rea.NewEvent {
	row := func(name string) string {
		var pairs []string
		for _, field := range []string{"status", "total", "payments", "note", "day", "urgent", "data", "other"} {
			if rapid.Bool().Draw(rt, name+field) {
				pairs = append(pairs, fmt.Sprintf("%q: %s", field, columnOf(rt, field)))
			}
		}
		return "{" + strings.Join(pairs, ", ") + "}"
	}
	gone := rapid.SampledFrom([]string{`[]`, `["note"]`, `["total", "other"]`}).Draw(rt, "gone")
	kind := rapid.SampledFrom(builtInNames).Draw(rt, "kind")
	switch kind {
	case "BaselineCreated":
		return event(kind, fmt.Sprintf(`{"row": %s}`, row("row")))
	case "DirectInsert":
		return event(kind, fmt.Sprintf(`{"new": %s}`, row("new")))
	case "DirectDelete":
		return event(kind, fmt.Sprintf(`{"old": %s}`, row("old")))
	case "Reverted":
		return event(kind, fmt.Sprintf(`{"set": %s, "unset": %s, "undoes": [1], "was": {}}`, row("set"), gone))
	}
	return event(kind, fmt.Sprintf(`{"old": %s, "new": %s, "gone": %s}`, row("old"), row("new"), gone))
}

// rowModel is the fold of the design's table, in the plainest form, beside what the catalog says of other events.
func rowModel(t *testing.T, c *rea.Catalog, events []rea.Event) rea.Object {
	t.Helper()
	state := rea.Object{}
	for _, e := range events {
		var p struct {
			Row, New, Old, Set rea.Object
			Gone, Unset        []string
		}
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "BaselineCreated":
			state = p.Row
		case "DirectInsert":
			state = p.New
		case "DirectDelete":
			state = rea.Object{}
		case "DirectUpdate":
			if e.Seq == 1 {
				maps.Copy(state, p.Old)
			}
			maps.Copy(state, p.New)
		case "Reverted":
			maps.Copy(state, p.Set)
		default:
			var err error
			if state, err = c.Fold(state, e); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range append(p.Gone, p.Unset...) {
			delete(state, key)
		}
	}
	return state
}

var builtInModels = []clause{
	{"P9 random facts and events fold alike in loads, snapshots and inline tables", func(t *testing.T, d *Door) {
		kind := keptType()
		kind.SnapshotEvery, kind.FoldVersion = 3, 1
		types, p := []rea.Type{kind}, kept()
		b, _ := d.keep(t, d.Migrated(t), types, p)
		c := keeping(t, types, p)
		when := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			ref := rea.Ref{Type: "order", ID: fmt.Sprint(n)}
			for range rapid.IntRange(1, 6).Draw(rt, "events") {
				l := rea.Line{Aggregate: ref, CreatedAt: when}
				if rapid.Bool().Draw(rt, "fact") {
					l.Event = factOf(rt)
				} else {
					l.Event = rapid.SampledFrom([]rea.NewEvent{event("Paid", `{"amount": 1.50}`), event("Noted", `{"customer": {"note": "x"}, "data": []}`)}).Draw(rt, "event")
				}
				for i, result := range imported(t, b, l) {
					if result != "stored" {
						rt.Fatalf("line %d, %s of %s: %s", i, l.Event.Type, l.Event.Payload, result)
					}
				}
				loaded, err := b.Autocommit().Load(t.Context(), ref) // from its snapshot, and makes one
				if err != nil {
					rt.Fatal(err)
				}
				if want := rowModel(t, c, of(t, b.Autocommit(), ref)); !reflect.DeepEqual(loaded.State, want) {
					rt.Fatalf("state = %s, want %s", loaded.State, want)
				}
			}
		})
		d.drift(t, b, types, p)
	}},
	{"P6 a fact that a column cannot take is stored, and leaves the row behind, which apply reports", func(t *testing.T, d *Door) {
		b := d.kept(t)
		same(t, "results", imported(t, b,
			factAt(order1, "BaselineCreated", `{"row": {"status": "paid", "total": 1.0}}`),
			factAt(order1, "DirectUpdate", `{"old": {"total": 1.0}, "new": {"total": "a lot"}}`),
			factAt(order1, "DirectUpdate", `{"old": {}, "new": {"note": "x"}}`)), []string{"stored", "stored", "stored"})
		same(t, "rea_seq", *d.rows(t, b, kept())["1"][0], "1")
		change, err := b.Apply(limited(t))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "Behind", len(change.Behind), 1)
		same(t, "Rows", change.Behind[0].Rows, 1)
		same(t, "Column", refused[*rea.ProjectionError](t, "behind", change.Behind[0].Err).Column, "total")
	}},
}
