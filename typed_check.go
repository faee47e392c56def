package rea

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// checkTyped finds what is wrong with the Go types that On was given, and fills state, status, payloads and states.
func (c *Catalog) checkTyped(a *aggregateType) (problems []CatalogProblem) {
	untyped := (*EventType)(nil) // an event with a fold of Objects
	for i := range a.Type.Events {
		e := &a.Type.Events[i]
		if e.typed == nil {
			if e.Fold != nil && untyped == nil {
				untyped = e
			}
			continue
		}
		fail := func(format string, args ...any) {
			problems = append(problems, a.problem(e, "fold", fmt.Sprintf(format, args...)))
		}
		if e.AliasOf != "" || e.Retired {
			continue // index and checkAliases have said so
		}
		if e.Fold != nil {
			fail("has a Fold beside the one of On: take one of them away")
		}
		if t := e.typed.payload; a.payloads[t] != nil {
			fail("the payload %s is %s's already: an append could not know which is meant", t, clip(a.payloads[t].Name))
		} else if problem := wrongStruct(t, false); problem != "" {
			fail("the payload %s %s", t, problem)
		} else {
			a.payloads[t] = e
		}
		switch t := e.typed.state; {
		case a.state == nil:
			a.state = t
			problems = append(problems, c.checkState(a, e)...)
		case a.state != t:
			fail("folds into %s, and events before it into %s: one type has one state", t, a.state)
		}
	}
	if a.state != nil && untyped != nil {
		problems = append(problems, a.problem(untyped, "fold", fmt.Sprintf("has a Fold, and other events go through On: a state of %s would lose what it sets", a.state)))
	}
	return problems
}

// checkState checks the state that the first typed event names.
func (c *Catalog) checkState(a *aggregateType, e *EventType) []CatalogProblem {
	fail := func(format string, args ...any) []CatalogProblem {
		return []CatalogProblem{a.problem(e, "fold", fmt.Sprintf(format, args...))}
	}
	if other := c.states[a.state]; other != nil {
		return fail("the state %s is %s's already: Load could not know which is meant", a.state, clip(other.Name))
	}
	if problem := wrongStruct(a.state, true); problem != "" {
		return fail("the state %s %s", a.state, problem)
	}
	c.states[a.state] = a
	if a.Status == "" {
		return nil
	}
	if a.status = statusField(a.state, a.Status); a.status == nil {
		return fail("the state %s has no text field whose JSON name is %s: REA sets the status there (Status string `json:%q`)", a.state, clip(a.Status), a.Status)
	}
	return nil
}

// statusField finds the field of a state that is written as a text under a name, by writing and reading one.
func statusField(state reflect.Type, name string) []int {
	for _, field := range reflect.VisibleFields(state) {
		if !field.IsExported() || field.Type.Kind() != reflect.String || jsonName(field) != name {
			continue
		}
		const probe = "probe"
		v, again := reflect.New(state), reflect.New(state)
		at, err := v.Elem().FieldByIndexErr(field.Index)
		if err != nil {
			continue // within a pointer
		}
		at.SetString(probe)
		var fields Object
		text, err := marshal(v.Interface())
		if err != nil || json.Unmarshal(text, &fields) != nil || string(fields[name]) != `"`+probe+`"` {
			continue // another field of that name, or a way of its own to be written
		}
		if decodeInto(text, again.Interface()) == nil && again.Elem().FieldByIndex(field.Index).String() == probe {
			return field.Index
		}
	}
	return nil
}

// jsonName is the name under which encoding/json writes a field.
func jsonName(field reflect.StructField) string {
	if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
		return name
	}
	return field.Name
}

// wrongStruct says why values of t could not be written as JSON objects and come back the same; "": they could.
// whole: also what a tag leaves out on purpose is missed.
func wrongStruct(t reflect.Type, whole bool) string {
	if t.Kind() != reflect.Struct {
		return "is no struct: payloads and states are JSON objects with the fields that a struct names"
	}
	if problem := lost(t, "", whole, make(map[reflect.Type]bool)); problem != "" {
		return problem
	}
	text, err := marshal(reflect.New(t).Interface())
	switch {
	case errors.As(err, new(*json.UnsupportedTypeError)):
		return "cannot be written as JSON: " + err.Error()
	case err == nil && text[0] != '{':
		return "is not written as a JSON object: does it embed a type with a MarshalJSON, such as time.Time?"
	}
	return ""
}

// lost finds a field that does not come back from JSON.
func lost(t reflect.Type, path string, whole bool, seen map[reflect.Type]bool) string {
	if seen[t] || writesItself(t) {
		return ""
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return lost(t.Elem(), path, whole, seen)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Sprintf("has the field %s of the interface %s, which cannot be read from JSON", path, t)
		}
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			at := strings.TrimPrefix(path+"."+field.Name, ".")
			skipped := field.Tag.Get("json") == "-"
			switch {
			case field.Name == "_", skipped && !whole:
				continue
			case skipped:
				return fmt.Sprintf("keeps the field %s out of JSON: what a snapshot does not keep, a fold may not need", at)
			case !field.IsExported() && !(field.Anonymous && field.Type.Kind() == reflect.Struct):
				return fmt.Sprintf("has the field %s, which JSON leaves out: export it", at)
			}
			if problem := lost(field.Type, at, whole, seen); problem != "" {
				return problem
			}
		}
	}
	return ""
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// writesItself: t has a form of its own in JSON, and what it keeps in it is its own business.
func writesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(textMarshaler)
}
