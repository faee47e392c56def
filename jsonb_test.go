package rea

import (
	"bytes"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestNormalForm holds what PostgreSQL's jsonb prints; postgres/jsonb_oracle_test.go asks the server itself.
func TestNormalForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"separators", `{"a":1,"b":[true,false,null],"c":{}}`, `{"a": 1, "b": [true, false, null], "c": {}}`},
		{"white space", " {\t\"a\" :\r\n[ ] , \"b\": { } } ", `{"a": [], "b": {}}`},
		{"keys by length, then bytes", `{"b":1,"aa":2,"":3,"é":4,"a":{"zz":3,"B":2,"z":1}}`, `{"": 3, "a": {"B": 2, "z": 1, "zz": 3}, "b": 1, "aa": 2, "é": 4}`},
		{"order within order", `{"b":[{"d":{"y":1,"x":2},"c":3},{"a":1}],"a":{"f":4,"e":5}}`, `{"a": {"e": 5, "f": 4}, "b": [{"c": 3, "d": {"x": 2, "y": 1}}, {"a": 1}]}`},
		{"order counts decoded keys", `{"\n\n":1,"aaa":2,"\u0041b":3,"\u0001":4}`, `{"\u0001": 4, "\n\n": 1, "Ab": 3, "aaa": 2}`},
		{"quote before backslash", `{"a\\":1,"a\"":2,"\"":3}`, `{"\"": 3, "a\"": 2, "a\\": 1}`},
		{"keys by case", `{"amount":1,"Amount":2,"AMOUNT":3}`, `{"AMOUNT": 3, "Amount": 2, "amount": 1}`},
		{"escapes", `{"a":"\u0001\u001F\u000b\b\f\n\r\t\"\\\/\u0022\u005c\u002f\u000A"}`, `{"a": "\u0001\u001f\u000b\b\f\n\r\t\"\\/\"\\/\n"}`},
		{"raw characters", "{\"a\":\"\\u007f\\u0080\\u2028<>&\u00e9\"}", "{\"a\": \"\u007f\u0080\u2028<>&\u00e9\"}"},
		{"surrogate pair", `{"a":"\ud83d\uDE00\uDBFF\uDFFF"}`, "{\"a\": \"\U0001F600\U0010FFFF\"}"},
		{"visible escape", `{"a":"\\u0000"}`, `{"a": "\\u0000"}`},
		{"numbers of case JSON-1", `{"a":9007199254740993,"b":18446744073709551616,"c":0.1,"d":12345678901234567890.123456789,"e":1e400,"f":0.10}`,
			`{"a": 9007199254740993, "b": 18446744073709551616, "c": 0.1, "d": 12345678901234567890.123456789, "e": 1` + strings.Repeat("0", 400) + `, "f": 0.10}`},
	} {
		got, err := NormalizeObject([]byte(c.in), "payload", 0)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.name, got, err, c.want)
		}
	}
}

func TestNumbersArePrintedAsNumericPrintsThem(t *testing.T) {
	t.Parallel()
	zeros := func(n int) string { return strings.Repeat("0", n) }
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "-0.00": "0.00", "-0e5": "0", "0e5": "0", "0.0e5": "0", "0.00e1": "0.0", "0.00e-1": "0.000",
		"0e999999999": "0", "0e1073741822": "0", "1e2": "100", "1E+02": "100", "1e0": "1", "1e-0": "1", "1e0002": "100",
		"0.10": "0.10", "1.00": "1.00", "1.5e1": "15", "1.50e1": "15.0", "150e-1": "15.0", "150e-3": "0.150", "150e-4": "0.0150",
		"1e-3": "0.001", "-1e-3": "-0.001", "100e-2": "1.00", "0.001e2": "0.1", "0.001e3": "1", "0.01e3": "10", "12.34e1": "123.4",
		"1e131071": "1" + zeros(131071), "0.1e131072": "1" + zeros(131071), "0.01e131073": "1" + zeros(131071),
		"1e-16383": "0." + zeros(16382) + "1", "15e-16383": "0." + zeros(16381) + "15", "0e-16383": "0." + zeros(16383),
		"1e+000000000000000000003": "1000", "1e-000000000000000000001": "0.1",
	} {
		got, err := NormalizeJSON([]byte(in), "payload", 0)
		if err != nil || string(got) != want {
			t.Errorf("%s: got %.40s (%d bytes), %v, want %.40s (%d bytes)", in, got, len(got), err, want, len(want))
		}
	}
}

