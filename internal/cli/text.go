package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// cells counts the columns that terminals give to text: two for most of Chinese, Japanese and Korean, and one
// for … and the like, whatever the locale says.
var cells = &runewidth.Condition{StrictEmojiNeutral: true}

// safe shows stored text so that it can do nothing to a terminal: control characters, escapes, marks that
// turn the direction of writing, and invalid bytes are written out.
func safe(s string) string {
	harmless := true
	for _, r := range s {
		if !shown(r) {
			harmless = false
			break
		}
	}
	if harmless {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case shown(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

// safeLines is safe for a text of several lines, with the tabs that its carets go by.
func safeLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j := range cells {
			cells[j] = safe(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// numbered gives "1 problem", "2 problems".
func numbered(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(int64(n)) + " " + what + "s"
}

// thousands gives 13,087.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// shown reports whether r is written as it is. Joiners are part of names and of emoji.
func shown(r rune) bool {
	return r != utf8.RuneError && r != '\u2028' && r != '\u2029' && (unicode.IsGraphic(r) || r == '\u200c' || r == '\u200d')
}

// jsonSafe escapes in a JSON text what JSON itself leaves raw and terminals act on. The values stay the same.
func jsonSafe(b []byte) []byte {
	acts := func(r rune) bool { return r >= 0x7f && r != utf8.RuneError && !shown(r) }
	if strings.IndexFunc(string(b), acts) < 0 {
		return b
	}
	out := make([]byte, 0, len(b)+16)
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		switch {
		case !acts(r):
			out = append(out, b[:size]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		b = b[size:]
	}
	return out
}

// fold is safe in at most width columns, with … where something is left out.
func fold(s string, width int) string {
	cut := false
	if most := 8 * width; len(s) > most { // enough for width, and 16 MiB are not looked at
		for most > 0 && !utf8.RuneStart(s[most]) {
			most--
		}
		s, cut = s[:most], true
	}
	s = safe(s)
	if !cut && cells.StringWidth(s) <= width {
		return s
	}
	if cut { // so that there is something to leave out
		s += strings.Repeat(" ", width)
	}
	return cells.Truncate(s, width, "…")
}
