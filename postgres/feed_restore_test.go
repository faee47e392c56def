package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

// shift adds delta to every stored transaction id of the feed, which is what a restore into another cluster does
// to them: there its own ids run so much lower or higher.
func (l *lab) shift(delta int64) {
	l.t.Helper()
	const moved = "(%::text::bigint + $1)::text::xid8"
	l.main.exec("UPDATE rea.feed_holes SET stamp = "+strings.Replace(moved, "%", "stamp", 1), delta)
	l.main.exec(`UPDATE rea.feed_passes p SET stamp = `+strings.Replace(moved, "%", "p.stamp", 1)+`,
		top_hole = CASE WHEN p.top_hole <> '0' THEN `+strings.Replace(moved, "%", "p.top_hole", 1)+` ELSE '0' END,
		seen = (pg_snapshot_xmin(p.seen)::text::bigint + $1 || ':' || pg_snapshot_xmax(p.seen)::text::bigint + $1 || ':' ||
		       coalesce((SELECT string_agg((x::text::bigint + $1)::text, ',' ORDER BY x) FROM pg_snapshot_xip(p.seen) x), ''))::pg_snapshot
		WHERE p.pass > 0`, delta)
}

const (
	smaller = 1_000_000_000 // ids of the cluster that is restored into are smaller than the stored ones
	larger  = -100
)

// burn draws n transaction ids, so that stored ones can be moved down by as many.
func (l *lab) burn(n int) {
	for range n {
		l.main.drawXID()
	}
}

func TestFeedAfterARestore(t *testing.T) {
	// dump leaves an archive as a dump finds it: order late committed two events after the last pass, dead never did.
	dump := func(l *lab) {
		l.burn(150)
		late, dead := l.open("late"), l.open("dead")
		late.append("late")
		l.main.append("early")
		l.pass()
		if got, want := l.holes(), "{[1,4)}"; got != want {
			l.t.Fatalf("holes = %s, want %s", got, want)
		}
		late.commit()
		dead.rollback()
	}
	for _, test := range []struct {
		name  string
		delta int64
	}{{"smaller", smaller}, {"larger", larger}} {
		t.Run("into "+test.name+" xids: what was in flight is numbered, then what is new", func(t *testing.T) {
			for _, atMost := range []int{1, 10000} {
				l := newLab(t, pgtest.Database(t))
				dump(l)
				l.shift(test.delta)
				l.main.append("late")
				l.main.append("early")
				l.drain(atMost)
				l.main.append("late")
				l.drain(atMost)
				l.wantVerdict(verdict{})
				const want = "early late late late early late"
				if got := query[string](l.main, `SELECT string_agg(h.aggregate_id, ' ' ORDER BY h.position) FROM rea.history h`); got != want {
					t.Errorf("order = %s, want %s", got, want)
				}
			}
		})
	}
	t.Run("the first pass afterwards already takes new events: who catches up stops at a pass of 0", func(t *testing.T) {
		l := feedLab(t)
		l.main.append("1")
		l.pass()
		l.shift(smaller)
		if got := l.pass(); got != 0 {
			t.Errorf("pass with nothing new = %d, want 0", got)
		}
		l.main.append("2")
		if got := l.pass(); got != 1 {
			t.Errorf("pass = %d, want 1", got)
		}
		l.wantVerdict(verdict{})
	})
	t.Run("a restored xid that a running transaction of the new cluster bears loses nothing", func(t *testing.T) {
		for _, mended := range []bool{false, true} {
			l := newLab(t, pgtest.Database(t))
			running := l.session()
			running.begin()
			running.drawXID()
			l.burn(150)
			late := l.open("late")
			l.main.append("early")
			l.pass()
			const xid = "SELECT pg_current_xact_id()::text::bigint"
			delta := query[int64](running, xid) - query[int64](late, xid)
			late.commit()
			l.shift(delta)
			if mended { // searches every hole, whatever the stored xids say
				l.main.exec("SELECT rea.mend_sequence()")
			}
			l.main.append("late")
			l.drain(10000)
			if mended {
				l.wantVerdict(verdict{})
			}
			running.commit()
			l.drain(10000)
			if got := l.verdict(); got.Skipped > 0 {
				t.Errorf("feed has %+v, want nothing skipped", got)
			}
		}
	})

	falseAlarm := func(l *lab, atMost int) {
		late := l.open("late")
		l.main.append("early")
		l.pass()
		l.shift(smaller)
		l.main.append("new")
		l.drain(atMost)
		if !query[bool](l.main, "SELECT NOT f.restored FROM rea.feed_state f") {
			l.t.Error("the alarm goes on, want one pass of it")
		}
		late.commit()
		l.main.append("late")
		l.drain(atMost)
	}
	t.Run("a false alarm loses no open appender", func(t *testing.T) {
		for _, atMost := range []int{1, 10000} {
			l := newLab(t, pgtest.Database(t))
			falseAlarm(l, atMost)
			l.wantVerdict(verdict{})
		}
	})
	t.Run("forgetting all holes after an alarm loses it", func(t *testing.T) {
		l := feedLab(t)
		l.edit(feedPass, "gaps := (SELECT range_agg(r.ids) FROM (SELECT gaps UNION ALL SELECT h.ids FROM rea.feed_holes h) a(ids), unnest(a.ids) AS r(ids));", "")
		falseAlarm(l, 10000)
		l.wantVerdict(verdict{Skipped: 1})
	})
}

