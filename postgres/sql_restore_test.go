package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// behind checks that appending refuses, and gives what its hint says to run.
func behind(t *testing.T, a *rea.Archive, s console) (mend string) {
	t.Helper()
	_, err := a.Autocommit().Append(t.Context(), order1, rea.NewEvent{Type: "X"})
	mend = hintOf(err)
	for what, err := range map[string]error{"append": err, "rea.append": s.try(`SELECT * FROM rea.append('order', '1', 'X')`)} {
		same(t, "SQLSTATE of "+what, stateOf(err), "55000")
		if hint := hintOf(err); !strings.HasPrefix(hint, "SELECT ") || hint != mend {
			t.Errorf("hint of %s = %q, want the statement that mends it: %q", what, hint, mend)
		}
	}
	s.refused("23505", insert("", ""))
	return mend
}

func TestASequenceBehindCopiedEventsIsRefusedUntilItIsMended(t *testing.T) {
	t.Parallel()
	a, s, _ := archive(t)
	s.do(`SET session_replication_role = replica;
	      INSERT INTO rea.events (id, aggregate_type, aggregate_id, seq, event_type, xid, db_user, created_at)
	      SELECT n, 'order', '1', n, 'Copied', '3', 'them', '2020-01-01Z' FROM generate_series(1, 50) n;
	      SET session_replication_role = DEFAULT`)
	mend := behind(t, a.Archive, s)
	_, err := a.CatchUp(t.Context())
	same(t, "SQLSTATE of the pass", stateOf(err), "55000")
	same(t, "hint of the pass", hintOf(err), mend)
	s.want("50 0", `SELECT count(*), (SELECT count(*) FROM rea.feed) FROM rea.events`)
	s.do(mend)
	same(t, "Seq", put(t, a.Autocommit(), order1, "After").Seq(), 51)
	same(t, "positions", len(strings.Fields(positions(t, a.Archive))), 51)
	s.want("0", `SELECT count(*) FROM rea.events e WHERE NOT EXISTS (SELECT FROM rea.feed f WHERE f.event_id = e.id)`)
	s.want("", denseSQL)
}

func TestASequenceThatWasSetBackIsRefusedUntilItIsMended(t *testing.T) {
	t.Parallel()
	a, s, _ := archive(t)
	for range 5 {
		put(t, a.Autocommit(), order1, "A")
	}
	positions(t, a.Archive)
	put(t, a.Autocommit(), order1, "Unnumbered")
	s.do(`SELECT setval('rea.events_id_seq', 2)`)
	mend := behind(t, a.Archive, s)
	_, err := a.CatchUp(t.Context())
	same(t, "SQLSTATE of the pass", stateOf(err), "55000")
	s.do(mend)
	put(t, a.Autocommit(), order1, "After")
	same(t, "positions", len(strings.Fields(positions(t, a.Archive))), 7)
	s.want("0", `SELECT count(*) FROM rea.events e WHERE NOT EXISTS (SELECT FROM rea.feed f WHERE f.event_id = e.id)`)
}

// An id below the highest that no event has, in a hole that the pass has forgotten: nothing would ever number it.
func TestASequenceThatWasSetBackIntoAHoleLosesNoEvent(t *testing.T) {
	t.Parallel()
	a, s, _ := archive(t)
	put(t, a.Autocommit(), order1, "A")
	s.do(`BEGIN; SELECT rea.append('order', n::text, 'Lost') FROM generate_series(2, 4) n; ROLLBACK`)
	put(t, a.Autocommit(), order1, "B")
	for range 3 {
		positions(t, a.Archive) // and forgets the hole
	}
	s.do(`SELECT setval('rea.events_id_seq', 1)`)
	for range 3 {
		put(t, a.Autocommit(), order1, "InTheHole") // these ids are free, so this works
	}
	_, err := a.Autocommit().Append(t.Context(), order1, rea.NewEvent{Type: "X"}) // and this one is taken
	same(t, "SQLSTATE at the first taken id", stateOf(err), "55000")
	s.do(hintOf(err))
	put(t, a.Autocommit(), order1, "After")
	same(t, "positions", len(strings.Fields(positions(t, a.Archive))), 6)
	s.want("0", `SELECT count(*) FROM rea.events e WHERE NOT EXISTS (SELECT FROM rea.feed f WHERE f.event_id = e.id)`)
}

// A hole of a million ids and a filter that matches on both sides of it, for a session that may take two seconds.
func TestAHugeHoleAndASparseFilter(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	a := open(t, with(t, url, "statement_timeout", "2s"))
	put(t, a.Autocommit(), order1, "OrderPlaced")
	s.do(`SELECT count(nextval('rea.events_id_seq')) FROM generate_series(1, 1000000)`)
	s.do(`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) SELECT 'other', n::text, 'Other' FROM generate_series(1, 30000) n`)
	put(t, a.Autocommit(), order1, "OrderPlaced")
	if _, err := a.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range a.Autocommit().History(t.Context(), rea.Filter{Event: "OrderPlaced"}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.Position))
	}
	same(t, "positions", strings.Join(got, " "), "1 30002")
}
