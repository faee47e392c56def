package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestFeedPassRefusesTheWrongTransaction(t *testing.T) {
	for _, test := range []struct{ name, begin, state string }{
		{"repeatable read", "BEGIN ISOLATION LEVEL REPEATABLE READ", "25000"},
		{"serializable", "BEGIN ISOLATION LEVEL SERIALIZABLE", "25000"},
		{"read only", "BEGIN READ ONLY", "25006"},
		{"a transaction that has written", "BEGIN; SELECT pg_current_xact_id()", "25001"},
		{"a transaction that has written, in a savepoint", "BEGIN; SELECT pg_current_xact_id(); SAVEPOINT a", "25001"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := feedLab(t)
			l.main.append("1")
			l.main.exec(test.begin)
			wantState(t, l.main.try("SELECT rea.feed_pass()"), test.state)
			l.main.rollback()
			if got := query[int](l.main, "SELECT count(*) FROM rea.feed"); got != 0 {
				t.Errorf("numbered = %d, want 0", got)
			}
			l.drain(10000)
			l.wantVerdict(verdict{})
		})
	}
	t.Run("limits", func(t *testing.T) {
		l := feedLab(t)
		for _, limit := range []any{0, -1, nil, 1_000_001} {
			wantState(t, l.main.try("SELECT rea.feed_pass($1)", limit), "22023")
		}
	})
}

func TestFeedPassWritesDurably(t *testing.T) {
	l := feedLab(t)
	l.main.append("1")
	l.main.exec("SET synchronous_commit = off")
	l.main.begin()
	l.pass()
	if got := query[string](l.main, "SHOW synchronous_commit"); got != "on" {
		t.Errorf("synchronous_commit in the pass's transaction = %s, want on", got)
	}
	l.main.commit()
	if got := query[string](l.main, "SHOW synchronous_commit"); got != "off" {
		t.Errorf("synchronous_commit afterwards = %s, want off: it is the session's", got)
	}
}

func TestFeedPassIgnoresTheCallersNames(t *testing.T) {
	l := feedLab(t)
	l.main.exec(`CREATE SCHEMA mine
		CREATE TABLE events (id bigint) CREATE TABLE feed (position bigint, event_id bigint)
		CREATE TABLE feed_state (moved boolean) CREATE TABLE pg_sequence (seqrelid oid)`)
	l.main.exec("CREATE FUNCTION mine.pg_current_xact_id() RETURNS xid8 LANGUAGE sql AS $$ SELECT '3'::xid8 $$")
	l.main.exec("CREATE TEMP TABLE pg_subscription_rel (srrelid oid); INSERT INTO pg_subscription_rel VALUES ('rea.events'::regclass)")
	for _, path := range []string{"mine, pg_catalog", "pg_temp, pg_catalog", "''"} {
		l.main.exec("SET search_path = " + path)
		l.main.append("1")
		if got := l.pass(); got != 1 {
			t.Errorf("pass under search_path %s = %d, want 1", path, got)
		}
	}
	l.wantVerdict(verdict{})
}

func TestFeedPassRights(t *testing.T) {
	l := feedLab(t)
	l.main.append("1")
	l.main.exec("SET ROLE rea_reader")
	if got := l.pass(); got != 1 {
		t.Errorf("pass of a reader = %d, want 1", got)
	}
	for _, sql := range []string{
		"INSERT INTO rea.feed VALUES (2, 2)", "DELETE FROM rea.feed_passes", "DELETE FROM rea.feed_holes", "SELECT rea.mend_sequence()",
	} {
		wantState(t, l.main.try(sql), "42501")
	}
	l.main.exec("RESET ROLE")
	for _, sql := range []string{"UPDATE rea.feed SET position = 2", "DELETE FROM rea.feed", "TRUNCATE rea.feed"} {
		wantState(t, l.main.try(sql), "RE007")
	}
}

func TestFeedRefusesIDsThatItDidNotDraw(t *testing.T) {
	for _, test := range []struct{ name, sql string }{
		{"a given id", "INSERT INTO rea.events (id, aggregate_type, aggregate_id, event_type) VALUES (7, 'order', '1', 'Noted')"},
		{"a pre-drawn id", "INSERT INTO rea.events (id, aggregate_type, aggregate_id, event_type) VALUES (nextval('rea.events_id_seq'), 'order', '1', 'Noted')"},
		{"OVERRIDING SYSTEM VALUE", "INSERT INTO rea.events (id, aggregate_type, aggregate_id, event_type) OVERRIDING SYSTEM VALUE VALUES (7, 'order', '1', 'Noted')"},
		{"a given xid", "INSERT INTO rea.events (xid, aggregate_type, aggregate_id, event_type) VALUES ('3', 'order', '1', 'Noted')"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := feedLab(t)
			wantState(t, l.main.try(test.sql), "428C9")
		})
	}
	t.Run("COPY with ids", func(t *testing.T) {
		l := feedLab(t)
		_, err := l.main.conn.PgConn().CopyFrom(t.Context(), strings.NewReader("7\torder\t1\tNoted\n"),
			"COPY rea.events (id, aggregate_type, aggregate_id, event_type) FROM STDIN")
		wantState(t, err, "428C9")
	})
	t.Run("COPY without ids is numbered in its order", func(t *testing.T) {
		l := feedLab(t)
		_, err := l.main.conn.PgConn().CopyFrom(t.Context(), strings.NewReader("order\t1\tA\norder\t1\tB\norder\t2\tA\n"),
			"COPY rea.events (aggregate_type, aggregate_id, event_type) FROM STDIN")
		if err != nil {
			t.Fatal(err)
		}
		l.drain(10000)
		l.wantVerdict(verdict{})
	})
}

func TestFeedPassRefusesASequenceThatDrawsAhead(t *testing.T) {
	for _, change := range []string{"CACHE 10", "INCREMENT -1", "CYCLE"} {
		t.Run(change, func(t *testing.T) {
			l := feedLab(t)
			l.main.append("1")
			l.main.exec("ALTER SEQUENCE rea.events_id_seq " + change)
			err := l.main.try("SELECT rea.feed_pass()")
			wantState(t, err, "55000")
			mend(t, l, err)
			if got := l.pass(); got != 1 {
				t.Errorf("pass afterwards = %d, want 1", got)
			}
		})
	}
}

// mend runs the statement of an error's hint.
func mend(t *testing.T, l *lab, err error) {
	t.Helper()
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		t.Fatalf("error = %v, want one with a hint", err)
	}
	statement, _, _ := strings.Cut(e.Hint, ", and")
	l.main.exec(statement)
}

func TestFeedPassRefusesALogicalSubscriber(t *testing.T) {
	l := feedLab(t)
	l.main.append("1")
	// What a subscription leaves there, without a publisher to connect to.
	l.main.exec("SET allow_system_table_mods = on")
	l.main.exec("INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate) VALUES (1, 'rea.events'::regclass, 'r')")
	wantState(t, l.main.try("SELECT rea.feed_pass()"), "55000")
	l.main.exec("DELETE FROM pg_subscription_rel")
	if got := l.pass(); got != 1 {
		t.Errorf("pass without the subscription = %d, want 1", got)
	}
}
