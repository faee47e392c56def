package rea

import (
	"fmt"
	"maps"
	"slices"
)

// filter is what a projection may need.
func (a *Archive) filter(f Followed) (filter FollowFilter) {
	c := a.config.Catalog
	switch f.Kind {
	case KindState:
		filter.Lean, filter.Attributes = true, f.State.takesAttributes()
		if len(c.types) > 1 {
			filter.Type = f.Of
		}
		filter.Needs = c.needs(f.Of, func(e *EventType) []Operand { return f.State.operands(e.Name) })
	case KindStatistics:
		filter.Lean, filter.Events = true, slices.Sorted(maps.Keys(f.Statistics.events))
		filter.Attributes = slices.ContainsFunc(f.Statistics.By, func(d Dimension) bool { return d.carried() })
		operands := f.Statistics.operands()
		for _, t := range slices.Sorted(maps.Keys(c.types)) {
			filter.Needs = append(filter.Needs, c.needs(t, func(e *EventType) []Operand {
				if !slices.Contains(f.Statistics.On, e.Name) {
					return nil
				}
				return operands
			})...)
		}
	}
	return filter
}

// needs says what operands take from the payloads of a type's events in their newest form. Others have to be upcast first, which
// takes the whole payload.
func (c *Catalog) needs(aggregateType string, operands func(*EventType) []Operand) (needs []Need) {
	a := c.types[aggregateType]
	same := map[string]int{} // by versions and keys
	for i := range a.Type.Events {
		e := &a.Type.Events[i]
		if e.Retired || e.AliasOf != "" {
			continue
		}
		keys, whole := keysOf(operands(e))
		if whole {
			continue
		}
		stored := a.stored(e)
		for _, name := range slices.Sorted(maps.Keys(stored)) {
			need := Need{Type: aggregateType, Events: []string{name}, Versions: stored[name], Keys: keys}
			if len(need.Versions) == 0 {
				continue
			}
			key := fmt.Sprintf("%d %q", need.Versions, need.Keys)
			if at, known := same[key]; known {
				needs[at].Events = append(needs[at].Events, name)
				continue
			}
			same[key] = len(needs)
			needs = append(needs, need)
		}
	}
	return needs
}

// keysOf lists the fields of a payload that operands lead into. whole: one of them takes all of it.
func keysOf(operands []Operand) (keys []string, whole bool) {
	for _, o := range operands {
		switch {
		case o.Attribute != "" || o.Path == nil:
		case len(o.Path) == 0:
			return nil, true
		case !slices.Contains(keys, o.Path[0]):
			keys = append(keys, o.Path[0])
		}
	}
	slices.Sort(keys)
	return keys, false
}

// stored gives the names of an event, old ones too, with the stored versions that are its newest form.
func (a *aggregateType) stored(e *EventType) map[string][]int {
	stored := map[string][]int{e.Name: {e.Version}}
	for name, old := range a.events {
		switch {
		case old.AliasOf != e.Name:
		case old.Version == 0:
			stored[name] = []int{e.Version}
		case old.Version == e.Version: // stored without a number (as 1), or with its own
			stored[name] = slices.Compact([]int{1, e.Version})
		default:
			stored[name] = []int{}
		}
	}
	return stored
}
