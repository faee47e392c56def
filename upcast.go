package rea

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// Upcast gives e as the catalog's newest version of it: under its present name, with the payload brought forward step
// by step. The stored event does not change. Where the catalog does not know the aggregate's type, e comes back
// as it is; an event type that is not declared, and a version above the newest, is an *UnknownTypeError, an upcaster
// that fails an *UpcastError. ignore: the event type is retired, and folding leaves it out.
func (c *Catalog) Upcast(e Event) (current Event, ignore bool, err error) {
	if c == nil || c.types[e.Aggregate.Type] == nil {
		return e, false, nil
	}
	events := c.types[e.Aggregate.Type].events
	stored := e
	declared := events[e.Type]
	switch {
	case BuiltIn(e.Type) && e.Version > 1:
		return stored, false, unknown(stored, 1)
	case BuiltIn(e.Type):
		return e, false, nil
	case declared == nil:
		return stored, false, unknown(stored, 0)
	case declared.Retired:
		return stored, true, nil
	case declared.AliasOf != "":
		// A name that stood for one form was stored without a number (as 1), or with the number of that form.
		if form := declared.Version; form > 0 {
			if e.Version > 1 && e.Version != form {
				return stored, false, unknown(stored, form)
			}
			e.Version = form
		}
		declared = events[declared.AliasOf]
		e.Type = declared.Name
	}
	e.Version = max(e.Version, 1)
	if e.Version > declared.Version {
		return stored, false, unknown(stored, declared.Version)
	}
	if e.Version == declared.Version {
		return e, false, nil
	}
	payload, err := ParseObject(e.Payload)
	if err != nil {
		return stored, false, &UpcastError{Aggregate: e.Aggregate, Event: stored.Type, Version: stored.Version, Seq: e.Seq, From: e.Version, Err: err}
	}
	for ; e.Version < declared.Version; e.Version++ {
		if payload, err = declared.Upcast[e.Version](payload); err != nil {
			break
		}
	}
	if err == nil {
		if e.Payload, err = marshal(payload); err == nil {
			e.Payload, err = NormalizeObject(e.Payload, "payload", MaxPayloadBytes)
		}
	}
	if err != nil {
		return stored, false, &UpcastError{Aggregate: e.Aggregate, Event: stored.Type, Version: stored.Version, Seq: e.Seq, From: min(e.Version, declared.Version-1), Err: err}
	}
	return e, false, nil
}

// undeclared: Upcast does not know the event type, though it knows the aggregate's.
func undeclared(err error) bool {
	var unknown *UnknownTypeError
	return errors.As(err, &unknown) && unknown.Newest == 0
}

func unknown(e Event, newest int) error {
	return &UnknownTypeError{Aggregate: e.Aggregate, Event: e.Type, Version: e.Version, Seq: e.Seq, Newest: newest}
}

// Fold is the fold of the catalog: Upcast, then what the event type declares, then the status. REA's own events change the
// state by what they say of the row, its status too. Aggregates whose type is
// not declared are folded by Merge. state may be changed. Where the state has a Go type (On), it goes through that
// type and back for each event: Load is the quick way.
func (c *Catalog) Fold(state Object, e Event) (Object, error) {
	if c == nil || c.types[e.Aggregate.Type] == nil {
		return Merge(state, e)
	}
	if c.types[e.Aggregate.Type].state != nil {
		return c.foldTyped(state, e)
	}
	e, ignore, err := c.Upcast(e)
	if err != nil {
		return nil, err
	}
	if state == nil {
		state = Object{}
	}
	if ignore {
		return state, nil
	}
	if BuiltIn(e.Type) {
		return foldRow(state, e)
	}
	a := c.types[e.Aggregate.Type]
	if fold := a.events[e.Type].Fold; fold != nil {
		if state, err = fold(state, e); err != nil {
			return nil, err
		}
	}
	if to := a.to[e.Type]; to != nil {
		if state == nil {
			state = Object{}
		}
		state[a.Status] = to
	}
	return state, nil
}

// Status is the status that a state of this aggregate type has; "": none, or no state machine.
func (c *Catalog) Status(aggregate string, state Object) string {
	if c == nil || c.types[aggregate] == nil || c.types[aggregate].Status == "" {
		return ""
	}
	var status string
	if json.Unmarshal(state[c.types[aggregate].Status], &status) != nil {
		return "" // absent, or no text
	}
	return status
}

// Aliases gives the old names of an event, in the aggregate type that is named, or in all ("").
func (c *Catalog) Aliases(aggregate, event string) []string {
	if c == nil || event == "" {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.types)) {
		for old, e := range c.types[name].events {
			if e.AliasOf == event && (aggregate == "" || aggregate == name) && !slices.Contains(names, old) {
				names = append(names, old)
			}
		}
	}
	slices.Sort(names)
	return names
}
