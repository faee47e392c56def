package transfer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/realtime-event-archive/rea"
)

// scanner finds the extents of the members of a JSON object without judging their values: whoever takes a
// value parses it strictly. So a large payload is parsed once, and by rea's own rules.
type scanner struct {
	src []byte
	pos int
}

// object calls member with each key, without its escapes, and its raw value, in order. what names the object in errors.
func (s *scanner) object(what string, member func(key string, value []byte) error) error {
	if s.next() != '{' {
		return &rea.PayloadError{Path: "$", Problem: "a " + what + " must be a JSON object"}
	}
	s.pos++
	if s.next() == '}' {
		s.pos++
		return nil
	}
	for {
		if s.next() != '"' {
			return s.unexpected("a key")
		}
		key, err := text("key", s.value())
		if err != nil {
			return err
		}
		if s.next() != ':' {
			return s.unexpected("':'")
		}
		s.pos++
		s.next()
		value := s.value()
		if len(value) == 0 {
			return s.unexpected("a value")
		}
		if err := member(key, value); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			return nil
		default:
			return s.unexpected("',' or '}'")
		}
	}
}

// end is an error where anything follows.
func (s *scanner) end() error {
	if s.next(); s.pos < len(s.src) {
		return s.unexpected("the end")
	}
	return nil
}

func (s *scanner) next() byte {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// value passes over one value, and gives what it passed.
func (s *scanner) value() []byte {
	start, depth := s.pos, 0
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; c {
		case '"':
			s.quoted()
			if depth == 0 {
				return s.src[start:s.pos]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.pos++
				return s.src[start:s.pos]
			}
			if depth < 0 {
				return s.src[start:s.pos]
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.src[start:s.pos]
			}
		}
		s.pos++
	}
	return s.src[start:s.pos]
}

func (s *scanner) quoted() {
	for s.pos++; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case '\\':
			s.pos++
		case '"':
			s.pos++
			return
		}
	}
	s.pos = len(s.src)
}

func (s *scanner) unexpected(wanted string) error {
	if s.pos >= len(s.src) {
		return &rea.PayloadError{Path: "$", Problem: "the text ends where " + wanted + " should be"}
	}
	return &rea.PayloadError{Path: "$", Problem: fmt.Sprintf("syntax error at byte %d, where %s should be", s.pos+1, wanted)}
}

// text reads a JSON string; what names it in errors.
func text(what string, raw []byte) (string, error) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", wrong(what, "is not a string")
	}
	if plain(raw[1:len(raw)-1]) && raw[len(raw)-1] == '"' {
		return string(raw[1 : len(raw)-1]), nil
	}
	normal, err := rea.NormalizeJSON(raw, what, 0)
	if err != nil {
		return "", at(what, err)
	}
	var s string
	return s, json.Unmarshal(normal, &s)
}

// plain reports whether the inside of a JSON string stands for itself.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return utf8.Valid(b)
}

// count reads a whole number from 1 to most.
func count(what string, raw []byte, most int64) (int64, error) {
	if !whole(raw) {
		return 0, wrong(what, "is not a whole number")
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, &rea.LimitError{What: what, Limit: most, Problem: fmt.Sprintf("is outside 1 to %d", most)}
	}
	return n, nil
}

// whole reports whether raw is an integer in the one spelling that JSON and databases share.
func whole(raw []byte) bool {
	digits := bytes.TrimPrefix(raw, []byte("-"))
	if len(digits) == 0 || digits[0] == '0' && len(raw) > 1 {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func wrong(field, problem string) error {
	return &rea.PayloadError{Path: "$." + field, Problem: problem}
}

// at gives a path within a value its place in the line.
func at(field string, err error) error {
	switch e := err.(type) {
	case *rea.PayloadError:
		e.Path = "$." + field + trimRoot(e.Path)
	case *rea.LimitError:
		e.Path = "$." + field + trimRoot(e.Path)
	}
	return err
}

func trimRoot(path string) string {
	if len(path) > 0 && path[0] == '$' {
		return path[1:]
	}
	return path
}
