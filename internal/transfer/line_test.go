package transfer

import (
	"database/sql"
	"reflect"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

func TestLineIsReadStrictly(t *testing.T) {
	t.Parallel()
	const ref = `"aggregate_type":"order","aggregate_id":"1","event_type":"X"`
	for name, c := range map[string]struct{ line, code, message string }{
		"not an object":                      {`[1]`, "bad_payload", "must be a JSON object"},
		"an unknown field":                   {`{` + ref + `,"colour":1}`, "bad_payload", `unknown field "colour"`},
		"a known field in another case":      {`{` + ref + `,"Payload":{}}`, "bad_payload", `unknown field "Payload"`},
		"a repeated field":                   {`{` + ref + `,"seq":1,"seq":1}`, "bad_payload", "$.seq: duplicate key"},
		"a field repeated with escapes":      {`{` + ref + `,"seq":1,"s\u0065q":1}`, "bad_payload", "$.seq: duplicate key"},
		"a missing field":                    {`{"aggregate_type":"order","event_type":"X"}`, "bad_payload", "aggregate_id is missing"},
		"a required field that is null":      {`{"aggregate_type":null,"aggregate_id":1,"event_type":"X"}`, "bad_payload", "$.aggregate_type: is not a string"},
		"two objects":                        {`{` + ref + `}{}`, "bad_payload", "where the end should be"},
		"text that ends early":               {`{` + ref + `,"payload":{"a":1`, "bad_payload", "the text ends"},
		"a comma too many":                   {`{` + ref + `,}`, "bad_payload", "where a key should be"},
		"a duplicate key of the payload":     {`{` + ref + `,"payload":{"a":{"b":1,"b":2}}}`, "bad_payload", "$.a.b: duplicate key"},
		"U+0000 in the payload":              {`{` + ref + `,"payload":{"a":"\u0000"}}`, "bad_payload", "$.a"},
		"a lone surrogate in a name":         {`{"aggregate_type":"\ud800","aggregate_id":1,"event_type":"X"}`, "bad_payload", "$.aggregate_type"},
		"invalid UTF-8 in the payload":       {`{` + ref + `,"payload":{"a":"` + "\xff" + `"}}`, "bad_payload", "$.a"},
		"invalid UTF-8 in a name":            {`{"aggregate_type":"` + "\xff" + `","aggregate_id":1,"event_type":"X"}`, "bad_payload", "$.aggregate_type"},
		"a payload that is null":             {`{` + ref + `,"payload":null}`, "bad_payload", "must be an object"},
		"a payload that is a list":           {`{` + ref + `,"payload":[]}`, "bad_payload", "must be an object"},
		"an id that is a fraction":           {`{"aggregate_type":"order","aggregate_id":1.0,"event_type":"X"}`, "bad_payload", "neither a string nor a whole number"},
		"an id with an exponent":             {`{"aggregate_type":"order","aggregate_id":1e3,"event_type":"X"}`, "bad_payload", "neither a string nor a whole number"},
		"an id that is minus zero":           {`{"aggregate_type":"order","aggregate_id":-0,"event_type":"X"}`, "bad_payload", "neither a string nor a whole number"},
		"seq 0":                              {`{` + ref + `,"seq":0}`, "limit", "seq"},
		"a seq that is text":                 {`{` + ref + `,"seq":"1"}`, "bad_payload", "$.seq: is not a whole number"},
		"a seq beyond bigint":                {`{` + ref + `,"seq":9223372036854775808}`, "limit", "seq"},
		"version 0":                          {`{` + ref + `,"event_version":0}`, "limit", "event_version"},
		"a trailing space in a name":         {`{"aggregate_type":"order ","aggregate_id":1,"event_type":"X"}`, "limit", "trailing space"},
		"an empty actor":                     {`{` + ref + `,"actor_id":""}`, "limit", "actor_id is empty"},
		"a time with nanoseconds":            {`{` + ref + `,"created_at":"2024-06-01T12:00:00.1234567Z"}`, "limit", "six digits"},
		"a time without a zone":              {`{` + ref + `,"created_at":"2024-06-01T12:00:00"}`, "bad_payload", "$.created_at"},
		"a correction that is text":          {`{` + ref + `,"correction":"true"}`, "bad_payload", "neither true nor false"},
		"a correction without actor":         {`{` + ref + `,"correction":true}`, "limit", "needs an actor and a reason"},
		"key_events without a key":           {`{` + ref + `,"key_events":2}`, "bad_payload", "needs an idempotency_key"},
		"metadata that is no object":         {`{` + ref + `,"metadata":1}`, "bad_payload", "must be an object"},
		"a value that is cut by a bracket":   {`{` + ref + `,"seq":]1}`, "bad_payload", "where a value should be"},
		"a literal with a tail":              {`{` + ref + `,"correction":falsey}`, "bad_payload", "neither true nor false"},
		"a string that does not end":         {`{` + ref + `,"reason":"abc}`, "bad_payload", ""},
		"a control character in a reason":    {`{` + ref + `,"reason":"a` + "\t" + `b"}`, "bad_payload", "$.reason"},
		"a name that is longer than allowed": {`{"aggregate_type":"` + strings.Repeat("a", 201) + `","aggregate_id":1,"event_type":"X"}`, "limit", "201 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseLine([]byte(c.line))
			if err == nil || rea.Code(err) != c.code || !strings.Contains(err.Error(), c.message) {
				t.Errorf("ParseLine = %v (code %q), want %q with %q", err, rea.Code(err), c.code, c.message)
			}
		})
	}
}