// REST-1: the sequence stands behind the data.
func TestFeedRefusesASequenceBehindTheEvents(t *testing.T) {
	t.Run("events copied with their ids, the sequence left alone", func(t *testing.T) {
		for _, copied := range []int{1, 9} { // 1: the sequence's last_value is 1 before it is called
			l := newLab(t, pgtest.Database(t))
			l.main.exec("SET session_replication_role = replica")
			l.main.exec(`INSERT INTO rea.events (id, aggregate_type, aggregate_id, seq, event_type, xid, db_user, created_at)
				SELECT g, 'order', g::text, 1, 'Noted', '3', 'copied', now() FROM generate_series(1, $1::int) g`, copied)
			l.main.exec("RESET session_replication_role")
			err := l.main.try("SELECT rea.feed_pass()")
			wantState(t, err, "55000")
			mend(t, l, err)
			l.main.append("1")
			l.drain(10000)
			l.wantVerdict(verdict{})
		}
	})
	backwards := func(l *lab) {
		dead := l.open("dead")
		l.main.append("a")
		dead.rollback()
		l.main.append("b")
		// Other tests' transactions on this server keep the hole remembered until they end.
		l.drain(10000)
		for begun := time.Now(); l.holes() != ""; l.drain(10000) {
			if time.Since(begun) > time.Minute {
				l.t.Fatal("the hole is not forgotten")
			}
		}
		l.main.exec("SELECT setval('rea.events_id_seq', 1, false)")
		l.main.append("reused") // the id of dead, which the feed has given up
		if err := l.main.try(insertEvent, "refused"); state(err) != "23505" {
			l.t.Errorf("append of an id in use = %v, want 23505", err)
		}
	}
	t.Run("setval backwards, mended: an event under a reused id is numbered", func(t *testing.T) {
		l := feedLab(t)
		backwards(l)
		foreign := l.session()
		foreign.exec("SET session_replication_role = replica")
		foreign.exec(`INSERT INTO rea.events (id, aggregate_type, aggregate_id, seq, event_type, xid, db_user, created_at)
			VALUES (50, 'order', 'foreign', 1, 'Noted', '3', 'copied', now())`)
		err := l.main.try("SELECT rea.feed_pass()")
		wantState(t, err, "55000")
		mend(t, l, err)
		if got := query[int](l.main, "SELECT last_value FROM rea.events_id_seq"); got != 50 {
			t.Errorf("sequence = %d, want 50", got)
		}
		l.main.append("next")
		l.drain(10000)
		l.wantVerdict(verdict{})
		if got := query[int64](l.main, "SELECT rea.mend_sequence()"); got != 0 {
			t.Errorf("a second mending finds %d events, want 0", got)
		}
		l.drain(10000)
		l.wantVerdict(verdict{})
	})
	t.Run("setval backwards, setval forwards: the pass goes on, and that event waits for mend_sequence", func(t *testing.T) {
		l := feedLab(t)
		backwards(l)
		l.main.exec("SELECT setval('rea.events_id_seq', (SELECT max(id) FROM rea.events))")
		l.main.append("next")
		l.drain(10000)
		l.wantVerdict(verdict{Skipped: 1})
		if got := query[int64](l.main, "SELECT rea.mend_sequence()"); got != 1 {
			t.Errorf("mending finds %d events, want 1", got)
		}
		l.drain(10000)
		l.wantVerdict(verdict{})
	})
	t.Run("mending waits for open appenders, and keeps the holes of others", func(t *testing.T) {
		l := feedLab(t)
		late := l.open("late")
		l.main.append("early")
		l.drain(10000)
		mending := l.session()
		done := mending.start("SELECT rea.mend_sequence()")
		l.waitBlocked(mending)
		late.commit()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		l.drain(10000)
		l.wantVerdict(verdict{})
	})
	t.Run("a sequence that was never called, and one that stands exactly at the last id", func(t *testing.T) {
		l := feedLab(t)
		if got := l.pass(); got != 0 {
			t.Errorf("pass over nothing = %d, want 0", got)
		}
		l.main.append("1")
		l.main.exec("SELECT setval('rea.events_id_seq', 2, false)")
		if got := l.pass(); got != 1 {
			t.Errorf("pass = %d, want 1", got)
		}
		l.main.exec("SELECT rea.mend_sequence()")
		l.main.append("2")
		l.drain(10000)
		l.wantVerdict(verdict{})
	})
}
