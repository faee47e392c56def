package postgres_test

import (
	"fmt"
	"testing"
)

func TestFeedKeepsTheOrderOfAnAggregate(t *testing.T) {
	const firstLine = "    IF NEW.id IS NOT NULL OR NEW.xid"
	t.Run("the check before the id: the slower writer of two loses its seq", func(t *testing.T) {
		l := feedLab(t)
		l.edit(checkInsert, drawIDLine, drawIDLine+atGate)
		err := twoWritersOfOneOrder(l)
		wantState(t, err, "23505")
		l.wantVerdict(verdict{})
	})
	t.Run("the id before the check inverts two events", func(t *testing.T) {
		l := feedLab(t)
		l.edit(checkInsert, drawXIDLine, "", drawIDLine, "", firstLine, drawXIDLine+drawIDLine+atGate+"    IF false AND NEW.xid")
		if err := twoWritersOfOneOrder(l); err != nil {
			t.Fatal(err)
		}
		l.wantVerdict(verdict{Inverted: 1})
	})
	t.Run("a transaction that wrote elsewhere long before appends in order", func(t *testing.T) {
		l := feedLab(t)
		l.main.exec("CREATE TABLE stock (n int)")
		old := l.session()
		old.begin()
		old.exec("INSERT INTO stock VALUES (1)")
		l.main.append("1")
		l.pass()
		old.append("1")
		l.main.append("2")
		l.pass()
		old.commit()
		l.drain(10000)
		l.wantVerdict(verdict{})
	})
}

// twoWritersOfOneOrder returns the error of the writer that stops at the gate while the other one commits.
func twoWritersOfOneOrder(l *lab) error {
	l.shutGate()
	slow := l.gated()
	done := slow.start(insertEvent, "1")
	l.waitBlocked(slow)
	l.main.append("1")
	l.openGate()
	err := <-done
	l.drain(10000)
	return err
}

// A second sequencer whose lock does not work reads the state, stops, and goes on when the first has committed.
func TestFeedFenceHoldsBackAnOlderSnapshot(t *testing.T) {
	const (
		noLock      = "    IF false THEN\n"
		fenceLine   = "VALUES (s.pass + 1, own,"
		noFence     = "VALUES ((SELECT max(p.pass) + 1 FROM rea.feed_passes p), own,"
		isolation   = "IF current_setting('transaction_isolation') <> 'read committed' THEN"
		anyIsolated = "IF false THEN"
	)
	second := func(l *lab, begin string) error {
		l.main.append("1")
		l.shutGate()
		s := l.gated()
		s.exec(begin)
		done := s.start("SELECT rea.feed_pass()")
		l.waitBlocked(s)
		l.main.append("2")
		if got := l.pass(); got != 2 {
			l.t.Errorf("the first sequencer numbers %d events, want 2", got)
		}
		l.openGate()
		err := <-done
		if err == nil {
			s.commit()
		} else {
			s.rollback()
		}
		l.drain(10000)
		return err
	}

	t.Run("read committed: it writes nothing", func(t *testing.T) {
		l := feedLab(t)
		l.edit(feedPass, lockLine, noLock, drawOwnLine, atGate+drawOwnLine)
		if err := second(l, "BEGIN"); err != nil {
			t.Error(err)
		}
		l.wantVerdict(verdict{})
	})
	t.Run("repeatable read: it fails", func(t *testing.T) {
		l := feedLab(t)
		l.edit(feedPass, lockLine, noLock, drawOwnLine, atGate+drawOwnLine, isolation, anyIsolated)
		wantState(t, second(l, "BEGIN ISOLATION LEVEL REPEATABLE READ"), "40001")
		l.wantVerdict(verdict{})
	})
	t.Run("without the fence the constraints make it an error", func(t *testing.T) {
		l := feedLab(t)
		l.edit(feedPass, lockLine, noLock, drawOwnLine, atGate+drawOwnLine, fenceLine, noFence)
		wantState(t, second(l, "BEGIN"), "23505")
		l.wantVerdict(verdict{})
	})
	t.Run("without fence and constraints an event has two positions", func(t *testing.T) {
		l := feedLab(t)
		l.edit(feedPass, lockLine, noLock, drawOwnLine, atGate+drawOwnLine, fenceLine, noFence)
		l.main.exec("ALTER TABLE rea.feed DROP CONSTRAINT feed_event_id_key, DROP CONSTRAINT feed_pkey")
		if err := second(l, "BEGIN"); err != nil {
			t.Error(err)
		}
		if got := l.verdict(); got.Doubled == 0 {
			t.Errorf("feed has %+v, want doubled events", got)
		}
	})
	t.Run("with the lock it gives up at once", func(t *testing.T) {
		l := feedLab(t)
		first := l.session()
		l.main.append("1")
		first.begin()
		first.exec("SELECT rea.feed_pass()")
		l.main.append("2")
		if got := l.pass(); got != -1 {
			t.Errorf("a pass beside an open one = %d, want busy", got)
		}
		first.commit()
		if got := l.pass(); got != 1 {
			t.Errorf("the pass afterwards = %d, want 1", got)
		}
		l.wantVerdict(verdict{})
	})
}

// Appenders stay open while others commit and are numbered; then all commit, more than a pass takes. Nobody else is there: what is
// searched again, and what is forgotten, hangs on every transaction of the server.
func TestFeedSlices(t *testing.T) {
	t.Parallel()
	alone := quiet(t)
	late := func(l *lab, atMost int) {
		var open []*session
		for i := range 20 {
			open = append(open, l.open(fmt.Sprint("late", i)))
			open[i].append(fmt.Sprint("late", i))
			l.main.append(fmt.Sprint("early", i))
			if i%7 == 0 {
				l.drain(atMost)
			}
		}
		l.drain(atMost)
		for i, s := range open {
			s.commit()
			if i == 10 { // some of the next events of the same orders come in between
				l.main.append("late3")
				l.main.append("early3")
				l.slice(atMost)
			}
		}
		l.main.append("late19")
		l.drain(atMost)
	}
	for _, atMost := range []int{1, 7, 10000} {
		t.Run(fmt.Sprintf("slices of %d keep everything and its order", atMost), func(t *testing.T) {
			l := alone(t)
			late(l, atMost)
			l.wantVerdict(verdict{})
			if got := l.holes(); got != "" {
				t.Errorf("holes left: %s, want none", got)
			}
		})
	}
	t.Run("a cut slice that takes its snapshot for seen loses what it left", func(t *testing.T) {
		l := alone(t)
		l.edit(feedPass, "CASE WHEN cut THEN s.seen ELSE s.snapshot END", "s.snapshot")
		late(l, 7)
		if got := l.verdict(); got.Skipped == 0 {
			t.Errorf("feed has %+v, want skipped events", got)
		}
	})
	t.Run("a slice that takes fresh events before the late ones inverts", func(t *testing.T) {
		l := alone(t)
		l.edit(feedPass, "taken := s.late || s.fresh;", "taken := s.fresh || s.late;")
		late(l, 10000)
		if got := l.verdict(); got.Inverted == 0 {
			t.Errorf("feed has %+v, want inverted events", got)
		}
	})
}
