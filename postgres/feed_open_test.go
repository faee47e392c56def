package postgres_test

import (
	"context"
	"fmt"
	"testing"
)

func TestFeedWaitsForNobody(t *testing.T) {
	t.Run("an open appender delays nobody else, and its event is not skipped", func(t *testing.T) {
		l := feedLab(t)
		late := l.open("late")
		l.main.append("early")
		if got := l.pass(); got != 1 {
			t.Errorf("pass beside an open appender = %d, want 1", got)
		}
		if got := l.pass(); got != 0 {
			t.Errorf("pass with nothing new = %d, want 0", got)
		}
		late.commit()
		if got := l.pass(); got != 1 {
			t.Errorf("pass after its commit = %d, want 1", got)
		}
		l.wantVerdict(verdict{})
		if got := query[string](l.main, `SELECT string_agg(h.aggregate_id, ' ' ORDER BY h.position) FROM rea.history h`); got != "early late" {
			t.Errorf("order = %s, want early late", got)
		}
	})
	t.Run("an unrelated write transaction delays nobody", func(t *testing.T) {
		l := feedLab(t)
		other := l.session()
		other.begin()
		other.exec("CREATE TABLE stock (n int)")
		for i := range 3 {
			l.main.append(fmt.Sprint(i))
			if got := l.pass(); got != 1 {
				t.Errorf("pass = %d, want 1", got)
			}
		}
		other.commit()
		l.wantVerdict(verdict{})
	})
	t.Run("savepoints: released events come, rolled back ones leave a hole until the transaction ends", func(t *testing.T) {
		l := feedLab(t)
		late := l.session()
		late.begin()
		late.exec("SAVEPOINT a")
		late.append("released")
		late.exec("RELEASE a")
		late.exec("SAVEPOINT b")
		late.append("rolled back")
		late.exec("ROLLBACK TO b")
		late.exec("SAVEPOINT c")
		late.exec("SAVEPOINT d")
		late.append("nested")
		l.main.append("early")
		l.drain(10000)
		if got, want := l.holes(), "{[1,4)}"; got != want {
			t.Errorf("holes = %s, want %s", got, want)
		}
		late.exec("RELEASE c")
		late.commit()
		l.drain(10000)
		l.wantVerdict(verdict{})
		if got := query[int](l.main, "SELECT count(*) FROM rea.feed"); got != 3 {
			t.Errorf("numbered = %d, want 3", got)
		}
	})
	t.Run("more savepoints than a backend keeps in shared memory", func(t *testing.T) {
		l := feedLab(t)
		late := l.session()
		late.begin()
		for i := range 80 {
			late.exec("SAVEPOINT a")
			late.append(fmt.Sprint("late", i))
			l.main.append(fmt.Sprint("early", i))
			if i%10 == 0 {
				l.pass()
			}
		}
		l.drain(10000)
		late.commit()
		l.drain(10000)
		l.wantVerdict(verdict{})
	})
	t.Run("a prepared transaction keeps its hole until it ends", func(t *testing.T) {
		l := feedLab(t)
		for _, end := range []string{"COMMIT", "ROLLBACK"} {
			id := "'" + query[string](l.main, "SELECT current_database()") + end + "'"
			late := l.open(end)
			l.main.append("early" + end)
			l.pass()
			late.exec("PREPARE TRANSACTION " + id)
			l.main.append("next" + end)
			l.drain(10000)
			if l.holes() == "" {
				t.Error("the hole is forgotten while its owner is prepared")
			}
			l.main.exec(end + " PREPARED " + id)
			l.drain(10000)
			l.wantVerdict(verdict{})
		}
	})
	t.Run("a pass that is rolled back leaves nothing behind", func(t *testing.T) {
		l := feedLab(t)
		l.main.append("1")
		l.main.begin()
		l.pass()
		l.main.rollback()
		l.main.begin()
		l.main.exec("SAVEPOINT a")
		l.pass()
		l.main.exec("ROLLBACK TO a")
		l.main.append("2")
		l.main.commit()
		l.drain(10000)
		l.wantVerdict(verdict{})
	})
	t.Run("a killed pass leaves nothing behind", func(t *testing.T) {
		l := feedLab(t)
		l.main.append("1")
		s := l.session()
		s.begin()
		s.exec("SELECT rea.feed_pass()")
		_ = s.conn.PgConn().Conn().Close() // without a word of goodbye
		_ = s.conn.Close(context.Background())
		for l.pass() == -1 { // until the server has noticed
			continue
		}
		l.wantVerdict(verdict{})
	})
	t.Run("events of a transaction that runs a pass before it appends", func(t *testing.T) {
		l := feedLab(t)
		l.main.append("1")
		l.main.begin()
		l.pass()
		l.main.append("2")
		l.gate.append("3")
		l.main.commit()
		l.drain(10000)
		l.wantVerdict(verdict{})
	})
}

// Nobody else is there: the end of any transaction of the server asks for one more search.
func TestFeedForgetsWhatNobodyOwns(t *testing.T) {
	t.Parallel()
	l := quiet(t)(t)
	killed, undone := l.open("killed"), l.open("undone")
	l.main.append("early")
	l.drain(10000)
	l.main.exec("SELECT pg_terminate_backend($1, 60000)", killed.conn.PgConn().PID())
	undone.rollback()
	l.main.append("next")
	l.drain(10000)
	l.wantVerdict(verdict{})
	if got := l.holes(); got != "" {
		t.Errorf("holes left: %s, want none", got)
	}
	if query[bool](l.main, "SELECT f.moved FROM rea.feed_state f") {
		t.Error("the state asks for a search, want that nothing has moved")
	}
}
