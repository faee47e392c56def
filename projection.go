package rea

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Projection declares a table that is computed from events: rea_views.NAME on PostgreSQL, rea_views_NAME on SQLite.
//
// With Of it is a table of states: one row per aggregate, with aggregate_id, the columns, rea_seq and rea_updated_at
// (created_at of the event with that seq). An inline one is kept in the transaction of each append, the others by
// Archive.Run. With On it is a table of statistics, which Archive.Run keeps: one row per bucket of time and
// dimensions, with bucket (its start), bucket_local (that in its zone, as text), the dimensions and the measures.
type Projection struct {
	Name    string // at most MaxProjectionBytes bytes, no .
	Version int    // raising it says that the table has to be built anew: after a change of an upcaster, say; 0: 1

	Of      string // the aggregate type
	Inline  bool
	Columns []Column

	On       []string      // event types, by their present names
	Every    time.Duration // the length of a bucket, by created_at: a part of an hour in minutes, or of a day in hours; 0: 1h
	Zone     string        // of the buckets, such as Asia/Kolkata; "": UTC
	By       []Dimension
	Measures []Measure
}

// Column is a column of a table of states: the field of the state that has its name. Absent and null are NULL.
type Column struct {
	Name string     `json:"name"` // at most 63 bytes
	Type ColumnType `json:"type"`
}

// The limits of names in projections, which PostgreSQL sets.
const (
	MaxProjectionBytes = 40
	MaxColumnBytes     = 63
)

