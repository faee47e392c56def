package cli_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

// Whoever follows docs/adopt.md types what stands there, and gets what stands below it. A line of SQL may say "-- refused: STATE", one of
// the shell "# exit N"; a line "..." of an answer stands for any lines.
func TestAdoptionByTheBook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/adopt.md")
	if err != nil {
		t.Fatal(err)
	}
	sh := newShell(t, stores[0])
	u, err := url.Parse(pgtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	sh.env["REA_DATABASE_URL"] = u.String()
	config, err := pgx.ParseConfig(u.String())
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = "psql"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	blocks := strings.Split(string(text), "\n```")
	typed, compared := 0, 0
	body, answer := "", ""
	for _, block := range blocks {
		kind, content, _ := strings.Cut(block, "\n")
		switch kind {
		case "sql":
			typed++
			body = content
			comment, _, _ := strings.Cut(body, "\n")
			state, _ := strings.CutPrefix(comment, "-- refused: ")
			if answer, err = psql(t, conn, body); sqlState(err) != strings.TrimPrefix(state, comment) {
				t.Fatalf("%s: %v, want SQLSTATE %q", body, err, state)
			}
		case "sh":
			body, answer = content, ""
			for line := range strings.Lines(strings.TrimSpace(body)) {
				typed++
				command, comment, _ := strings.Cut(strings.TrimSpace(line), "#")
				want := 0
				if strings.TrimSpace(comment) == "exit 3" {
					want = 3
				}
				r := sh.rea(split(command)[1:]...)
				if r.code != want {
					t.Fatalf("%s: exit %d, want %d\n%s%s", line, r.code, want, r.stdout, r.stderr)
				}
				answer += strings.Join(summary.FindAllString(r.stderr, -1), "") + r.stdout
			}
		case "text":
			compared++
			want, got := plain(content, "postgres"), plain(answer, config.User)
			if !regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(want), `\.\.\.`+"\n", `(?:.*\n)*`) + `$`).MatchString(got) {
				t.Errorf("%s\nanswers\n%s\nand not\n%s", body, answer, content)
			}
		}
	}
	if typed < 30 || compared < 18 {
		t.Errorf("%d lines were typed and %d answers compared: the page is read wrongly", typed, compared)
	}
}

func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// psql runs a message of statements, and tells of it what psql does: the rows, or the command's tag, or ERROR and HINT.
func psql(t *testing.T, conn *pgx.Conn, sql string) (string, error) {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	var b strings.Builder
	for _, r := range results {
		if len(r.FieldDescriptions) == 0 {
			fmt.Fprintln(&b, r.CommandTag)
			continue
		}
		var names []string
		for _, f := range r.FieldDescriptions {
			names = append(names, f.Name)
		}
		fmt.Fprintln(&b, strings.Join(names, " | "))
		for _, row := range r.Rows {
			var values []string
			for _, v := range row {
				values = append(values, string(v))
			}
			fmt.Fprintln(&b, strings.Join(values, " | "))
		}
		fmt.Fprintf(&b, "(%s)\n", plural(len(r.Rows)))
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		fmt.Fprintf(&b, "ERROR:  %s\nHINT:  %s\n", e.Message, e.Hint)
	}
	return b.String(), err
}

func plural(rows int) string {
	if rows == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", rows)
}

var (
	summary = regexp.MustCompile(`(?m)^\S+: \d+ rows, (as the events say|\d+ different)\n`) // what a check says beside its data
	moment  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`)
	backend = regexp.MustCompile(`from \S+ process \d+`)
	writer  = regexp.MustCompile(`(  \S+)  +\d+(  +\d+)\b`) // login, transaction, context
	rule    = regexp.MustCompile(`(?m)^[-+]*\n`)
	blanks  = regexp.MustCompile(`(?m)[ ]+`)
	edges   = regexp.MustCompile(`(?m)^ | $`)
)

// plain hides what differs between two runs: times, processes, transactions, the login's name, widths and rules.
func plain(text, login string) string {
	text = strings.TrimRight(text, "\n") + "\n"
	text = moment.ReplaceAllString(text, "TIME")
	text = backend.ReplaceAllString(text, "from HOST process N")
	text = strings.ReplaceAll(text, login, "LOGIN")
	text = writer.ReplaceAllString(text, "$1  XID$2")
	text = edges.ReplaceAllString(blanks.ReplaceAllString(text, " "), "")
	return rule.ReplaceAllString(text, "")
}
