package rea_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

type (
	base struct {
		Status string `json:"status"`
	}
	nested  struct{ base }
	pointed struct{ *nestedBase }
	hidden  struct{ Inner struct{ cents int } }
	left    struct {
		Cache int `json:"-"`
	}
	stringer struct{ By fmt.Stringer }
	channel  struct{ C chan int }
	clock    struct{ time.Time }
	shouted  string
	loud     struct {
		Status shouted `json:"status"`
	}
	twice struct {
		Status string `json:"status,string"`
	}
	tree struct {
		Status string           `json:"status"`
		Leaves []*tree          `json:"leaves"`
		At     time.Time        `json:"at"`
		Any    any              `json:"any"`
		By     map[string]*tree `json:"by"`
		_      int
	}
	empty      struct{}
	nestedBase struct {
		Status string `json:"status"`
	}
)

func (s shouted) MarshalText() ([]byte, error) { return []byte(strings.ToUpper(string(s))), nil }

// on is an event X whose payload is an E and changes nothing in an S.
func on[S, E any](name string) rea.EventType {
	return rea.On[S, E](rea.EventType{Name: name}, nil)
}

func TestNewCatalogRefusesTypesThatCannotServe(t *testing.T) {
	t.Parallel()
	order := func(status string, events ...rea.EventType) rea.Type {
		return rea.Type{Name: "order", Status: status, Events: events}
	}
	aliased, retired, folded := on[base, closed]("A"), on[base, closed]("R"), on[base, closed]("X")
	aliased.AliasOf, retired.Retired, folded.Fold = "X", true, rea.Merge
	const noStatus = "has no text field whose JSON name is status: REA sets the status there (Status string `json:\"status\"`)"
	for want, types := range map[string][]rea.Type{
		"order.Y: folds into rea_test.account, and events before it into rea_test.base: one type has one state":                                     {order("", on[base, closed]("X"), on[account, opened]("Y"))},
		"order.Y: the payload rea_test.closed is X's already: an append could not know which is meant":                                              {order("", on[base, closed]("X"), on[base, closed]("Y"))},
		"invoice.X: the state rea_test.base is order's already: Load could not know which is meant":                                                 {order("", on[base, closed]("X")), {Name: "invoice", Events: []rea.EventType{on[base, closed]("X")}}},
		"order.A: an alias has no rules of its own: they stand with X":                                                                              {order("", rea.EventType{Name: "X"}, aliased)},
		"order.R: a retired event has no rules: take them away":                                                                                     {order("", retired)},
		"order.X: has a Fold beside the one of On: take one of them away":                                                                           {order("", folded)},
		"order.Y: has a Fold, and other events go through On: a state of rea_test.base would lose what it sets":                                     {order("", on[base, closed]("X"), rea.EventType{Name: "Y", Fold: rea.Merge})},
		"order.X: the payload int is no struct: payloads and states are JSON objects with the fields that a struct names":                           {order("", on[base, int]("X"))},
		"order.X: the payload *rea_test.closed is no struct: payloads and states are JSON objects with the fields that a struct names":              {order("", on[base, *closed]("X"))},
		"order.X: the state map[string]int is no struct: payloads and states are JSON objects with the fields that a struct names":                  {order("", on[map[string]int, closed]("X"))},
		"order.X: the payload rea_test.hidden has the field Inner.cents, which JSON leaves out: export it":                                          {order("", on[base, hidden]("X"))},
		"order.X: the state rea_test.left keeps the field Cache out of JSON: what a snapshot does not keep, a fold may not need":                    {order("", on[left, closed]("X"))},
		"order.X: the payload rea_test.stringer has the field By of the interface fmt.Stringer, which cannot be read from JSON":                     {order("", on[base, stringer]("X"))},
		"order.X: the payload rea_test.channel cannot be written as JSON: json: unsupported type: chan int":                                         {order("", on[base, channel]("X"))},
		"order.X: the payload rea_test.clock is not written as a JSON object: does it embed a type with a MarshalJSON, such as time.Time?":          {order("", on[base, clock]("X"))},
		"order.X: the state rea_test.pointed has the field nestedBase, which JSON leaves out: export it":                                            {order("status", on[pointed, closed]("X"))},
		"order.X: the state rea_test.hidden has the field Inner.cents, which JSON leaves out: export it":                                            {order("status", on[hidden, closed]("X"))},
		"order.X: the state rea_test.opened " + noStatus:                                                                                            {order("status", on[opened, closed]("X"))},
		"order.X: the state rea_test.loud " + noStatus:                                                                                              {order("status", on[loud, closed]("X"))},
		"order.X: the state rea_test.twice " + noStatus:                                                                                             {order("status", on[twice, closed]("X"))},
		"order.X: the state rea_test.base has no text field whose JSON name is Status: REA sets the status there (Status string `json:\"Status\"`)": {order("Status", on[base, closed]("X"))},
	} {
		_, err := rea.NewCatalog(types...)
		var wrong *rea.CatalogError
		if !errors.As(err, &wrong) || strings.TrimPrefix(err.Error(), "rea: catalog: ") != want {
			t.Errorf("error = %v, want %s", err, want)
		}
	}
}

func TestNewCatalogTakesTypesThatCan(t *testing.T) {
	t.Parallel()
	to := on[nested, closed]("X")
	to.To = "x"
	c := mustCatalog(t,
		rea.Type{Name: "nested", Status: "status", Events: []rea.EventType{to, on[nested, left]("Y"), {Name: "Z"}}},
		rea.Type{Name: "tree", Status: "status", Events: []rea.EventType{on[tree, closed]("X")}},
		rea.Type{Name: "plain", Events: []rea.EventType{on[empty, closed]("X")}},
	)
	mustCatalog(t, c.Types()...) // a catalog's types make the same catalog again
	e := rea.Event{Aggregate: rea.Ref{Type: "nested", ID: "1"}, Type: "X", Payload: []byte(`{}`)}
	if state, err := c.Fold(nil, e); err != nil || showObject(state) != `status="x" ` {
		t.Errorf("state = %s, %v, want x", showObject(state), err)
	}
}
