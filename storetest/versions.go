package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// paidOf is an order whose events have old forms and old names; without are events that it does not declare.
func paidOf(t *testing.T, without ...string) *rea.Catalog {
	t.Helper()
	put := func(field, from string) rea.FoldFunc[rea.Object] {
		return func(state rea.Object, e rea.Event) (rea.Object, error) {
			var payload rea.Object
			err := json.Unmarshal(e.Payload, &payload)
			if state == nil {
				state = rea.Object{}
			}
			state[field] = append(state[field], payload[from]...)
			return state, err
		}
	}
	move := func(from, to string) rea.UpcastFunc {
		return func(payload rea.Object) (rea.Object, error) {
			payload[to] = payload[from]
			delete(payload, from)
			return payload, nil
		}
	}
	declared := rea.Type{Name: "order", Events: []rea.EventType{
		{Name: "OrderPlaced", Version: 3, Fold: put("items", "item_ids"), Upcast: map[int]rea.UpcastFunc{1: move("things", "items"), 2: move("items", "item_ids")}},
		{Name: "PaymentReceived", Fold: put("paid", "cents")},
		{Name: "OrderPayed", AliasOf: "PaymentReceived"},
		{Name: "CouponTouched", Retired: true},
	}}
	for _, name := range without {
		for i, e := range declared.Events {
			if e.Name == name {
				declared.Events = append(declared.Events[:i:i], declared.Events[i+1:]...)
				break
			}
		}
	}
	return catalogOf(t, declared)
}

// oldOrders stores two orders in forms of every age, and gives what is stored.
func oldOrders(t *testing.T, b *Base) []rea.Event {
	t.Helper()
	versioned := func(kind string, version int, payload string) rea.NewEvent {
		return rea.NewEvent{Type: kind, Version: version, Payload: json.RawMessage(payload)}
	}
	put(t, b.Autocommit(), order1, versioned("OrderPlaced", 1, `{"things": [1]}`), event("OrderPayed", `{"cents": 7}`),
		versioned("CouponTouched", 9, `{}`), event("OrderPayed", `{"cents": 8}`))
	put(t, b.Autocommit(), order2, versioned("OrderPlaced", 2, `{"items": [2]}`), event("OrderPayed", `{"cents": 9}`))
	put(t, b.Autocommit(), order1, versioned("OrderPlaced", 3, `{"item_ids": [3]}`), event("PaymentReceived", `{"cents": 1}`))
	put(t, b.Autocommit(), order2, event("PaymentReceived", `{"cents": 2}`))
	return b.history(t, rea.Filter{})
}

var versions = []clause{
	{"P9 an old form is read as the newest on every path, and stays as it is stored (VER-1, VER-4)", func(t *testing.T, d *Door) {
		b, c := d.fresh(t), paidOf(t)
		stored := oldOrders(t, b)
		tx := b.begin(t)
		for at, want := range map[rea.At]string{
			{}:                                    `{"items":[1][3],"paid":781}`, // what folds put one behind the other
			rea.AtSeq(1):                          `{"items":[1]}`,
			rea.AtSeq(4):                          `{"items":[1],"paid":78}`,
			rea.AtPosition(7):                     `{"items":[1][3],"paid":78}`,
			rea.AtTime(time.Now().Add(time.Hour)): `{"items":[1][3],"paid":781}`,
		} {
			loaded, err := rea.ReplayAt(t.Context(), tx.Tx, order1, at, c.Fold)
			if err != nil {
				t.Fatal(at, err)
			}
			state := fmt.Sprintf(`{"items":%s`, loaded.State["items"])
			if loaded.State["paid"] != nil {
				state += fmt.Sprintf(`,"paid":%s`, loaded.State["paid"])
			}
			same(t, at.String(), state+"}", want)
		}
		tx.commit(t)
		// folding is not writing
		same(t, "stored events", fmt.Sprintf("%+v", b.history(t, rea.Filter{})), fmt.Sprintf("%+v", stored))
		same(t, "the first one", fmt.Sprint(stored[0].Type, stored[0].Version, string(stored[0].Payload)), `OrderPlaced1{"things": [1]}`)
	}},
	{"P9 an event under an old name is found by the new one (VER-3)", func(t *testing.T, d *Door) {
		b, c := d.fresh(t), paidOf(t)
		oldOrders(t, b)
		for name, k := range map[string]struct {
			filter rea.Filter
			want   int
		}{
			"the new name":                 {rea.Filter{Event: "PaymentReceived", Catalog: c}, 5},
			"the new name, one type":       {rea.Filter{Event: "PaymentReceived", Type: "order", Catalog: c}, 5},
			"the new name, one aggregate":  {rea.Filter{Event: "PaymentReceived", Type: "order", ID: "1", Catalog: c}, 3},
			"the old name":                 {rea.Filter{Event: "OrderPayed", Catalog: c}, 3},
			"the new name, no catalog":     {rea.Filter{Event: "PaymentReceived"}, 2},
			"the new name, after some":     {rea.Filter{Event: "PaymentReceived", Catalog: c, After: 4}, 3},
			"the new name, the first four": {rea.Filter{Event: "PaymentReceived", Catalog: c, Limit: 4}, 4},
		} {
			same(t, name, len(b.history(t, k.filter)), k.want)
		}
	}},
	{"P9 an event that is not declared any more ends the fold by name, and is read all the same (VER-4)", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		stored := oldOrders(t, b)
		_, err := rea.Replay(t.Context(), b.Autocommit(), order1, paidOf(t, "CouponTouched").Fold)
		same(t, "error", *refused[*rea.UnknownTypeError](t, "gone", err), rea.UnknownTypeError{Aggregate: order1, Event: "CouponTouched", Version: 9, Seq: 3})
		before, err := rea.ReplayAt(t.Context(), b.Autocommit(), order1, rea.AtSeq(2), paidOf(t, "CouponTouched").Fold)
		if err != nil || string(before.State["paid"]) != "7" {
			t.Errorf("the state before it = %s, %v, want paid 7", before.State, err)
		}
		same(t, "events", len(of(t, b.Autocommit(), order1)), 6)
		same(t, "history", len(stored), 9)
	}},
}
