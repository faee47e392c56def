package postgres_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// fill stores n events with every step-th id, past the trigger: what is tested is the reading of them.
func (l *lab) fill(kind string, n, step int) {
	l.t.Helper()
	l.main.exec("SET session_replication_role = replica")
	l.main.exec(`INSERT INTO rea.events (id, aggregate_type, aggregate_id, seq, event_type, xid, db_user, created_at)
		SELECT (SELECT last_value FROM rea.events_id_seq) + g * $3::int, $1, g::text, 1, 'Noted', '3', 'filled', now() FROM generate_series(1, $2::int) g`, kind, n, step)
	l.main.exec("RESET session_replication_role")
	l.main.exec("SELECT setval('rea.events_id_seq', (SELECT max(id) FROM rea.events))")
}

// buffers is how many pages one pass touches.
func (l *lab) buffers(atMost int) int {
	l.t.Helper()
	text := query[string](l.main, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT rea.feed_pass($1)", atMost)
	var plans []struct {
		Plan map[string]any
	}
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		l.t.Fatal(err)
	}
	sum := 0.0
	for _, name := range []string{"Shared Hit Blocks", "Shared Read Blocks"} {
		n, ok := plans[0].Plan[name].(float64)
		if !ok {
			l.t.Fatalf("the plan does not tell %s: %s", name, text)
		}
		sum += n
	}
	return int(sum)
}

// A look that finds nothing (6 as measured), and a pass that numbers little (31).
const (
	idlePages  = 30
	smallPages = 150
)

func (l *lab) wantPages(what string, atMost, most int) {
	l.t.Helper()
	if got := l.buffers(atMost); got > most {
		l.t.Errorf("%s touches %d pages, want at most %d", what, got, most)
	}
}

func TestFeedPassReadsLittle(t *testing.T) {
	t.Run("with statistics from when the tables were empty", func(t *testing.T) {
		l := feedLab(t)
		l.main.exec("VACUUM ANALYZE rea.events, rea.feed, rea.feed_passes, rea.feed_holes")
		l.pass()
		l.wantPages("a look at an empty archive", 10, idlePages)
		l.fill("order", 50_000, 1)
		l.slice(10)
		l.wantPages("a pass of 10 in a backlog of 50,000", 10, smallPages)
		l.drain(100_000)
		l.wantPages("a look when all is numbered", 10, idlePages)
		fresh := l.session() // plans made now
		l.main = fresh
		l.pass()
		l.wantPages("a look of a new session", 10, idlePages)
		for range 2 {
			l.main.append("new")
			l.pass() // the first one of a session reads the catalog
		}
		l.main.append("new")
		l.wantPages("a pass of one event", 10, smallPages)
		l.wantVerdict(verdict{})
	})
	for _, test := range []struct {
		name    string
		n, step int
	}{
		{"a hole of 1,000,000 ids costs nothing while nothing has ended", 1, 1_000_000},
		{"100,000 small holes cost nothing while nothing has ended", 100_000, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := feedLab(t)
			unrelated := l.session()
			unrelated.begin()
			unrelated.drawXID()
			l.main.append("first")
			l.main.exec("SET statement_timeout = '20s'")
			l.fill("sparse", test.n, test.step)
			l.drain(10000)
			if l.holes() == "" {
				t.Fatal("no holes, want some while a transaction is open")
			}
			// Other tests' transactions on this server may end in between: the second look is the one that counts.
			l.retry(func() bool { return l.buffers(10) <= idlePages }, "a look beside the holes reads more than %d pages", idlePages)
			l.retry(func() bool {
				l.main.append("new")
				return l.buffers(10) <= smallPages
			}, "a pass of one event beside the holes reads more than %d pages", smallPages)
			unrelated.commit()
			l.drain(10000)
			l.wantVerdict(verdict{})
		})
	}
}

// retry asks until the answer is yes, ten times.
func (l *lab) retry(ask func() bool, format string, args ...any) {
	l.t.Helper()
	for range 10 {
		if ask() {
			return
		}
	}
	l.t.Errorf(format, args...)
}

// ORD-3: a hole larger than a page.
func TestFeedPassesAHoleOfAMillionIDs(t *testing.T) {
	l := feedLab(t)
	l.main.exec("SET statement_timeout = '2s'")
	late := l.open("late")
	l.main.append("1")
	l.main.exec("SELECT setval('rea.events_id_seq', 1000001)")
	l.main.append("2")
	l.drain(10000)
	if got, want := l.holes(), "{[1,2),[3,1000002)}"; got != want {
		t.Errorf("holes = %s, want %s", got, want)
	}
	late.commit()
	l.drain(10000)
	l.wantVerdict(verdict{})
	l.wantPages("a look afterwards", 10, idlePages)
}

// Every step leaves a hole and fills it, and dead rows of both tables stay, because somebody's snapshot might need them.
func TestFeedPassStaysFlatUnderAnOpenSnapshot(t *testing.T) {
	passes := int64(4_000)
	if long() {
		passes = 20_000
	}
	l := feedLab(t)
	open := l.session()
	open.exec("BEGIN ISOLATION LEVEL REPEATABLE READ")
	open.drawXID()
	late := l.open("late")
	// Without arguments, so that one round trip takes several transactions.
	step := func() {
		late.exec("COMMIT; BEGIN; " + strings.Replace(insertEvent, "$1", "'late'", 1))
		l.main.exec("BEGIN; SELECT rea.feed_pass(); COMMIT; " + strings.Replace(insertEvent, "$1", "'early'", 1) + "; COMMIT; SELECT rea.feed_pass()")
	}
	measure := func() (look, pass int) {
		late.commit()
		l.drain(10000)
		look = l.buffers(10)
		for range 3 { // the first ones in a session read the catalog
			l.main.append("new")
			pass = l.buffers(10)
		}
		late.begin()
		return look, pass
	}
	done := func() int64 { return query[int64](l.main, "SELECT max(pass) FROM rea.feed_passes") }
	for range 250 {
		step()
	}
	look, pass := measure()
	for done() < passes {
		for range 250 {
			step()
		}
	}
	lookThen, passThen := measure()
	t.Logf("pages after 500 and after %d passes: a look %d, then %d; a pass %d, then %d", done(), look, lookThen, pass, passThen)
	if lookThen > look+10 || passThen > pass+30 {
		t.Errorf("pages: a look %d, then %d; a pass %d, then %d; want no growth", look, lookThen, pass, passThen)
	}
	l.wantVerdict(verdict{})
	if n := query[int](l.main, "SELECT count(*) FROM rea.feed_passes"); n > 200 {
		t.Errorf("rows of feed_passes = %d, want at most 200", n)
	}
}

// long asks for the long form of tests that have two: make chaos.
func long() bool { return os.Getenv("REA_CHAOS") == "long" }
