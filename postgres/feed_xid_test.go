package postgres_test

import (
	"testing"
)

// Interleavings that depend on the very next transaction id. Each scenario runs on the functions as they are, and
// on variants that look right: there the same scenario must lose an event, or it tests nothing.
func TestFeedStampsAreAboveEveryPossibleOwner(t *testing.T) {
	t.Parallel()
	newQuiet := quiet(t)
	for _, test := range []struct {
		name     string
		scenario func(l *lab)
		function string
		edit     []string
		skipped  int
	}{
		{"an id drawn after the xid is found", idBehindGate, checkInsert,
			[]string{drawIDLine, drawIDLine + atGate}, 0},
		{"an id drawn after the xid is found even if the writer stops between the two", idBehindGate, checkInsert,
			[]string{drawIDLine, atGate + drawIDLine}, 0},
		{"an id drawn before the xid is lost", idBehindGate, checkInsert,
			[]string{drawXIDLine, "", drawIDLine, drawIDLine + atGate + drawXIDLine}, 1},

		{"an owner at or above the snapshot's xmax is below the pass's own xid", ownersAboveXmax, feedPass, nil, 0},
		{"the snapshot's xmax as the stamp loses an owner above it", ownersAboveXmax, feedPass,
			[]string{holeLine, "INSERT INTO rea.feed_holes (stamp, ids) VALUES (pg_snapshot_xmax(s.snapshot), gaps);"}, 1},
		{"forgetting later does not help the snapshot's xmax as the stamp", ownersAboveXmax, feedPass,
			[]string{holeLine, "INSERT INTO rea.feed_holes (stamp, ids) VALUES (pg_snapshot_xmax(s.snapshot), gaps);",
				forgetLine, "AND h.stamp < pg_snapshot_xmin(s.snapshot);"}, 1},

		{"a hole is kept while its owner is open", ownerOutlivesPasses, feedPass, nil, 0},
		{"forgetting up to the snapshot's xmax loses the owner", ownerOutlivesPasses, feedPass,
			[]string{forgetLine, "AND h.stamp <= pg_snapshot_xmax(s.snapshot);"}, 1},

		{"a pass with an xid from before its snapshot loses an owner", passWithOldXID, feedPass,
			[]string{"IF pg_current_xact_id_if_assigned() IS NOT NULL THEN\n        RAISE EXCEPTION 'rea: feed_pass in a", "IF false THEN\n        RAISE EXCEPTION 'rea: feed_pass in a",
				"RAISE EXCEPTION 'rea: feed_pass: reading has drawn a transaction id' USING ERRCODE = 'XX000';", "NULL;"}, 1},

		{"an owner that comes while the pass is planned is below its xid", ownerWhilePlanning, feedPass,
			[]string{searchLine, "WHERE h.stamp > f.low AND h.stamp <> public.pause('3'::xid8)\n"}, 0},
		{"one statement that reads and draws the xid loses an owner: the planner draws it before the snapshot", ownerWhilePlanning, feedPass,
			[]string{searchLine, "WHERE h.stamp > f.low AND h.stamp <> public.pause(pg_current_xact_id())\n",
				"RAISE EXCEPTION 'rea: feed_pass: reading has drawn a transaction id' USING ERRCODE = 'XX000';", "NULL;"}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newQuiet(t)
			if len(test.edit) > 0 {
				l.edit(test.function, test.edit...)
			}
			// The sequence logs 32 draws ahead, and only the draw that logs takes an xid by itself.
			l.main.exec("SELECT nextval('rea.events_id_seq')")
			test.scenario(l)
			l.drain(10000)
			l.wantVerdict(verdict{Skipped: test.skipped})
		})
	}
}

// idBehindGate: a writer stops at the gate in the trigger while another one commits a higher id and a pass runs.
func idBehindGate(l *lab) {
	l.shutGate()
	late := l.gated()
	done := late.start(insertEvent, "late")
	l.waitBlocked(late)
	l.main.append("early")
	l.pass()
	l.openGate()
	if err := <-done; err != nil {
		l.t.Fatal(err)
	}
}

// ownersAboveXmax: the snapshot of the first pass has the xid of `first` as its last completed one, so that xmax is
// the xid of `second`, and that of `late` is above. A later pass then sees `second` ended and `late` running.
func ownersAboveXmax(l *lab) {
	first, second, late := l.session(), l.session(), l.session()
	for _, s := range []*session{first, second, late} {
		s.begin()
		s.drawXID()
	}
	late.append("late")
	first.append("early")
	xmax := query[string](second, "SELECT pg_current_xact_id()::text")
	first.commit()
	if got := query[string](l.gate, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"); got != xmax {
		l.t.Fatalf("the snapshot's xmax = %s, want %s: somebody else draws xids", got, xmax)
	}
	l.pass()
	second.commit()
	l.main.append("other")
	l.pass()
	late.commit()
}

func ownerOutlivesPasses(l *lab) {
	late := l.open("late")
	for _, order := range []string{"a", "b", "c"} {
		l.main.append(order)
		l.pass()
	}
	late.commit()
}

// passWithOldXID: the pass's transaction has its xid before the owner of a hole has.
func passWithOldXID(l *lab) {
	l.main.begin()
	l.main.drawXID()
	late := l.open("late")
	l.gate.append("early")
	l.pass()
	l.main.commit()
	late.commit()
}

// ownerWhilePlanning: the pass stops while the planner estimates the condition on public.pause, that is before the
// snapshot of the statement; then a writer draws xid and id, and another one commits a higher id.
func ownerWhilePlanning(l *lab) {
	l.gate.exec(pauseFunction)
	l.main.append("first")
	l.shutGate()
	pass := l.gated()
	done := pass.start("SELECT rea.feed_pass()")
	l.waitBlocked(pass)
	late := l.open("late")
	l.main.append("early")
	l.openGate()
	if err := <-done; err != nil {
		l.t.Fatal(err)
	}
	l.drain(10000)
	late.commit()
}

const pauseFunction = `
CREATE FUNCTION public.pause(x xid8) RETURNS xid8 LANGUAGE plpgsql STABLE AS $$
BEGIN` + atGate + `    RETURN x;
END
$$`

func TestFeedPassDrawsNoXIDWhileItReads(t *testing.T) {
	for _, test := range []struct{ name, prepare string }{
		{"with statistics", "ANALYZE rea.events, rea.feed, rea.feed_passes, rea.feed_holes"},
		{"without statistics", "SELECT 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := feedLab(t)
			l.edit(feedPass, drawOwnLine, "    RETURN -2;\n")
			late := l.open("late")
			l.main.append("early")
			l.main.exec(test.prepare)
			for range 3 {
				l.main.exec("DISCARD PLANS")
				l.main.begin()
				if got := l.pass(); got != -2 {
					t.Errorf("feed_pass = %d, want -2: it ends where it would draw its xid", got)
				}
				if query[bool](l.main, "SELECT pg_current_xact_id_if_assigned() IS NOT NULL") {
					t.Error("the transaction has an xid before the pass drew it")
				}
				l.main.rollback()
			}
			late.commit()
		})
	}
	t.Run("a pass whose reading draws an xid says so and writes nothing", func(t *testing.T) {
		l := feedLab(t)
		l.edit(feedPass, searchLine, "WHERE h.stamp > f.low AND h.stamp <> pg_current_xact_id()\n")
		l.main.append("early")
		wantState(t, l.main.try("SELECT rea.feed_pass()"), "XX000")
		l.wantVerdict(verdict{Skipped: 1})
	})
}
