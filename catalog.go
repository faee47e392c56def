package rea

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What EventType.From may hold beside statuses.
const (
	FromNone = "none" // the aggregate has no event yet
	FromAny  = "any"  // any status of an aggregate that exists
)

// Catalog says what the events of an archive mean: which events an aggregate knows, in which versions, which
// steps are legal, how its state is folded. Package catalog reads one from rea.yaml. It does not change once made,
// and is safe for concurrent use. A nil *Catalog knows nothing, and everything is allowed.
type Catalog struct {
	types    map[string]*aggregateType
	warnings []string
}

// Type declares one aggregate type.
type Type struct {
	Name    string
	Status  string            // field of the state that the state machine speaks of; "": no state machine
	Strict  bool              // refuse events that are not declared
	Renamed map[string]string // statuses of earlier catalogs, old to new
	Events  []EventType
}

// EventType declares one event of an aggregate type.
type EventType struct {
	Name    string
	Version int                // the newest version of the payload's form; 0: 1
	From    []string           // statuses from which the step is legal, FromNone, FromAny; empty: no rule
	To      string             // the status afterwards; "": it stays
	AliasOf string             // this is an old name of another event: readable, not appendable
	Retired bool               // still in old streams, ignored when folding, not appendable
	Upcast  map[int]UpcastFunc // from version n to n + 1, for every n below Version
	Fold    FoldFunc[Object]   // nil: the payload does not change the state
}

// UpcastFunc is a pure function from a payload of one version to the next.
type UpcastFunc func(payload Object) (Object, error)

type aggregateType struct {
	Type
	events map[string]*EventType
}

// NewCatalog checks declarations and makes them one catalog. The error is a *CatalogError that lists everything
// that is wrong.
func NewCatalog(types ...Type) (*Catalog, error) {
	c := &Catalog{types: make(map[string]*aggregateType, len(types))}
	var problems []string
	for _, t := range types {
		if err := checkName("aggregate type", t.Name); err != nil {
			problems = append(problems, strings.TrimPrefix(err.Error(), "rea: "))
			continue
		}
		if c.types[t.Name] != nil {
			problems = append(problems, fmt.Sprintf("%s: declared twice", t.Name))
			continue
		}
		a := &aggregateType{Type: t, events: make(map[string]*EventType, len(t.Events))}
		c.types[t.Name] = a
		problems = append(problems, a.index()...)
		problems = append(problems, a.checkVersions()...)
		faults, warnings := a.checkMachine()
		problems, c.warnings = append(problems, faults...), append(c.warnings, warnings...)
	}
	if len(problems) > 0 {
		return nil, &CatalogError{Problems: problems}
	}
	return c, nil
}

// CatalogError lists what is wrong with a catalog.
type CatalogError struct{ Problems []string }

func (e *CatalogError) Error() string {
	return "rea: catalog: " + strings.Join(e.Problems, "; ")
}

// index fills events.
func (a *aggregateType) index() (problems []string) {
	for i := range a.Type.Events {
		e := &a.Type.Events[i]
		if e.Version == 0 {
			e.Version = 1
		}
		at := a.Name + "." + e.Name
		if err := checkName("event type", e.Name); err != nil {
			problems = append(problems, a.Name+": "+strings.TrimPrefix(err.Error(), "rea: "))
		}
		if a.events[e.Name] != nil {
			problems = append(problems, at+": declared twice")
		}
		if e.Version < 0 {
			problems = append(problems, at+": versions count from 1")
		}
		a.events[e.Name] = e
	}
	for _, e := range a.Type.Events {
		if e.AliasOf == "" {
			continue
		}
		at := a.Name + "." + e.Name
		of := a.events[e.AliasOf]
		switch {
		case of == nil:
			problems = append(problems, fmt.Sprintf("%s: alias of %s, which is not declared", at, e.AliasOf))
		case of.AliasOf != "":
			problems = append(problems, fmt.Sprintf("%s: alias of the alias %s: name %s itself", at, e.AliasOf, of.AliasOf))
		case e.Version > of.Version:
			problems = append(problems, fmt.Sprintf("%s: version %d, but %s has only %d", at, e.Version, of.Name, of.Version))
		}
		if len(e.From) > 0 || e.To != "" || e.Fold != nil || len(e.Upcast) > 0 || e.Retired {
			problems = append(problems, at+": an alias has no rules of its own")
		}
	}
	return problems
}

