package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

// lab is a database in which the order of what sessions do is forced: transactions are held open, and functions
// are stopped at a gate in the middle.
type lab struct {
	t    testing.TB
	url  string
	main *session // runs passes, each a statement of its own
	gate *session
}

func newLab(t testing.TB, url string) *lab {
	t.Helper()
	l := &lab{t: t, url: url}
	l.main, l.gate = l.session(), l.session()
	return l
}

// feedLab is a lab in a database of the shared server. What depends on the very next transaction id needs a
// server of its own: see quiet.
func feedLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	return newLab(t, pgtest.Database(t))
}

// quiet starts a server on which nobody else draws transaction ids, and returns a maker of labs on it.
func quiet(t *testing.T) func(t *testing.T) *lab {
	t.Helper()
	server := pgtest.NewServer(t, pgtest.Options{Settings: map[string]string{"autovacuum": "off"}})
	admin := newLab(t, server.URL("postgres")).main
	admin.exec("CREATE DATABASE template")
	if err := migrate(t.Context(), server.URL("template")); err != nil {
		t.Fatal(err)
	}
	n := 0
	return func(t *testing.T) *lab {
		t.Helper()
		n++
		name := fmt.Sprintf("lab%d", n)
		admin.exec("CREATE DATABASE " + name + " TEMPLATE template")
		return newLab(t, server.URL(name))
	}
}

// session is one connection. Its methods fail the test, but for those that return an error.
type session struct {
	t    testing.TB
	conn *pgx.Conn
}

func (l *lab) session() *session {
	l.t.Helper()
	conn, err := pgx.Connect(l.t.Context(), l.url)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &session{t: l.t, conn: conn}
}

func (s *session) try(sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	_, err := s.conn.Exec(ctx, sql, args...)
	return err
}

