package cli_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

// Whoever follows docs/adopt.md types what stands there. A line of SQL may say "-- refused: STATE", one of the shell "# exit N".
func TestAdoptionByTheBook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/adopt.md")
	if err != nil {
		t.Fatal(err)
	}
	sh := newShell(t, stores[0])
	url := pgtest.Empty(t)
	sh.env["REA_DATABASE_URL"] = url
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	blocks := strings.Split(string(text), "\n```")
	typed := 0
	for _, block := range blocks {
		kind, body, _ := strings.Cut(block, "\n")
		switch kind {
		case "sql":
			typed++
			_, err := conn.Exec(t.Context(), body, pgx.QueryExecModeSimpleProtocol)
			comment, _, _ := strings.Cut(body, "\n")
			state, refused := strings.CutPrefix(comment, "-- refused: ")
			var e *pgconn.PgError
			switch {
			case refused && (!errors.As(err, &e) || e.Code != state):
				t.Fatalf("%s: %v, want SQLSTATE %s", body, err, state)
			case !refused && err != nil:
				t.Fatalf("%s: %v", body, err)
			}
		case "sh":
			for line := range strings.Lines(strings.TrimSpace(body)) {
				typed++
				command, comment, _ := strings.Cut(strings.TrimSpace(line), "#")
				want := 0
				if strings.TrimSpace(comment) == "exit 3" {
					want = 3
				}
				if r := sh.rea(split(command)[1:]...); r.code != want {
					t.Fatalf("%s: exit %d, want %d\n%s%s", line, r.code, want, r.stdout, r.stderr)
				}
			}
		}
	}
	if typed < 25 {
		t.Errorf("%d lines were typed: the page is read wrongly", typed)
	}
	same := 0
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM rea.contexts c WHERE c.rows = 108 AND c.context_id = 6`).Scan(&same); err != nil || same != 1 {
		t.Errorf("the accident is not context 6 with 108 rows, as the page says: %d, %v", same, err)
	}
}
