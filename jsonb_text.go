package rea

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// special marks the bytes that a string cannot simply hold: in text that is known to be UTF-8, and in other text.
var special, specialUnchecked = func() (known, unknown [256]bool) {
	for c := range known {
		known[c] = c < ' ' || c == '"' || c == '\\'
		unknown[c] = known[c] || c >= utf8.RuneSelf
	}
	return known, unknown
}()

// text reads a string and appends it as jsonb prints it, quotes included. The result is never longer than the string.
func (n *normalizer) text() bool {
	table := &special
	if !n.valid {
		table = &specialUnchecked
	}
	src, from, i := n.src, n.pos, n.pos+1
	for {
		for i < len(src) && !table[src[i]] {
			i++
		}
		if i >= len(src) {
			n.pos = len(src)
			return n.unexpected("the closing quote")
		}
		switch c := src[i]; {
		case c == '"':
			n.out = append(n.out, src[from:i+1]...)
			n.pos = i + 1
			return true
		case c == '\\':
			n.out = append(n.out, src[from:i]...)
			n.pos, n.escapes = i, true
			if !n.escape() {
				return false
			}
			i, from = n.pos, n.pos
		case c < ' ':
			n.pos = i
			return n.bad(fmt.Sprintf("control character in a string, unescaped, at byte %d", i+1))
		default:
			r, size := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && size == 1 {
				return n.bad(fmt.Sprintf("invalid UTF-8 at byte %d", i+1))
			}
			i += size
		}
	}
}

// escape reads one escape, or a pair of surrogates, and appends the character as jsonb prints it.
func (n *normalizer) escape() bool {
	rest := n.src[n.pos:]
	if len(rest) < 2 {
		n.pos = len(n.src)
		return n.unexpected("the rest of an escape")
	}
	switch c := rest[1]; c {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		n.out = append(n.out, '\\', c)
		n.pos += 2
		return true
	case '/':
		n.out = append(n.out, '/')
		n.pos += 2
		return true
	}
	r, ok := unicodeEscape(rest)
	if !ok {
		return n.unexpected("an escape")
	}
	n.pos += 6
	switch {
	case r == 0:
		return n.bad("U+0000 in a string")
	case utf16.IsSurrogate(r):
		low, _ := unicodeEscape(rest[6:])
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return n.bad("lone surrogate in a string")
		}
		n.pos += 6
	}
	n.out = appendEscaped(n.out, r)
	return true
}

// unicodeEscape reads the \uXXXX that b begins with.
func unicodeEscape(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// shortEscapes are the characters that jsonb prints as a backslash and a letter, each followed by the letter.
const shortEscapes = "\"\"\\\\\bb\ff\nn\rr\tt"

func appendEscaped(b []byte, r rune) []byte {
	if r >= ' ' && r != '"' && r != '\\' {
		return utf8.AppendRune(b, r)
	}
	for i := 0; i < len(shortEscapes); i += 2 {
		if r == rune(shortEscapes[i]) {
			return append(b, '\\', shortEscapes[i+1])
		}
	}
	return fmt.Appendf(b, `\u%04x`, r)
}

// appendUnescaped undoes what appendEscaped wrote.
func appendUnescaped(b, text []byte) []byte {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b = append(b, text[i])
			continue
		}
		i++
		if text[i] == 'u' {
			r, _ := unicodeEscape(text[i-1:])
			b = utf8.AppendRune(b, r)
			i += 4
			continue
		}
		for k := 1; k < len(shortEscapes); k += 2 {
			if text[i] == shortEscapes[k] {
				b = append(b, shortEscapes[k-1])
				break
			}
		}
	}
	return b
}
