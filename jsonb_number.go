package rea

import (
	"bytes"
	"fmt"
)

// The limits of jsonb's numeric. maxExponent is the first exponent that it does not even look at.
const (
	maxDigitsBefore = 131072 // before the decimal point, leading zeros not counted
	maxDigitsAfter  = 16383  // after it, as printed
	maxExponent     = 1<<30 - 1
)

// decimal is a number as it is spelt: digits and an exponent, no value is ever computed.
type decimal struct {
	negative bool
	whole    []byte // digits before the point; no leading zero but in "0"
	fraction []byte // digits after it
	exponent int    // within maxExponent, either way
}

// number reads a number and appends it as numeric prints it.
func (n *normalizer) number() bool {
	d, ok := n.decimal()
	if !ok {
		return n.unexpected("a digit")
	}
	before, after := d.size()
	switch {
	case d.exponent >= maxExponent || before > maxDigitsBefore:
		return n.over(maxDigitsBefore, fmt.Sprintf("has a number of more than %d digits before the decimal point", maxDigitsBefore))
	case d.exponent <= -maxExponent || after > maxDigitsAfter:
		return n.over(maxDigitsAfter, fmt.Sprintf("has a number of more than %d digits after the decimal point", maxDigitsAfter))
	case max(before, 1)+after > n.limit-len(n.out):
		return n.tooBig() // before it is written: a short text can mean very many digits
	}
	if d.negative && !d.isZero() {
		n.out = append(n.out, '-')
	}
	point := len(d.whole) + d.exponent
	if before == 0 {
		n.out = append(n.out, '0')
	}
	n.out = d.appendDigits(n.out, point-before, point)
	if after > 0 {
		n.out = append(n.out, '.')
		n.out = d.appendDigits(n.out, point, point+after)
	}
	return true
}

// decimal reads the number at pos; where it is none, pos is left at the byte that should be a digit.
func (n *normalizer) decimal() (d decimal, ok bool) {
	if n.src[n.pos] == '-' {
		d.negative = true
		n.pos++
	}
	if d.whole = n.digits(); len(d.whole) == 0 {
		return d, false
	}
	if d.whole[0] == '0' && len(d.whole) > 1 {
		n.pos -= len(d.whole) - 1 // JSON has no leading zeros
		d.whole = d.whole[:1]
	}
	if n.skip('.') {
		if d.fraction = n.digits(); len(d.fraction) == 0 {
			return d, false
		}
	}
	if !n.skip('e') && !n.skip('E') {
		return d, true
	}
	negative := n.skip('-')
	if !negative {
		n.skip('+')
	}
	digits := n.digits()
	for _, c := range digits {
		d.exponent = min(d.exponent*10+int(c-'0'), maxExponent)
	}
	if negative {
		d.exponent = -d.exponent
	}
	return d, len(digits) > 0
}

func (n *normalizer) digits() []byte {
	from := n.pos
	for n.pos < len(n.src) && '0' <= n.src[n.pos] && n.src[n.pos] <= '9' {
		n.pos++
	}
	return n.src[from:n.pos]
}

func (n *normalizer) skip(c byte) bool {
	if n.pos < len(n.src) && n.src[n.pos] == c {
		n.pos++
		return true
	}
	return false
}

// size gives the number of digits that are printed before and after the decimal point; before is 0 where
// a single zero stands there.
func (d decimal) size() (before, after int) {
	after = max(0, len(d.fraction)-d.exponent)
	if d.whole[0] != '0' {
		return max(0, len(d.whole)+d.exponent), after
	}
	if d.exponent <= 0 {
		return 0, after
	}
	zeros := len(d.fraction) - len(bytes.TrimLeft(d.fraction, "0"))
	if zeros == len(d.fraction) {
		return 0, after
	}
	return max(0, d.exponent-zeros), after
}

func (d decimal) isZero() bool {
	return d.whole[0] == '0' && len(bytes.TrimLeft(d.fraction, "0")) == 0
}

// appendDigits appends the digits from..to, counted from the first of whole; around the spelt ones are zeros.
func (d decimal) appendDigits(b []byte, from, to int) []byte {
	whole, spelt := len(d.whole), len(d.whole)+len(d.fraction)
	b = appendZeros(b, min(to, 0)-from)
	b = appendRange(b, d.whole, from, to)
	b = appendRange(b, d.fraction, from-whole, to-whole)
	return appendZeros(b, to-max(from, spelt))
}

func appendRange(b, digits []byte, from, to int) []byte {
	from, to = max(from, 0), min(to, len(digits))
	if from >= to {
		return b
	}
	return append(b, digits[from:to]...)
}

func appendZeros(b []byte, count int) []byte {
	const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
	for ; count > len(zeros); count -= len(zeros) {
		b = append(b, zeros...)
	}
	return append(b, zeros[:max(count, 0)]...)
}

// EqualJSON reports whether two texts in normal form are equal as jsonb's = has it: numbers by value (1.0 and
// 1.00 are equal), everything else byte by byte, arrays in order. It is exact, and makes no sense of other texts.
func EqualJSON(a, b []byte) bool {
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0]; {
		case c == '"':
			end := stringEnd(a)
			if len(b) < end || !bytes.Equal(a[:end], b[:end]) {
				return false
			}
			a, b = a[end:], b[end:]
		case '0' <= c && c <= '9':
			i, j := numberEnd(a), numberEnd(b)
			if !bytes.Equal(trimFraction(a[:i]), trimFraction(b[:j])) {
				return false
			}
			a, b = a[i:], b[j:]
		case c != b[0]:
			return false
		default:
			a, b = a[1:], b[1:]
		}
	}
	return len(a) == len(b)
}

// stringEnd gives the length of the string that b begins with.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// numberEnd gives the length of the number without a sign that b begins with.
func numberEnd(b []byte) int {
	for i, c := range b {
		if c != '.' && (c < '0' || c > '9') {
			return i
		}
	}
	return len(b)
}

// trimFraction cuts the zeros that do not count from a number in normal form.
func trimFraction(number []byte) []byte {
	if bytes.IndexByte(number, '.') < 0 {
		return number
	}
	return bytes.TrimRight(bytes.TrimRight(number, "0"), ".")
}
