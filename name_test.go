package rea

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"order", "Order", "10086", "a b", "x'; drop table events;--", `a"b`, "$1", "50%_off", `back\slash`, "a/b",
		"caf\u00e9", "cafe\u0301", "\u00a0x\u00a0", "\U0001F600", strings.Repeat("x", 200), strings.Repeat("\u00e9", 100),
	} {
		if err := checkName("aggregate_type", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestRefusedNamesSayWhy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		limit      int64
	}{
		{"", "rea: aggregate_type is empty", 0},
		{"order ", `rea: aggregate_type has a trailing space: "order "`, 0},
		{" order", `rea: aggregate_type has a leading space: " order"`, 0},
		{" ", `rea: aggregate_type has a leading space: " "`, 0},
		{"a\tb", `rea: aggregate_type has the control character U+0009 at byte 2: "a\tb"`, 0},
		{"a\n", `rea: aggregate_type has the control character U+000A at byte 2: "a\n"`, 0},
		{"\x00", `rea: aggregate_type has the control character U+0000 at byte 1: "\x00"`, 0},
		{"a\x7f", `rea: aggregate_type has the control character U+007F at byte 2: "a\x7f"`, 0},
		{"\u00e9\u009f", `rea: aggregate_type has the control character U+009F at byte 3: "é\u009f"`, 0},
		{"a\xffb", `rea: aggregate_type is not valid UTF-8: "a\xffb"`, 0},
		{"\xed\xa0\x80", `rea: aggregate_type is not valid UTF-8: "\xed\xa0\x80"`, 0},
		{strings.Repeat("x", 201), "rea: aggregate_type is 201 bytes long, the limit is 200", 200},
		{strings.Repeat("\u00e9", 101), "rea: aggregate_type is 202 bytes long, the limit is 200", 200},
		{strings.Repeat("x", 100_000), "rea: aggregate_type is 100000 bytes long, the limit is 200", 200},
		{strings.Repeat("x", 100) + " ", `rea: aggregate_type has a trailing space: "` + strings.Repeat("x", 60) + `..."`, 0},
		{strings.Repeat("\u20ac", 30) + " ", `rea: aggregate_type has a trailing space: "` + strings.Repeat("\u20ac", 20) + `..."`, 0},
		{"x" + strings.Repeat("\u20ac", 30) + " ", `rea: aggregate_type has a trailing space: "x` + strings.Repeat("\u20ac", 19) + `..."`, 0},
	} {
		err := checkName("aggregate_type", c.name)
		var limit *LimitError
		if !errors.Is(err, ErrLimit) || !errors.As(err, &limit) || limit.What != "aggregate_type" || limit.Limit != c.limit || err.Error() != c.want {
			t.Errorf("%.70q:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"", "because", " two\nlines\t\u009f ", strings.Repeat("x", 4096)} {
		if err := checkReason(reason); err != nil {
			t.Errorf("%.70q: %v", reason, err)
		}
	}
	for reason, want := range map[string]string{
		"a\x00":                   "rea: reason has the control character U+0000 at byte 2",
		"\xff":                    `rea: reason is not valid UTF-8: "\xff"`,
		strings.Repeat("x", 4097): "rea: reason is 4097 bytes long, the limit is 4096",
	} {
		if err := checkReason(reason); !errors.Is(err, ErrLimit) || err.Error() != want {
			t.Errorf("%.70q:\n got %v\nwant %s", reason, err, want)
		}
	}
}

func TestCompositeIDs(t *testing.T) {
	t.Parallel()
	for id, parts := range map[string][]string{
		"10086":          {"10086"},
		"de/7":           {"de", "7"},
		"50%25/a%2Fb":    {"50%", "a/b"},
		"%252F":          {"%2F"},
		"//":             {"", "", ""},
		"%2F/%2F%2525/%": nil,
	} {
		if parts == nil {
			if got, want := SplitID(id), []string{"/", "/%25", "%"}; !slices.Equal(got, want) {
				t.Errorf("SplitID(%q) = %q, want %q", id, got, want)
			}
			continue
		}
		if got := CompositeID(parts...); got != id {
			t.Errorf("CompositeID(%q) = %q, want %q", parts, got, id)
		}
		if got := SplitID(id); !slices.Equal(got, parts) {
			t.Errorf("SplitID(%q) = %q, want %q", id, got, parts)
		}
	}
}

func TestCompositeIDsAreDistinctAndSplitAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.String(), rapid.StringMatching(`[%/2F5f]{0,6}`))
		parts := rapid.SliceOfN(part, 1, 4).Draw(t, "parts")
		if got := SplitID(CompositeID(parts...)); !slices.Equal(got, parts) {
			t.Fatalf("%q is split to %q", parts, got)
		}
	})
}

// FuzzCheckName holds that a message stays short and that an accepted name is what the rule says.
func FuzzCheckName(f *testing.F) {
	for _, name := range []string{"order", " order", "a\x00", "\xff", strings.Repeat("x", 201), strings.Repeat("\u20ac", 66) + " "} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := checkName("actor_id", name)
		if err != nil {
			if text := err.Error(); len(text) > 400 || !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\n\x1b") {
				t.Errorf("message of %d bytes: %q", len(text), text)
			}
			return
		}
		if len(name) == 0 || len(name) > 200 || !utf8.ValidString(name) || strings.Trim(name, " ") != name {
			t.Errorf("%q was accepted", name)
		}
	})
}
