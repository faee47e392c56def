package rea

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// The limits of JSON, the same on both stores.
const (
	MaxPayloadBytes = 16 << 20 // of a payload, in jsonb's text form
	MaxDepth        = 900      // of objects and arrays within one another; the outermost counts 1
)

// textFactor bounds the text that is read at all, as a multiple of the limit in normal form: white space
// and \u0041 escapes make a text longer than its normal form.
const textFactor = 8

// NormalizeJSON checks a JSON text and returns its normal form: byte for byte the text that PostgreSQL's
// jsonb prints. Keys are sorted by length, then by bytes; numbers are written out (1e2 is 100, -0 is 0, 0.10
// stays) and never pass through a float. what names the text in errors ("payload"); limit bounds the normal
// form in bytes, 0 and more than MaxPayloadBytes mean MaxPayloadBytes.
//
// What jsonb could not give back is a *PayloadError with its path: text that is no JSON, invalid UTF-8,
// U+0000, lone surrogates, duplicate keys. More than limit or MaxDepth, a text of more than eight times limit,
// and a number outside of numeric are a *LimitError. A text in normal form is returned as it is, sharing b's memory.
func NormalizeJSON(b []byte, what string, limit int) (json.RawMessage, error) {
	return normalize(b, what, limit, false)
}

// NormalizeObject is NormalizeJSON for a text that must be a JSON object, as payload and metadata are.
func NormalizeObject(b []byte, what string, limit int) (json.RawMessage, error) {
	return normalize(b, what, limit, true)
}

func normalize(b []byte, what string, limit int, object bool) (json.RawMessage, error) {
	if limit <= 0 || limit > MaxPayloadBytes {
		limit = MaxPayloadBytes // offsets are int32
	}
	if len(b) > textFactor*limit {
		return nil, &LimitError{What: what, Limit: int64(limit), Problem: fmt.Sprintf(
			"is a text of %d bytes: the limit is %d in normal form, and %d for the text", len(b), limit, textFactor*limit)}
	}
	n := normalizers.Get().(*normalizer)
	defer n.free()
	n.src, n.what, n.limit, n.valid = b, what, limit, utf8.Valid(b)
	if object && n.next() != '{' && n.pos < len(b) {
		n.bad("must be an object")
	} else if n.value(0) {
		if n.next(); n.pos == len(b) {
			return n.result(), nil
		}
		n.unexpected("the end")
	}
	return nil, n.failure()
}

// normalizer reads src and appends its normal form to out, with the members of objects in the order of
// src. Only where that order is wrong, it is put right at the end, in one pass over the text: moving
// members when their object ends would move the innermost ones up to MaxDepth times.
type normalizer struct {
	src   []byte
	pos   int
	what  string
	limit int
	valid bool // src is valid UTF-8 throughout

	escapes bool // in the key that was read last

	out      []byte
	unquoted []byte    // keys of open objects that are printed with escapes, without them
	members  []member  // of open objects
	moved    []reorder // objects that are out of order
	sorted   []member  // their members, in order
	final    []byte    // out in order

	problem error
	path    []string // to the problem, innermost step first
}

// member is one member of an object: its text is out[start:end], its key [keyStart:keyEnd] of out or of unquoted.
type member struct {
	start, end, keyStart, keyEnd int32
	escaped                      bool
}

// reorder says that out[start:end], the inside of an object, is to be sorted[first:first+count]; the
// next `inner` elements of moved, once they are sorted by start, lie within it.
type reorder struct {
	start, end, first, count, inner int32
}

var normalizers = sync.Pool{New: func() any { return new(normalizer) }}

// free gives n back for the next call, unless a large text made it large.
func (n *normalizer) free() {
	const keep = 1 << 20
	if cap(n.out)+cap(n.final)+cap(n.unquoted) > keep || cap(n.members)+cap(n.sorted)+cap(n.moved) > keep/16 {
		return
	}
	*n = normalizer{
		out: n.out[:0], unquoted: n.unquoted[:0], members: n.members[:0],
		moved: n.moved[:0], sorted: n.sorted[:0], final: n.final[:0],
	}
	normalizers.Put(n)
}

