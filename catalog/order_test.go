package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/catalog"
)

// orderYAML is the catalog of the specification.
const orderYAML = `rea: 1
aggregates:
  order:
    status: status
    events:
      OrderPlaced:
        version: 2
        from: [none]
        to: placed
        set: {item_ids: $.item_ids, items_count: $.items_count, total_amount: $.total_amount, placed_at: "@created_at"}
        upcast:
          1: [{rename: {items: item_ids}}, {length: {items_count: $.item_ids}}]
      OrderPlacedV1:   {alias: OrderPlaced, version: 1}
      PaymentReceived: {from: [placed], to: paid,      set: {paid_at: "@created_at"}, add: {received: $.amount}}
      OrderShipped:    {from: [paid],   to: shipped,   set: {shipped_at: "@created_at"}}
      OrderCancelled:  {from: [placed, paid], to: cancelled, set: {cancelled_at: "@created_at"}}
      NoteAdded:       {from: any, append: {notes: $.text}, count: notes_count}
      CouponTouched:   {retired: true}
projections:
  order_state:  {of: order, mode: inline, columns: {status: text, total_amount: numeric, placed_at: timestamptz, shipped_at: timestamptz}}
  hourly_sales: {on: PaymentReceived, every: 1h, tz: UTC, measures: {orders: count, amount: {sum: $.amount}}}
`

func parse(t testing.TB, text string) *rea.Catalog {
	t.Helper()
	c, err := catalog.Parse("rea.yaml", []byte(text))
	if err != nil {
		var wrong *catalog.Error
		if errors.As(err, &wrong) {
			t.Fatal(wrong.Detail())
		}
		t.Fatal(err)
	}
	return c
}

// orderByHand is what orderYAML means, written without it.
func orderByHand(state rea.Object, e rea.Event) (rea.Object, error) {
	if state == nil {
		state = rea.Object{}
	}
	var payload rea.Object
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return nil, err
	}
	at := json.RawMessage(`"` + rea.FormatTime(e.CreatedAt) + `"`)
	switch e.Type {
	case "OrderPlaced", "OrderPlacedV1":
		if e.Version == 1 {
			if items, ok := payload["items"]; ok {
				payload["item_ids"] = items
				var list []any
				_ = json.Unmarshal(items, &list)
				payload["items_count"] = json.RawMessage(fmt.Sprint(len(list)))
			}
		}
		for _, field := range []string{"item_ids", "items_count", "total_amount"} {
			if v, ok := payload[field]; ok {
				state[field] = v
			}
		}
		state["placed_at"], state["status"] = at, json.RawMessage(`"placed"`)
	case "PaymentReceived":
		state["paid_at"], state["status"] = at, json.RawMessage(`"paid"`)
		if v, ok := payload["amount"]; ok {
			state["received"] = cents(state["received"], v)
		}
	case "OrderShipped":
		state["shipped_at"], state["status"] = at, json.RawMessage(`"shipped"`)
	case "OrderCancelled":
		state["cancelled_at"], state["status"] = at, json.RawMessage(`"cancelled"`)
	case "NoteAdded":
		if v, ok := payload["text"]; ok {
			notes := "[" + string(v) + "]"
			if old := state["notes"]; old != nil {
				notes = string(old[:len(old)-1]) + ", " + string(v) + "]"
			}
			state["notes"] = json.RawMessage(notes)
		}
		n := 0
		_ = json.Unmarshal(state["notes_count"], &n)
		state["notes_count"] = json.RawMessage(fmt.Sprint(n + 1))
	}
	return state, nil
}

// cents adds amounts that have two digits after the point, as the events of drawOrder do.
func cents(sum, v json.RawMessage) json.RawMessage {
	read := func(b json.RawMessage) (n int64) {
		var whole, part int64
		if b != nil {
			_, _ = fmt.Sscanf(string(b), "%d.%d", &whole, &part)
		}
		return 100*whole + part
	}
	n := read(sum) + read(v)
	return json.RawMessage(fmt.Sprintf("%d.%02d", n/100, n%100))
}

func drawOrder(t *rapid.T) []rea.Event {
	at := time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)
	var events []rea.Event
	for seq := range rapid.IntRange(1, 12).Draw(t, "events") {
		e := rea.Event{
			Aggregate: rea.Ref{Type: "order", ID: "1"}, Seq: int64(seq + 1), Version: 1, CreatedAt: at.Add(time.Duration(seq) * time.Second),
			Type: rapid.SampledFrom([]string{"OrderPlaced", "OrderPlacedV1", "PaymentReceived", "OrderShipped", "OrderCancelled", "NoteAdded", "CouponTouched"}).Draw(t, "type"),
		}
		payload := map[string]any{}
		ids := rapid.SliceOfN(rapid.IntRange(1, 9), 0, 4).Draw(t, "items")
		maybe := func(field string, v any) {
			if rapid.Bool().Draw(t, "has "+field) {
				payload[field] = v
			}
		}
		if e.Type == "OrderPlaced" {
			e.Version = rapid.IntRange(1, 2).Draw(t, "version")
		}
		if e.Version == 1 {
			maybe("items", ids)
		} else {
			maybe("item_ids", ids)
			maybe("items_count", len(ids))
		}
		maybe("total_amount", rapid.IntRange(0, 1e6).Draw(t, "total"))
		maybe("amount", json.RawMessage(fmt.Sprintf("%d.%02d", rapid.Int64Range(0, 1e12).Draw(t, "whole"), rapid.IntRange(0, 99).Draw(t, "part"))))
		maybe("text", rapid.SampledFrom([]string{"", "a", "é\u2028", `<"\>`, "ab c"}).Draw(t, "text"))
		text, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		if e.Payload, err = rea.NormalizeObject(text, "payload", 0); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func TestTheFileAndGoGiveTheSameStates(t *testing.T) {
	t.Parallel()
	c := parse(t, orderYAML)
	rapid.Check(t, func(t *rapid.T) {
		var fromFile, byHand rea.Object
		for _, e := range drawOrder(t) {
			var err error
			stored := string(e.Payload)
			if fromFile, err = c.Fold(fromFile, e); err != nil {
				t.Fatalf("fold %s: %v", e.Type, err)
			}
			if string(e.Payload) != stored {
				t.Fatalf("the fold has changed the event: %s, want %s", e.Payload, stored)
			}
			if byHand, err = orderByHand(byHand, e); err != nil {
				t.Fatal(err)
			}
			if got, want := show(fromFile), show(byHand); got != want {
				t.Fatalf("after %s: state = %s, want %s", e.Type, got, want)
			}
			for field, v := range fromFile {
				if n, err := rea.NormalizeJSON(v, field, 0); err != nil || string(n) != string(v) {
					t.Fatalf("%s = %s is not in normal form (%s, %v)", field, v, n, err)
				}
			}
		}
	})
}

func show(state rea.Object) string {
	text := ""
	for _, field := range slices.Sorted(maps.Keys(state)) {
		text += field + "=" + string(state[field]) + " "
	}
	return text
}
