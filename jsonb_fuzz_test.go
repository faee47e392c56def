package rea

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// FuzzNormalizeJSON holds what is true of every text: no panic; what is accepted is JSON, within the
// limit, and its own normal form; what encoding/json refuses is refused; the errors are typed and short.
func FuzzNormalizeJSON(f *testing.F) {
	for _, text := range []string{
		`{"b":1,"a":[1e2,-0.00,{"y":"\u00e9\ud83d\ude00","x":null}]}`, `{"a": 1, "a": 2}`, `[1e400, 1e-400]`, `"\u0000"`, `"\ud800"`,
		"{\"\\n\\n\":1,\"aaa\":{\"\\u0001\":[true,false]}}", "\"\xff\"", ` [ ] `, `-`, `01`, `1e999999999`, `0e999999999`, `{"a":`, "\ufeff1",
		`{"b":{"d":1,"c":{"f":1,"e":2}},"a":[{"h":1,"g":2}]}`, strings.Repeat("[", 1000), strings.Repeat(`{"a":`, 901), `[1e900,1e900]`,
	} {
		f.Add([]byte(text))
	}
	const limit = 2000
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		got, err := NormalizeJSON(text, "payload", limit)
		if !bytes.Equal(text, before) {
			t.Fatalf("%q was changed to %q", before, text)
		}
		object, objectErr := NormalizeObject(text, "payload", limit)
		if err != nil {
			if !errors.Is(err, ErrBadPayload) && !errors.Is(err, ErrLimit) || objectErr == nil {
				t.Fatalf("%q: %v, as an object %v", text, err, objectErr)
			}
			if message := err.Error(); len(message) > 300 || !utf8.ValidString(message) {
				t.Fatalf("%q: message of %d bytes: %q", text, len(message), message)
			}
			return
		}
		if isObject := got[0] == '{'; isObject != (objectErr == nil) || isObject && !bytes.Equal(got, object) {
			t.Fatalf("%q gives %q, as an object %q, %v", text, got, object, objectErr)
		}
		if len(got) > limit || !json.Valid(text) || !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("%q gives %q", text, got)
		}
		again, err := NormalizeJSON(got, "payload", limit)
		if err != nil || !bytes.Equal(got, again) || !EqualJSON(got, again) {
			t.Fatalf("%q gives %q and that %q, %v", text, got, again, err)
		}
	})
}

// FuzzEqualJSON holds that no two texts, in normal form or not, make EqualJSON panic, and that it is symmetric.
func FuzzEqualJSON(f *testing.F) {
	f.Add([]byte(`{"a": 1.0}`), []byte(`{"a": 1.00}`))
	f.Add([]byte(`["\"`), []byte(`["\\"`))
	f.Add([]byte(`0.`), []byte(`0`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		ab, ba := EqualJSON(a, b), EqualJSON(b, a)
		if json.Valid(a) && json.Valid(b) && ab != ba {
			t.Fatalf("%q, %q: %v one way, %v the other", a, b, ab, ba)
		}
		if !EqualJSON(a, a) {
			t.Fatalf("%q does not equal itself", a)
		}
	})
}

