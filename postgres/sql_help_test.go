package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

var order1 = rea.Ref{Type: "order", ID: "1"}

// console is one connection on which a test says SQL.
type console struct {
	*pgx.Conn
	t *testing.T
}

func connect(t *testing.T, url string) console {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // statements may change what is prepared
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return console{conn, t}
}

// do runs statements, which must succeed; without arguments there may be several.
func (s console) do(sql string, args ...any) {
	s.t.Helper()
	if err := s.try(sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

func (s console) try(sql string, args ...any) error {
	if len(args) == 0 {
		args = []any{pgx.QueryExecModeSimpleProtocol}
	}
	_, err := s.Exec(s.t.Context(), sql, args...)
	return err
}

// refused runs a statement that must be refused with a SQLSTATE, and gives the error.
func (s console) refused(state, sql string, args ...any) *pgconn.PgError {
	s.t.Helper()
	err := s.try(sql, args...)
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		s.t.Fatalf("%s: error = %v, want SQLSTATE %s", sql, err, state)
	}
	if e.Code != state {
		s.t.Errorf("%s: SQLSTATE = %s (%s), want %s", sql, e.Code, e.Message, state)
	}
	return e
}

// text gives a query's values, columns joined by a space and rows by a comma.
func (s console) text(sql string, args ...any) string {
	s.t.Helper()
	rows, err := s.Query(s.t.Context(), sql, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	var lines []string
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			s.t.Fatalf("%s: %v", sql, err)
		}
		line := make([]string, len(values))
		for i, v := range values {
			if m, ok := v.(map[string]any); ok {
				b, _ := json.Marshal(m)
				v = string(b)
			}
			line[i] = fmt.Sprint(v)
		}
		lines = append(lines, strings.Join(line, " "))
	}
	if err := rows.Err(); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(lines, ", ")
}

// want compares a query's values.
func (s console) want(want, sql string, args ...any) {
	s.t.Helper()
	if got := s.text(sql, args...); got != want {
		s.t.Errorf("%s = %s, want %s", sql, got, want)
	}
}

// archive opens an archive in a database of its own, with a session beside it.
func archive(t *testing.T) (*postgres.Archive, console, string) {
	t.Helper()
	url := pgtest.Database(t)
	return open(t, url), connect(t, url), url
}

func open(t *testing.T, url string) *postgres.Archive {
	t.Helper()
	a, err := postgres.Open(t.Context(), url, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func put(t *testing.T, tx *rea.Tx, aggregate rea.Ref, kinds ...string) rea.Receipt {
	t.Helper()
	events := make([]rea.NewEvent, len(kinds))
	for i, kind := range kinds {
		events[i].Type = kind
	}
	receipt, err := tx.Append(t.Context(), aggregate, events)
	if err != nil {
		t.Fatalf("append to %s: %v", aggregate, err)
	}
	return receipt
}

// positions catches up and tells the history: "order/1#1 order/2#1".
func positions(t *testing.T, a *rea.Archive) string {
	t.Helper()
	if _, err := a.CatchUp(t.Context()); err != nil && !errors.Is(err, rea.ErrReadOnly) {
		t.Fatalf("catch up: %v", err)
	}
	var told []string
	for e, err := range a.Autocommit().History(t.Context(), rea.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Position != int64(len(told)+1) {
			t.Errorf("Position = %d, want %d", e.Position, len(told)+1)
		}
		told = append(told, fmt.Sprintf("%s#%d", e.Aggregate, e.Seq))
	}
	return strings.Join(told, " ")
}

// waitFor polls until a query gives what is wanted: the signal that a race has reached its point.
func (s console) waitFor(want, sql string) {
	s.t.Helper()
	got := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if got = s.text(sql); got == want {
			return
		}
	}
	s.t.Fatalf("%s = %s after a minute, want %s", sql, got, want)
}

// waiters counts the sessions of this database that wait for a lock.
const waiters = `SELECT count(*) FROM pg_stat_activity a WHERE a.datname = current_database() AND a.wait_event_type = 'Lock'`

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// denseSQL lists aggregates whose seqs are not 1..n or whose ids do not rise with them.
const denseSQL = `
SELECT DISTINCT x.aggregate_type || '/' || x.aggregate_id
FROM (SELECT e.*, row_number() OVER w AS n, lag(e.id) OVER w AS before FROM rea.events e
      WINDOW w AS (PARTITION BY e.aggregate_type, e.aggregate_id ORDER BY e.seq)) x
WHERE x.seq <> x.n OR x.id <= x.before`

func stateOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}

func hintOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}
