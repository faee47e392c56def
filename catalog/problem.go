package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/realtime-event-archive/rea"
)

// Error lists what is wrong with a file, by line. Its text is the first problem, with its line; Detail has all.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	text := "rea: catalog: " + e.Problems[0].String()
	if n := len(e.Problems) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

// Detail gives every problem, with its line and a caret under the place.
func (e *Error) Detail() string {
	var b strings.Builder
	for _, p := range e.Problems {
		b.WriteString(p.Detail())
	}
	return b.String()
}

// Problem is one thing that is wrong, or probably not meant.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1; 0: the file as a whole
	Column  int    `json:"column"` // in characters, from 1
	Message string `json:"message"`
	Source  string `json:"source"` // the line
}

// String gives "rea.yaml:7:9: message".
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// Detail gives String, and under it the line with a caret.
func (p Problem) Detail() string {
	text := p.String() + "\n"
	if p.Line == 0 {
		return text
	}
	source, column := clipLine(p.Source, p.Column)
	var under strings.Builder
	for i, c := range []rune(source) {
		switch {
		case i >= column-1:
		case c == '\t':
			under.WriteByte('\t')
		case wide(c):
			under.WriteString("  ")
		case !unicode.Is(unicode.Mn, c):
			under.WriteByte(' ')
		}
	}
	number := fmt.Sprintf("%4d", p.Line)
	return text + number + " | " + source + "\n" + strings.Repeat(" ", len(number)) + " | " + under.String() + "^\n"
}

// clipLine gives the part of a long line around a column, and the column in it.
func clipLine(line string, column int) (string, int) {
	const most, before = 120, 60
	runes := []rune(line)
	if len(runes) <= most {
		return line, column
	}
	from := max(0, min(column-before, len(runes)-most))
	return string(runes[from:min(from+most, len(runes))]), column - from
}

// wide reports whether terminals give c two columns.
func wide(c rune) bool {
	return unicode.In(c, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || 0xff01 <= c && c <= 0xff60 || 0x3000 <= c && c <= 0x303f
}

func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// failure gives the problems as an error.
func (r *reader) failure() error {
	sortProblems(r.problems)
	return &Error{Problems: r.problems}
}

// at makes a problem of a place in the text.
func (r *reader) at(m mark, message string) Problem {
	p := Problem{File: r.file, Line: m.line, Column: max(m.column, 1), Message: message}
	if r.lines == nil {
		r.lines = strings.Split(string(r.text), "\n")
	}
	if m.line >= 1 && m.line <= len(r.lines) {
		p.Source = strings.ToValidUTF8(strings.TrimSuffix(r.lines[m.line-1], "\r"), "?")
	}
	p.Column = min(p.Column, len([]rune(p.Source))+1)
	return p
}

func (r *reader) fail(m mark, format string, args ...any) {
	r.problems = append(r.problems, r.at(m, fmt.Sprintf(format, args...)))
}

// place is a key of a declaration: rea.CatalogProblem without its text.
type place struct{ aggregate, event, key string }

// locate finds the line of what rea.NewCatalog says: the key, else its event, else its type.
func (r *reader) locate(p rea.CatalogProblem) Problem {
	for _, at := range [][2]string{{p.Projection, p.Key}, {p.Projection, ""}} {
		if m, ok := r.projections[at]; ok && p.Projection != "" {
			return r.at(m, p.String())
		}
	}
	for _, at := range []place{{p.Type, p.Event, p.Key}, {p.Type, p.Event, ""}, {p.Type, "", ""}} {
		if m, ok := r.places[at]; ok {
			return r.at(m, p.String())
		}
	}
	return Problem{File: r.file, Message: p.String()}
}
