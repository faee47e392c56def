package rea

import (
	"encoding/json"
	"testing"
	"time"
)

// printed gives the fingerprint of a type's fold; "": it has no snapshots.
func printed(t *testing.T, kind Type) string {
	t.Helper()
	c, err := NewCatalog(kind)
	if err != nil {
		t.Fatal(err)
	}
	if c.snapshots(kind.Name) == nil {
		return ""
	}
	return c.types[kind.Name].fingerprint
}

func foldedOrder(change func(t *Type)) Type {
	set := []Operation{{Kind: OpSet, Field: "a", Operand: Operand{Path: []string{"a"}}}}
	t := Type{Name: "order", Status: "status", Events: []EventType{
		{Name: "Placed", Version: 2, From: []string{FromNone}, To: "placed", Fold: Merge, Operations: set, Upcast: map[int]UpcastFunc{1: nothing}, Upcasting: "1: []"},
		{Name: "Old", AliasOf: "Placed"}, {Name: "Paid", To: "paid"}, {Name: "Gone", Retired: true},
	}}
	if change != nil {
		change(&t)
	}
	return t
}

func nothing(payload Object) (Object, error) { return payload, nil }

func TestAFingerprintChangesWithWhatAStateDependsOnAndWithNothingElse(t *testing.T) {
	t.Parallel()
	seen := map[string]string{printed(t, foldedOrder(nil)): "nothing"}
	for name, change := range map[string]func(*Type){
		"the name":         func(k *Type) { k.Name = "other" },
		"the status field": func(k *Type) { k.Status = "state" },
		"a version": func(k *Type) {
			k.Events[2].Version, k.Events[2].Upcast, k.Events[2].Upcasting = 2, map[int]UpcastFunc{1: nothing}, "x"
		},
		"a to":            func(k *Type) { k.Events[2].To = "settled" },
		"an alias":        func(k *Type) { k.Events[1].AliasOf = "Paid" },
		"an alias' form":  func(k *Type) { k.Events[1].Version = 1 },
		"a retired event": func(k *Type) { k.Events[3].Retired = false },
		"an operation":    func(k *Type) { k.Events[0].Operations = []Operation{{Kind: OpUnset, Field: "a"}} },
		"an operand": func(k *Type) {
			k.Events[0].Operations = []Operation{{Kind: OpSet, Field: "a", Operand: Operand{Literal: json.RawMessage("1")}}}
		},
		"an upcaster":      func(k *Type) { k.Events[0].Upcasting = "1: [{unset: a}]" },
		"the fold version": func(k *Type) { k.FoldVersion = 1 },
		"a further event":  func(k *Type) { k.Events = append(k.Events, EventType{Name: "New"}) },
	} {
		print := printed(t, foldedOrder(change))
		if other, there := seen[print]; there || print == "" {
			t.Errorf("fingerprint with %s changed = %q, the same as with %s changed", name, print, other)
		}
		seen[print] = name
	}
	for name, change := range map[string]func(*Type){
		"strict":    func(k *Type) { k.Strict = true },
		"from":      func(k *Type) { k.Events[2].From = []string{"placed"} },
		"renamed":   func(k *Type) { k.Renamed = map[string]string{"old": "paid"} },
		"how often": func(k *Type) { k.SnapshotEvery = 7 },
	} {
		if got, want := printed(t, foldedOrder(change)), printed(t, foldedOrder(nil)); got != want {
			t.Errorf("fingerprint with %s changed = %s, want %s", name, got, want)
		}
	}
	for name, change := range map[string]func(*Type){
		"off":                func(k *Type) { k.SnapshotEvery = -1 },
		"a fold in Go":       func(k *Type) { k.Events[0].Operations = nil },
		"an upcaster in Go":  func(k *Type) { k.Events[0].Upcasting = "" },
		"another fold in Go": func(k *Type) { k.Events[2].Fold = Merge },
		"a fold of a Go state": func(k *Type) {
			*k = Type{Name: "order", Events: []EventType{On(EventType{Name: "Placed"}, (*shape1).placed)}}
		},
	} {
		if got := printed(t, foldedOrder(change)); got != "" {
			t.Errorf("fingerprint with %s = %s, want no snapshots", name, got)
		}
	}
}

type (
	payload1 struct{ A int }
	payload2 struct{ A int64 }
	shape1   struct{ A []*payload1 }
	shape2   struct{ A []*payload2 }
	shape3   struct {
		A    []*payload1 `json:"a"`
		Next *shape3
		At   time.Time
	}
)

func (*shape1) placed(payload1, Event) {}
func (*shape2) placed(payload1, Event) {}
func (*shape3) placed(payload1, Event) {}
func (*shape1) again(payload2, Event)  {}

func TestAFingerprintChangesWithTheShapeOfGoTypes(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, e := range []EventType{
		On(EventType{Name: "Placed"}, (*shape1).placed), On(EventType{Name: "Placed"}, (*shape2).placed),
		On(EventType{Name: "Placed"}, (*shape3).placed), On(EventType{Name: "Placed"}, (*shape1).again),
	} {
		print := printed(t, Type{Name: "order", FoldVersion: 1, Events: []EventType{e}})
		if j, there := seen[print]; there || print == "" {
			t.Errorf("fingerprint %d = %q, the same as %d", i, print, j)
		}
		seen[print] = i
	}
}
