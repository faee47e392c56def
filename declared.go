package rea

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Declared is a row of rea.steps: one way to a legal step, or what else the database must know of a declaration.
type Declared struct {
	Type    string // aggregate type
	Event   string // "": the row of the aggregate type itself
	From    string // a status, FromNone, FromAny; "": never (an old name, a retired event)
	To      string // "": the status stays
	Version int    // the newest one of the event; 0: of no event
	Ruled   bool   // false: legal because the catalog says nothing
	AliasOf string
	Strict  bool   // of the type's row
	Status  string // of the type's row: the field of the state that is the status
	Machine bool   // the type has a state machine
	Deletes bool   // after the event the object's row may be deleted
}

// String gives "order: PaymentReceived: placed -> paid".
func (d Declared) String() string {
	text := clip(d.Type)
	switch {
	case d.Event == "" && d.Strict:
		return text + ": strict"
	case d.Event == "":
		return text
	}
	text += ": " + clip(d.Event)
	if d.Deletes {
		text += " (deletes)"
	}
	switch {
	case d.AliasOf != "":
		return text + " is an old name of " + clip(d.AliasOf)
	case d.From == "":
		return text + " is retired"
	case !d.Machine:
		return text
	case d.To == "":
		return text + ": " + clip(d.From) + " stays"
	}
	return text + ": " + clip(d.From) + " -> " + clip(d.To)
}

// Declared lists what the database is to know of the catalog, in the order of the declaration.
func (c *Catalog) Declared() []Declared {
	var rows []Declared
	for _, t := range c.Types() {
		machine := t.Status != ""
		rows = append(rows, Declared{Type: t.Name, Strict: t.Strict, Status: t.Status, Machine: machine})
		for _, e := range t.Events {
			row := Declared{Type: t.Name, Event: e.Name, To: e.To, Version: e.Version, AliasOf: e.AliasOf, Machine: machine, Deletes: e.Deletes}
			if e.AliasOf != "" {
				row.To = c.types[t.Name].events[e.AliasOf].To // walking back, an old name counts as the present one
			}
			from := e.From
			switch {
			case e.AliasOf != "" || e.Retired:
				from = []string{""}
			case len(from) == 0:
				from = []string{FromNone, FromAny}
			default:
				row.Ruled = true
			}
			for _, row.From = range from {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// declaration is a Type without its functions, as rea.catalogs.text keeps it.
type declaration struct {
	Type    string            `json:"type"`
	Status  string            `json:"status,omitempty"`
	Strict  bool              `json:"strict,omitempty"`
	Renamed map[string]string `json:"renamed,omitempty"`
	Events  []eventDeclared   `json:"events"`
}

type eventDeclared struct {
	Event   string   `json:"event"`
	Version int      `json:"version,omitempty"`
	From    []string `json:"from,omitempty"`
	To      string   `json:"to,omitempty"`
	AliasOf string   `json:"alias,omitempty"`
	Retired bool     `json:"retired,omitempty"`
	Deletes bool     `json:"deletes,omitempty"`
}

// text is the catalog without its functions, the same for the same declarations.
func (c *Catalog) text() (string, error) {
	list := []declaration{}
	for _, t := range c.Types() {
		d := declaration{Type: t.Name, Status: t.Status, Strict: t.Strict, Renamed: t.Renamed, Events: []eventDeclared{}}
		for _, e := range t.Events {
			d.Events = append(d.Events, eventDeclared{e.Name, e.Version, e.From, e.To, e.AliasOf, e.Retired, e.Deletes})
		}
		list = append(list, d)
	}
	text, err := marshal(list)
	return string(text), err
}

// renamed is what rea.catalogs.renamed holds: by aggregate type, old statuses to new ones.
func (c *Catalog) renamed() map[string]map[string]string {
	renamed := make(map[string]map[string]string)
	for _, t := range c.Types() {
		if len(t.Renamed) > 0 {
			renamed[t.Name] = t.Renamed
		}
	}
	return renamed
}

// AppliedCatalog is a row of rea.catalogs.
type AppliedCatalog struct {
	Number  int
	Text    string
	Renamed map[string]map[string]string // by aggregate type, old statuses to new ones
}

// Catalog gives the declarations back, without upcasters and folds: what a store steps by.
func (a AppliedCatalog) Catalog() (*Catalog, error) {
	var list []declaration
	if err := json.Unmarshal([]byte(a.Text), &list); err != nil {
		return nil, fmt.Errorf("rea: read catalog %d of the database: %w", a.Number, err)
	}
	c := &Catalog{types: make(map[string]*aggregateType, len(list))}
	for _, d := range list {
		t := Type{Name: d.Type, Status: d.Status, Strict: d.Strict, Renamed: d.Renamed}
		for _, e := range d.Events {
			t.Events = append(t.Events, EventType{Name: e.Event, Version: e.Version, From: e.From, To: e.To, AliasOf: e.AliasOf, Retired: e.Retired, Deletes: e.Deletes})
		}
		kept := &aggregateType{Type: t, events: make(map[string]*EventType, len(t.Events))}
		for i := range t.Events {
			kept.events[t.Events[i].Name] = &kept.Type.Events[i]
		}
		c.types[d.Type] = kept
	}
	return c, nil
}

// Carried is a status that catalog number version gave, as the newest of applied calls it; applied is in order.
func Carried(applied []AppliedCatalog, aggregateType, status string, version int) string {
	for _, a := range applied {
		if now, ok := a.Renamed[aggregateType][status]; ok && a.Number > version {
			status = now
		}
	}
	return status
}

// Leading lists the events of a type, old names too, that lead to a status, and the status.
func (c *Catalog) Leading(aggregateType string) map[string]string {
	leading := make(map[string]string)
	for _, d := range c.Declared() {
		if d.Type == aggregateType && d.To != "" {
			leading[d.Event] = d.To
		}
	}
	return leading
}

// Taken is the step that an append takes: the status afterwards, and what the event is stored with.
type Taken struct {
	Status  string
	Version int // the newest of the event; 0: not declared
	Machine bool
}

// Take is Step for an append after seq last, which may be a correction: an illegal step then leads where it leads. A
// built-in event leads to the status that its payload says.
func (c *Catalog) Take(aggregate Ref, event NewEvent, status string, last int64, correction bool) (Taken, error) {
	if c == nil || c.types[aggregate.Type] == nil {
		return Taken{}, nil
	}
	a := c.types[aggregate.Type]
	taken := Taken{Machine: a.Status != ""}
	if e := a.events[event.Type]; e != nil {
		taken.Version = e.Version
	}
	after, err := c.Step(aggregate.Type, event.Type, status, last > 0)
	if BuiltIn(event.Type) {
		after = statusAfter(event.Type, event.Payload, last+1, a.Status, status)
	}
	switch e := err.(type) {
	case *TransitionError:
		if correction && e.AliasOf == "" && !e.Retired {
			if to := a.events[event.Type].To; to != "" {
				after = to
			}
			break
		}
		e.Aggregate = aggregate
		return taken, e
	case *UnknownTypeError:
		e.Aggregate = aggregate
		return taken, e
	}
	if taken.Machine {
		taken.Status = after
	}
	return taken, nil
}

// lacks lists what of rows is not among others.
func lacks(rows, others []Declared) []Declared {
	var list []Declared
	for _, row := range rows {
		if !slices.Contains(others, row) {
			list = append(list, row)
		}
	}
	return list
}
