package catalog

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/realtime-event-archive/rea"
)

// operation is one change of one field of the state.
type operation struct {
	rea.Operation
	at mark
}

// operations reads one key of an event: set: {a: $.b}, unset: [a, b], count: a.
func (r *reader) operations(e entry) (ops []operation) {
	if e.key == "unset" || e.key == "count" {
		for _, n := range r.names(e.value, e.at, e.key) {
			if r.fieldName(n.text, n.at) {
				ops = append(ops, operation{rea.Operation{Kind: e.key, Field: n.text}, n.at})
			}
		}
		return ops
	}
	for _, f := range r.mapping(e.value, e.at, e.key) {
		named := r.fieldName(f.key, f.at)
		v, ok := r.value(f.value, f.at, false)
		if ok && e.key == "add" && v.Path == nil && !isNumber(v.Literal) {
			r.fail(markAt(f.value, f.at), "add takes a path such as $.amount, or a number")
			ok = false
		}
		if named && ok {
			ops = append(ops, operation{rea.Operation{Kind: e.key, Field: f.key, Operand: v}, f.at})
		}
	}
	return ops
}

func (r *reader) field(n ast.Node, at mark, what string) (string, bool) {
	name, ok := r.name(n, at, what)
	return name, ok && r.fieldName(name, markAt(n, at))
}

// fieldName refuses what looks like a path: operations change fields of the outermost object.
func (r *reader) fieldName(name string, m mark) bool {
	switch {
	case name == "":
		r.fail(m, "a field has a name")
	case strings.HasPrefix(name, "$") || strings.HasPrefix(name, "@"):
		r.fail(m, "%s names a value, here the name of a field is wanted", name)
	case strings.ContainsAny(name, ".[]\x00"):
		r.fail(m, "%q is no name of a field: only the outermost fields are changed, and their names have no . [ ]", name)
	default:
		return true
	}
	return false
}

// fold makes operations the fold of an event. Each changes a field of its own, so that their order does not matter.
func fold(ops []rea.Operation) rea.FoldFunc[rea.Object] {
	reads := false
	for _, op := range ops {
		reads = reads || len(op.Path) > 0
	}
	return func(state rea.Object, e rea.Event) (rea.Object, error) {
		var payload rea.Object
		if reads {
			var err error
			if payload, err = rea.ParseObject(e.Payload); err != nil {
				return nil, err
			}
		}
		if state == nil {
			state = make(rea.Object, len(ops))
		}
		for _, op := range ops {
			if err := apply(op, state, e, payload); err != nil {
				return nil, fmt.Errorf("%s %s: %w", op.Kind, op.Field, err)
			}
		}
		return state, nil
	}
}

func apply(op rea.Operation, state rea.Object, e rea.Event, payload rea.Object) (err error) {
	switch op.Kind {
	case rea.OpUnset:
		delete(state, op.Field)
		return nil
	case rea.OpCount:
		state[op.Field], err = rea.AddNumbers(state[op.Field], json.RawMessage("1"))
		return err
	}
	v, ok := op.Of(e, payload)
	if !ok {
		return nil // what an event does not say, it does not change
	}
	switch op.Kind {
	case rea.OpSet:
		state[op.Field] = v
	case rea.OpAdd:
		if !isNull(v) {
			state[op.Field], err = rea.AddNumbers(state[op.Field], v)
		}
	case rea.OpAppend:
		state[op.Field], err = rea.AppendElement(state[op.Field], v)
	case rea.OpRemove:
		if list := state[op.Field]; !isNull(list) {
			state[op.Field], err = rea.RemoveElement(list, v)
		}
	}
	return err
}

func isNumber(b json.RawMessage) bool {
	return len(b) > 0 && (b[0] == '-' || '0' <= b[0] && b[0] <= '9')
}

func isNull(b json.RawMessage) bool { return len(b) == 0 || b[0] == 'n' }