// ourColumns are what every table of states has, beside names that begin with rea_, and what PostgreSQL calls its own.
var ourColumns = []string{"aggregate_id", "ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}

// WithProjections gives the catalog with these projections in place of the ones that it has. The error is a *CatalogError.
func (c *Catalog) WithProjections(projections ...Projection) (*Catalog, error) {
	with := &Catalog{types: make(map[string]*aggregateType)}
	if c != nil {
		*with = *c
		with.projections = nil
	}
	var problems []CatalogProblem
	names := map[string]string{}
	for _, p := range projections {
		p.Columns, p.Version = slices.Clone(p.Columns), max(p.Version, 1)
		if len(p.On) > 0 {
			p.On, p.By, p.Measures = slices.Clone(p.On), slices.Clone(p.By), slices.Clone(p.Measures)
			p.Every, p.Zone = cmp.Or(p.Every, time.Hour), cmp.Or(p.Zone, "UTC")
		}
		problem := func(key, text string) {
			problems = append(problems, CatalogProblem{Projection: p.Name, Key: key, Text: text})
		}
		switch same := names[asciiLower(p.Name)]; {
		case same == p.Name && p.Name != "":
			problem("", "declared twice")
		case same != "":
			problem("", fmt.Sprintf("differs from %s by upper and lower case alone", same))
		}
		names[asciiLower(p.Name)] = p.Name
		with.checkProjection(p, problem)
		with.projections = append(with.projections, p)
	}
	slices.SortFunc(with.projections, func(a, b Projection) int { return strings.Compare(a.Name, b.Name) })
	if len(problems) > 0 {
		return nil, &CatalogError{Problems: problems}
	}
	return with, nil
}

// Projections lists copies of the declared projections, by name.
func (c *Catalog) Projections() []Projection {
	if c == nil {
		return nil
	}
	list := slices.Clone(c.projections)
	for i := range list {
		p := &list[i]
		p.Columns, p.On, p.By, p.Measures = slices.Clone(p.Columns), slices.Clone(p.On), slices.Clone(p.By), slices.Clone(p.Measures)
	}
	return list
}

func (c *Catalog) checkProjection(p Projection, problem func(key, text string)) {
	if err := checkIdentifier("the name of a projection", p.Name, MaxProjectionBytes); err != nil {
		problem("", err.Error())
	} else if strings.Contains(p.Name, ".") {
		problem("", "has a . in its name, as tables have that are being built")
	}
	if len(p.On) > 0 {
		if p.Of != "" || p.Inline || len(p.Columns) > 0 {
			problem("on", "is a table of statistics: it has no type, no columns of a state, and is not inline")
			return
		}
		c.checkStatistics(p, problem)
		return
	}
	if c.types[p.Of] == nil {
		problem("of", fmt.Sprintf("the aggregate type %s is not declared", clip(p.Of)))
		return
	}
	if len(p.Columns) == 0 {
		problem("columns", "has no columns: name the fields of the state")
	}
	seen := map[string]bool{}
	for _, column := range p.Columns {
		if err := checkIdentifier("the name of a column", column.Name, MaxColumnBytes); err != nil {
			problem(column.Name, err.Error())
			continue
		}
		name := asciiLower(column.Name)
		switch {
		case slices.Contains(ourColumns, name) || strings.HasPrefix(name, "rea_"):
			problem(column.Name, "the column "+clip(column.Name)+" is REA's or the database's own: call the field otherwise")
		case seen[name]:
			problem(column.Name, "the column "+clip(column.Name)+" stands twice (upper and lower case are one to SQLite)")
		case !slices.Contains(columnTypes, column.Type):
			problem(column.Name, fmt.Sprintf("%s is no type of a column: there are %s", clip(string(column.Type)), joinTypes()))
		default:
			c.checkColumn(p, column, problem)
		}
		seen[name] = true
	}
	for _, e := range c.types[p.Of].Type.Events {
		if e.Fold != nil && len(e.Operations) == 0 || e.typed != nil && e.typed.fold != nil {
			problem("", fmt.Sprintf("%s is folded by a function: a table of states is kept by operations alone (set, unset, add, count)", clip(e.Name)))
		}
	}
}

// checkColumn looks at every operation on the column's field.
func (c *Catalog) checkColumn(p Projection, column Column, problem func(key, text string)) {
	touched := false
	for _, change := range c.changes(p.Of, column.Name) {
		touched = true
		bad := func(text string) {
			problem(column.Name, fmt.Sprintf("the column %s: %s: %s", clip(column.Name), clip(change.event), text))
		}
		switch op := change.Operation; {
		case (op.Kind == OpAppend || op.Kind == OpRemove) && p.Inline:
			bad(op.Kind + " changes a list, which an inline table cannot keep: leave the column out, or let the table be followed")
		case (op.Kind == OpAppend || op.Kind == OpRemove) && column.Type != JSONB:
			bad(fmt.Sprintf("%s needs a column of type jsonb, not %s", op.Kind, column.Type))
		case op.Kind == OpAppend || op.Kind == OpRemove:
		case (op.Kind == OpAdd || op.Kind == OpCount) && column.Type != Numeric && column.Type != Bigint:
			bad(fmt.Sprintf("%s needs a column of type numeric or bigint, not %s", op.Kind, column.Type))
		case op.Kind == OpUnset || op.Kind == OpCount:
		case op.Attribute != "":
			if op.Kind == OpAdd && op.Attribute != "@seq" && op.Attribute != "@event_version" || !column.Type.takesAttribute(op.Attribute) {
				bad(fmt.Sprintf("a column of type %s cannot take %s", column.Type, op.Attribute))
			}
		case op.Path == nil:
			if _, ok := column.Type.text(op.Literal); !ok || op.Kind == OpAdd && !isJSONNumber(op.Literal) {
				bad(fmt.Sprintf("a column of type %s cannot take the literal", column.Type))
			}
		case len(op.Path) == 0 && column.Type != JSONB:
			bad(fmt.Sprintf("a column of type %s cannot take the whole payload", column.Type))
		}
	}
	if !touched {
		problem(column.Name, fmt.Sprintf("no event of %s changes the field %s", clip(p.Of), clip(column.Name)))
	}
}

// fieldChange is what an event does to a field.
type fieldChange struct {
	event string
	Operation
}

// changes lists what the events of a type do to a field, the status included.
func (c *Catalog) changes(aggregateType, field string) (list []fieldChange) {
	a := c.types[aggregateType]
	for _, e := range a.Type.Events {
		for _, op := range e.Operations {
			if op.Field == field {
				list = append(list, fieldChange{e.Name, op})
			}
		}
		if to := a.to[e.Name]; to != nil && field == a.Status {
			list = append(list, fieldChange{e.Name, Operation{Kind: OpSet, Field: field, Operand: Operand{Literal: to}}})
		}
	}
	return list
}

// checkIdentifier checks what becomes a name in the database.
func checkIdentifier(what, name string, most int) error {
	if err := checkName(what, name); err != nil {
		return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "rea: "))
	}
	if len(name) > most {
		return fmt.Errorf("%s is %d bytes long, the limit is %d", what, len(name), most)
	}
	return nil
}

// asciiLower is how SQLite compares names: ASCII letters alone have two cases.
func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func joinTypes() string {
	names := make([]string, len(columnTypes))
	for i, t := range columnTypes {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

// StateTables gives the declared inline projections as a store keeps them, by name.
func (c *Catalog) StateTables() []StateTable {
	var tables []StateTable
	for _, p := range c.Projections() {
		if p.Inline {
			tables = append(tables, c.stateTable(p))
		}
	}
	return tables
}

func (c *Catalog) stateTable(p Projection) StateTable {
	t := StateTable{Name: p.Name, Of: p.Of, Version: p.Version, Columns: p.Columns, Events: []StateEvent{}}
	a := c.types[p.Of]
	for _, e := range a.Type.Events {
		if e.Retired || e.AliasOf != "" {
			continue
		}
		kept := StateEvent{Event: e.Name, Version: e.Version, Upcasting: e.Upcasting, Stored: a.stored(&e), Changes: []ColumnChange{}}
		for i, column := range p.Columns {
			for _, change := range c.changes(p.Of, column.Name) {
				if change.event == e.Name {
					kept.Changes = append(kept.Changes, ColumnChange{Column: i, Kind: change.Kind, Operand: change.Operand})
				}
			}
		}
		if len(kept.Changes) > 0 { // others move rea_seq alone, as those do that nothing is said of
			t.Events = append(t.Events, kept)
		}
	}
	return t
}