func TestWhatJSONBCannotHoldIsRefusedWithItsPath(t *testing.T) {
	t.Parallel()
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct {
		in, path string
		class    error
	}{
		{`{"a":{"b":[0,1,2,"\u0000"]}}`, `$.a.b[3]`, ErrBadPayload},
		{`{"a":[{"odd key":"\ud800"}]}`, `$.a[0]."odd key"`, ErrBadPayload},
		{`{"a":"\udc00"}`, `$.a`, ErrBadPayload},
		{`{"a":"\ud800\u0041"}`, `$.a`, ErrBadPayload},
		{`{"a":"\ud800\ud800"}`, `$.a`, ErrBadPayload},
		{`{"a":"\ud800x\udc00"}`, `$.a`, ErrBadPayload},
		{`{"a":{"x\u0000":1}}`, `$.a`, ErrBadPayload},
		{"{\"a\":\"\xff\"}", `$.a`, ErrBadPayload},
		{"{\"a\":\"\xed\xa0\x80\"}", `$.a`, ErrBadPayload},
		{"{\"a\":[\"\u00e9\",\"\xc3\"]}", `$.a[1]`, ErrBadPayload},
		{"{\"\xff\":1}", `$`, ErrBadPayload},
		{`{"a":{"amount":1,"amount":1}}`, `$.a.amount`, ErrBadPayload},
		{`{"b":1,"a":2,"\u0062":3}`, `$.b`, ErrBadPayload},
		{`{"\n":1,"c":1,"\u000a":2}`, `$."\n"`, ErrBadPayload},
		{`{"":{"":1,"":1}}`, `$."".""`, ErrBadPayload},
		{`{"a":1e131072}`, `$.a`, ErrLimit},
		{`{"a":10e131071}`, `$.a`, ErrLimit},
		{`{"a":0.1e131073}`, `$.a`, ErrLimit},
		{`{"a":1e-16384}`, `$.a`, ErrLimit},
		{`{"a":1.5e-16383}`, `$.a`, ErrLimit},
		{`{"a":0e-16384}`, `$.a`, ErrLimit},
		{`{"a":0e1073741823}`, `$.a`, ErrLimit},
		{`{"a":0e-1073741823}`, `$.a`, ErrLimit},
		{`{"a":1e2147483648}`, `$.a`, ErrLimit},
		{`{"a":1e-99999999999999999999999}`, `$.a`, ErrLimit},
		{`{"a":1` + strings.Repeat("0", 131072) + `}`, `$.a`, ErrLimit},
		{`{"a":0.` + strings.Repeat("0", 16384) + `}`, `$.a`, ErrLimit},
		{`{"a":` + nest(MaxDepth) + `}`, `$.a` + strings.Repeat("[0]", 9) + `...` + strings.Repeat("[0]", 10), ErrLimit},
		{`[]`, `$`, ErrBadPayload}, {`1`, `$`, ErrBadPayload}, {``, `$`, ErrBadPayload}, {` `, `$`, ErrBadPayload},
		{`{`, `$`, ErrBadPayload}, {`{}}`, `$`, ErrBadPayload}, {`{},`, `$`, ErrBadPayload}, {`{} {}`, `$`, ErrBadPayload},
		{"\ufeff{}", `$`, ErrBadPayload}, {"{}\x00", `$`, ErrBadPayload}, {"{}\u00a0", `$`, ErrBadPayload}, {"{}\v", `$`, ErrBadPayload},
		{`{"a"}`, `$`, ErrBadPayload}, {`{"a":}`, `$.a`, ErrBadPayload}, {`{"a":1,}`, `$`, ErrBadPayload}, {`{a:1}`, `$`, ErrBadPayload},
		{`{'a':1}`, `$`, ErrBadPayload}, {`{"a":1 "b":2}`, `$`, ErrBadPayload}, {`{"a":/**/1}`, `$.a`, ErrBadPayload},
		{`{"a":[1,]}`, `$.a[1]`, ErrBadPayload}, {`{"a":[1 2]}`, `$.a`, ErrBadPayload}, {`{"a":[,1]}`, `$.a[0]`, ErrBadPayload},
		{`{"a":[1}`, `$.a`, ErrBadPayload}, {`{"a":[`, `$.a[0]`, ErrBadPayload},
		{`{"a":01}`, `$`, ErrBadPayload}, {`{"a":-01}`, `$`, ErrBadPayload}, {`{"a":+1}`, `$.a`, ErrBadPayload},
		{`{"a":1.}`, `$.a`, ErrBadPayload}, {`{"a":.5}`, `$.a`, ErrBadPayload}, {`{"a":-}`, `$.a`, ErrBadPayload},
		{`{"a":1e}`, `$.a`, ErrBadPayload}, {`{"a":1e+}`, `$.a`, ErrBadPayload}, {`{"a":1.e5}`, `$.a`, ErrBadPayload},
		{`{"a":NaN}`, `$.a`, ErrBadPayload}, {`{"a":-Infinity}`, `$.a`, ErrBadPayload}, {`{"a":0x10}`, `$`, ErrBadPayload},
		{`{"a":tru}`, `$.a`, ErrBadPayload}, {`{"a":truex}`, `$`, ErrBadPayload}, {`{"a":True}`, `$.a`, ErrBadPayload},
		{`{"a":"`, `$.a`, ErrBadPayload}, {`{"a":"\`, `$.a`, ErrBadPayload}, {`{"a":"\x"}`, `$.a`, ErrBadPayload},
		{`{"a":"\u00g0"}`, `$.a`, ErrBadPayload}, {`{"a":"\u00`, `$.a`, ErrBadPayload}, {`{"a":"\U0041"}`, `$.a`, ErrBadPayload},
		{"{\"a\":\"\n\"}", `$.a`, ErrBadPayload}, {"{\"a\":\"\x00\"}", `$.a`, ErrBadPayload}, {"{\"a\":\"\x1f\"}", `$.a`, ErrBadPayload},
	} {
		got, err := NormalizeObject([]byte(c.in), "payload", 0)
		if got != nil || !errors.Is(err, c.class) || pathOf(err) != c.path {
			t.Errorf("%.60q: got %.60q, %v at %s, want %v at %s", c.in, got, err, pathOf(err), c.class, c.path)
		}
	}
}

func pathOf(err error) string {
	var bad *PayloadError
	var limit *LimitError
	switch {
	case errors.As(err, &bad):
		return bad.Path
	case errors.As(err, &limit):
		return limit.Path
	}
	return ""
}

func TestRefusalsSayWhatIsWrongAndShowNoData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, what, want string }{
		{`{"a":[1,"secret\u0000"]}`, "payload", "rea: payload at $.a[1]: U+0000 in a string"},
		{`{"a":"secret`, "payload", "rea: payload at $.a: the text ends where the closing quote should be"},
		{`{"a":secret}`, "payload", "rea: payload at $.a: syntax error at byte 6, where a value should be"},
		{`{"a":1,"a":2}`, "metadata", "rea: payload at $.a: duplicate key (in the metadata)"},
		{`[]`, "payload", "rea: payload at $: must be an object"},
		{`{"a":1e131072}`, "payload", "rea: payload at $.a has a number of more than 131072 digits before the decimal point"},
		{`{"a":1e-16384}`, "metadata", "rea: metadata at $.a has a number of more than 16383 digits after the decimal point"},
		{`{"a":"` + strings.Repeat("x", 100) + `"}`, "metadata", "rea: metadata at $.a is more than 100 bytes long in normal form"},
		{`{"a":"` + strings.Repeat("x", 1000) + `"}`, "metadata", "rea: metadata is a text of 1008 bytes: the limit is 100 in normal form, and 800 for the text"},
	} {
		if _, err := NormalizeObject([]byte(c.in), c.what, 100); err == nil || err.Error() != c.want {
			t.Errorf("%.40s:\n got %v\nwant %s", c.in, err, c.want)
		}
	}
}

