package rea

import (
	"encoding/json"
	"maps"
	"slices"
)

// The events of REA itself: what guards and baselines write, and imports of them. They are facts about a row of a table,
// of whatever aggregate type, and no state machine judges them.
const (
	baselineCreated = "BaselineCreated" // {"row"}: what the row was before anything was known of it
	directInsert    = "DirectInsert"    // {"new"}
	directUpdate    = "DirectUpdate"    // {"old", "new"[, "gone"]}: the columns that changed; as a first event, old is the whole row
	directDelete    = "DirectDelete"    // {"old"}
	reverted        = "Reverted"        // {"set", "unset", "undoes", "was"}
)

var builtIn = []string{baselineCreated, directInsert, directUpdate, directDelete, reverted}

// BuiltIn reports whether an event has a name of REA's own events, which catalogs and appends refuse: BaselineCreated,
// DirectInsert, DirectUpdate, DirectDelete, Reverted.
func BuiltIn(event string) bool { return slices.Contains(builtIn, event) }

func ownName(event string) error {
	return &LimitError{What: "event_type", Problem: event + " is a name of REA's own events: choose another"}
}

// saidStatus is the status that a built-in event says in its payload; "": none, and the present one stays.
func saidStatus(event string, payload json.RawMessage, seq int64, field string) string {
	var parts map[string]json.RawMessage
	if field == "" || json.Unmarshal(payload, &parts) != nil {
		return ""
	}
	said := func(part string) (text string, there bool) {
		var row map[string]json.RawMessage
		_ = json.Unmarshal(parts[part], &row) // what is no object says nothing
		value, there := row[field]
		_ = json.Unmarshal(value, &text) // nor does what is no string
		if len(text) > MaxNameBytes || text == FromNone || text == FromAny {
			text = ""
		}
		return text, there
	}
	switch event {
	case baselineCreated:
		text, _ := said("row")
		return text
	case directUpdate:
		text, there := said("new")
		if !there && seq == 1 {
			text, _ = said("old")
		}
		return text
	case directInsert:
		text, _ := said("new")
		return text
	case reverted:
		text, _ := said("set")
		return text
	}
	return ""
}

// statusAfter is the status after a built-in event of an aggregate whose status is kept in field and was status before.
func statusAfter(event string, payload json.RawMessage, seq int64, field, status string) string {
	switch said := saidStatus(event, payload, seq, field); {
	case event == directDelete:
		return ""
	case said != "" || event == baselineCreated || event == directInsert:
		return said
	}
	return status
}

// rowChange is what a built-in event does to the state: whole puts set in its place, else set is laid over it and the keys in
// gone are taken out.
type rowChange struct {
	whole bool
	set   Object
	gone  []string
}

// readRowChange reads the payload of a built-in event. What it lacks changes nothing.
func readRowChange(e Event) (c rowChange, err error) {
	var payload struct {
		Row, New, Old, Set Object
		Gone, Unset        []string
	}
	if e.Version > 1 {
		return c, unknown(e, 1)
	}
	parts, err := ParseObject(e.Payload)
	part := func(name string, into any) {
		if text, there := parts[name]; there && err == nil {
			err = json.Unmarshal(text, into)
		}
	}
	switch e.Type {
	case baselineCreated:
		part("row", &payload.Row)
		return rowChange{whole: true, set: payload.Row}, err
	case directInsert:
		part("new", &payload.New)
		return rowChange{whole: true, set: payload.New}, err
	case directDelete:
		return rowChange{whole: true}, err
	case reverted:
		part("set", &payload.Set)
		part("unset", &payload.Unset)
		return rowChange{set: payload.Set, gone: payload.Unset}, err
	}
	part("new", &payload.New)
	part("gone", &payload.Gone)
	c = rowChange{set: payload.New, gone: payload.Gone}
	if e.Seq == 1 { // there was no baseline: old is the whole row then
		part("old", &payload.Old)
		if payload.Old == nil {
			payload.Old = Object{}
		}
		maps.Copy(payload.Old, payload.New)
		c.whole, c.set = true, payload.Old
	}
	return c, err
}

// of gives what becomes of a field. changes is false where it stays as it is; a nil value: it is not there any more.
func (c rowChange) of(field string) (value json.RawMessage, changes bool) {
	value, there := c.set[field]
	if slices.Contains(c.gone, field) {
		return nil, true
	}
	return value, there || c.whole
}

// foldRow folds a built-in event into a state, which may be changed.
func foldRow(state Object, e Event) (Object, error) {
	c, err := readRowChange(e)
	if err != nil {
		return nil, err
	}
	if state == nil || c.whole {
		state = Object{}
	}
	maps.Copy(state, c.set)
	for _, key := range c.gone {
		delete(state, key)
	}
	return state, nil
}
