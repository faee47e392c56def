package rea

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
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
	types       map[string]*aggregateType
	states      map[reflect.Type]*aggregateType // by the Go type of the state
	projections []Projection                    // by name
	warnings    []CatalogProblem
}

// Type declares one aggregate type.
type Type struct {
	Name    string
	Status  string            // field of the state that the state machine speaks of; "": no state machine
	Strict  bool              // refuse events that are not declared
	Renamed map[string]string // statuses of earlier catalogs, old to new
	Events  []EventType

	// SnapshotEvery is how many events lie between two snapshots of an aggregate, at least. 0: 100; below 0: there are none.
	SnapshotEvery int
	// FoldVersion is to be raised with every change of a Fold, of a fold given to On, or of an Upcast, that makes another state
	// of the same events: it tells old snapshots from new. 0: aggregates have no snapshots where there is such a function.
	FoldVersion int
}

// EventType declares one event of an aggregate type.
type EventType struct {
	Name    string
	Version int                // the newest version of the payload's form, 1 to 1,000; 0: 1. For an alias see AliasOf
	From    []string           // statuses from which the step is legal, FromNone, FromAny; empty: no rule
	To      string             // the status afterwards; "": it stays
	AliasOf string             // an old name of this event: readable, not appendable. Version: the form that the name stood for; 0: the stored one
	Deletes bool               // after it the object's row may be deleted in a table that a guard refuses other deletes of
	Retired bool               // still in old streams, ignored when folding, not appendable
	Upcast  map[int]UpcastFunc // from version n to n + 1, for every n below Version
	Fold    FoldFunc[Object]   // nil: the payload does not change the state. On gives a typed one

	// Operations say as data what Fold does, for those who cannot call it: inline projections. Empty with a Fold: a
	// function of the program's. Package catalog fills both.
	Operations []Operation

	// Upcasting is a text that says what Upcast does, other for other upcasters. "" with an Upcast: functions of the
	// program's. Package catalog fills both.
	Upcasting string

	typed *typed // by On
}

// UpcastFunc is a pure function from a payload of one version to the next.
type UpcastFunc func(payload Object) (Object, error)

type aggregateType struct {
	Type
	events map[string]*EventType
	to     map[string]json.RawMessage // the status after an event, as the state has it

	state    reflect.Type // of typed events; nil: there are none
	status   []int        // the field of state that holds the status; nil: there is no machine
	payloads map[reflect.Type]*EventType

	every       int    // events between two snapshots; 0: there are none
	fingerprint string // of what a state depends on
}

// maxVersion bounds versions: a greater one is a slip of the finger, and every step below it takes an upcaster.
const maxVersion = 1_000

// NewCatalog checks declarations and makes them one catalog. The error is a *CatalogError that lists everything
// that is wrong. The types are copied; their functions are called by several goroutines at once.
func NewCatalog(types ...Type) (*Catalog, error) {
	c := &Catalog{types: make(map[string]*aggregateType, len(types)), states: make(map[reflect.Type]*aggregateType)}
	var problems []CatalogProblem
	for _, t := range types {
		if err := checkName("aggregate type", t.Name); err != nil {
			problems = append(problems, CatalogProblem{Type: t.Name, Text: strings.TrimPrefix(err.Error(), "rea: ")})
			continue
		}
		if c.types[t.Name] != nil {
			problems = append(problems, CatalogProblem{Type: t.Name, Text: "declared twice"})
			continue
		}
		a := &aggregateType{Type: t.clone(), events: make(map[string]*EventType, len(t.Events)), to: make(map[string]json.RawMessage), payloads: make(map[reflect.Type]*EventType)}
		c.types[t.Name] = a
		problems = append(problems, a.index()...)
		problems = append(problems, a.checkAliases()...)
		problems = append(problems, a.checkVersions()...)
		problems = append(problems, c.checkTyped(a)...)
		faults, warnings := a.checkMachine()
		problems, c.warnings = append(problems, faults...), append(c.warnings, warnings...)
		a.keepSnapshots()
	}
	if len(problems) > 0 {
		return nil, &CatalogError{Problems: problems}
	}
	return c, nil
}

// clone copies what a caller could change later.
func (t Type) clone() Type {
	t.Renamed, t.Events = maps.Clone(t.Renamed), slices.Clone(t.Events)
	for i := range t.Events {
		e := &t.Events[i]
		e.From, e.Upcast, e.Operations = slices.Clone(e.From), maps.Clone(e.Upcast), slices.Clone(e.Operations)
	}
	return t
}

