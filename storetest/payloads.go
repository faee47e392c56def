package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/realtime-event-archive/rea"
)

var numbers = []clause{
	{"P8 numbers come back digit for digit", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("X",
			`{"a":9007199254740993,"b":18446744073709551616,"c":0.1,"d":12345678901234567890.123456789,"e":1e400,"f":0.10,"g":-0,"h":1.00,"i":-1E-3}`))
		want := `{"a": 9007199254740993, "b": 18446744073709551616, "c": 0.1, "d": 12345678901234567890.123456789, "e": 1` +
			strings.Repeat("0", 400) + `, "f": 0.10, "g": 0, "h": 1.00, "i": -0.001}`
		same(t, "payload by seq", string(of(t, b.Autocommit(), order1)[0].Payload), want)
		same(t, "payload by position", string(b.history(t, rea.Filter{})[0].Payload), want)
		loaded, err := rea.Replay(t.Context(), b.Autocommit(), order1, rea.Merge)
		if err != nil {
			t.Fatal(err)
		}
		for key, digits := range map[string]string{
			"a": "9007199254740993", "b": "18446744073709551616", "d": "12345678901234567890.123456789", "f": "0.10",
		} {
			same(t, "state "+key, string(loaded.State[key]), digits)
		}
	}},
	{"P8 numbers outside of numeric are refused, and those at its edge kept", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		for _, number := range []string{"1e131072", "1e-16384", "1e999999999999999999999", "-1e131072"} {
			_, err := b.Autocommit().Append(t.Context(), order1, event("X", `{"n": `+number+`}`))
			same(t, "Path of "+number, refused[*rea.LimitError](t, number, err).Path, "$.n")
		}
		put(t, b.Autocommit(), order1, event("X", `{"n": 1e131071, "m": 1e-16383}`))
		got := string(of(t, b.Autocommit(), order1)[0].Payload)
		same(t, "payload", got, `{"m": 0.`+strings.Repeat("0", 16382)+`1, "n": 1`+strings.Repeat("0", 131071)+`}`)
	}},
	{"P8 any JSON object comes back in its normal form, and as equal content", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			aggregate := rea.Ref{Type: "any", ID: fmt.Sprint(n)}
			payload := `{"k": ` + anyJSON(rt, 3) + `}`
			want, err := rea.NormalizeJSON([]byte(payload), "payload", 0)
			if err != nil {
				rt.Skip("duplicate keys")
			}
			tx := b.Autocommit().With(rea.Once("k"))
			if _, err := tx.Append(t.Context(), aggregate, event("X", payload)); err != nil {
				rt.Fatalf("append %s: %v", payload, err)
			}
			for e, err := range tx.Events(t.Context(), aggregate, 0) {
				if err != nil || string(e.Payload) != string(want) {
					rt.Errorf("payload = %s, %v, want %s", e.Payload, err, want)
				}
			}
			again, err := tx.Append(t.Context(), aggregate, event("X", string(want)))
			if err != nil || !again.Duplicate {
				rt.Errorf("the same content again: %+v, %v, want a duplicate", again, err)
			}
		})
	}},
}

// anyJSON draws a JSON value with odd strings and numbers.
func anyJSON(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word")
	case 1:
		return rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
	case 2, 3:
		s := rapid.StringOf(rapid.RuneFrom([]rune("ab\"\\/\n\t\u0001\u007f é中😀{}[]:,'%$"))).Draw(t, "text")
		b, _ := json.Marshal(s)
		return string(b)
	case 4:
		return "[" + strings.Join(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return anyJSON(t, depth-1) }), 0, 4).Draw(t, "array"), ",") + "]"
	}
	members := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		b, _ := json.Marshal(rapid.StringOf(rapid.RuneFrom([]rune("abZé\"\\"))).Draw(t, "key"))
		return string(b) + ":" + anyJSON(t, depth-1)
	}), 0, 4).Draw(t, "object")
	return "{" + strings.Join(members, " , ") + "}"
}

