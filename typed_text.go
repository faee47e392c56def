package rea

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// checkTexts refuses texts in v that are not UTF-8. encoding/json writes U+FFFD in their place, as an escape, and says
// nothing; text is what it has written.
func checkTexts(v reflect.Value, text []byte) error {
	if !bytes.Contains(text, []byte(`\ufffd`)) {
		return nil
	}
	if path := badText(v, "$", 0); path != "" {
		return &PayloadError{Path: path, Problem: "is not valid UTF-8"}
	}
	return nil // a json.RawMessage may have the escape
}

// badText gives the path of a text that is not UTF-8, with Go's names of fields; "": there is none.
func badText(v reflect.Value, path string, depth int) string {
	if depth > MaxDepth { // what is deeper is refused anyway
		return ""
	}
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return path
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return badText(v.Elem(), path, depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if bad := badText(v.Field(i), path+"."+v.Type().Field(i).Name, depth+1); bad != "" {
				return bad
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return "" // bytes are written as base64
		}
		for i := range v.Len() {
			if bad := badText(v.Index(i), path+"["+strconv.Itoa(i)+"]", depth+1); bad != "" {
				return bad
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			at := fmt.Sprintf("%s.%q", path, key)
			if bad := badText(key, at, depth+1); bad != "" {
				return bad
			}
			if bad := badText(v.MapIndex(key), at, depth+1); bad != "" {
				return bad
			}
		}
	}
	return ""
}
