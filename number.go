package rea

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
)

var (
	errNoNumber = errors.New("the field is no number")
	errNoAmount = errors.New("the value is no number")
)

func isJSONNull(b json.RawMessage) bool { return len(b) == 0 || b[0] == 'n' }

func isJSONNumber(b json.RawMessage) bool {
	return len(b) > 0 && (b[0] == '-' || '0' <= b[0] && b[0] <= '9')
}

// AddNumbers gives a + b as PostgreSQL's numeric does: exact, with as many digits after the point as the longer
// of the two. Both are JSON numbers in normal form; a may be absent or null, which is 0.
func AddNumbers(a, b json.RawMessage) (json.RawMessage, error) {
	if isJSONNull(a) {
		a = json.RawMessage("0")
	}
	switch {
	case !isJSONNumber(a):
		return nil, errNoNumber
	case !isJSONNumber(b):
		return nil, errNoAmount
	}
	if len(a) < 18 && len(b) < 18 { // most numbers
		x, errX := strconv.ParseInt(string(a), 10, 64)
		y, errY := strconv.ParseInt(string(b), 10, 64)
		if errX == nil && errY == nil {
			return strconv.AppendInt(nil, x+y, 10), nil
		}
	}
	digits, scale, ok := sumSmall(a, b)
	if !ok {
		x, scaleX, okX := unscaled(a)
		y, scaleY, okY := unscaled(b)
		if !okX || !okY {
			return nil, errNoNumber // in no normal form
		}
		scale = max(scaleX, scaleY)
		x.Add(x.Mul(x, power(scale-scaleX)), y.Mul(y, power(scale-scaleY)))
		digits = x.Text(10)
	}
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	if scale > 0 {
		if missing := scale + 1 - len(digits); missing > 0 {
			digits = string(bytes.Repeat([]byte("0"), missing)) + digits
		}
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	return NormalizeJSON([]byte(sign+digits), "sum", 0) // a sum may be one digit too long
}

// sumSmall gives the sum as digits / 10^scale where 64 bits hold everything, which is so for most amounts.
func sumSmall(a, b json.RawMessage) (digits string, scale int, ok bool) {
	x, scaleX, okX := smallUnscaled(a)
	y, scaleY, okY := smallUnscaled(b)
	scale = max(scaleX, scaleY)
	if !okX || !okY || len(a)+scale-scaleX > 18 || len(b)+scale-scaleY > 18 {
		return "", 0, false
	}
	for ; scaleX < scale; scaleX++ {
		x *= 10
	}
	for ; scaleY < scale; scaleY++ {
		y *= 10
	}
	return strconv.FormatInt(x+y, 10), scale, true
}

func smallUnscaled(b json.RawMessage) (n int64, scale int, ok bool) {
	if len(b) > 18 {
		return 0, 0, false
	}
	var digits [18]byte
	whole, fraction, _ := bytes.Cut(b, []byte("."))
	n, err := strconv.ParseInt(string(append(append(digits[:0], whole...), fraction...)), 10, 64)
	return n, len(fraction), err == nil
}

// unscaled gives a number as n / 10^scale.
func unscaled(b json.RawMessage) (n *big.Int, scale int, ok bool) {
	whole, fraction, _ := bytes.Cut(b, []byte("."))
	digits := make([]byte, 0, len(b))
	digits = append(append(digits, whole...), fraction...)
	n, ok = new(big.Int).SetString(string(digits), 10)
	return n, len(fraction), ok
}

func power(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}