var texts = []clause{
	{"P8 what jsonb cannot hold is refused with its path before any SQL", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.begin(t)
		tx.exec(t, business)
		for _, c := range []struct{ name, payload, path string }{
			{"U+0000", `{"a": {"b": ["x", "\u0000"]}}`, "$.a.b[1]"},
			{"a lone high surrogate", `{"a": "\ud800"}`, "$.a"},
			{"a lone low surrogate", `{"a": "x\udc00y"}`, "$.a"},
			{"surrogates in the wrong order", `{"a": "\udc00\ud800"}`, "$.a"},
			{"an invalid byte", "{\"a\": \"\xff\"}", "$.a"},
			{"a surrogate in UTF-8", "{\"a\": \"\xed\xa0\x80\"}", "$.a"},
			{"an overlong form", "{\"a\": \"\xc0\x80\"}", "$.a"},
			{"U+0000 in a key", `{"a": {"\u0000": 1}}`, "$.a"},
			{"a duplicate key", `{"amount": 1, "amount": 2}`, "$.amount"},
			{"a duplicate key in another spelling", `{"x": [{"a": 1, "\u0061": 2}]}`, "$.x[0].a"},
			{"an array", `[1]`, "$"},
			{"a string", `"x"`, "$"},
			{"null", `null`, "$"},
			{"nothing", ``, "$"},
			{"two values", `{} {}`, "$"},
			{"a trailing comma", `{"a": 1,}`, "$"},
			{"a bare word", `{"a": NaN}`, "$.a"},
			{"a leading zero", `{"a": 01}`, "$"},
			{"a raw newline in a string", "{\"a\": \"\n\"}", "$.a"},
		} {
			e := rea.NewEvent{Type: "X", Payload: json.RawMessage(c.payload)}
			_, err := tx.Append(t.Context(), order1, e)
			bad := refused[*rea.PayloadError](t, c.name, err)
			same(t, "Path of "+c.name, bad.Path, c.path)
			same(t, "Aggregate of "+c.name, bad.Aggregate, order1)
			_, err = tx.With(rea.Metadata([]byte(c.payload))).Append(t.Context(), order1, event("X"))
			same(t, "Path in the metadata of "+c.name, refused[*rea.PayloadError](t, c.name, err).Path, c.path)
		}
		put(t, tx.Tx, order1, event("Good"))
		tx.commit(t)
		same(t, "count", b.count(t), 1)
	}},
	{"P8 text comes back unchanged", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("X", `{"a": "\\u0000", "b": "\ud83d\ude00 😀", "c": "\u0001\u007f\u2028<&>", "d": "é é", "e": "\/"}`))
		same(t, "payload", string(of(t, b.Autocommit(), order1)[0].Payload),
			`{"a": "\\u0000", "b": "😀 😀", "c": "\u0001`+"\u007f\u2028"+`<&>", "d": "é é", "e": "/"}`)
	}},
	{"P8 keys that differ in case are different keys", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("X", `{"amount":1, "Amount":2, "AMOUNT":3}`))
		same(t, "payload", string(of(t, b.Autocommit(), order1)[0].Payload), `{"AMOUNT": 3, "Amount": 2, "amount": 1}`)
		loaded, err := rea.Replay(t.Context(), b.Autocommit(), order1, rea.Merge)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "amount", string(loaded.State["amount"]), "1")
		same(t, "Amount", string(loaded.State["Amount"]), "2")
	}},
	{"P8 arrays keep their order, and [] and null and absent differ", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		for _, tags := range []string{`{"tags": [3, 1, 2]}`, `{"tags": []}`, `{"tags": null}`, `{}`} {
			put(t, b.Autocommit(), order1, event("X", tags))
		}
		var got []string
		for _, e := range of(t, b.Autocommit(), order1) {
			got = append(got, string(e.Payload))
		}
		same(t, "payloads", got, []string{`{"tags": [3, 1, 2]}`, `{"tags": []}`, `{"tags": null}`, `{}`})
	}},
}

// payloadOf gives a payload of exactly size bytes in normal form.
func payloadOf(size int) string {
	return `{"x": "` + strings.Repeat("y", size-len(`{"x": ""}`)) + `"}`
}