// checkVersions finds holes in the chains of upcasters, and steps that lead nowhere.
func (a *aggregateType) checkVersions() (problems []string) {
	for _, e := range a.Type.Events {
		at := a.Name + "." + e.Name
		for n := 1; n < e.Version && e.AliasOf == "" && !e.Retired; n++ {
			if e.Upcast[n] == nil {
				problems = append(problems, fmt.Sprintf("%s: no upcaster from version %d to %d", at, n, n+1))
			}
		}
		for _, n := range slices.Sorted(maps.Keys(e.Upcast)) {
			if n < 1 || n >= e.Version {
				problems = append(problems, fmt.Sprintf("%s: upcaster from version %d to %d, but the newest version is %d", at, n, n+1, e.Version))
			}
		}
	}
	return problems
}

// Warnings lists what is legal and probably not meant: statuses that nothing reaches, events that are never legal.
func (c *Catalog) Warnings() []string {
	if c == nil {
		return nil
	}
	return slices.Clone(c.warnings)
}

// Types lists the declared aggregate types by name.
func (c *Catalog) Types() []Type {
	if c == nil {
		return nil
	}
	var types []Type
	for _, name := range slices.Sorted(maps.Keys(c.types)) {
		types = append(types, c.types[name].Type)
	}
	return types
}

// Upcast gives e as the catalog's newest version of it: under its present name, with the payload brought forward step
// by step. The stored event does not change. Where the catalog does not know the aggregate's type, e comes back
// as it is; an event type that is not declared, and a version above the newest, is an *UnknownTypeError.
// ignore: the event type is retired, and folding leaves it out.
func (c *Catalog) Upcast(e Event) (current Event, ignore bool, err error) {
	if c == nil || c.types[e.Aggregate.Type] == nil {
		return e, false, nil
	}
	declared := c.types[e.Aggregate.Type].events[e.Type]
	if declared == nil {
		return e, false, &UnknownTypeError{Aggregate: e.Aggregate, Event: e.Type, Version: e.Version, Seq: e.Seq}
	}
	if declared.Retired {
		return e, true, nil
	}
	if declared.AliasOf != "" {
		// An alias with a version says which form the old name had; one without keeps the event's own.
		e.Version = max(e.Version, declared.Version)
		declared = c.types[e.Aggregate.Type].events[declared.AliasOf]
		e.Type = declared.Name
	}
	if e.Version > declared.Version {
		return e, false, &UnknownTypeError{Aggregate: e.Aggregate, Event: e.Type, Version: e.Version, Seq: e.Seq, Newest: declared.Version}
	}
	if e.Version == declared.Version {
		return e, false, nil
	}
	payload := Object{}
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return e, false, err
	}
	for ; e.Version < declared.Version; e.Version++ {
		if payload, err = declared.Upcast[e.Version](payload); err != nil {
			return e, false, fmt.Errorf("rea: %s seq %d: upcast %s from version %d: %w", e.Aggregate, e.Seq, e.Type, e.Version, err)
		}
	}
	if e.Payload, err = marshal(payload); err != nil {
		return e, false, err
	}
	e.Payload, err = NormalizeObject(e.Payload, "payload", MaxPayloadBytes)
	return e, false, err
}

// Fold is the fold of the catalog: Upcast, then what the event type declares, then the status. Aggregates whose type is
// not declared are folded by Merge.
func (c *Catalog) Fold(state Object, e Event) (Object, error) {
	if c == nil || c.types[e.Aggregate.Type] == nil {
		return Merge(state, e)
	}
	e, ignore, err := c.Upcast(e)
	if err != nil || ignore {
		return state, err
	}
	a := c.types[e.Aggregate.Type]
	declared := a.events[e.Type]
	if state == nil {
		state = Object{}
	}
	if declared.Fold != nil {
		if state, err = declared.Fold(state, e); err != nil {
			return nil, err
		}
	}
	if a.Status != "" && declared.To != "" {
		if state[a.Status], err = marshal(declared.To); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// Names gives every name under which an event is stored: its own and its aliases'.
func (c *Catalog) Names(event string) []string {
	names := []string{event}
	if c == nil {
		return names
	}
	for _, t := range c.Types() {
		for _, e := range t.Events {
			if e.AliasOf == event && !slices.Contains(names, e.Name) {
				names = append(names, e.Name)
			}
		}
	}
	return names
}
