package rea_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// up is an upcaster that writes down its step.
func up(n int) rea.UpcastFunc {
	return func(payload rea.Object) (rea.Object, error) {
		payload["steps"] = json.RawMessage(fmt.Sprintf("%s%d", strings.TrimSpace(string(payload["steps"])), n))
		return payload, nil
	}
}

func failing(rea.Object) (rea.Object, error) { return nil, errors.New("no") }

func mustCatalog(t *testing.T, types ...rea.Type) *rea.Catalog {
	t.Helper()
	c, err := rea.NewCatalog(types...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNewCatalogRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	order := func(events ...rea.EventType) rea.Type { return rea.Type{Name: "order", Status: "s", Events: events} }
	for want, c := range map[string][]rea.Type{
		": aggregate type is empty": {{Name: ""}},
		"order: declared twice":     {{Name: "order"}, {Name: "order"}},
		"order.X: declared twice":   {order(rea.EventType{Name: "X"}, rea.EventType{Name: "X"})},
		"order.DirectUpdate: is a name of REA's own events: choose another":  {order(rea.EventType{Name: "DirectUpdate"})},
		"order.X: versions count from 1 to 1000":                             {order(rea.EventType{Name: "X", Version: 2_000_000_000})},
		"order.X: no upcaster from version 1 to 2":                           {order(rea.EventType{Name: "X", Version: 3, Upcast: map[int]rea.UpcastFunc{2: up(2)}})},
		"order.X: upcaster from version 0 to 1, but the newest version is 1": {order(rea.EventType{Name: "X", Upcast: map[int]rea.UpcastFunc{0: up(0)}})},
		"order.X: upcaster from version 1 to 2, but the newest version is 1": {order(rea.EventType{Name: "X", Upcast: map[int]rea.UpcastFunc{1: up(1)}})},
		"order.X: alias of itself":                                           {order(rea.EventType{Name: "X", AliasOf: "X"})},
		"order.A: alias of B, which is an alias itself: name the event that is meant; order.B: alias of A, which is an alias itself: name the event that is meant": {
			order(rea.EventType{Name: "A", AliasOf: "B"}, rea.EventType{Name: "B", AliasOf: "A"})},
		"order.A: version 2, but X has only 1":                                                        {order(rea.EventType{Name: "X"}, rea.EventType{Name: "A", AliasOf: "X", Version: 2})},
		"order.A: an alias has no rules of its own: they stand with X":                                {order(rea.EventType{Name: "X"}, rea.EventType{Name: "A", AliasOf: "X", Fold: rea.Merge})},
		"order.R: a retired event has no rules: take them away":                                       {order(rea.EventType{Name: "R", Retired: true, To: "r"})},
		"order.X: no event leads to gone":                                                             {order(rea.EventType{Name: "X", From: []string{"gone"}})},
		`order.X: "none" is no name for a status`:                                                     {order(rea.EventType{Name: "X", To: "none"})},
		"order: old is renamed to new, but no event leads to that":                                    {{Name: "order", Status: "s", Renamed: map[string]string{"old": "new"}}},
		"order: paid is renamed, but an event still leads to it":                                      {{Name: "order", Status: "s", Renamed: map[string]string{"paid": "paid"}, Events: []rea.EventType{{Name: "X", To: "paid"}}}},
		"order.X: from and to need the field that holds the status: give the aggregate type a status": {{Name: "order", Events: []rea.EventType{{Name: "X", To: "x"}}}},
	} {
		_, err := rea.NewCatalog(c...)
		var wrong *rea.CatalogError
		if !errors.As(err, &wrong) || strings.TrimPrefix(err.Error(), "rea: catalog: ") != want {
			t.Errorf("error = %v, want %s", err, want)
		}
	}
}

func TestUpcastGoesStepByStepUnderThePresentName(t *testing.T) {
	t.Parallel()
	c := mustCatalog(t, rea.Type{Name: "order", Events: []rea.EventType{
		{Name: "Placed", Version: 4, Upcast: map[int]rea.UpcastFunc{1: up(1), 2: up(2), 3: up(3)}},
		{Name: "Ordered", AliasOf: "Placed"},
		{Name: "PlacedV2", AliasOf: "Placed", Version: 2},
		{Name: "Touched", Retired: true, Version: 3},
		{Name: "Broken", Version: 3, Upcast: map[int]rea.UpcastFunc{1: up(1), 2: failing}},
	}})
	for _, k := range []struct {
		event   string
		version int
		want    string // name, version, payload, ignored; or the error
	}{
		{"Placed", 4, `Placed 4 {} false`}, {"Placed", 1, `Placed 4 {"steps": 123} false`}, {"Placed", 3, `Placed 4 {"steps": 3} false`},
		{"Placed", 0, `Placed 4 {"steps": 123} false`},
		{"Ordered", 1, `Placed 4 {"steps": 123} false`}, {"Ordered", 3, `Placed 4 {"steps": 3} false`}, {"Ordered", 4, `Placed 4 {} false`},
		{"PlacedV2", 1, `Placed 4 {"steps": 23} false`}, {"PlacedV2", 2, `Placed 4 {"steps": 23} false`},
		{"Touched", 9, `Touched 9 {} true`},
		{"PlacedV2", 3, `rea: order/1 seq 7: PlacedV2 has version 3, the catalog knows up to 2`},
		{"Placed", 5, `rea: order/1 seq 7: Placed has version 5, the catalog knows up to 4`},
		{"Ordered", 5, `rea: order/1 seq 7: Ordered has version 5, the catalog knows up to 4`},
		{"Gone", 1, `rea: order/1 seq 7: the catalog does not know Gone (version 1): declare it, or declare it retired`},
		{"Broken", 1, `rea: order/1 seq 7: upcast Broken (version 1) from version 2 to 3: no`},
	} {
		stored := rea.Event{Aggregate: rea.Ref{Type: "order", ID: "1"}, Seq: 7, Type: k.event, Version: k.version, Payload: json.RawMessage(`{}`)}
		e, ignore, err := c.Upcast(stored)
		got := fmt.Sprintf("%s %d %s %t", e.Type, e.Version, e.Payload, ignore)
		if err != nil {
			got = err.Error()
			if e.Type != k.event || e.Version != k.version || string(e.Payload) != "{}" {
				t.Errorf("%s version %d: an error comes with %s version %d, want the stored event", k.event, k.version, e.Type, e.Version)
			}
		}
		if got != k.want {
			t.Errorf("%s version %d: %s, want %s", k.event, k.version, got, k.want)
		}
	}
	other := rea.Event{Aggregate: rea.Ref{Type: "invoice", ID: "1"}, Type: "Any", Version: 99}
	if e, ignore, err := c.Upcast(other); e.Version != 99 || ignore || err != nil {
		t.Errorf("an undeclared aggregate type gives %+v, %t, %v, want the event", e, ignore, err)
	}
	var none *rea.Catalog
	if _, err := none.Fold(nil, rea.Event{Payload: json.RawMessage(`{"a": 1}`)}); err != nil {
		t.Errorf("no catalog: %v", err)
	}
}

func TestACatalogDoesNotChangeWithItsDeclarations(t *testing.T) {
	t.Parallel()
	events := []rea.EventType{{Name: "A", From: []string{rea.FromNone}, To: "a"}}
	c := mustCatalog(t, rea.Type{Name: "t", Status: "s", Events: events})
	events[0].To, events[0].From[0] = "b", rea.FromAny
	given := c.Types()
	given[0].Events[0].To = "c"
	if events[0].Version != 0 {
		t.Error("NewCatalog has changed the declaration")
	}
	if after, err := c.Step("t", "A", "", false); after != "a" || err != nil {
		t.Errorf("Step = %s, %v, want a", after, err)
	}
}

func TestMachineWarnings(t *testing.T) {
	t.Parallel()
	c := mustCatalog(t, rea.Type{Name: "t", Status: "s", Events: []rea.EventType{
		{Name: "A", From: []string{rea.FromNone}, To: "a"}, {Name: "B", From: []string{"b"}, To: "b"}, {Name: "C", From: []string{"a"}, To: "c"},
	}})
	if got, want := fmt.Sprint(c.Warnings()), "[t: nothing reaches the status b t.B: is never legal]"; got != want {
		t.Errorf("warnings = %s, want %s", got, want)
	}
	declared, _ := c.Type("t")
	if got := declared.Final(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("final = %v, want [b c]", got)
	}
}

func showObject(state rea.Object) string {
	text := ""
	for _, field := range slices.Sorted(maps.Keys(state)) {
		text += field + "=" + string(state[field]) + " "
	}
	return text
}