func TestLineOptionalFields(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"aggregate_type":"order","aggregate_id":10086,"event_type":"X"}`:                                                            `{"aggregate_type":"order","aggregate_id":"10086","event_type":"X","event_version":1,"seq":1,"payload":{},"created_at":"0001-01-01T00:00:00.000000Z"}`,
		` { "event_type" : "X" , "aggregate_id" : "a/b" , "aggregate_type" : "o" , "seq" : null, "actor_id":null, "metadata":null } `: `{"aggregate_type":"o","aggregate_id":"a/b","event_type":"X","event_version":1,"seq":1,"payload":{},"created_at":"0001-01-01T00:00:00.000000Z"}`,
		`{"aggregate_type":"o","aggregate_id":-12345678901234567890123,"event_type":"X","event_version":2,"seq":1,"payload":{"bb":1e2,"a":-0.0},"actor_id":"a\"","reason":"<b>\n","correlation_id":"c","idempotency_key":"k","key_events":3,"metadata":{},"created_at":"2024-06-01T14:00:00.5+02:00","correction":true}`: `{"aggregate_type":"o","aggregate_id":"-12345678901234567890123","event_type":"X","event_version":2,"seq":1,"payload":{"a": 0.0, "bb": 100},"actor_id":"a\"","reason":"<b>\n","correlation_id":"c","idempotency_key":"k","key_events":3,"metadata":{},"created_at":"2024-06-01T12:00:00.500000Z","correction":true}`,
	} {
		got, err := ParseLine([]byte(line))
		if err != nil {
			t.Errorf("ParseLine(%s) = %v", line, err)
			continue
		}
		if text := string(AppendLine(nil, eventOf(got))); text != want+"\n" {
			t.Errorf("ParseLine(%s)\n  gives %s  want  %s", line, text, want)
		}
	}
}

// eventOf is the event that a store makes of a line on an empty archive.
func eventOf(l rea.Line) *rea.Event {
	return &rea.Event{
		Aggregate: l.Aggregate, Seq: max(l.Seq, 1), Type: l.Event.Type, Version: max(l.Event.Version, 1), Payload: l.Event.Payload,
		Actor: l.Actor, Reason: l.Reason, Correlation: l.Correlation, Key: l.Key, KeyEvents: l.KeyEvents,
		Metadata: l.Metadata, CreatedAt: l.CreatedAt, Correction: l.Correction,
	}
}

func TestBatchIsReadStrictly(t *testing.T) {
	t.Parallel()
	events, err := ParseBatch([]byte(` [ {"event_type":"A"} , {"payload":{"b":1},"event_version":2,"event_type":"B"} ] `))
	want := []rea.NewEvent{{Type: "A"}, {Type: "B", Version: 2, Payload: []byte(`{"b":1}`)}}
	if err != nil || !reflect.DeepEqual(events, want) {
		t.Errorf("ParseBatch = %v, %v, want %v", events, err, want)
	}
	for text, path := range map[string]string{
		`{}`: "$:", `[1]`: "$[0]", `[{"event_type":"A"},{"event_type":"A","Payload":{}}]`: "$[1]: unknown field",
		`[{"event_type":"A","event_type":"A"}]`: "$[0].event_type: duplicate key", `[{"event_type":"A"}`: "$:", `[{"event_type":"A"}]x`: "$:", `[{}]`: "$[0]:",
	} {
		if _, err := ParseBatch([]byte(text)); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("ParseBatch(%s) = %v, want an error at %s", text, err, path)
		}
	}
}

// FuzzLine: a line is refused with a typed error, or what Export makes of it is read as the same line again.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		note(1), `{"aggregate_type":"o","aggregate_id":"1","event_type":"X","payload":{"a":"\ud83d\ude00\u0041","b":[1e2,{"c":null}]},"created_at":"2024-06-01T14:00:00+02:00"}`,
		`{"aggregate_type":"o","aggregate_id":1,"event_type":"X","reason":"\"\\\n","metadata":{"k":1},"idempotency_key":"k","actor_id":"a","correction":true,"seq":2}`,
		"{}", "", "\xff", `{"aggregate_type":"o","aggregate_id":1,"event_type":"X","payload":{"a":1}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		line, err := ParseLine(text)
		if err != nil {
			if code := rea.Code(err); code != "bad_payload" && code != "limit" {
				t.Fatalf("ParseLine = %v, want a typed error", err)
			}
			return
		}
		first := AppendLine(nil, eventOf(line))
		again, err := ParseLine(first)
		if err != nil {
			if line.CreatedAt.IsZero() {
				return // the zero time stands for now
			}
			t.Fatalf("ParseLine of %s = %v", first, err)
		}
		if second := AppendLine(nil, eventOf(again)); string(second) != string(first) {
			t.Fatalf("written\n%sread and written\n%s", first, second)
		}
	})
}

func TestExportEndsAtADamagedPayload(t *testing.T) {
	t.Parallel()
	for payload, whole := range map[string]bool{`{"a": 1}`: true, "{\n}": false, "{}\r": false, "{": false, "": false} {
		if got := oneLine([]byte(payload)); got != whole {
			t.Errorf("oneLine(%q) = %t, want %t", payload, got, whole)
		}
	}
	path := stores[0].new(t)
	archive := stores[0].at(t, path)
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=ignore_check_constraints(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, payload) VALUES ('order', '1', 1, 'X', '{' || char(10) || '}')"); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := Export(t.Context(), archive, &out, ExportOptions{}); err == nil || !strings.Contains(err.Error(), "order/1 at seq 1 is damaged") {
		t.Errorf("Export = %v", err)
	}
}
