package rea

import (
	"fmt"
	"maps"
	"slices"
)

// Step is the state machine as a pure function: the status of an aggregate of type aggregate after event, where it
// has status now and exists says whether it has events at all. Where the type has no machine, or the event no rule,
// every step is legal; REA's own events are facts, judged by none, and leave the status here: what they say stands in
// their payload. Old names and retired events are not to be appended anyway. An illegal step is a
// *TransitionError without an aggregate's id, an event that a strict type does not declare an *UnknownTypeError.
func (c *Catalog) Step(aggregate, event, status string, exists bool) (after string, err error) {
	if c == nil || c.types[aggregate] == nil {
		return status, nil
	}
	a := c.types[aggregate]
	declared := a.events[event]
	switch {
	case BuiltIn(event):
		return status, nil
	case declared == nil && a.Strict:
		return status, &UnknownTypeError{Aggregate: Ref{Type: aggregate}, Event: event}
	case declared == nil:
		return status, nil
	case !declared.legal(status, exists):
		return status, &TransitionError{
			Aggregate: Ref{Type: aggregate}, Event: event, Status: status, Legal: c.Legal(aggregate, status, exists),
			AliasOf: declared.AliasOf, Retired: declared.Retired,
		}
	case declared.To != "":
		return declared.To, nil
	}
	return status, nil
}

// Legal lists the events with a rule that are legal now, in the order of the declaration.
func (c *Catalog) Legal(aggregate, status string, exists bool) []string {
	if c == nil || c.types[aggregate] == nil {
		return nil
	}
	var legal []string
	for _, e := range c.types[aggregate].Type.Events {
		if len(e.From) > 0 && e.legal(status, exists) {
			legal = append(legal, e.Name)
		}
	}
	return legal
}

// Leads reports whether a declared step leads an aggregate that has the status from, or no event yet, to the status to, or
// none is needed. Where the type has no machine, everything does.
func (c *Catalog) Leads(aggregate, from, to string, exists bool) bool {
	if c == nil || c.types[aggregate] == nil || c.types[aggregate].Status == "" || to == from || to == "" {
		return true
	}
	return slices.ContainsFunc(c.types[aggregate].Type.Events, func(e EventType) bool { return e.To == to && e.legal(from, exists) })
}

func (e *EventType) legal(status string, exists bool) bool {
	switch {
	case e.AliasOf != "" || e.Retired:
		return false
	case len(e.From) == 0:
		return true
	case !exists:
		return slices.Contains(e.From, FromNone)
	}
	return slices.Contains(e.From, FromAny) || (status != "" && slices.Contains(e.From, status))
}

// Statuses lists the statuses that a type's events lead to, in the order of the declaration.
func (t Type) Statuses() []string {
	var statuses []string
	for _, e := range t.Events {
		if e.To != "" && !slices.Contains(statuses, e.To) {
			statuses = append(statuses, e.To)
		}
	}
	return statuses
}

// Final lists the statuses that no event leaves, in the order of the declaration.
func (t Type) Final() []string {
	var final []string
	for _, status := range t.Statuses() {
		if !slices.ContainsFunc(t.Events, func(e EventType) bool {
			return e.To != "" && e.To != status && e.legal(status, true)
		}) {
			final = append(final, status)
		}
	}
	return final
}

// checkMachine finds rules that cannot be meant. faults: names of statuses that nothing leads to, rules without a
// machine. warnings: statuses that cannot be reached, events that are never legal.
func (a *aggregateType) checkMachine() (faults, warnings []CatalogProblem) {
	statuses := a.Statuses()
	for i := range a.Type.Events {
		e := &a.Type.Events[i]
		if a.Status == "" && (len(e.From) > 0 || e.To != "") {
			key := "from"
			if e.To != "" {
				key = "to"
			}
			faults = append(faults, a.problem(e, key, "from and to need the field that holds the status: give the aggregate type a status"))
			continue
		}
		if to := e.To; to == FromNone || to == FromAny || to != "" && checkName("status", to) != nil {
			faults = append(faults, a.problem(e, "to", fmt.Sprintf("%q is no name for a status", clip(to))))
		}
		for i, from := range e.From {
			switch {
			case slices.Contains(e.From[:i], from):
				faults = append(faults, a.problem(e, "from", fmt.Sprintf("%s twice", clip(from))))
			case from != FromNone && from != FromAny && !slices.Contains(statuses, from):
				faults = append(faults, a.problem(e, "from", fmt.Sprintf("no event leads to %s", clip(from))))
			}
		}
	}
	for _, old := range slices.Sorted(maps.Keys(a.Renamed)) {
		switch status := a.Renamed[old]; {
		case slices.Contains(statuses, old):
			faults = append(faults, CatalogProblem{Type: a.Name, Key: "renamed", Text: fmt.Sprintf("%s is renamed, but an event still leads to it", clip(old))})
		case !slices.Contains(statuses, status):
			faults = append(faults, CatalogProblem{Type: a.Name, Key: "renamed", Text: fmt.Sprintf("%s is renamed to %s, but no event leads to that", clip(old), clip(status))})
		}
	}
	if len(faults) > 0 || a.Status == "" {
		return faults, nil
	}
	reached := a.reachable()
	for _, status := range statuses {
		if !reached[status] {
			warnings = append(warnings, CatalogProblem{Type: a.Name, Key: "status", Text: fmt.Sprintf("nothing reaches the status %s", clip(status))})
		}
	}
	for i := range a.Type.Events {
		e := &a.Type.Events[i]
		if len(e.From) > 0 && !slices.ContainsFunc(e.From, func(from string) bool {
			return from == FromNone || reached[from] || from == FromAny && len(reached) > 0
		}) {
			warnings = append(warnings, a.problem(e, "from", "is never legal"))
		}
	}
	return nil, warnings
}

// reachable walks the machine from an aggregate without events.
func (a *aggregateType) reachable() map[string]bool {
	reached := make(map[string]bool)
	for grown := true; grown; {
		grown = false
		for _, e := range a.Type.Events {
			if e.To == "" || reached[e.To] {
				continue
			}
			from := func(s string) bool { return s == FromNone || reached[s] || s == FromAny && len(reached) > 0 }
			if len(e.From) == 0 || slices.ContainsFunc(e.From, from) {
				reached[e.To], grown = true, true
			}
		}
	}
	return reached
}
