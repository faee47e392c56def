package catalog

import (
	"encoding/json"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// A fold never panics, whatever the state and the payload are, and leaves values in normal form.
func FuzzFold(f *testing.F) {
	file, err := ParseFile("rea.yaml", []byte(`rea: 1
aggregates:
  t:
    status: s
    events:
      X:
        version: 3
        to: x
        set: {a: $.a.b, b: $, c: "@reason"}
        unset: d
        add: {e: $.e}
        count: f
        append: {g: $.g}
        remove: {h: $.h}
        upcast:
          1: [{rename: {p: e, q: g}}, {length: {l: $.g}}]
          2: [{default: {h: 1}}, {set: {a: $}}, {unset: l}]
`))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{}`), []byte(`{}`), 1)
	f.Add([]byte(`{"e": 1.5, "f": 2, "g": [1], "h": [1, "x", 1.0]}`), []byte(`{"a": {"b": null}, "e": -0.25, "g": {"x": []}, "h": 1}`), 3)
	f.Add([]byte(`{"e": "1", "g": 7, "h": {}}`), []byte(`{"p": 1, "q": [1, 2], "g": 3}`), 1)
	f.Fuzz(func(t *testing.T, state, payload []byte, version int) {
		var before rea.Object
		stateText, err := rea.NormalizeObject(state, "state", 0)
		if err != nil || json.Unmarshal(stateText, &before) != nil {
			return
		}
		normalized, err := rea.NormalizeObject(payload, "payload", 0)
		if err != nil {
			return
		}
		after, err := file.Catalog.Fold(before, rea.Event{Aggregate: rea.Ref{Type: "t", ID: "1"}, Seq: 1, Type: "X", Version: version, Payload: normalized, Reason: "\u2028"})
		if err != nil {
			return
		}
		for field, v := range after {
			if n, err := rea.NormalizeJSON(v, field, 0); err != nil || string(n) != string(v) {
				t.Errorf("%s = %s is not in normal form: %s, %v", field, v, n, err)
			}
		}
	})
}