// deep gives a payload of exactly depth containers within one another.
func deep(depth int) string {
	return `{"x": ` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
}

var sizes = []clause{
	{"P8 payloads up to the limit are stored and read, one byte more is refused", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit()
		for _, size := range []int{7_999, 8_000, 100_000, 10_000_000, rea.MaxPayloadBytes} {
			payload := payloadOf(size)
			receipt := put(t, tx, order1, event("X", payload))
			e := all(t, tx.Events(t.Context(), order1, receipt.Seq()-1))[0]
			if string(e.Payload) != payload {
				t.Errorf("payload of %d bytes comes back with %d bytes, want it unchanged", size, len(e.Payload))
			}
			if got := b.history(t, rea.Filter{After: receipt.Seq() - 1}); len(got) != 1 || len(got[0].Payload) != size {
				t.Errorf("events by position after seq %d = %d, want 1 of %d bytes", receipt.Seq()-1, len(got), size)
			}
		}
		user := b.begin(t)
		_, err := user.Append(t.Context(), order1, event("X", payloadOf(rea.MaxPayloadBytes+1)))
		limit := refused[*rea.LimitError](t, "one byte more", err)
		same(t, "What", limit.What, "payload")
		same(t, "Limit", limit.Limit, rea.MaxPayloadBytes)
		put(t, user.Tx, order1, event("After"))
		user.commit(t)
		same(t, "count", b.count(t), 6)
	}},
	{"P8 depth up to 900 is stored, one more is refused", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit()
		put(t, tx.With(rea.Metadata([]byte(deep(rea.MaxDepth)))), order1, event("X", deep(rea.MaxDepth)))
		same(t, "payload", string(of(t, tx, order1)[0].Payload), deep(rea.MaxDepth))
		_, err := tx.Append(t.Context(), order1, event("X", deep(rea.MaxDepth+1)))
		same(t, "Limit", refused[*rea.LimitError](t, "depth 901", err).Limit, rea.MaxDepth)
		_, err = tx.With(rea.Metadata([]byte(deep(rea.MaxDepth+1)))).Append(t.Context(), order1, event("X"))
		same(t, "What", refused[*rea.LimitError](t, "metadata of depth 901", err).What, "metadata")
		same(t, "count", b.count(t), 1)
	}},
	{"P8 metadata up to 64 KiB is stored, one byte more is refused", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit()
		put(t, tx.With(rea.Metadata([]byte(payloadOf(rea.MaxMetadataBytes)))), order1, event("X"))
		same(t, "metadata", string(of(t, tx, order1)[0].Metadata), payloadOf(rea.MaxMetadataBytes))
		_, err := tx.With(rea.Metadata([]byte(payloadOf(rea.MaxMetadataBytes+1)))).Append(t.Context(), order1, event("X"))
		same(t, "Limit", refused[*rea.LimitError](t, "one byte more", err).Limit, rea.MaxMetadataBytes)
	}},
	{"P8 a call takes up to 10,000 events, one more is refused", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		events := make([]rea.NewEvent, rea.MaxCallEvents+1)
		for i := range events {
			events[i] = event("X", fmt.Sprintf(`{"n": %d}`, i+1))
		}
		_, err := b.Autocommit().Append(t.Context(), order1, events)
		same(t, "Limit", refused[*rea.LimitError](t, "one more", err).Limit, rea.MaxCallEvents)
		tx := b.Autocommit().With(rea.Once("big"))
		first := put(t, tx, order1, events[:rea.MaxCallEvents]...)
		same(t, "Seq", first.Seq(), rea.MaxCallEvents)
		same(t, "number of events in the receipt", len(first.Events), rea.MaxCallEvents)
		stored := of(t, tx, order1)
		dense(t, stored)
		same(t, "payload of the last", string(stored[len(stored)-1].Payload), fmt.Sprintf(`{"n": %d}`, rea.MaxCallEvents))
		again := put(t, tx, order1, events[:rea.MaxCallEvents]...)
		same(t, "Duplicate", again.Duplicate, true)
		same(t, "events of the repeated call", again.Events, first.Events)
	}},
}
