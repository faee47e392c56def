package catalog

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/realtime-event-archive/rea"
)

// normal gives a value that JSON can hold in normal form.
func normal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // no value of ours
	}
	n, err := rea.NormalizeJSON(b, "value", 0)
	if err != nil {
		return json.RawMessage("null") // the store holds texts that jsonb can hold
	}
	return n
}

// payloadAlone says that a value cannot be an attribute: an upcaster sees the payload and nothing else.
const payloadAlone = true

var step = regexp.MustCompile(`^[^.\[\]*"'$@\s]+$`)

// value reads $.path, @attribute, or a literal.
func (r *reader) value(n ast.Node, at mark, payloadOnly bool) (v rea.Operand, ok bool) {
	if s, isText := n.(*ast.StringNode); isText {
		m := markAt(n, at)
		switch {
		case strings.HasPrefix(s.Value, "$$"), strings.HasPrefix(s.Value, "@@"): // a literal
		case strings.HasPrefix(s.Value, "$"):
			return r.path(s.Value, m)
		case strings.HasPrefix(s.Value, "@") && payloadOnly:
			r.fail(m, "%s: here the payload alone is seen, not the event", s.Value)
			return v, false
		case strings.HasPrefix(s.Value, "@"):
			if !slices.Contains(rea.Attributes(), s.Value) {
				r.fail(m, "%s is no attribute of an event: there are %s; a text that begins with @ is written @@", s.Value, strings.Join(rea.Attributes(), ", "))
				return v, false
			}
			v.Attribute = s.Value
			return v, true
		}
	}
	var b bytes.Buffer
	if !r.literal(&b, n, at) {
		return v, false
	}
	normalized, err := rea.NormalizeJSON(b.Bytes(), "literal", 0)
	if err != nil {
		r.fail(markAt(n, at), "%s", strings.TrimPrefix(err.Error(), "rea: "))
		return v, false
	}
	v.Literal = normalized
	return v, true
}

func (r *reader) path(text string, m mark) (v rea.Operand, ok bool) {
	v.Path = []string{}
	if text == "$" {
		return v, true
	}
	rest, ok := strings.CutPrefix(text, "$.")
	steps := strings.Split(rest, ".")
	for _, s := range steps {
		ok = ok && step.MatchString(s)
	}
	if !ok {
		r.fail(m, "%s is no path: $.amount, $.customer.name, or $ for the whole payload; a text that begins with $ is written $$", text)
		return v, false
	}
	v.Path = steps
	return v, true
}

var (
	jsonNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	roughNumber = regexp.MustCompile(`^[-+]?\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?$`)
)

// literal writes n as JSON. Numbers keep their digits: it is the token that counts, not what a parser makes of it.
func (r *reader) literal(b *bytes.Buffer, n ast.Node, at mark) bool {
	m := markAt(n, at)
	switch n := n.(type) {
	case nil, *ast.NullNode:
		b.WriteString("null")
	case *ast.BoolNode:
		b.WriteString(strconv.FormatBool(n.Value))
	case *ast.IntegerNode, *ast.FloatNode:
		return r.number(b, n.GetToken().Value, m)
	case *ast.LiteralNode:
		return r.quote(b, n.Value.Value, m)
	case *ast.StringNode:
		if t := n.GetToken(); t.Type == token.StringType && roughNumber.MatchString(n.Value) { // 1e3 is a text to the parser
			return r.number(b, n.Value, m)
		}
		if s := n.Value; strings.HasPrefix(s, "$$") || strings.HasPrefix(s, "@@") {
			return r.quote(b, s[1:], m)
		} else if strings.HasPrefix(s, "$") || strings.HasPrefix(s, "@") {
			r.fail(m, "%s stands within a list or a mapping, which are taken as they are: a text that begins so is written %c%s", s, s[0], s)
			return false
		}
		return r.quote(b, n.Value, m)
	case *ast.SequenceNode:
		b.WriteByte('[')
		for i, v := range n.Values {
			if i > 0 {
				b.WriteByte(',')
			}
			if !r.literal(b, v, m) {
				return false
			}
		}
		b.WriteByte(']')
	case *ast.MappingNode, *ast.MappingValueNode:
		problems := len(r.problems)
		b.WriteByte('{')
		for i, e := range r.mapping(n, m, "a literal") {
			if i > 0 {
				b.WriteByte(',')
			}
			if !r.quote(b, e.key, e.at) {
				return false
			}
			b.WriteByte(':')
			if !r.literal(b, e.value, e.at) {
				return false
			}
		}
		b.WriteByte('}')
		return len(r.problems) == problems
	default:
		r.fail(m, "a value is a text, a number, true, false, null, a list or a mapping, not %s", kindOf(n))
		return false
	}
	return true
}

func (r *reader) number(b *bytes.Buffer, text string, m mark) bool {
	if !jsonNumber.MatchString(text) {
		r.fail(m, "%s is no number as JSON writes them (10, -0.5, 1e3): write it so, or quote it to have a text", text)
		return false
	}
	b.WriteString(text)
	return true
}

func (r *reader) quote(b *bytes.Buffer, s string, m mark) bool {
	quoted, err := json.Marshal(s)
	if err != nil {
		r.fail(m, "%v", err)
		return false
	}
	b.Write(quoted)
	return true
}
