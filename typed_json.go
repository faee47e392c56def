package rea

import (
	"bytes"
	"encoding/json"
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

// encode writes the payload that v points to.
func encode(v reflect.Value) (json.RawMessage, error) {
	text, err := marshal(v.Interface())
	if err != nil {
		return nil, &PayloadError{Path: "$", Problem: fmt.Sprintf("%s cannot be written as JSON: %v", v.Type().Elem(), err)}
	}
	return text, nil
}