func TestDepthAndSizeAreLimitedExactly(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat(`{"a": `, n-1) + "{}" + strings.Repeat("}", n-1) }
	long := func(n int) string { return `{"a": "` + strings.Repeat("x", n-9) + `"}` }
	for _, c := range []struct {
		name, in string
		limit    int
		ok       bool
	}{
		{"900 deep", deep(MaxDepth), 0, true},
		{"901 deep", deep(MaxDepth + 1), 0, false},
		{"16 MiB", long(MaxPayloadBytes), 0, true},
		{"16 MiB and 1", long(MaxPayloadBytes + 1), 0, false},
		{"own limit", long(100), 100, true},
		{"over own limit", long(101), 100, false},
		{"the normal form is longer than the text", `{"a":[` + strings.Repeat("0,", 44) + `0]}`, 100, false},
		{"the normal form is shorter than the text", `{"a":"` + strings.Repeat(`\u0041`, 91) + `"}` + strings.Repeat(" ", 200), 100, true},
		{"a number that fits", `{"a":1e93}`, 101, true},
		{"a number that does not", `{"a":1e93}`, 100, false},
		{"a negative fraction that fits", `{"a":-1e-90}`, 100, true},
		{"a negative fraction that does not", `{"a":-1e-90}`, 99, false},
	} {
		got, err := NormalizeObject([]byte(c.in), "payload", c.limit)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %d bytes, %v, want ok %v", c.name, len(got), err, c.ok)
		}
	}
}

