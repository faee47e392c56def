package cli_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

// Whoever writes to a guarded table chooses the text of the statement, which an administrator's terminal shows later.
func TestAHostileStatementIsShownEscapedAndCut(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[1])
	url := pgtest.Empty(t)
	sh.env["REA_DATABASE_URL"] = url
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	do := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%.80q: %v", sql, err)
		}
	}
	const table = "\"o\x1b[31m\nx\""
	do("CREATE TABLE " + table + " (id int PRIMARY KEY, note text); INSERT INTO " + table + " VALUES (1, '')")
	sh.must("migrate", "up")
	sh.must("guard", "add", table, "--type", "note", "--yes")
	const tricks = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202e\r\t\x7f"
	do("UPDATE " + table + "\nSET note = 'a' /*" + tricks + "*/")
	do("SELECT rea.set_context('bob', E'\\x1b[2Jno\\u202ereason', NULL); UPDATE " + table + " SET note = 'b' -- " + strings.Repeat("\x1b[1A", 5000))

	want := regexp.MustCompile(`SEQ .*
  1 .*
    claimed:  nothing
    observed: login .*, UPDATE of 1 row of public\.o\\x1b\[31m\\nx: UPDATE "o\\x1b\[31m\\nx"\\nSET note = 'a' /\*\\x1b\]0;owned\\x07\\x1b\[2J\\u009b31m\\u202e\\r\\t\\x7f\*/
  2 .*
    claimed:  actor bob, reason \\x1b\[2Jno\\u202ereason
    observed: login .*, UPDATE of 1 row of public\.o\\x1b\[31m\\nx: SELECT rea\.set_context\(.{100,200}…
`)
	if got := sh.must("log", "note", "1"); !want.MatchString(got) {
		t.Errorf("rea log shows %q\nwant %s", got, want)
	}
	for _, args := range [][]string{
		{"log", "note", "1"}, {"log"}, {"log", "note", "1", "-o", "jsonl"}, {"log", "rea.guard", "public.o%1B[31m%0Ax"}, {"show", "note", "1"}, {"show", "note", "1", "--at", "seq:1", "--json"},
		{"guard", "status"}, {"guard", "check", "all"}, {"guard", "change", table, "--sql", "hash", "--yes"}, {"doctor"},
	} {
		r := sh.rea(args...)
		if r.code != 0 {
			t.Errorf("rea %q: %+v", args, r)
		}
		if i := strings.IndexFunc(r.stdout+r.stderr, func(c rune) bool { return c != '\n' && unicode.In(c, unicode.Cc, unicode.Cf) }); i >= 0 {
			t.Errorf("rea %q prints a control character: %q", args, (r.stdout + r.stderr)[max(0, i-60):i+1])
		}
	}
}
