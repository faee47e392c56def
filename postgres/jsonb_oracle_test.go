package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
)

// oracleLimit is above the longest number and far below what a test can write.
const oracleLimit = 160_000

// TestNormalFormIsWhatTheServerPrints compares rea.NormalizeJSON with the server for random texts, good and bad.
func TestNormalFormIsWhatTheServerPrints(t *testing.T) {
	t.Parallel()
	o := connectOracle(t)
	rapid.Check(t, func(t *rapid.T) {
		for range 25 {
			o.compare(t, drawJSON(t))
		}
	})
}

// TestTheLimitsOfNumericAreTheServers holds the exact edges; a random text seldom meets them.
func TestTheLimitsOfNumericAreTheServers(t *testing.T) {
	t.Parallel()
	o := connectOracle(t)
	for _, number := range []string{
		"1e131071", "9.9e131071", "1e131072", "10e131071", "0.1e131072", "0.1e131073", "0.01e131073", "0.00e999999", "-1e131071",
		"1e-16383", "1e-16384", "1.5e-16383", "1.5e-16382", "15e-16383", "15e-16384", "0e-16383", "0e-16384", "0.0e-16383", "10e-16384",
		"0e999999999", "0e-999999999", "0e1073741822", "0e1073741824", "0e-1073741824", "1e1073741822", "1e2147483647", "1e2147483648",
		"1e-2147483649", "1e9223372036854775808", "1e-99999999999999999999", "0e99999999999999999999", "1e00000000000000000000000000131071",
		strings.Repeat("9", 131072), strings.Repeat("9", 131073), "0." + strings.Repeat("9", 16383), "0." + strings.Repeat("9", 16384),
		strings.Repeat("9", 131072) + "." + strings.Repeat("0", 16383), strings.Repeat("9", 131073) + "e-1", strings.Repeat("9", 131072) + "e1",
		"0." + strings.Repeat("0", 20000) + "e20000", "0." + strings.Repeat("0", 20000) + "1e20001", "0." + strings.Repeat("0", 20000) + "1e3618",
	} {
		o.compare(t, number)
		o.compare(t, `{"a":[-`+strings.TrimPrefix(number, "-")+`]}`)
	}
}

// TestEveryCharacterIsPrintedAsTheServerPrintsIt goes through the characters that could be special, raw and escaped.
func TestEveryCharacterIsPrintedAsTheServerPrintsIt(t *testing.T) {
	t.Parallel()
	o := connectOracle(t)
	for r := range 0x300 {
		o.compare(t, fmt.Sprintf(`{"%c":"%c"}`, r, r))
		o.compare(t, fmt.Sprintf(`{"\u%04x":"\u%04X"}`, r, r))
		o.compare(t, fmt.Sprintf(`"\%c"`, r))
		o.compare(t, fmt.Sprintf(`%c1%c`, r, r))
		o.compare(t, "\""+string([]byte{byte(r)})+"\"")
	}
	for _, r := range []int{0x7ff, 0x800, 0x2028, 0x2029, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xfdd0, 0xfeff, 0xfffd, 0xfffe, 0xffff} {
		o.compare(t, fmt.Sprintf(`{"\u%04x":"\u%04X"}`, r, r))
		for _, low := range []int{0, 0x41, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000} {
			o.compare(t, fmt.Sprintf(`"\u%04x\u%04x"`, r, low))
		}
	}
	for _, raw := range []string{"\xc0\x80", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xe2\x82", "\x80", "\xf0\x80\x80\xaf"} {
		o.compare(t, `"`+raw+`"`)
	}
}

// TestEqualJSONIsTheServersEquality compares rea.EqualJSON with = of jsonb.
func TestEqualJSONIsTheServersEquality(t *testing.T) {
	t.Parallel()
	o := connectOracle(t)
	atom := rapid.SampledFrom([]string{
		"1", "1.0", "1.00", "-1", "-1.0", "10", "10.0", "0", "0.0", "-0", "0.1", "0.10", "1e1", "100e-1", "1.0000000000000000000000000001",
		"9007199254740992", "9007199254740993", "1e20", "100000000000000000000", `"1"`, `"1.0"`, `"1.00"`, `"\""`, `"\\"`, `""`, "null", "true", "[]", "{}",
	})
	rapid.Check(t, func(t *rapid.T) {
		var pair [2]json.RawMessage
		shape := rapid.SampledFrom([]string{`%s`, `[%s, %s]`, `{"a":%s,"b":%s}`, `{"1.0":[%s],"1.00":%s}`, `[{"x":%s},"1.0",%s]`}).Draw(t, "shape")
		for i := range pair {
			text := shape
			for strings.Contains(text, "%s") {
				text = strings.Replace(text, "%s", atom.Draw(t, "atom"), 1)
			}
			var err error
			if pair[i], err = rea.NormalizeJSON([]byte(text), "payload", 0); err != nil {
				t.Fatal(err)
			}
		}
		var want bool
		if err := o.conn.QueryRow(o.ctx, `SELECT $1::text::jsonb = $2::text::jsonb`, string(pair[0]), string(pair[1])).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if got := rea.EqualJSON(pair[0], pair[1]); got != want {
			t.Fatalf("EqualJSON(%s, %s) = %v, the server says %v", pair[0], pair[1], got, want)
		}
	})
}

