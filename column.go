package rea

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ColumnType is a type that a column of a projection may have. A value goes into a column without loss, or not at all,
// which is a *ProjectionError, alike on both stores.
type ColumnType string

// The types of columns, with the JSON values that they take beside null, and how SQLite keeps them.
const (
	Text        ColumnType = "text"        // a string; a number, true and false as they are spelt. SQLite: TEXT
	Bigint      ColumnType = "bigint"      // a whole number of 64 bits, 1.00 too. SQLite: INTEGER
	Numeric     ColumnType = "numeric"     // a number, every digit kept. SQLite: TEXT, as PostgreSQL spells it
	Boolean     ColumnType = "boolean"     // true, false. SQLite: INTEGER, 1 and 0
	Timestamptz ColumnType = "timestamptz" // a string with an RFC 3339 time, up to six digits, years 1 to 9999. SQLite: TEXT, as TimeLayout
	Date        ColumnType = "date"        // a string such as "2024-02-29". SQLite: TEXT
	JSONB       ColumnType = "jsonb"       // anything. SQLite: TEXT, in jsonb's form
)

var columnTypes = []ColumnType{Text, Bigint, Numeric, Boolean, Timestamptz, Date, JSONB}

// takesAttribute: see Attributes.
func (t ColumnType) takesAttribute(name string) bool {
	switch name {
	case "@seq", "@event_version":
		return t == Bigint || t == Numeric || t == Text || t == JSONB
	case "@created_at":
		return t == Timestamptz || t == Text || t == JSONB
	case "@metadata":
		return t == JSONB
	}
	return t == Text || t == JSONB
}

// The forms of times and days that the functions of the database know too. PostgreSQL has zones up to 15:59.
var (
	timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[-+](0\d|1[0-5]):[0-5]\d)$`)
	dayForm  = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
)

// text gives a JSON value as the text that a column of this type is filled with; nil: NULL. ok is false where the
// column cannot take it.
func (t ColumnType) text(value json.RawMessage) (text *string, ok bool) {
	if isJSONNull(value) {
		return nil, true
	}
	if t == Text && plainText(value) {
		s := string(value[1 : len(value)-1])
		return &s, true
	}
	value, err := NormalizeJSON(value, "value", 0) // somebody may have written it without REA
	if err != nil {
		return nil, false
	}
	c, s := value[0], string(value)
	switch t {
	case JSONB:
		return &s, true
	case Numeric:
		return &s, isJSONNumber(value)
	case Boolean:
		return &s, c == 't' || c == 'f'
	case Bigint:
		s, ok = wholeNumber(value)
		return &s, ok
	case Text:
		if c == '{' || c == '[' {
			return nil, false
		}
	default:
		if c != '"' {
			return nil, false
		}
	}
	if c == '"' && json.Unmarshal(value, &s) != nil {
		return nil, false
	}
	switch t {
	case Timestamptz:
		at, err := ParseTime(s)
		s, ok = FormatTime(at), err == nil && timeForm.MatchString(s)
		return &s, ok
	case Date:
		day, err := time.Parse(time.DateOnly, s)
		return &s, err == nil && dayForm.MatchString(s) && day.Year() > 0
	}
	return &s, true
}

// plainText reports whether a value is a string that is spelt as it reads.
func plainText(value json.RawMessage) bool {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return false
	}
	for _, c := range value[1 : len(value)-1] {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Literal gives a JSON value as the text that a column of this type is filled with, as PostgreSQL spells it. ok is false
// where the column cannot take it.
func (t ColumnType) Literal(value json.RawMessage) (text string, null, ok bool) {
	s, ok := t.text(value)
	if s == nil {
		return "", true, ok
	}
	return *s, false, ok
}

// wholeNumber spells a number without its fraction, which must be zero, if it fits 64 bits.
func wholeNumber(value json.RawMessage) (string, bool) {
	if !isJSONNumber(value) {
		return "", false
	}
	whole, fraction, _ := bytes.Cut(value, []byte("."))
	if strings.Trim(string(fraction), "0") != "" {
		return "", false
	}
	n, err := strconv.ParseInt(string(whole), 10, 64)
	return strconv.FormatInt(n, 10), err == nil
}
