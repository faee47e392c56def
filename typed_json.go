package rea

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// decodeInto reads a JSON text into what v points to. A number that goes into an interface stays a json.Number: nothing
// passes through a float unless the type says float.
func decodeInto(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// decoderFor gives the quickest function that does what decodeInto does for values of t.
func decoderFor(t reflect.Type) func(text []byte, v any) error {
	if holdsInterface(t, make(map[reflect.Type]bool)) {
		return decodeInto
	}
	return json.Unmarshal
}

func holdsInterface(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsInterface(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsInterface(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// encode writes the payload that v points to.
func encode(v reflect.Value) (json.RawMessage, error) {
	text, err := marshal(v.Interface())
	if err != nil {
		why := "its MarshalJSON or a json.Number in it is at fault (errors.Unwrap gives the cause)" // whose text may show data
		if errors.As(err, new(*json.UnsupportedTypeError)) || errors.As(err, new(*json.UnsupportedValueError)) {
			why = err.Error()
		}
		return nil, &PayloadError{Path: "$", Problem: fmt.Sprintf("%s cannot be written as JSON: %s", v.Type().Elem(), why), Err: err}
	}
	return text, checkTexts(v, text)
}
