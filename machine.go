package rea

import (
	"fmt"
	"slices"
)

// Step is the state machine as a pure function: the status of an aggregate of type aggregate after event, where it
// has status now and exists says whether it has events at all. Where the type has no machine, or the event no rule,
// every step is legal. An illegal step is a *TransitionError without an aggregate's id.
func (c *Catalog) Step(aggregate, event, status string, exists bool) (after string, err error) {
	if c == nil || c.types[aggregate] == nil || c.types[aggregate].Status == "" {
		return status, nil
	}
	a := c.types[aggregate]
	declared := a.events[event]
	if declared == nil {
		if a.Strict {
			return status, &UnknownTypeError{Aggregate: Ref{Type: aggregate}, Event: event}
		}
		return status, nil
	}
	if !declared.legal(status, exists) {
		return status, &TransitionError{Aggregate: Ref{Type: aggregate}, Event: event, Status: status, Legal: c.Legal(aggregate, status, exists)}
	}
	if declared.To != "" {
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

// checkMachine finds rules that cannot be meant. faults: names of statuses that nothing leads to, rules without a
// machine. warnings: statuses that cannot be reached, events that are never legal.
func (a *aggregateType) checkMachine() (faults, warnings []string) {
	statuses := a.Statuses()
	for _, status := range statuses {
		if status == FromNone || status == FromAny || checkName("status", status) != nil {
			faults = append(faults, fmt.Sprintf("%s: %q is no name of a status", a.Name, clip(status)))
		}
	}
	for _, e := range a.Type.Events {
		if a.Status == "" && (len(e.From) > 0 || e.To != "") {
			faults = append(faults, fmt.Sprintf("%s.%s: from and to need the type's status field", a.Name, e.Name))
			continue
		}
		for _, from := range e.From {
			if from != FromNone && from != FromAny && !slices.Contains(statuses, from) {
				faults = append(faults, fmt.Sprintf("%s.%s: from %s, but no event leads to it", a.Name, e.Name, from))
			}
		}
	}
	for old, status := range a.Renamed {
		if !slices.Contains(statuses, status) || slices.Contains(statuses, old) {
			faults = append(faults, fmt.Sprintf("%s: renamed %s to %s: the old one must be gone, the new one declared", a.Name, old, status))
		}
	}
	if len(faults) > 0 || a.Status == "" {
		return faults, nil
	}
	reached := a.reachable()
	for _, status := range statuses {
		if !reached[status] {
			warnings = append(warnings, fmt.Sprintf("%s: nothing reaches the status %s", a.Name, status))
		}
	}
	for _, e := range a.Type.Events {
		if len(e.From) > 0 && !slices.ContainsFunc(e.From, func(from string) bool {
			return from == FromNone || reached[from] || from == FromAny && len(reached) > 0
		}) {
			warnings = append(warnings, fmt.Sprintf("%s.%s: is never legal", a.Name, e.Name))
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