// FuzzNormalFormIsWhatTheServerPrints is the same comparison for the fuzzer's texts.
func FuzzNormalFormIsWhatTheServerPrints(f *testing.F) {
	for _, text := range []string{
		`{"b":1,"a":[1e2,-0.00,{"y":"\u00e9\ud83d\ude00","x":null}]}`, `{"a": 1, "a": 2}`, `[1e400, 1e-400]`, `"\u0000"`, `"\ud800"`,
		`{"\n\n":1,"aaa":{"\u0001":[true,false]}}`, "\"\xff\"", ` [ ] `, `-`, `01`, `1.5E+1`, `{"a":`, "\ufeff1", `[1 2]`, `truex`,
	} {
		f.Add([]byte(text))
	}
	o := connectOracle(f)
	f.Fuzz(func(t *testing.T, text []byte) { o.compare(t, string(text)) })
}

// oracle is a server that is asked what it makes of a JSON text.
type oracle struct {
	ctx  context.Context
	conn *pgx.Conn
}

func connectOracle(t testing.TB) oracle {
	t.Helper()
	ctx := context.Background() // the fuzzer's and rapid's own contexts end before the connection does
	conn, err := pgx.Connect(ctx, pgtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	return oracle{ctx, conn}
}

type fataler interface {
	Fatalf(format string, args ...any)
	Helper()
}

// compare fails where rea.NormalizeJSON accepts or refuses text otherwise than the server, but for what
// REA refuses on its own account.
func (o oracle) compare(t fataler, text string) {
	t.Helper()
	got, err := rea.NormalizeJSON([]byte(text), "payload", oracleLimit)
	var want string
	refused := o.conn.QueryRow(o.ctx, `SELECT $1::text::jsonb::text`, text).Scan(&want)
	var server *pgconn.PgError
	switch {
	case refused != nil && !errors.As(refused, &server):
		t.Fatalf("%.200q: %v", text, refused)
	case refused != nil && err == nil:
		t.Fatalf("%.200q gives %.200q, the server says: %v", text, got, refused)
	case refused == nil && err == nil && string(got) != want:
		t.Fatalf("%.200q gives %.200q, the server prints %.200q", text, got, want)
	case refused == nil && err != nil && !ownRefusal(err, text, want):
		t.Fatalf("%.200q is refused (%v), the server prints %.200q", text, err, want)
	}
}

// ownRefusal reports whether REA has a reason of its own to refuse text, and gives that reason.
func ownRefusal(err error, text, printed string) bool {
	depth, duplicate := measure(text)
	switch message := err.Error(); {
	case strings.Contains(message, "duplicate key"):
		return duplicate && errors.Is(err, rea.ErrBadPayload)
	case strings.Contains(message, "nested more than"):
		return depth > rea.MaxDepth && errors.Is(err, rea.ErrLimit)
	case strings.Contains(message, "is more than"):
		return (duplicate || len(printed) > oracleLimit) && errors.Is(err, rea.ErrLimit) // of two members the server prints one
	}
	return false
}

// measure finds depth and duplicate keys of a text that the server takes, by another parser.
func measure(text string) (depth int, duplicate bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	type level struct {
		keys  map[string]bool // nil: an array
		isKey bool
	}
	stack := []level{{}}
	for {
		token, err := d.Token()
		if err != nil {
			return depth, duplicate
		}
		top := &stack[len(stack)-1]
		if key, ok := token.(string); ok && top.isKey {
			duplicate = duplicate || top.keys[key]
			top.keys[key], top.isKey = true, false
			continue
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, level{keys: map[string]bool{}, isKey: true})
			depth = max(depth, len(stack)-1)
			continue
		case json.Delim('['):
			stack = append(stack, level{})
			depth = max(depth, len(stack)-1)
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
			top = &stack[len(stack)-1]
		}
		top.isKey = top.keys != nil
	}
}

