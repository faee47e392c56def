package rea

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The limits of names and reasons, the same on both stores.
const (
	MaxNameBytes   = 200  // of an aggregate's type and id, an event type, actor, key, correlation
	MaxReasonBytes = 4096 // of a reason
)

// checkName checks the name that is called what: 1 to MaxNameBytes bytes of UTF-8, without control
// characters and without a space at either end. Names are compared byte by byte, and nothing is trimmed,
// so a name that would look like another one is refused. The error is a *LimitError.
func checkName(what, value string) error {
	if value == "" {
		return &LimitError{What: what, Problem: "is empty"}
	}
	if err := checkText(what, value, MaxNameBytes); err != nil {
		return err
	}
	for i, r := range value {
		if r < ' ' || 0x7f <= r && r <= 0x9f {
			return badName(what, value, fmt.Sprintf("has the control character %U at byte %d", r, i+1))
		}
	}
	switch {
	case value[0] == ' ':
		return badName(what, value, "has a leading space")
	case value[len(value)-1] == ' ':
		return badName(what, value, "has a trailing space")
	}
	return nil
}

// checkReason checks a reason: at most MaxReasonBytes bytes of UTF-8 without U+0000; "" is none. The error is a *LimitError.
func checkReason(value string) error {
	if err := checkText("reason", value, MaxReasonBytes); err != nil {
		return err
	}
	if i := strings.IndexByte(value, 0); i >= 0 {
		return &LimitError{What: "reason", Problem: fmt.Sprintf("has the control character U+0000 at byte %d", i+1)}
	}
	return nil
}

func checkText(what, value string, limit int) error {
	if len(value) > limit {
		return &LimitError{What: what, Limit: int64(limit), Problem: fmt.Sprintf("is %d bytes long, the limit is %d", len(value), limit)}
	}
	if !utf8.ValidString(value) {
		return badName(what, value, "is not valid UTF-8")
	}
	return nil
}

// badName shows the value, quoted and no more of it than a message can bear.
func badName(what, value, problem string) error {
	return &LimitError{What: what, Problem: fmt.Sprintf("%s: %q", problem, clipRaw(value))}
}

// clipRaw is clip without mending: %q shows the bytes that are not UTF-8.
func clipRaw(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}

var (
	idEscaper   = strings.NewReplacer("%", "%25", "/", "%2F")
	idUnescaper = strings.NewReplacer("%25", "%", "%2F", "/", "%2f", "/")
)

// CompositeID makes the id of an aggregate whose key has several columns: the parts joined by "/", with
// "/" and "%" percent-encoded in each ("50%", "a/b" give "50%25/a%2Fb"). SplitID undoes it.
func CompositeID(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = idEscaper.Replace(part)
	}
	return strings.Join(escaped, "/")
}

// SplitID gives the parts that CompositeID was called with. An id that was made otherwise is split at each
// "/" too; only %25 and %2F are decoded.
func SplitID(id string) []string {
	parts := strings.Split(id, "/")
	for i, part := range parts {
		parts[i] = idUnescaper.Replace(part)
	}
	return parts
}