// index fills events and to.
func (a *aggregateType) index() (problems []CatalogProblem) {
	for i := range a.Type.Events {
		e := &a.Type.Events[i]
		if e.Version == 0 && e.AliasOf == "" {
			e.Version = 1
		}
		switch err := checkName("event type", e.Name); {
		case err != nil:
			problems = append(problems, a.problem(e, "", strings.TrimPrefix(err.Error(), "rea: ")))
		case BuiltIn(e.Name):
			problems = append(problems, a.problem(e, "", "is a name of REA's own events: choose another"))
		case a.events[e.Name] != nil:
			problems = append(problems, a.problem(e, "", "declared twice"))
			continue
		}
		if e.Version < 0 || e.Version > maxVersion {
			problems = append(problems, a.problem(e, "version", fmt.Sprintf("versions count from 1 to %d", maxVersion)))
			e.Version, e.Upcast = 1, nil // one problem is enough
		}
		if e.Retired && (e.Deletes || len(e.From) > 0 || e.To != "" || e.Fold != nil || e.typed != nil || len(e.Upcast) > 0) {
			problems = append(problems, a.problem(e, "retired", "a retired event has no rules: take them away"))
		}
		a.events[e.Name] = e
		if e.To != "" {
			if to, err := marshal(e.To); err == nil {
				a.to[e.Name], _ = NormalizeJSON(to, "status", 0) // a name that cannot be one is checkMachine's to refuse
			}
		}
	}
	return problems
}

func (a *aggregateType) checkAliases() (problems []CatalogProblem) {
	for i := range a.Type.Events {
		e := &a.Type.Events[i]
		if e.AliasOf == "" {
			continue
		}
		switch of := a.events[e.AliasOf]; {
		case of == nil:
			problems = append(problems, a.problem(e, "alias", fmt.Sprintf("alias of %s, which is not declared", clip(e.AliasOf))))
		case e.AliasOf == e.Name:
			problems = append(problems, a.problem(e, "alias", "alias of itself"))
		case of.AliasOf != "":
			problems = append(problems, a.problem(e, "alias", fmt.Sprintf("alias of %s, which is an alias itself: name the event that is meant", clip(e.AliasOf))))
		case of.Retired:
			problems = append(problems, a.problem(e, "alias", fmt.Sprintf("alias of %s, which is retired: declare it retired too", clip(e.AliasOf))))
		case e.Version > of.Version:
			problems = append(problems, a.problem(e, "version", fmt.Sprintf("version %d, but %s has only %d", e.Version, clip(of.Name), of.Version)))
		}
		if len(e.From) > 0 || e.To != "" || e.Fold != nil || e.typed != nil || len(e.Upcast) > 0 || e.Retired || e.Deletes {
			problems = append(problems, a.problem(e, "alias", "an alias has no rules of its own: they stand with "+clip(e.AliasOf)))
		}
	}
	return problems
}

// checkVersions finds holes in the chains of upcasters, and steps that lead nowhere. A chain cannot have a step
// twice, and goes up by one, so that it cannot loop.
func (a *aggregateType) checkVersions() (problems []CatalogProblem) {
	for i := range a.Type.Events {
		e := &a.Type.Events[i]
		if e.AliasOf != "" || e.Retired {
			continue
		}
		for n := 1; n < e.Version; n++ {
			if e.Upcast[n] == nil {
				problems = append(problems, a.problem(e, "upcast", fmt.Sprintf("no upcaster from version %d to %d", n, n+1)))
			}
		}
		for _, n := range slices.Sorted(maps.Keys(e.Upcast)) {
			if n < 1 || n >= e.Version {
				problems = append(problems, a.problem(e, "upcast", fmt.Sprintf("upcaster from version %d to %d, but the newest version is %d", n, n+1, e.Version)))
			}
		}
	}
	return problems
}

func (a *aggregateType) problem(e *EventType, key, text string) CatalogProblem {
	return CatalogProblem{Type: a.Name, Event: e.Name, Key: key, Text: text}
}

// Warnings lists what is legal and probably not meant: statuses that nothing reaches, events that are never legal.
func (c *Catalog) Warnings() []CatalogProblem {
	if c == nil {
		return nil
	}
	return slices.Clone(c.warnings)
}

// Types lists copies of the declared aggregate types, by name.
func (c *Catalog) Types() []Type {
	if c == nil {
		return nil
	}
	var types []Type
	for _, name := range slices.Sorted(maps.Keys(c.types)) {
		types = append(types, c.types[name].Type.clone())
	}
	return types
}

// Type gives a copy of the declaration of one aggregate type.
func (c *Catalog) Type(name string) (t Type, declared bool) {
	if c == nil || c.types[name] == nil {
		return Type{}, false
	}
	return c.types[name].Type.clone(), true
}
