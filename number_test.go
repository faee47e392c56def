package rea_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/realtime-event-archive/rea"
)

func TestSumsAreExact(t *testing.T) {
	t.Parallel()
	number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?`)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) json.RawMessage {
			n, err := rea.NormalizeJSON([]byte(number.Draw(t, name)), name, 0)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		a, b := draw("a"), draw("b")
		sum, err := rea.AddNumbers(a, b)
		if err != nil {
			t.Fatal(err)
		}
		rational := func(n json.RawMessage) *big.Rat {
			r, ok := new(big.Rat).SetString(string(n))
			if !ok {
				t.Fatalf("%s is no number", n)
			}
			return r
		}
		if want := new(big.Rat).Add(rational(a), rational(b)); rational(sum).Cmp(want) != 0 {
			t.Fatalf("%s + %s = %s, want %s", a, b, sum, want.FloatString(25))
		}
		if got, want := scale(sum), max(scale(a), scale(b)); got != want {
			t.Fatalf("%s + %s = %s has %d digits after the point, want %d", a, b, sum, got, want)
		}
		if n, err := rea.NormalizeJSON(sum, "sum", 0); err != nil || string(n) != string(sum) {
			t.Fatalf("%s is not in normal form", sum)
		}
		if other, err := rea.AddNumbers(b, a); err != nil || string(other) != string(sum) {
			t.Fatalf("%s + %s = %s, the other way round %s", a, b, sum, other)
		}
	})
}

func scale(n json.RawMessage) int {
	_, fraction, _ := strings.Cut(string(n), ".")
	return len(fraction)
}