// drawJSON draws a text that is JSON or nearly so.
func drawJSON(t *rapid.T) string {
	var b bytes.Buffer
	switch rapid.IntRange(0, 60).Draw(t, "nest") {
	case 0:
		n := rapid.SampledFrom([]int{899, 900, 901, 1500}).Draw(t, "depth")
		b.WriteString(strings.Repeat("[", n) + strings.Repeat("]", n))
	case 1:
		n := rapid.SampledFrom([]int{300, 898, 899, 900}).Draw(t, "depth")
		b.WriteString(strings.Repeat(`{"b":0,"a":`, n))
		writeValue(t, &b, 1)
		b.WriteString(strings.Repeat("}", n))
	default:
		writeValue(t, &b, rapid.IntRange(0, 4).Draw(t, "levels"))
	}
	text := b.Bytes()
	if len(text) > 0 && rapid.IntRange(0, 3).Draw(t, "damage") == 0 {
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		piece := rapid.SampledFrom([]string{"", "\\", `"`, "0", "-", ".", "e", ",", ":", "[", "}", " ", "\x00", "\x1f", "\xff", "\u00e9", "u", "null"}).Draw(t, "piece")
		cut := rapid.IntRange(0, 1).Draw(t, "cut")
		text = append(text[:at:at], append([]byte(piece), text[at+cut:]...)...)
	}
	return string(text)
}

func writeValue(t *rapid.T, b *bytes.Buffer, levels int) {
	space(t, b)
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	if levels == 0 {
		kind %= 5
	}
	switch {
	case kind == 0:
		b.WriteString(rapid.SampledFrom([]string{"null", "true", "false", "null", "True", "nul", "NaN", "Infinity"}).Draw(t, "word"))
	case kind <= 2:
		writeString(t, b)
	case kind <= 4:
		writeNumber(t, b)
	case kind <= 6:
		b.WriteByte('[')
		for i := range rapid.IntRange(0, 4).Draw(t, "length") {
			if i > 0 {
				b.WriteByte(',')
			}
			writeValue(t, b, levels-1)
		}
		b.WriteByte(']')
	default:
		b.WriteByte('{')
		for i := range rapid.IntRange(0, 6).Draw(t, "members") {
			if i > 0 {
				b.WriteByte(',')
			}
			space(t, b)
			writeString(t, b)
			space(t, b)
			b.WriteByte(':')
			writeValue(t, b, levels-1)
		}
		space(t, b)
		b.WriteByte('}')
	}
	space(t, b)
}

func space(t *rapid.T, b *bytes.Buffer) {
	b.WriteString(rapid.SampledFrom([]string{"", "", "", " ", "\n", "\t\r "}).Draw(t, "space"))
}

func writeString(t *rapid.T, b *bytes.Buffer) {
	pieces := []string{
		"a", "b", "A", "\u00e9", "e\u0301", "\u4e2d", "\U0001F600", "\x7f", "\u0080", "/", "'", `\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`,
		`\u0001`, `\u001F`, `\u0022`, `\u005C`, `\u0061`, `\u00e9`, `\ud83d\ude00`, `\uD83D\uDE00`, `\u4E2D`, `\u007f`, `\uffff`, `\u000a`,
	}
	if rapid.IntRange(0, 15).Draw(t, "nasty") == 0 {
		pieces = append(pieces, `\u0000`, `\ud83d`, `\ude00`, `\x`, `\u12`, `\uXYZW`, "\x00", "\n", "\xff", "\xed\xa0\x80", "\xc3", `\`)
	}
	b.WriteByte('"')
	for range rapid.IntRange(0, 4).Draw(t, "pieces") {
		b.WriteString(rapid.SampledFrom(pieces).Draw(t, "piece"))
	}
	b.WriteByte('"')
}

func writeNumber(t *rapid.T, b *bytes.Buffer) {
	pattern := `-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?`
	switch rapid.IntRange(0, 20).Draw(t, "pattern") {
	case 0:
		pattern = `-?[0-9]{0,3}\.?[0-9]{0,3}[eE]?[+-]?[0-9]{0,3}`
	case 1, 2, 3:
		pattern = `-?0(\.0{1,4}[01]?)?([eE][+-]?[0-9])?`
	case 4:
		pattern = `-?[0-9]\.[0-9]{1,2}e(13107[0-4]|-1638[0-5]|9{6,12})`
	}
	b.WriteString(rapid.StringMatching(pattern).Draw(t, "number"))
}