// value reads one value that lies in depth containers. Like all that follow, it returns false after it has set problem.
func (n *normalizer) value(depth int) bool {
	ok := false
	switch c := n.next(); c {
	case '"':
		ok = n.text()
	case '{':
		ok = n.object(depth + 1)
	case '[':
		ok = n.array(depth + 1)
	case 't':
		ok = n.literal("true")
	case 'f':
		ok = n.literal("false")
	case 'n':
		ok = n.literal("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		ok = n.number()
	default:
		return n.unexpected("a value")
	}
	return ok && (len(n.out) <= n.limit || n.tooBig())
}

// next skips white space and gives the byte that follows, 0 at the end.
func (n *normalizer) next() byte {
	for n.pos < len(n.src) {
		switch c := n.src[n.pos]; c {
		case ' ', '\t', '\n', '\r':
			n.pos++
		default:
			return c
		}
	}
	return 0
}

func (n *normalizer) literal(word string) bool {
	if !bytes.HasPrefix(n.src[n.pos:], []byte(word)) {
		return n.unexpected("a value")
	}
	n.pos += len(word)
	n.out = append(n.out, word...)
	return true
}

func (n *normalizer) array(depth int) bool {
	if depth > MaxDepth {
		return n.tooDeep()
	}
	n.pos++
	n.out = append(n.out, '[')
	if n.next() == ']' {
		n.pos++
		n.out = append(n.out, ']')
		return true
	}
	for i := 0; ; i++ {
		if !n.value(depth) {
			n.path = append(n.path, "["+strconv.Itoa(i)+"]")
			return false
		}
		switch n.next() {
		case ',':
			n.out = append(n.out, ", "...)
		case ']':
			n.pos++
			n.out = append(n.out, ']')
			return true
		default:
			return n.unexpected("',' or ']'")
		}
		n.pos++
	}
}

func (n *normalizer) object(depth int) bool {
	if depth > MaxDepth {
		return n.tooDeep()
	}
	n.pos++
	n.out = append(n.out, '{')
	if n.next() == '}' {
		n.pos++
		n.out = append(n.out, '}')
		return true
	}
	first, moved, unquoted := len(n.members), len(n.moved), len(n.unquoted)
	start, ordered := len(n.out), true
	for {
		m, ok := n.key()
		if !ok {
			return false
		}
		if !n.value(depth) {
			n.path = append(n.path, step(n.keyOf(m)))
			return false
		}
		m.end = int32(len(n.out))
		if ordered && len(n.members) > first {
			ordered = n.compare(n.members[len(n.members)-1], m) < 0
		}
		n.members = append(n.members, m)
		if c := n.next(); c == '}' {
			break
		} else if c != ',' {
			return n.unexpected("',' or '}'")
		}
		n.pos++
		n.out = append(n.out, ", "...)
	}
	if !ordered && !n.reorder(start, first, moved) {
		return false
	}
	n.members, n.unquoted = n.members[:first], n.unquoted[:unquoted]
	n.pos++
	n.out = append(n.out, '}')
	return true
}

// key reads a member's key and the colon.
func (n *normalizer) key() (m member, ok bool) {
	if n.next() != '"' {
		return m, n.unexpected("a key")
	}
	start := len(n.out)
	n.escapes = false
	if !n.text() {
		return m, false
	}
	m = member{start: int32(start), keyStart: int32(start + 1), keyEnd: int32(len(n.out) - 1)}
	if n.escapes {
		m.escaped, m.keyStart = true, int32(len(n.unquoted))
		n.unquoted = appendUnescaped(n.unquoted, n.out[start+1:len(n.out)-1])
		m.keyEnd = int32(len(n.unquoted))
	}
	if n.next() != ':' {
		return m, n.unexpected("':'")
	}
	n.pos++
	n.out = append(n.out, ": "...)
	return m, true
}

func (n *normalizer) keyOf(m member) []byte {
	if m.escaped {
		return n.unquoted[m.keyStart:m.keyEnd]
	}
	return n.out[m.keyStart:m.keyEnd]
}

// compare orders keys as jsonb does.
func (n *normalizer) compare(a, b member) int {
	if c := (a.keyEnd - a.keyStart) - (b.keyEnd - b.keyStart); c != 0 {
		return int(c)
	}
	return bytes.Compare(n.keyOf(a), n.keyOf(b))
}

// reorder sorts the members of the object that ends here and began at start, and notes their order; it
// finds duplicate keys, which are never in strict order.
func (n *normalizer) reorder(start, first, moved int) bool {
	members := n.members[first:]
	slices.SortFunc(members, n.compare)
	for i, m := range members[1:] {
		if n.compare(members[i], m) == 0 {
			n.bad("duplicate key")
			n.path = append(n.path, step(n.keyOf(m)))
			return false
		}
	}
	n.moved = append(n.moved, reorder{
		start: int32(start), end: int32(len(n.out)), first: int32(len(n.sorted)),
		count: int32(len(members)), inner: int32(len(n.moved) - moved),
	})
	n.sorted = append(n.sorted, members...)
	return true
}

// result gives the normal form in memory of its own, or src if that is the normal form.
func (n *normalizer) result() json.RawMessage {
	if len(n.moved) == 0 {
		if bytes.Equal(n.out, n.src) {
			return n.src[:len(n.src):len(n.src)]
		}
		return bytes.Clone(n.out)
	}
	slices.SortFunc(n.moved, func(a, b reorder) int { return int(a.start - b.start) })
	n.arrange(0, int32(len(n.out)), n.moved)
	return bytes.Clone(n.final)
}

// arrange appends out[start:end] to final, with the objects of moved in it put in order.
func (n *normalizer) arrange(start, end int32, moved []reorder) {
	for len(moved) > 0 && moved[0].start < end {
		r := moved[0]
		inner := moved[1 : 1+r.inner]
		n.final = append(n.final, n.out[start:r.start]...)
		for i, m := range n.sorted[r.first : r.first+r.count] {
			if i > 0 {
				n.final = append(n.final, ", "...)
			}
			from, _ := slices.BinarySearchFunc(inner, m.start, func(r reorder, at int32) int { return int(r.start - at) })
			n.arrange(m.start, m.end, inner[from:])
		}
		start, moved = r.end, moved[1+r.inner:]
	}
	n.final = append(n.final, n.out[start:end]...)
}

// bad notes what cannot be stored; the path is added on the way out.
func (n *normalizer) bad(problem string) bool {
	if n.what != "payload" {
		problem += " (in the " + n.what + ")"
	}
	n.problem = &PayloadError{Problem: problem}
	return false
}

func (n *normalizer) unexpected(wanted string) bool {
	if n.pos >= len(n.src) {
		return n.bad("the text ends where " + wanted + " should be")
	}
	return n.bad(fmt.Sprintf("syntax error at byte %d, where %s should be", n.pos+1, wanted))
}

func (n *normalizer) over(limit int, problem string) bool {
	n.problem = &LimitError{What: n.what, Limit: int64(limit), Problem: problem}
	return false
}

func (n *normalizer) tooBig() bool {
	return n.over(n.limit, fmt.Sprintf("is more than %d bytes long in normal form", n.limit))
}

func (n *normalizer) tooDeep() bool {
	return n.over(MaxDepth, fmt.Sprintf("is nested more than %d deep", MaxDepth))
}

// failure gives the problem with its path; of a long path, the two ends.
func (n *normalizer) failure() error {
	const ends = 10
	if skip := len(n.path) - 2*ends; skip > 0 {
		n.path = slices.Replace(n.path, ends, ends+skip, "...")
	}
	slices.Reverse(n.path)
	path := "$" + strings.Join(n.path, "")
	switch e := n.problem.(type) {
	case *PayloadError:
		e.Path = path
	case *LimitError:
		e.Path = path
	}
	return n.problem
}

// step gives the part of a path that a key is: .name or ."odd name".
func step(key []byte) string {
	name := clip(string(key[:min(len(key), 64)]))
	for i := range len(name) {
		c := name[i] | 0x20
		if !('a' <= c && c <= 'z' || name[i] == '_' || i > 0 && '0' <= name[i] && name[i] <= '9') {
			return "." + strconv.Quote(name)
		}
	}
	if name == "" {
		return `.""`
	}
	return "." + name
}