// Not parallel: it measures.
func TestShortTextsOfLongNumbersTakeNoMemory(t *testing.T) {
	in := []byte("[" + strings.Repeat("1e131071,", 1_000_000) + "0]")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := NormalizeJSON(in, "payload", 0)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrLimit) || used > 8*MaxPayloadBytes {
		t.Errorf("%v with %d bytes allocated, want a limit and at most %d", err, used, 8*MaxPayloadBytes)
	}
}

func TestNormalTextIsReturnedAsItIs(t *testing.T) {
	in := []byte(`{"a": 1, "b": [{"x": "\n"}, 0.10], "cc": {}}`)
	got, err := NormalizeObject(in, "payload", 0)
	if err != nil || &got[0] != &in[0] || cap(got) != len(in) {
		t.Errorf("got %s with capacity %d, %v, want the same memory, without room", got, cap(got), err)
	}
	compact := []byte(`{"b":1,"a":[{"d":"\n","c":0.10}]}`)
	for _, c := range []struct {
		in   []byte
		most float64
	}{{in, 0}, {compact, 1}} {
		if allocs := testing.AllocsPerRun(100, func() { _, _ = NormalizeObject(c.in, "payload", 0) }); allocs > c.most && !raceEnabled() {
			t.Errorf("%s: %v allocations, want %v", c.in, allocs, c.most)
		}
	}
}

func TestResultsDoNotShareMemoryWithOneAnother(t *testing.T) {
	t.Parallel()
	first, _ := NormalizeObject([]byte(`{"b":1,"a":2}`), "payload", 0)
	if _, err := NormalizeObject([]byte(`{"y":"xxxxxxxx","x":0}`), "payload", 0); err != nil {
		t.Fatal(err)
	}
	if want := `{"a": 2, "b": 1}`; string(first) != want {
		t.Errorf("the first result became %s, want %s", first, want)
	}
}

func TestEqualJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a": 1.0}`, `{"a": 1.00}`, true}, {`{"a": 1}`, `{"a": 1.00}`, true}, {`{"a": 0.0}`, `{"a": 0}`, true},
		{`{"a": -1.50}`, `{"a": -1.5}`, true}, {`{"a": 10}`, `{"a": 1}`, false}, {`{"a": 100}`, `{"a": 100.000}`, true},
		{`{"a": 1}`, `{"a": -1}`, false}, {`{"a": 1.1}`, `{"a": 1.10, "b": 1}`, false}, {`{"a": 1.01}`, `{"a": 1.1}`, false},
		{`{"a": 9007199254740993}`, `{"a": 9007199254740992}`, false}, {`[1, 2]`, `[2, 1]`, false}, {`[1.0, 2]`, `[1, 2.0]`, true},
		{`{"a": "1.0"}`, `{"a": "1.00"}`, false}, {`{"1.0": 1}`, `{"1.00": 1}`, false}, {`{"a": "\"1.0"}`, `{"a": "\"1.00"}`, false},
		{`{"a": null}`, `{}`, false}, {`[]`, `{}`, false}, {`[]`, `null`, false}, {`[1]`, `[1, 1]`, false}, {`"a"`, `"a`, false},
		{`1`, `"1"`, false}, {`1`, ``, false}, {``, ``, true}, {`"\\"`, `"\\"`, true}, {`[1, 1]`, `[11]`, false}, {`12`, `1`, false},
	} {
		if got := EqualJSON([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("EqualJSON(%s, %s) = %v", c.a, c.b, got)
		}
		if got := EqualJSON([]byte(c.b), []byte(c.a)); got != c.want {
			t.Errorf("EqualJSON(%s, %s) = %v", c.b, c.a, got)
		}
	}
}

func TestNormalFormIsIndependentOfSpelling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := any([]any{drawValue(t, 4), drawValue(t, 4), drawValue(t, 4)})
		one, two := spell(t, value), spell(t, value)
		a, err := NormalizeJSON([]byte(one), "payload", 0)
		if err != nil {
			t.Fatalf("%s: %v", one, err)
		}
		b, err := NormalizeJSON([]byte(two), "payload", 0)
		if err != nil || !bytes.Equal(a, b) || !EqualJSON(a, b) {
			t.Fatalf("%s gives %s,\n%s gives %s, %v", one, a, two, b, err)
		}
		again, err := NormalizeJSON(a, "payload", 0)
		if err != nil || !bytes.Equal(a, again) {
			t.Fatalf("%s gives %s, %v", a, again, err)
		}
		if x, y := decode(t, []byte(one)), decode(t, a); x != y {
			t.Fatalf("%s means %s,\n%s means %s", one, x, a, y)
		}
	})
}

// raceEnabled reports whether the race detector is on, under which a sync.Pool forgets at random.
func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
