package rea

import (
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"
)

// Object is a JSON object whose values are kept as they are stored, digit for digit.
type Object map[string]json.RawMessage

// ParseObject reads a JSON object of one level: what json.Unmarshal gives, several times as fast for the payloads of
// events. The values share text's memory.
func ParseObject(text json.RawMessage) (Object, error) { return Object(nil).lay(text) }

// Merge is the fold of an archive without a catalog: each payload's keys are laid over the state,
// in seq order; null stays null. Of REA's own events it is what they say of the row.
func Merge(state Object, e Event) (Object, error) {
	if BuiltIn(e.Type) {
		return foldRow(state, e)
	}
	return state.lay(e.Payload)
}

// lay lays the members of a JSON object over o, which may be nil.
func (o Object) lay(text json.RawMessage) (Object, error) {
	if o == nil {
		o = make(Object)
	}
	s := shallow{text: text}
	if s.object(o) {
		return o, nil
	}
	var members Object
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	maps.Copy(o, members)
	return o, nil
}

// text writes o with its values as they are, keys in order. It reports false where that would be no JSON in UTF-8: a
// fold has put something else into it.
func (o Object) text() (json.RawMessage, bool) {
	b := []byte{'{'}
	for i, key := range slices.Sorted(maps.Keys(o)) {
		if i > 0 {
			b = append(b, ", "...)
		}
		name, err := marshal(key)
		if err != nil || !utf8.ValidString(key) {
			return nil, false
		}
		b = append(append(append(b, name...), ": "...), o[key]...)
	}
	b = append(b, '}')
	return b, utf8.Valid(b) && json.Valid(b)
}

// shallow reads one level of a JSON object in the form that the stores keep. Where it meets anything that it does not
// know, it gives up, and encoding/json tells: what it takes, it takes as that does (FuzzParseObject).
type shallow struct {
	text []byte
	at   int
}

// object puts the members into o, in order. Where it reports false, it may have put some of them.
func (s *shallow) object(o Object) bool {
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return s.at == len(s.text)
	}
	for {
		s.take(' ')
		from := s.at
		if !s.plain() {
			return false
		}
		key := s.text[from+1 : s.at-1]
		if !s.take(':') {
			return false
		}
		s.take(' ')
		from = s.at
		if !s.value() {
			return false
		}
		o[string(key)] = s.text[from:s.at:s.at]
		if s.take('}') {
			return s.at == len(s.text)
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *shallow) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *shallow) value() bool {
	if s.at == len(s.text) {
		return false
	}
	from := s.at
	switch c := s.text[from]; {
	case c == '"':
		return s.plain() || s.end(from)
	case '1' <= c && c <= '9':
		return s.number()
	default:
		return s.end(from)
	}
}

// plain reads a string of ASCII without escapes.
func (s *shallow) plain() bool {
	if !s.take('"') {
		return false
	}
	for i := s.at; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			return true
		case c < ' ' || c == '\\' || c >= utf8.RuneSelf:
			return false
		}
	}
	return false
}

// number reads digits that begin with none of 0, and may have a fraction.
func (s *shallow) number() bool {
	from := s.at
	s.digits()
	if s.take('.') && !s.digits() {
		return false
	}
	return s.at < len(s.text) && (s.text[s.at] == ',' || s.text[s.at] == '}') || s.end(from)
}

func (s *shallow) digits() bool {
	from := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

// end finds the end of any value that begins at from, and has encoding/json look at it.
func (s *shallow) end(from int) bool {
	depth, quoted := 0, false
	for s.at = from; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case quoted && c == '\\':
			s.at++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			return json.Valid(s.text[from:s.at]) && !space(s.text[from]) && !space(s.text[s.at-1])
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
