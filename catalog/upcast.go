package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/realtime-event-archive/rea"
)

// change is one operation of an upcaster: it changes payload, which is a copy.
type change func(payload rea.Object) error

// upcast reads {1: [{rename: {items: item_ids}}, ...]}: from which version, what to do, in order.
func (r *reader) upcast(e entry) map[int]rea.UpcastFunc {
	chain := map[int]rea.UpcastFunc{}
	for _, step := range r.mapping(e.value, e.at, "upcast") {
		from, ok := wholeNumber(step.key)
		if !ok {
			r.fail(step.at, "upcast goes by the version that is left, such as 1, not %s", step.key)
			continue
		}
		list, ok := step.value.(*ast.SequenceNode)
		if !ok {
			r.fail(markAt(step.value, step.at), "the step from version %d is a list of operations such as [{rename: {old: new}}], not %s", from, kindOf(step.value))
			continue
		}
		var changes []change
		for _, node := range list.Values {
			operation := r.mapping(node, step.at, "an operation")
			if len(operation) > 1 {
				r.fail(operation[1].at, "one operation an element: put a - before %s", operation[1].key)
			}
			for _, op := range operation {
				changes = append(changes, r.change(op)...)
			}
		}
		chain[from] = upcaster(changes)
	}
	return chain
}

func upcaster(changes []change) rea.UpcastFunc {
	return func(payload rea.Object) (rea.Object, error) {
		payload = maps.Clone(payload)
		for _, c := range changes {
			if err := c(payload); err != nil {
				return nil, err
			}
		}
		return payload, nil
	}
}

func (r *reader) change(op entry) (changes []change) {
	switch op.key {
	case "rename":
		return r.rename(op)
	case "unset":
		for _, n := range r.names(op.value, op.at, "unset") {
			if r.fieldName(n.text, n.at) {
				changes = append(changes, func(payload rea.Object) error {
					delete(payload, n.text)
					return nil
				})
			}
		}
		return changes
	case "length", "default", "set":
	default:
		r.unknown(op, "an upcaster", "rename", "length", "default", "set", "unset")
		return nil
	}
	values := map[string]rea.Operand{}
	for _, f := range r.mapping(op.value, op.at, op.key) {
		named := r.fieldName(f.key, f.at)
		v, ok := r.value(f.value, f.at, payloadAlone)
		if ok && op.key == "length" && v.Path == nil {
			r.fail(markAt(f.value, f.at), "length takes a path such as $.items")
			ok = false
		}
		if named && ok {
			values[f.key] = v
		}
	}
	return []change{func(payload rea.Object) error { return assign(payload, op.key, values) }}
}

// assign sets fields. All values are read before the first field changes.
func assign(payload rea.Object, kind string, values map[string]rea.Operand) error {
	results := make(rea.Object, len(values))
	for field, v := range values {
		if _, there := payload[field]; there && kind == "default" {
			continue
		}
		result, ok := v.Of(rea.Event{Payload: whole(v, payload)}, payload)
		if !ok {
			continue
		}
		if kind == "length" {
			var err error
			if result, err = length(result); err != nil {
				return fmt.Errorf("length %s: %w", field, err)
			}
		}
		results[field] = result
	}
	maps.Copy(payload, results)
	return nil
}

// whole gives the payload as one text where the value is $.
func whole(v rea.Operand, payload rea.Object) json.RawMessage {
	if v.Path == nil || len(v.Path) > 0 {
		return nil
	}
	return normal(payload)
}

// length counts the elements of a list or the fields of an object; null has none to count, and stays null.
func length(v json.RawMessage) (json.RawMessage, error) {
	n := 0
	switch {
	case isNull(v):
		return v, nil
	case v[0] == '[':
		var list []json.RawMessage
		if err := json.Unmarshal(v, &list); err != nil {
			return nil, err
		}
		n = len(list)
	case v[0] == '{':
		var object rea.Object
		if err := json.Unmarshal(v, &object); err != nil {
			return nil, err
		}
		n = len(object)
	default:
		return nil, fmt.Errorf("the value is no list")
	}
	return strconv.AppendInt(nil, int64(n), 10), nil
}

// rename reads {old: new}. All old names are taken away before the first new one is given, so that two fields may
// change places.
func (r *reader) rename(op entry) []change {
	names := map[string]string{}
	taken := map[string]bool{}
	for _, f := range r.mapping(op.value, op.at, "rename") {
		fresh, ok := r.field(f.value, f.at, "the new name of "+f.key)
		if !r.fieldName(f.key, f.at) || !ok {
			continue
		}
		if taken[fresh] {
			r.fail(markAt(f.value, f.at), "two fields are renamed to %s", fresh)
		}
		names[f.key], taken[fresh] = fresh, true
	}
	return []change{func(payload rea.Object) error {
		moved := make(rea.Object, len(names))
		for old, fresh := range names {
			if v, ok := payload[old]; ok {
				moved[fresh] = v
			}
		}
		for old := range names {
			delete(payload, old)
		}
		for fresh, v := range moved {
			if _, there := payload[fresh]; there {
				return fmt.Errorf("rename to %s: the payload has that field too", fresh)
			}
			payload[fresh] = v
		}
		return nil
	}}
}
