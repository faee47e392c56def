package transfer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/realtime-event-archive/rea"
)

// fields are the names that a line may hold, in the order in which Export writes them; the first three are required.
var fields = []string{
	"aggregate_type", "aggregate_id", "event_type", "event_version", "seq", "payload", "actor_id", "reason",
	"correlation_id", "idempotency_key", "key_events", "metadata", "created_at", "correction",
}

const required = 3

// ParseLine reads one line and checks it as an append is checked. An unknown or repeated field, in whichever
// case it is spelled otherwise, is an error; null means that an optional field is not given. A key without
// key_events stands for one event. Errors: *rea.PayloadError and *rea.LimitError.
func ParseLine(b []byte) (rea.Line, error) {
	var line rea.Line
	var seen [14]bool
	s := scanner{src: b}
	err := s.object("line", func(key string, value []byte) error {
		i := slices.Index(fields, key)
		switch {
		case i < 0:
			return &rea.PayloadError{Path: "$", Problem: fmt.Sprintf("unknown field %q", short(key))}
		case seen[i]:
			return wrong(key, "duplicate key")
		}
		seen[i] = true
		if string(value) == "null" && i >= required && key != "payload" {
			return nil
		}
		return setField(&line, key, value)
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return rea.Line{}, err
	}
	for i, name := range fields[:required] {
		if !seen[i] {
			return rea.Line{}, &rea.PayloadError{Path: "$", Problem: "the field " + name + " is missing"}
		}
	}
	switch {
	case line.Key == "" && line.KeyEvents != 0:
		return rea.Line{}, wrong("key_events", "needs an idempotency_key")
	case line.Key != "" && line.KeyEvents == 0:
		line.KeyEvents = 1
	}
	if err := line.Normalize(); err != nil {
		return rea.Line{}, err
	}
	return line, nil
}

func setField(line *rea.Line, key string, value []byte) (err error) {
	switch key {
	case "aggregate_type":
		line.Aggregate.Type, err = text(key, value)
	case "aggregate_id":
		if whole(value) {
			line.Aggregate.ID = string(value)
			return nil
		}
		if line.Aggregate.ID, err = text(key, value); err != nil && value[0] != '"' {
			return wrong(key, "is neither a string nor a whole number")
		}
	case "event_type":
		line.Event.Type, err = text(key, value)
	case "event_version":
		var n int64
		n, err = count(key, value, math.MaxInt32)
		line.Event.Version = int(n)
	case "seq":
		line.Seq, err = count(key, value, math.MaxInt64)
	case "payload":
		line.Event.Payload = value
	case "actor_id":
		line.Actor, err = given(key, value)
	case "reason":
		line.Reason, err = given(key, value)
	case "correlation_id":
		line.Correlation, err = given(key, value)
	case "idempotency_key":
		line.Key, err = given(key, value)
	case "key_events":
		var n int64
		n, err = count(key, value, rea.MaxCallEvents)
		line.KeyEvents = int(n)
	case "metadata":
		line.Metadata = value
	case "created_at":
		var s string
		if s, err = given(key, value); err != nil {
			return err
		}
		if line.CreatedAt, err = rea.ParseTime(s); err != nil && rea.Code(err) == "" {
			return wrong(key, err.Error())
		}
	case "correction":
		switch string(value) {
		case "true":
			line.Correction = true
		case "false":
		default:
			return wrong(key, "is neither true nor false")
		}
	}
	return err
}

// given reads an optional text, which "" would turn into an absent one.
func given(key string, value []byte) (string, error) {
	s, err := text(key, value)
	if err == nil && s == "" {
		return "", &rea.LimitError{What: key, Problem: "is empty: leave the field out"}
	}
	return s, err
}

// AppendLine appends the line of an event to b, with its line feed.
func AppendLine(b []byte, e *rea.Event) []byte {
	b = appendText(append(b, `{"aggregate_type":`...), e.Aggregate.Type)
	b = appendText(append(b, `,"aggregate_id":`...), e.Aggregate.ID)
	b = appendText(append(b, `,"event_type":`...), e.Type)
	b = strconv.AppendInt(append(b, `,"event_version":`...), int64(e.Version), 10)
	b = strconv.AppendInt(append(b, `,"seq":`...), e.Seq, 10)
	b = append(append(b, `,"payload":`...), e.Payload...)
	b = appendGiven(b, `,"actor_id":`, e.Actor)
	b = appendGiven(b, `,"reason":`, e.Reason)
	b = appendGiven(b, `,"correlation_id":`, e.Correlation)
	b = appendGiven(b, `,"idempotency_key":`, e.Key)
	if e.KeyEvents != 0 {
		b = strconv.AppendInt(append(b, `,"key_events":`...), int64(e.KeyEvents), 10)
	}
	if e.Metadata != nil {
		b = append(append(b, `,"metadata":`...), e.Metadata...)
	}
	b = append(append(b, `,"created_at":"`...), rea.FormatTime(e.CreatedAt)...)
	b = append(b, '"')
	if e.Correction {
		b = append(b, `,"correction":true`...)
	}
	return append(b, "}\n"...)
}

func appendGiven(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendText(append(b, name...), value)
}

func appendText(b []byte, s string) []byte {
	if plain([]byte(s)) {
		return append(append(append(b, '"'), s...), '"')
	}
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return append(b, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}

// short is as much of a hostile name as a message can bear.
func short(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}
