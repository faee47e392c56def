package rea

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"unicode"
)

// encoding/json takes the key "Amount" for a field "amount", and where both keys are there, whichever comes last; lists
// and maps even get both. exactly leaves those keys out that differ in case only from one that is there and is a field's.
// Nothing is left out where only the other spelling is there.

// names are the JSON names of the fields of a Go type, and of the types within it.
type names struct {
	top    *shape
	exact  map[string]bool
	folded map[string]bool
	alike  bool // some of them differ in case only
}

// shape is where a type has fields with names. nil: nowhere.
type shape struct {
	fields map[string]*shape // of a struct
	folded map[string]string // to a name of fields
	elem   *shape            // of a list or a map
}

func namesOf(t reflect.Type) *names {
	n := &names{exact: make(map[string]bool), folded: make(map[string]bool)}
	n.top = n.shapeOf(t, make(map[reflect.Type]*shape))
	return n
}

func (n *names) shapeOf(t reflect.Type, known map[reflect.Type]*shape) *shape {
	if s, ok := known[t]; ok || readsItself(t) {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return n.shapeOf(t.Elem(), known)
	case reflect.Slice, reflect.Array, reflect.Map:
		s := &shape{}
		known[t] = s
		s.elem = n.shapeOf(t.Elem(), known)
		return s
	case reflect.Struct:
		s := &shape{fields: make(map[string]*shape), folded: make(map[string]string)}
		known[t] = s
		depth := make(map[string]int)
		for _, field := range reflect.VisibleFields(t) {
			if !field.IsExported() || field.Tag.Get("json") == "-" {
				continue
			}
			name := jsonName(field)
			if d := depth[name]; d > 0 && d <= len(field.Index) {
				continue // encoding/json takes the outer one
			}
			depth[name] = len(field.Index)
			fold := foldCase(name)
			n.alike = n.alike || n.folded[fold] && !n.exact[name]
			n.exact[name], n.folded[fold] = true, true
			s.fields[name], s.folded[fold] = n.shapeOf(field.Type, known), name
		}
		return s
	}
	return nil
}

// exactly gives text, a payload in normal form, without the keys that encoding/json would mistake.
func (n *names) exactly(text json.RawMessage) (json.RawMessage, error) {
	if !n.alike && !n.mistakable(text) {
		return text, nil
	}
	return n.top.prune(text)
}

// mistakable reports whether text has a key that is no field's and would be taken for one.
func (n *names) mistakable(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		end := i + stringEnd(text[i:])
		if end < len(text) && text[end] == ':' {
			if key := text[i+1 : end-1]; !n.exact[string(key)] && n.folded[foldCase(string(key))] {
				return true
			}
		}
		i = end - 1
	}
	return false
}

func (s *shape) prune(text json.RawMessage) (json.RawMessage, error) {
	switch {
	case s == nil, len(text) == 0:
		return text, nil
	case text[0] == '{':
		var object Object
		if err := json.Unmarshal(text, &object); err != nil {
			return nil, err
		}
		for key, value := range object {
			within := s.elem
			if s.fields != nil {
				name, taken := s.folded[foldCase(key)]
				if _, isField := s.fields[key]; isField {
					name = key
				} else if _, there := object[name]; taken && there {
					delete(object, key)
					continue
				}
				within = s.fields[name]
			}
			var err error
			if object[key], err = within.prune(value); err != nil {
				return nil, err
			}
		}
		return marshal(object)
	case text[0] == '[':
		var list []json.RawMessage
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, err
		}
		for i := range list {
			var err error
			if list[i], err = s.elem.prune(list[i]); err != nil {
				return nil, err
			}
		}
		return marshal(list)
	}
	return text, nil
}

// foldCase gives the same text for keys that encoding/json takes for one another.
func foldCase(key string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' && r != 'k' && r != 's' { // k and s have a third form
			return r - 'a' + 'A'
		}
		for least := r; ; {
			r = unicode.SimpleFold(r)
			if r <= least {
				return r
			}
		}
	}, key)
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsItself: t has a reader of its own, which is not told by its fields.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler)
}
