package rea

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// StateTable is a table of states as a store keeps it: what each event does to which column, as data. Its text is
// rea.projections.definition.
type StateTable struct {
	Name    string       `json:"name"`
	Of      string       `json:"of"`
	Mode    string       `json:"mode,omitempty"` // "followed"; "": inline
	Version int          `json:"version"`
	Columns []Column     `json:"columns"`
	Events  []StateEvent `json:"events"`
}

// StateEvent is what a declared event does in its newest form.
type StateEvent struct {
	Event     string           `json:"event"`
	Version   int              `json:"version"`
	Stored    map[string][]int `json:"stored"` // names, old ones too, with the stored versions that are the newest form
	Changes   []ColumnChange   `json:"changes"`
	Upcasting string           `json:"upcasting,omitempty"` // see EventType.Upcasting
}

// Names lists the names of Stored.
func (e StateEvent) Names() []string { return slices.Sorted(maps.Keys(e.Stored)) }

// ColumnChange is an operation on a column. OpAppend and OpRemove are those of followed tables.
type ColumnChange struct {
	Column int    `json:"column"` // of StateTable.Columns
	Kind   string `json:"kind"`
	Operand
}

// StateRow is a row of a table of states.
type StateRow struct {
	ID      string
	Was     int64     // rea_seq of the row that is to be replaced; 0: there is none
	Seq     int64     // rea_seq
	Updated time.Time // rea_updated_at: CreatedAt of the event with that seq
	Values  []*string // by column, in the text form of its type; nil: NULL
}

// Definition gives the table as text, the same for the same declarations, and what it is recognized by.
func (t StateTable) Definition() (text, fingerprint string) {
	b, err := marshal(t)
	if err != nil {
		panic(err) // literals are in normal form
	}
	sum := sha256.Sum256(b)
	return string(b), hex.EncodeToString(sum[:])
}

// ReadStateTable undoes Definition.
func ReadStateTable(definition string) (t StateTable, err error) {
	if err := json.Unmarshal([]byte(definition), &t); err != nil {
		return t, fmt.Errorf("rea: read the definition of a projection: %w", err)
	}
	return t, nil
}

// event finds what is done for an event. known is false where nothing is said of it.
func (t *StateTable) event(e Event) (does *StateEvent, newest, known bool) {
	for i := range t.Events {
		if versions, ok := t.Events[i].Stored[e.Type]; ok {
			return &t.Events[i], slices.Contains(versions, e.Version), true
		}
	}
	return nil, true, false
}

// Step brings a row from seq e.Seq - 1 to e.Seq. newest is false where e is not in its newest form: then the row
// stays as it is, until somebody who has the upcasters folds it. A value that a column cannot take is a *ProjectionError
// without a table. Values are replaced, never changed.
func (t *StateTable) Step(row *StateRow, e Event) (newest bool, err error) {
	if BuiltIn(e.Type) {
		return t.stepRow(row, e)
	}
	does, newest, known := t.event(e)
	if !newest {
		return false, nil
	}
	if known {
		if err := t.change(row, does, e); err != nil {
			return true, err
		}
	}
	row.Seq, row.Updated = e.Seq, e.CreatedAt
	return true, nil
}

// stepRow is Step for one of REA's own events: columns are the fields of the row with their names.
func (t *StateTable) stepRow(row *StateRow, e Event) (newest bool, err error) {
	c, err := readRowChange(e)
	if err != nil {
		return true, fmt.Errorf("rea: %s seq %d: %w", e.Aggregate, e.Seq, err)
	}
	values := slices.Clone(row.Values)
	for i, column := range t.Columns {
		value, changes := c.of(column.Name)
		switch {
		case !changes:
			continue
		case value == nil:
			values[i] = nil
			continue
		}
		var ok bool
		if values[i], ok = column.Type.text(value); !ok {
			return true, &ProjectionError{Aggregate: e.Aggregate, Projection: t.Name, Column: column.Name, Type: column.Type, Event: e.Type, Seq: e.Seq}
		}
	}
	row.Values, row.Seq, row.Updated = values, e.Seq, e.CreatedAt
	return true, nil
}

func (t *StateTable) change(row *StateRow, does *StateEvent, e Event) error {
	e.Type, e.Version = does.Event, does.Version
	var payload Object
	values := slices.Clone(row.Values)
	for _, c := range does.Changes {
		if payload == nil && len(c.Path) > 0 {
			if err := json.Unmarshal(e.Payload, &payload); err != nil {
				return fmt.Errorf("rea: %s seq %d: %w", e.Aggregate, e.Seq, err)
			}
		}
		if c.Kind == OpSet && c.Attribute == "@created_at" && t.Columns[c.Column].Type == Timestamptz && checkTime("", e.CreatedAt) == nil {
			text := FormatTime(e.CreatedAt) // as it would come out below
			values[c.Column] = &text
			continue
		}
		value, changes, ok := c.of(values[c.Column], e, payload)
		if !changes {
			continue
		}
		if ok {
			values[c.Column], ok = t.Columns[c.Column].Type.text(value)
		}
		if !ok {
			return &ProjectionError{Aggregate: e.Aggregate, Projection: t.Name, Column: t.Columns[c.Column].Name,
				Type: t.Columns[c.Column].Type, Event: e.Type, Seq: e.Seq}
		}
	}
	row.Values = values
	return nil
}

// of gives the new value of a column that has the text before.
func (c ColumnChange) of(before *string, e Event, payload Object) (value json.RawMessage, changes, ok bool) {
	switch c.Kind {
	case OpUnset:
		return nil, true, true
	case OpCount:
		value = json.RawMessage("1")
	default:
		if value, changes = c.Of(e, payload); !changes {
			return nil, false, true
		}
	}
	if c.Kind == OpSet {
		return value, true, true
	}
	var was json.RawMessage
	if before != nil {
		was = json.RawMessage(*before)
	}
	var err error
	switch {
	case c.Kind == OpAppend:
		value, err = AppendElement(was, value)
	case c.Kind == OpRemove && before == nil:
		return nil, false, true
	case c.Kind == OpRemove:
		value, err = RemoveElement(was, value)
	case isJSONNull(value):
		return nil, false, true
	default:
		value, err = AddNumbers(was, value)
	}
	return value, true, err == nil
}

// operands are what the columns take of an event.
func (t *StateTable) operands(event string) (operands []Operand) {
	for _, e := range t.Events {
		if e.Event == event {
			for _, c := range e.Changes {
				operands = append(operands, c.Operand)
			}
		}
	}
	return operands
}

// takesAttributes reports whether a column takes what an event carries beside type, place, payload and time.
func (t *StateTable) takesAttributes() bool {
	for _, e := range t.Events {
		for _, c := range e.Changes {
			if c.carried() {
				return true
			}
		}
	}
	return false
}
