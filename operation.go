package rea

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Operation is one change of one field of the state, as data: what rea.yaml says beside the fold that it makes.
type Operation struct {
	Kind  string // OpSet, OpUnset, OpAdd, OpCount, OpAppend, OpRemove
	Field string // of the outermost object
	Operand
}

// The kinds of operations. What an event does not say, it does not change: a path that leads nowhere does nothing.
const (
	OpSet    = "set"    // the field is the operand
	OpUnset  = "unset"  // the field is gone
	OpAdd    = "add"    // the number is added, exactly; null adds nothing
	OpCount  = "count"  // 1 is added
	OpAppend = "append" // the operand is the list's new last element
	OpRemove = "remove" // every element that equals the operand is gone
)

// Operand is where an operation takes its value from: the first of the three that is not zero. All are zero
// with OpUnset and OpCount.
type Operand struct {
	Path      []string        `json:"path"`                // into the payload; empty and not nil: all of it
	Attribute string          `json:"attribute,omitempty"` // of the event: "@created_at", see Attributes
	Literal   json.RawMessage `json:"literal,omitempty"`   // in normal form
}

// Of gives the value for an event whose payload is e.Payload, taken apart in payload. ok is false where a path leads
// nowhere.
func (o Operand) Of(e Event, payload Object) (value json.RawMessage, ok bool) {
	switch {
	case o.Attribute != "":
		attribute, ok := attributes[o.Attribute]
		if !ok {
			return nil, false
		}
		return attribute(e), true
	case o.Path == nil:
		return o.Literal, true
	case len(o.Path) == 0:
		return e.Payload, true
	}
	value, ok = payload[o.Path[0]]
	for _, key := range o.Path[1:] {
		var inner Object
		if !ok || len(value) == 0 || value[0] != '{' || json.Unmarshal(value, &inner) != nil {
			return nil, false
		}
		value, ok = inner[key]
	}
	return value, ok
}

// attributes are what an event carries beside its payload, and keeps in every copy of the archive.
var attributes = map[string]func(Event) json.RawMessage{
	"@aggregate_type": func(e Event) json.RawMessage { return jsonText(e.Aggregate.Type) },
	"@aggregate_id":   func(e Event) json.RawMessage { return jsonText(e.Aggregate.ID) },
	"@seq":            func(e Event) json.RawMessage { return strconv.AppendInt(nil, e.Seq, 10) },
	"@event_type":     func(e Event) json.RawMessage { return jsonText(e.Type) },
	"@event_version":  func(e Event) json.RawMessage { return strconv.AppendInt(nil, int64(e.Version), 10) },
	"@actor_id":       func(e Event) json.RawMessage { return jsonText(e.Actor) },
	"@reason":         func(e Event) json.RawMessage { return jsonText(e.Reason) },
	"@correlation_id": func(e Event) json.RawMessage { return jsonText(e.Correlation) },
	"@metadata":       func(e Event) json.RawMessage { return orJSONNull(e.Metadata) },
	"@created_at":     func(e Event) json.RawMessage { return jsonText(FormatTime(e.CreatedAt)) },
}

// Attributes lists what Operand.Attribute may name.
func Attributes() []string { return slices.Sorted(maps.Keys(attributes)) }

// jsonText is a JSON string in normal form; "" is an attribute that was not given: null.
func jsonText(s string) json.RawMessage {
	if s == "" {
		return json.RawMessage("null")
	}
	b, err := marshal(s)
	if err != nil {
		return json.RawMessage("null") // no text fails
	}
	n, err := NormalizeJSON(b, "value", 0)
	if err != nil {
		return json.RawMessage("null") // the store holds texts that jsonb can hold
	}
	return n
}

func orJSONNull(b json.RawMessage) json.RawMessage {
	if b == nil {
		return json.RawMessage("null")
	}
	return b
}

// carried reports whether the operand is an attribute that is stored beside type, place, payload and time.
func (o Operand) carried() bool {
	switch o.Attribute {
	case "@actor_id", "@reason", "@correlation_id", "@metadata":
		return true
	}
	return false
}
