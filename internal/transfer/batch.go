package transfer

import (
	"fmt"
	"math"

	"github.com/realtime-event-archive/rea"
)

// ParseBatch reads a JSON array of {"event_type", "event_version", "payload"}, as rea.append_batch takes it;
// the type is required. Errors are *rea.PayloadError and *rea.LimitError with the path in the array.
func ParseBatch(b []byte) ([]rea.NewEvent, error) {
	s := scanner{src: b}
	if s.next() != '[' {
		return nil, &rea.PayloadError{Path: "$", Problem: "a batch must be a JSON array of events"}
	}
	s.pos++
	var events []rea.NewEvent
	if s.next() == ']' {
		s.pos++
		return events, s.end()
	}
	for {
		e, err := parseNewEvent(&s)
		if err != nil {
			return nil, inElement(len(events), err)
		}
		events = append(events, e)
		switch s.next() {
		case ',':
			s.pos++
			s.next()
		case ']':
			s.pos++
			return events, s.end()
		default:
			return nil, s.unexpected("',' or ']'")
		}
	}
}

func parseNewEvent(s *scanner) (e rea.NewEvent, err error) {
	var seen struct{ typ, version, payload bool }
	once := func(seen *bool, key string) error {
		if *seen {
			return wrong(key, "duplicate key")
		}
		*seen = true
		return nil
	}
	err = s.object("event", func(key string, value []byte) (err error) {
		switch key {
		case "event_type":
			if err = once(&seen.typ, key); err == nil {
				e.Type, err = text(key, value)
			}
		case "event_version":
			if err = once(&seen.version, key); err == nil && string(value) != "null" {
				var n int64
				n, err = count(key, value, math.MaxInt32)
				e.Version = int(n)
			}
		case "payload":
			if err = once(&seen.payload, key); err == nil {
				e.Payload = value
			}
		default:
			err = &rea.PayloadError{Path: "$", Problem: fmt.Sprintf("unknown field %q: an event has event_type, event_version, payload", short(key))}
		}
		return err
	})
	if err == nil && !seen.typ {
		err = &rea.PayloadError{Path: "$", Problem: "the field event_type is missing"}
	}
	return e, err
}

func inElement(i int, err error) error {
	prefix := fmt.Sprintf("$[%d]", i)
	switch e := err.(type) {
	case *rea.PayloadError:
		e.Path = prefix + trimRoot(e.Path)
	case *rea.LimitError:
		e.Path = prefix + trimRoot(e.Path)
	}
	return err
}