// BenchmarkNormalizeJSON: go test -run - -bench NormalizeJSON -benchmem .
func BenchmarkNormalizeJSON(b *testing.B) {
	small := `{"order_id":10086,"customer":"Zhang San","cents":9980,"currency":"CNY","paid":true,"tags":["a","b"]}`
	items := make([]string, 92)
	for i := range items {
		items[i] = fmt.Sprintf(`{"sku":"SKU-%05d","title":"A thing, number %d, for the house","quantity":%d,"price":%d.%02d,"gift":false}`, i, i, i%7, i*13, i%100)
	}
	large := `{"order_id":10086,"items":[` + strings.Join(items, ",") + `],"note":"` + strings.Repeat(`line\n`, 50) + `"}`
	for _, c := range []struct{ name, text string }{{"100B", small}, {"10KB", large}} {
		normal, err := NormalizeJSON([]byte(c.text), "payload", 0)
		if err != nil {
			b.Fatal(err)
		}
		compact := strings.NewReplacer(`": `, `":`, `, "`, `,"`).Replace(string(normal))
		for _, form := range []struct {
			name string
			text []byte
		}{{"normal", normal}, {"compact", []byte(compact)}, {"unsorted", []byte(c.text)}} {
			b.Run(c.name+"/"+form.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(form.text)))
				for b.Loop() {
					if _, err := NormalizeJSON(form.text, "payload", 0); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// drawValue draws a JSON value of strings, map[string]any, []any and json.Number in the spelling of jsonb.
func drawValue(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]any{nil, true, false}).Draw(t, "word")
	case 1:
		return drawText(t)
	case 2, 3:
		return json.Number(rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,3})?`).Draw(t, "number"))
	case 4:
		list := make([]any, rapid.IntRange(0, 4).Draw(t, "length"))
		for i := range list {
			list[i] = drawValue(t, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 5).Draw(t, "members") {
		object[drawText(t)] = drawValue(t, depth-1)
	}
	return object
}

func drawText(t *rapid.T) string {
	return strings.ReplaceAll(rapid.StringOfN(rapid.OneOf(
		rapid.SampledFrom([]rune("ab\"\\/\b\f\n\r\t\x01\x1f\x7f é\u2028\U0001F600")), rapid.Rune()), 0, 4, -1).Draw(t, "text"), "\x00", "0")
}

// spell writes value in one of its many spellings.
func spell(t *rapid.T, value any) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r"}).Draw(t, "space") }
	var b strings.Builder
	switch v := value.(type) {
	case json.Number:
		return space() + spellNumber(t, string(v)) + space()
	case string:
		b.WriteString(space() + `"`)
		for _, r := range v {
			switch {
			case rapid.Bool().Draw(t, "escaped") || r < ' ' || r == '"' || r == '\\':
				if r > 0xffff {
					fmt.Fprintf(&b, `\u%04X\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
				} else {
					fmt.Fprintf(&b, `\u%04x`, r)
				}
			default:
				b.WriteRune(r)
			}
		}
		b.WriteString(`"` + space())
	case []any:
		b.WriteString(space() + "[" + space())
		for i, item := range v {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(spell(t, item))
		}
		b.WriteString("]" + space())
	case map[string]any:
		b.WriteString(space() + "{" + space())
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		for i, key := range rapid.Permutation(keys).Draw(t, "order") {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(spell(t, key) + ":" + spell(t, v[key]))
		}
		b.WriteString("}" + space())
	default:
		return space() + fmt.Sprint(map[any]string{nil: "null", true: "true", false: "false"}[v]) + space()
	}
	return b.String()
}

// spellNumber moves the point of a number in jsonb's spelling by an exponent that keeps its digits.
func spellNumber(t *rapid.T, number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	if strings.Trim(number, "-0.") == "" {
		sign = rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign")
	}
	shift := rapid.IntRange(0, len(fraction)+5).Draw(t, "shift")
	e := rapid.SampledFrom([]string{"e", "E"}).Draw(t, "e")
	if shift == 0 {
		return sign + strings.TrimPrefix(number, "-")
	}
	if shift <= len(fraction) { // 1.25 is 125e-2
		digits := strings.TrimLeft(whole+fraction[:shift], "0")
		if digits == "" {
			digits = "0"
		}
		if rest := fraction[shift:]; rest != "" {
			digits += "." + rest
		}
		return sign + digits + e + "-" + strconv.Itoa(shift)
	}
	shift -= len(fraction) // 1.25 is 0.0125e2
	return sign + "0." + strings.Repeat("0", shift) + whole + fraction + e + strconv.Itoa(len(whole)+shift)
}

// decode gives the meaning of a text by another parser, as a string that can be compared.
func decode(t interface{ Fatalf(string, ...any) }, text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return meaning(value)
}

func meaning(value any) string {
	switch v := value.(type) {
	case json.Number:
		exact, _ := new(big.Rat).SetString(string(v))
		return exact.String()
	case []any:
		text := "["
		for _, item := range v {
			text += meaning(item) + ","
		}
		return text + "]"
	case map[string]any:
		text := "{"
		for _, key := range slices.Sorted(maps.Keys(v)) {
			text += fmt.Sprintf("%q:%s,", key, meaning(v[key]))
		}
		return text + "}"
	}
	return fmt.Sprintf("%#v", value)
}
