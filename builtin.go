package rea

import (
	"encoding/json"
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
