package rea

import (
	"bytes"
	"encoding/json"
	"errors"
)

var errNoList = errors.New("the field is no list")

// AppendElement gives list with v at its end, in normal form. A list that is absent or null is the empty one.
func AppendElement(list, v json.RawMessage) (json.RawMessage, error) {
	switch {
	case isJSONNull(list) || string(list) == "[]":
		return bytes.Join([][]byte{[]byte("["), v, []byte("]")}, nil), nil
	case list[0] != '[':
		return nil, errNoList
	}
	return bytes.Join([][]byte{list[:len(list)-1], []byte(", "), v, []byte("]")}, nil), nil
}

// RemoveElement gives list without the elements that equal v, as jsonb's = has it.
func RemoveElement(list, v json.RawMessage) (json.RawMessage, error) {
	var elements []json.RawMessage
	if len(list) == 0 || list[0] != '[' || json.Unmarshal(list, &elements) != nil {
		return nil, errNoList
	}
	var b bytes.Buffer
	b.WriteByte('[')
	for _, e := range elements {
		if EqualJSON(e, v) {
			continue
		}
		if b.Len() > 1 {
			b.WriteString(", ")
		}
		b.Write(e)
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}
