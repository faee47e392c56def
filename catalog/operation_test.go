package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// foldOne folds one event X with these operations over a state.
func foldOne(t *testing.T, ops, state, payload string) (string, error) {
	t.Helper()
	c := parse(t, "rea: 1\naggregates: {t: {events: {X: {"+ops+"}}}}\n")
	normal, err := rea.NormalizeObject([]byte(payload), "payload", 0)
	if err != nil {
		t.Fatal(err)
	}
	var before rea.Object
	if err := json.Unmarshal([]byte(state), &before); err != nil {
		t.Fatal(err)
	}
	for field, v := range before {
		if before[field], err = rea.NormalizeJSON(v, field, 0); err != nil {
			t.Fatal(err)
		}
	}
	after, err := c.Fold(before, rea.Event{
		Aggregate: rea.Ref{Type: "t", ID: "7"}, Seq: 3, Type: "X", Version: 1, Payload: normal, Reason: "why", Metadata: json.RawMessage(`{"ip": "::1"}`),
		CreatedAt: time.Date(2024, 6, 1, 12, 0, 0, 5000, time.FixedZone("", 3600)),
	})
	return show(after), err
}

func TestOperations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, ops, state, payload, want string }{
		{"set from the payload", `set: {a: $.x}`, `{}`, `{"x": [1,{"b":2}]}`, `a=[1, {"b": 2}]`},
		{"set from within", `set: {a: $.x.y.z}`, `{}`, `{"x":{"y":{"z":0.10}}}`, `a=0.10`},
		{"set all of it", `set: {a: $}`, `{}`, `{"bb":1,"a":2}`, `a={"a": 2, "bb": 1}`},
		{"set null", `set: {a: $.x}`, `{"a":1}`, `{"x":null}`, `a=null`},
		{"a path that leads nowhere changes nothing", `set: {a: $.x, b: $.x.y, c: $.z.y}`, `{"a":1,"b":2}`, `{"z":[1]}`, `a=1 b=2`},
		{"set a number, digit for digit", `set: {a: 12345678901234567890.10, b: 1e3, c: -0, d: 1.0E-2, e: 007x}`, `{}`, `{}`, `a=12345678901234567890.10 b=1000 c=0 d=0.010 e="007x"`},
		{"set texts", `set: {a: "1", b: yes, c: "<é>", d: $$x, e: "@@y", f: ""}`, `{}`, `{}`, `a="1" b="yes" c="<é>" d="$x" e="@y" f=""`},
		{"set other values", `set: {a: true, b: null, c: , d: [1, {x: y}], e: {}}`, `{}`, `{}`, `a=true b=null c=null d=[1, {"x": "y"}] e={}`},
		{"set attributes", `set: {a: "@created_at", b: "@seq", c: "@event_type", d: "@actor_id", e: "@reason", f: "@metadata", g: "@aggregate_id", h: "@correlation_id", i: "@event_version", j: "@aggregate_type"}`, `{"d":1}`, `{}`,
			`a="2024-06-01T11:00:00.000005Z" b=3 c="X" d=null e="why" f={"ip": "::1"} g="7" h=null i=1 j="t"`},
		{"unset", `unset: [a, b]`, `{"a":1,"c":3}`, `{}`, `c=3`},
		{"unset one", `unset: a`, `{"a":1}`, `{}`, ``},
		{"add to nothing", `add: {a: $.x}`, `{}`, `{"x":0.10}`, `a=0.10`},
		{"add to null", `add: {a: $.x}`, `{"a":null}`, `{"x":-3}`, `a=-3`},
		{"add exactly", `add: {a: $.x}`, `{"a":0.1}`, `{"x":0.2}`, `a=0.3`},
		{"add scales", `add: {a: $.x}`, `{"a":1.10}`, `{"x":-1.1}`, `a=0.00`},
		{"add below zero", `add: {a: $.x}`, `{"a":0.05}`, `{"x":-0.10}`, `a=-0.05`},
		{"add large", `add: {a: $.x}`, `{"a":99999999999999999999.99}`, `{"x":0.01}`, `a=100000000000000000000.00`},
		{"add at the end of int64", `add: {a: $.x}`, `{"a":9223372036854775807}`, `{"x":1}`, `a=9223372036854775808`},
		{"add a literal", `add: {a: -1.5}`, `{"a":1}`, `{}`, `a=-0.5`},
		{"add null, add nothing", `add: {a: $.x, b: $.y}`, `{"a":1}`, `{"x":null}`, `a=1`},
		{"count", `count: [a, b]`, `{"b":9}`, `{}`, `a=1 b=10`},
		{"count one", `count: a`, `{"a":null}`, `{}`, `a=1`},
		{"append", `append: {a: $.x, b: $.x, c: $.x, d: $.gone}`, `{"a":[1],"b":[]}`, `{"x":{"k":[]}}`, `a=[1, {"k": []}] b=[{"k": []}] c=[{"k": []}]`},
		{"append an attribute", `append: {a: "@created_at"}`, `{"a":null}`, `{}`, `a=["2024-06-01T11:00:00.000005Z"]`},
		{"remove every one that is equal", `remove: {a: $.x}`, `{"a":[1, 2, 1.0, "1", [1]]}`, `{"x":1.00}`, `a=[2, "1", [1]]`},
		{"remove the last", `remove: {a: $.x}`, `{"a":["p"]}`, `{"x":"p"}`, `a=[]`},
		{"remove what is not there", `remove: {a: $.x, b: $.x, c: $.gone}`, `{"a":[1, 2],"c":[1]}`, `{"x":3}`, `a=[1, 2] c=[1]`},
		{"nothing", ``, `{"a":1}`, `{"a":2}`, `a=1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := foldOne(t, c.ops, c.state, c.payload)
			if err != nil || strings.TrimSpace(got) != c.want {
				t.Errorf("state = %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

func TestOperationsThatCannotBeDoneSaySo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ops, state, payload, want string }{
		{`add: {a: $.x}`, `{}`, `{"x":"20000"}`, "add a: the value is no number"},
		{`add: {a: $.x}`, `{"a":"1"}`, `{"x":1}`, "add a: the field is no number"},
		{`count: a`, `{"a":[1]}`, `{}`, "count a: the field is no number"},
		{`append: {a: $.x}`, `{"a":{}}`, `{"x":1}`, "append a: the field is no list"},
		{`remove: {a: $.x}`, `{"a":1}`, `{"x":1}`, "remove a: the field is no list"},
	} {
		if got, err := foldOne(t, c.ops, c.state, c.payload); err == nil || err.Error() != c.want {
			t.Errorf("%s over %s with %s = %s, %v, want the error %s", c.ops, c.state, c.payload, got, err, c.want)
		}
	}
}

func TestASumThatNumericCannotHoldIsRefused(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", 131_072)
	if _, err := foldOne(t, `add: {a: 1}`, `{"a":`+nines+`}`, `{}`); rea.Code(err) != "limit" {
		t.Errorf("error = %.80v, want one of the class limit", err)
	}
}

// upcastOne brings a payload of version 1 to version 2.
func upcastOne(t *testing.T, ops, payload string) (string, error) {
	t.Helper()
	c := parse(t, fmt.Sprintf("rea: 1\naggregates: {t: {events: {X: {version: 2, upcast: {1: [%s]}}}}}\n", ops))
	e, ignore, err := c.Upcast(rea.Event{Aggregate: rea.Ref{Type: "t", ID: "1"}, Seq: 4, Type: "X", Version: 1, Payload: json.RawMessage(payload)})
	if ignore || err == nil && e.Version != 2 {
		t.Errorf("version = %d, ignore = %t, want 2, false", e.Version, ignore)
	}
	return string(e.Payload), err
}

func TestUpcastOperations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, ops, payload, want string }{
		{"nothing", ``, `{"a": 1}`, `{"a": 1}`},
		{"rename", `{rename: {a: b, gone: c}}`, `{"a": 0.10}`, `{"b": 0.10}`},
		{"rename in a ring", `{rename: {a: b, b: a}}`, `{"a": 1, "b": 2}`, `{"a": 2, "b": 1}`},
		{"length", `{length: {n: $.list, m: $.object, z: $.null, g: $.gone}}`, `{"list": [1, 2], "null": null, "object": {"a": 1}}`, `{"m": 1, "n": 2, "z": null, "list": [1, 2], "null": null, "object": {"a": 1}}`},
		{"default", `{default: {a: 1, b: EUR, c: $.a, d: null}}`, `{"a": null}`, `{"a": null, "b": "EUR", "c": null, "d": null}`},
		{"set", `{set: {a: $.b, b: $.a, c: $.d.e, f: 1}}`, `{"a": 1, "b": 2, "d": {"e": "x"}}`, `{"a": 2, "b": 1, "c": "x", "d": {"e": "x"}, "f": 1}`},
		{"set all of it", `{set: {old: $}}`, `{"a": 1}`, `{"a": 1, "old": {"a": 1}}`},
		{"unset", `{unset: [a, gone]}`, `{"a": 1, "b": 2}`, `{"b": 2}`},
		{"in order", `{rename: {items: item_ids}}, {length: {items_count: $.item_ids}}, {unset: x}`, `{"x": 1, "items": [7]}`, `{"item_ids": [7], "items_count": 1}`},
		{"texts stay", `{rename: {a: b}}`, "{\"a\": \"<&>\u2028\"}", "{\"b\": \"<&>\u2028\"}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got, err := upcastOne(t, c.ops, c.payload); err != nil || got != c.want {
				t.Errorf("payload = %s (%v), want %s", got, err, c.want)
			}
		})
	}
	for _, c := range []struct{ ops, payload, want string }{
		{`{rename: {a: b}}`, `{"a": 1, "b": 2}`, "rea: t/1 seq 4: upcast X (version 1) from version 1 to 2: rename to b: the payload has that field too"},
		{`{length: {n: $.a}}`, `{"a": 1}`, "rea: t/1 seq 4: upcast X (version 1) from version 1 to 2: length n: the value is no list"},
	} {
		if got, err := upcastOne(t, c.ops, c.payload); err == nil || err.Error() != c.want || got != c.payload {
			t.Errorf("%s of %s = %s, %v, want the payload as it is and the error %s", c.ops, c.payload, got, err, c.want)
		}
	}
}