func (s *session) exec(sql string, args ...any) {
	s.t.Helper()
	if err := s.try(sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// start runs sql in the background; its error comes through the channel.
func (s *session) start(sql string, args ...any) <-chan error {
	done := make(chan error, 1)
	go func() { done <- s.try(sql, args...) }()
	return done
}

func query[T any](s *session, sql string, args ...any) T {
	s.t.Helper()
	var value T
	if err := s.conn.QueryRow(s.t.Context(), sql, args...).Scan(&value); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return value
}

const insertEvent = `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ('order', $1, 'Noted')`

// append stores one event of an order.
func (s *session) append(order string) {
	s.t.Helper()
	s.exec(insertEvent, order)
}

func (s *session) begin()    { s.t.Helper(); s.exec("BEGIN") }
func (s *session) commit()   { s.t.Helper(); s.exec("COMMIT") }
func (s *session) rollback() { s.t.Helper(); s.exec("ROLLBACK") }

// drawXID gives the open transaction its id before it does anything else.
func (s *session) drawXID() { s.t.Helper(); s.exec("SELECT pg_current_xact_id()") }

// open begins a transaction with one event of an order in it.
func (l *lab) open(order string) *session {
	l.t.Helper()
	s := l.session()
	s.begin()
	s.append(order)
	return s
}

// gated returns a session that stops at atGate.
func (l *lab) gated() *session {
	s := l.session()
	s.exec("SET rea_test.gate = 'on'")
	return s
}

// atGate, in a function, stops a gated session while the gate is shut. An advisory lock draws no transaction id.
const atGate = `
    IF current_setting('rea_test.gate', true) = 'on' THEN PERFORM pg_advisory_xact_lock_shared(42, 1); END IF;
`

func (l *lab) shutGate() { l.gate.exec("SELECT pg_advisory_lock(42, 1)") }
func (l *lab) openGate() { l.gate.exec("SELECT pg_advisory_unlock(42, 1)") }

// waitBlocked returns once s waits for a lock.
func (l *lab) waitBlocked(s *session) {
	l.t.Helper()
	const waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)"
	for deadline := time.Now().Add(time.Minute); !query[bool](l.gate, waiting, s.conn.PgConn().PID()); {
		if time.Now().After(deadline) {
			l.t.Fatal("the session does not stop at the gate")
		}
	}
}

// edit replaces parts (old, new, old, new...) of a function as it is installed. Each old one must be there once:
// a variant that no longer differs from the real function proves nothing.
func (l *lab) edit(function string, parts ...string) {
	l.t.Helper()
	text := query[string](l.gate, "SELECT pg_get_functiondef($1::text::regprocedure)", function)
	for i := 0; i < len(parts); i += 2 {
		if n := strings.Count(text, parts[i]); n != 1 {
			l.t.Fatalf("%s has %d times %q, want once: bring the variant up to date", function, n, parts[i])
		}
		text = strings.Replace(text, parts[i], parts[i+1], 1)
	}
	l.gate.exec(text)
}

const (
	feedPass    = "rea.feed_pass(int)"
	checkInsert = "rea.check_insert()"

	// Lines of the two functions that variants replace.
	drawXIDLine = "    NEW.xid := pg_current_xact_id();\n"
	drawIDLine  = "    NEW.id := nextval('rea.events_id_seq'::regclass);\n"
	drawOwnLine = "    own := pg_current_xact_id();\n"
	lockLine    = "    IF NOT pg_try_advisory_xact_lock(7497057, 1) THEN\n"
	searchLine  = "WHERE h.stamp > f.low\n"
	forgetLine  = "AND h.stamp <= pg_snapshot_xmin(s.snapshot);"
	holeLine    = "INSERT INTO rea.feed_holes (stamp, ids) VALUES (own, gaps);"
)

// pass runs one pass and returns how many events it numbered, -1 where it was busy.
func (l *lab) pass() int64 { l.t.Helper(); return l.slice(10000) }

func (l *lab) slice(atMost int) int64 {
	l.t.Helper()
	return query[int64](l.main, "SELECT coalesce(rea.feed_pass($1), -1)", atMost)
}

// drain runs passes until nothing is left, and returns how many numbered something.
func (l *lab) drain(atMost int) (passes int) {
	l.t.Helper()
	for l.slice(atMost) != 0 {
		passes++
	}
	return passes
}

func (l *lab) holes() string {
	l.t.Helper()
	return query[string](l.gate, "SELECT coalesce(string_agg(h.ids::text, ' ' ORDER BY h.stamp), '') FROM rea.feed_holes h")
}

// verdict counts what is wrong with a feed. The zero value: nothing.
type verdict struct {
	Skipped  int // committed events without a position
	Doubled  int // events with two
	Inverted int // events before a lower seq of their aggregate
	Strange  int // positions without an event
	Gaps     int // positions that nobody has
}

func (l *lab) verdict() verdict {
	l.t.Helper()
	v, err := judge(l.t.Context(), l.gate.conn)
	if err != nil {
		l.t.Fatal(err)
	}
	return v
}

func judge(ctx context.Context, conn *pgx.Conn) (v verdict, err error) {
	const sql = `
SELECT (SELECT count(*) FROM rea.events e WHERE NOT EXISTS (SELECT FROM rea.feed f WHERE f.event_id = e.id)),
       (SELECT count(*) - count(DISTINCT f.event_id) FROM rea.feed f),
       (SELECT count(*) FROM (SELECT e.seq, lag(e.seq) OVER (PARTITION BY e.aggregate_type, e.aggregate_id ORDER BY f.position) AS before
                              FROM rea.feed f JOIN rea.events e ON e.id = f.event_id) o WHERE o.seq < o.before),
       (SELECT count(*) FROM rea.feed f WHERE NOT EXISTS (SELECT FROM rea.events e WHERE e.id = f.event_id)),
       (SELECT coalesce(max(f.position), 0) - count(DISTINCT f.position) FROM rea.feed f)`
	err = conn.QueryRow(ctx, sql).Scan(&v.Skipped, &v.Doubled, &v.Inverted, &v.Strange, &v.Gaps)
	return v, err
}

// wantVerdict compares what is wrong with the feed.
func (l *lab) wantVerdict(want verdict) {
	l.t.Helper()
	if got := l.verdict(); got != want {
		l.t.Errorf("feed has %+v, want %+v", got, want)
	}
}

// state is the SQLSTATE of an error, or "".
func state(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// wantState fails unless err carries the SQLSTATE.
func wantState(t *testing.T, err error, want string) {
	t.Helper()
	if got := state(err); got != want || err == nil {
		t.Errorf("error = %v, want SQLSTATE %s", err, want)
	}
}
