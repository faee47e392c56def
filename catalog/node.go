package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	maxLine    = 10_000 // bytes; with maxNesting it bounds how deep the parser goes
	maxNesting = 100

	tooLarge = "is larger than 1 MiB: a catalog is written by hand"
)

// reader reads one file. It goes on after a problem, to find them all.
type reader struct {
	file     string
	text     []byte
	lines    []string
	problems []Problem
	warnings []Problem
	places   map[place]mark

	projections map[[2]string]mark // by name of the projection, and key or column of it
}

// mark is a place in the text.
type mark struct{ line, column int }

func markOf(t *token.Token) mark {
	if t == nil || t.Position == nil {
		return mark{line: 1, column: 1}
	}
	return mark{t.Position.Line, t.Position.Column}
}

// parse gives the one document of the text; nil: there is a problem, or nothing.
func (r *reader) parse() ast.Node {
	if !r.readable() {
		return nil
	}
	file, err := parseYAML(r.text)
	var syntax *yaml.SyntaxError
	switch {
	case errors.As(err, &syntax):
		r.fail(markOf(syntax.GetToken()), "%s", syntax.GetMessage())
		return nil
	case err != nil:
		r.problems = append(r.problems, Problem{File: r.file, Message: "is no YAML: " + err.Error()})
		return nil
	}
	if len(file.Docs) > 1 {
		r.fail(markOf(file.Docs[1].Start), "a second document: a catalog is one")
		return nil
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		r.fail(mark{1, 1}, "is empty: it begins with rea: 1")
		return nil
	}
	return file.Docs[0].Body
}

// readable refuses what no person writes, before a parser that recurses reads it.
func (r *reader) readable() bool {
	if len(r.text) > MaxBytes {
		r.problems = append(r.problems, Problem{File: r.file, Message: tooLarge})
		return false
	}
	nesting := 0
	for n, line := range bytes.Split(r.text, []byte("\n")) {
		if !utf8.Valid(line) {
			r.fail(mark{n + 1, 1}, "the line is not valid UTF-8")
			return false
		}
		if len(line) > maxLine {
			r.fail(mark{n + 1, maxLine}, "the line is longer than %d bytes", maxLine)
			return false
		}
		nesting += bytes.Count(line, []byte("[")) + bytes.Count(line, []byte("{")) - bytes.Count(line, []byte("]")) - bytes.Count(line, []byte("}"))
		if nesting = max(nesting, 0); nesting > maxNesting {
			r.fail(mark{n + 1, 1}, "more than %d brackets are open", maxNesting)
			return false
		}
	}
	return true
}

// parseYAML turns a panic of the parser into an error.
func parseYAML(text []byte) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, fmt.Errorf("the parser gives up: %v", p)
		}
	}()
	// Keys that stand twice are found by mapping, all of them and with a message of ours.
	return parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
}

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	at    mark
	value ast.Node
}

// mapping gives the entries of n, in order; what names n in messages. It refuses everything that is no
// mapping, and keys that stand twice.
func (r *reader) mapping(n ast.Node, at mark, what string) []entry {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		r.fail(markAt(n, at), "%s is a mapping, not %s", what, kindOf(n))
		return nil
	}
	entries := make([]entry, 0, len(values))
	seen := make(map[string]mark, len(values))
	for _, v := range values {
		key, ok := v.Key.(ast.Node)
		text, scalar := keyText(key)
		if !ok || !scalar {
			r.fail(markAt(key, at), "%s has a key that is no name", what)
			continue
		}
		m := markOf(key.GetToken())
		if first, ok := seen[text]; ok {
			r.fail(m, "%s stands twice, first in line %d", text, first.line)
			continue
		}
		seen[text] = m
		entries = append(entries, entry{key: text, at: m, value: v.Value})
	}
	return entries
}

// optional is mapping for a declaration that may say nothing: a name with nothing behind it.
func (r *reader) optional(n ast.Node, at mark, what string) []entry {
	if _, nothing := n.(*ast.NullNode); nothing {
		return nil
	}
	return r.mapping(n, at, what)
}

func keyText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// markAt is where n begins; an empty value has no place of its own, and is shown at its key.
func markAt(n ast.Node, key mark) mark {
	if n == nil {
		return key
	}
	switch n := n.(type) {
	case *ast.NullNode:
		if t := n.GetToken(); t.Origin == "" || t.Type == token.ImplicitNullType {
			return key
		}
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return markOf(n.Values[0].Key.GetToken())
		}
	case *ast.MappingValueNode:
		return markOf(n.Key.GetToken())
	case *ast.LiteralNode:
		return markOf(n.Start)
	}
	return markOf(n.GetToken())
}

// kindOf says what n is, for messages.
func kindOf(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.IntegerNode, *ast.FloatNode:
		return "a number"
	case *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value
	case *ast.BoolNode:
		return "a truth value"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor of YAML (write the value out)"
	case *ast.TagNode:
		return "a tag of YAML (write the value without " + n.GetToken().Value + ")"
	}
	return "something else"
}

// name reads a text that names something. A number or a truth value is one too, as it is spelt.
func (r *reader) name(n ast.Node, at mark, what string) (string, bool) {
	text, ok := keyText(n)
	if !ok || text == "" {
		r.fail(markAt(n, at), "%s is a name, not %s", what, emptyOr(n))
		return "", false
	}
	return text, true
}

func emptyOr(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok && s.Value == "" {
		return "an empty text"
	}
	return kindOf(n)
}

// names reads one name or a list of them.
func (r *reader) names(n ast.Node, at mark, what string) (list []named) {
	values := []ast.Node{n}
	if s, ok := n.(*ast.SequenceNode); ok {
		if values = s.Values; len(values) == 0 {
			r.fail(markAt(n, at), "%s is an empty list: leave it out", what)
		}
	}
	for _, v := range values {
		if text, ok := r.name(v, at, what); ok {
			list = append(list, named{text, markAt(v, at)})
		}
	}
	return list
}

type named struct {
	text string
	at   mark
}

func (r *reader) truth(n ast.Node, at mark, what string) bool {
	b, ok := n.(*ast.BoolNode)
	if !ok {
		r.fail(markAt(n, at), "%s is true or false, not %s", what, kindOf(n))
		return false
	}
	return b.Value
}

// count reads a number from 1.
func (r *reader) count(n ast.Node, at mark, what string) int {
	if i, ok := n.(*ast.IntegerNode); ok {
		if v, ok := wholeNumber(i.GetToken().Value); ok {
			return v
		}
	}
	r.fail(markAt(n, at), "%s is a number from 1, such as 2", what)
	return 0
}

// wholeNumber reads 1 to 999999999, spelt in the plainest way.
func wholeNumber(s string) (n int, ok bool) {
	if s == "" || len(s) > 9 || s[0] == '0' {
		return 0, false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// unknown refuses a key, and names the one that was probably meant.
func (r *reader) unknown(e entry, what string, keys ...string) {
	for _, k := range keys {
		if similar(e.key, k) {
			r.fail(e.at, "%s has no key %s: is %s meant?", what, e.key, k)
			return
		}
	}
	r.fail(e.at, "%s has no key %s: there are %s", what, e.key, strings.Join(keys, ", "))
}

// similar reports whether one character more, less or other, or two that change places, make b of a.
func similar(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) == len(b) {
		return i == len(a) || a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	}
	return len(b) == len(a)+1 && a[i:] == b[i+1:]
}
