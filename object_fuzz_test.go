package rea

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzParseObject compares with encoding/json: what it takes, with what result, and what it refuses.
func FuzzParseObject(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"a": 1}`, `{"a": 0.10, "b": [1, {"x": "}"}], "c": null}`, `{"a":1,"a":2}`, `{"a": "x\"y", "\u0062": "é", "é": 1}`,
		`{"a": 1 }`, ` {"a": 1}`, `{"a": 1} `, `{"a" : 1}`, `{"a":  1}`, `{"a": 01}`, `{"a": 1.}`, `{"a": 1e5}`, `{"a": -0}`, `{"a": tru}`,
		`{"a": [1}`, `{"a": "x}`, `{"a": 1,}`, `{,}`, `{"a": }`, `[]`, `null`, `xx`, ``, `{"a": 1}}`, "{\"a\": \"\x01\"}", "{\"\xff\": \"\xff\"}", `{"a": {"b": 1}`, `{"a": "\x"}`, `{"a": 1]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want Object
		wrong := json.Unmarshal(text, &want)
		got, err := ParseObject(text)
		if (err == nil) != (wrong == nil) {
			t.Fatalf("error = %v, want %v", err, wrong)
		}
		if err != nil {
			return
		}
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("object = %q, want %q", got, want)
		}
		if again, ok := got.text(); ok {
			if back, err := ParseObject(again); err != nil || !reflect.DeepEqual(back, got) {
				t.Fatalf("written and read again = %q, %v, want %q", back, err, got)
			}
		}
	})
}

func BenchmarkParseObject(b *testing.B) {
	for _, text := range []json.RawMessage{
		json.RawMessage(`{"text": "note 17 on order 10086: the customer called about the delivery"}`),
		json.RawMessage(`{"currency": "EUR", "item_ids": [12, 4567, 83], "items_count": 3, "total_amount": 123.45}`),
	} {
		b.Run("own", func(b *testing.B) {
			for b.Loop() {
				if _, err := ParseObject(text); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("encoding/json", func(b *testing.B) {
			for b.Loop() {
				var o Object
				if err := json.Unmarshal(text, &o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
