package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/realtime-event-archive/rea"
)

var snapshots = []clause{
	{"P12 a load begins at the snapshot, stores one when it is time, and gives what the full replay gives", func(t *testing.T, d *Door) {
		c := &tally{every: 5, version: 1, field: "count"}
		b, log := d.counted(t, d.Migrated(t), c)
		tx := b.Autocommit()
		put(t, tx, order1, append([]rea.NewEvent{event("Placed")}, notes(3)...)...)
		b.loads(t, tx, order1, c)
		same(t, "snapshot before it is time", d.snapshotSeq(t, b), "none")
		put(t, tx, order1, notes(8)...)
		b.loads(t, tx, order1, c)
		same(t, "snapshot", d.snapshotSeq(t, b), "12")
		put(t, tx, order1, notes(2)...)
		same(t, "folds from there on", c.folded(func() {
			if _, err := tx.Load(t.Context(), order1); err != nil {
				t.Error(err)
			}
		}), 2)
		b.loads(t, tx, order1, c)
		user := b.begin(t)
		put(t, user.Tx, order1, notes(1)...)
		same(t, "folds in a user's transaction", c.folded(func() {
			if _, err := user.Load(t.Context(), order1); err != nil {
				t.Error(err)
			}
		}), 3)
		b.loads(t, user.Tx, order1, c)
		user.commit(t)
		same(t, "snapshot", d.snapshotSeq(t, b), "12")
		same(t, "warnings", log.count(), 0)
	}},
	{"P12 a snapshot of another fold is ignored, without a word, and replaced (SNAP-1)", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		first := &tally{every: 4, version: 1, field: "count"}
		b, _ := d.counted(t, address, first)
		put(t, b.Autocommit(), order1, notes(4)...)
		b.loads(t, b.Autocommit(), order1, first)
		fingerprint := func() string { return b.text(t, `SELECT fingerprint FROM `+d.Tables+`snapshots`) }
		was := fingerprint()

		second := &tally{every: 4, version: 2, field: "counted"}
		b, log := d.counted(t, address, second)
		same(t, "new field", string(b.loads(t, b.Autocommit(), order1, second).State["counted"]), "4")
		if is := fingerprint(); is == was {
			t.Errorf("fingerprint = %s, want another one: the snapshot is replaced", is)
		}
		put(t, b.Autocommit(), order1, notes(1)...)
		same(t, "folds", second.folded(func() {
			if _, err := b.Autocommit().Load(t.Context(), order1); err != nil {
				t.Error(err)
			}
		}), 1)
		b.loads(t, b.Autocommit(), order1, second)
		same(t, "warnings", log.count(), 0)
	}},
	{"P12 a snapshot exactly at the end gives its seq, and the append after it the next (SNAP-2)", func(t *testing.T, d *Door) {
		c := &tally{every: 2, version: 1, field: "count"}
		b, _ := d.counted(t, d.Migrated(t), c)
		put(t, b.Autocommit(), order1, notes(2)...)
		b.loads(t, b.Autocommit(), order1, c)
		same(t, "snapshot", d.snapshotSeq(t, b), "2")
		loaded := b.loads(t, b.Autocommit(), order1, c)
		same(t, "Seq", loaded.Seq, 2)
		receipt, err := loaded.Append(t.Context(), event("Noted"))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "Seq after", fmt.Sprint(receipt.Seq(), loaded.Seq), "3 3")
	}},
	{"P12 a damaged snapshot, one of another event and one ahead of the events are ignored, named once, and replaced (SNAP-3)", func(t *testing.T, d *Door) {
		c := &tally{every: 4, version: 1, field: "count"}
		b, log := d.counted(t, d.Migrated(t), c)
		put(t, b.Autocommit(), order1, notes(9)...)
		b.loads(t, b.Autocommit(), order1, c)
		for _, damage := range []string{
			`state = 'xx'`, `state = '{"a": 1}'`, `state = '[]'`, `state = 'null'`, `state = ''`, `state = substr(state, 1, length(state) - 3)`,
			`state = replace(state, '9', '8')`, `digest = 'xx'`, `digest = ''`, `digest = 'a b'`, `event_id = event_id + 1`, `event_id = 0`,
			`seq = seq - 1`, `seq = seq + 1`, `seq = 1000000`, `seq = 0`, `seq = -5`,
		} {
			b.run(t, `UPDATE `+d.Tables+`snapshots SET `+damage)
			before := log.count()
			loaded, err := b.Autocommit().LoadAt(t.Context(), order1, rea.At{})
			if err != nil {
				t.Fatalf("%s: %v", damage, err)
			}
			same(t, damage+": count", string(loaded.State["count"]), "9")
			if n := log.count() - before; n != 1 || !strings.Contains(log.last(), "order/1") {
				t.Errorf("%s: warnings = %d, the last %q, want one that names order/1", damage, n, log.last())
			}
			same(t, damage+": snapshot afterwards", d.snapshotSeq(t, b), "9")
			same(t, damage+": folds afterwards", c.folded(func() { b.loads(t, b.Autocommit(), order1, c) }), 9) // of the replay to compare with
			same(t, damage+": warnings afterwards", log.count()-before, 1)
		}
	}},
	{"P12 a snapshot that is whole, and of the same fold, but of another event at that seq is ignored (SNAP-3)", func(t *testing.T, d *Door) {
		c := &tally{every: 4, version: 1, field: "count"}
		foreign, _ := d.counted(t, d.Migrated(t), c)
		put(t, foreign.Autocommit(), order1, notes(4)...)
		foreign.loads(t, foreign.Autocommit(), order1, c)
		values := foreign.text(t, `SELECT seq || ', ' || event_id || ', ''' || fingerprint || ''', ''' || digest || ''', ''' || state || '''' FROM `+d.Tables+`snapshots`)

		b, log := d.counted(t, d.Migrated(t), c)
		put(t, b.Autocommit(), order2, notes(1)...)
		put(t, b.Autocommit(), order1, event("Noted", `{"mine": 1}`), event("Noted"), event("Noted"), event("Noted"))
		b.run(t, `INSERT INTO `+d.Tables+`snapshots (aggregate_type, aggregate_id, seq, event_id, fingerprint, digest, state) VALUES ('order', '1', `+values+`)`)
		same(t, "mine", string(b.loads(t, b.Autocommit(), order1, c).State["mine"]), "1")
		same(t, "warnings", log.count(), 1)
		b.loads(t, b.Autocommit(), order1, c)
		same(t, "warnings afterwards", log.count(), 1)
	}},
	{"P12 no snapshot is made of what is not committed", func(t *testing.T, d *Door) {
		c := &tally{every: 2, version: 1, field: "count"}
		b, _ := d.counted(t, d.Migrated(t), c)
		put(t, b.Autocommit(), order1, notes(1)...)
		tx := b.begin(t)
		put(t, tx.Tx, order1, notes(4)...)
		same(t, "Seq inside", b.loads(t, tx.Tx, order1, c).Seq, 5)
		if d.Concurrent { // a second transaction, beside the one that is open
			other := b.begin(t)
			same(t, "Seq beside", b.loads(t, other.Tx, order1, c).Seq, 1)
			same(t, "Seq beside", b.loads(t, b.Autocommit(), order1, c).Seq, 1)
			if stored, err := b.Snapshot(t.Context(), order1); err != nil || stored {
				t.Errorf("Snapshot = %v, %v, want false: one event has committed", stored, err)
			}
			other.commit(t)
		}
		tx.rollback(t)
		same(t, "snapshot", d.snapshotSeq(t, b), "none")
		err := b.Do(t.Context(), func(tx *rea.Tx) error {
			put(t, tx, order1, notes(4)...)
			b.loads(t, tx, order1, c)
			return errStop
		})
		same(t, "error", err, errStop)
		same(t, "snapshot", d.snapshotSeq(t, b), "none")
		if err := b.Do(t.Context(), func(tx *rea.Tx) error {
			put(t, tx, order1, notes(4)...)
			loaded := b.loads(t, tx, order1, c)
			loaded.State["count"] = json.RawMessage("0") // what the caller does with it afterwards is his
			_, err := loaded.Append(t.Context(), event("Noted"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		same(t, "snapshot of what REA's transaction has loaded", d.snapshotSeq(t, b), "5")
		same(t, "Seq", b.loads(t, b.Autocommit(), order1, c).Seq, 6)
	}},
	{"P12 an older snapshot does not take the place of a newer one", func(t *testing.T, d *Door) {
		if !d.Concurrent {
			return // one writes at a time, and what it has read is the latest
		}
		c := &tally{every: 2, version: 1, field: "count"}
		b, _ := d.counted(t, d.Migrated(t), c)
		put(t, b.Autocommit(), order1, notes(3)...)
		if err := b.Do(t.Context(), func(tx *rea.Tx) error {
			if _, err := tx.Load(t.Context(), order1); err != nil { // to be stored at 3, after the commit
				return err
			}
			put(t, b.Autocommit(), order1, notes(3)...)
			b.loads(t, b.Autocommit(), order1, c)
			same(t, "snapshot before the commit", d.snapshotSeq(t, b), "6")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		same(t, "snapshot after it", d.snapshotSeq(t, b), "6")
	}},
	{"P12 moments before the snapshot are what they were", func(t *testing.T, d *Door) {
		c := &tally{every: 3, version: 1, field: "count"}
		b, log := d.counted(t, d.Migrated(t), c)
		tx := b.Autocommit()
		put(t, tx, order1, notes(7)...)
		b.history(t, rea.Filter{})
		b.loads(t, tx, order1, c)
		same(t, "snapshot", d.snapshotSeq(t, b), "7")
		for _, e := range of(t, tx, order1) {
			for _, at := range []rea.At{rea.AtSeq(e.Seq), rea.AtPosition(e.Position), rea.AtTime(e.CreatedAt)} {
				loaded, err := tx.LoadAt(t.Context(), order1, at)
				if err != nil {
					t.Fatal(err)
				}
				replayed, err := rea.ReplayAt(t.Context(), tx, order1, at, c.catalog(t).Fold)
				if err != nil {
					t.Fatal(err)
				}
				same(t, fmt.Sprint("State at ", at), fieldTexts(loaded.State), fieldTexts(replayed.State))
				same(t, fmt.Sprint("Seq at ", at), loaded.Seq, replayed.Seq)
			}
		}
		_, err := tx.LoadAt(t.Context(), order1, rea.AtSeq(8))
		same(t, "Last", refused[*rea.NoSuchSeqError](t, "seq 8", err).Last, 7)
		_, err = tx.LoadAt(t.Context(), order1, rea.AtSeq(0))
		refused[*rea.NotFoundError](t, "seq 0", err)
		_, err = tx.Load(t.Context(), order2)
		refused[*rea.NotFoundError](t, "no events", err)
		same(t, "warnings", log.count(), 0)
	}},
	{"P12 folds in Go have snapshots only where FoldVersion speaks for them, and no type has where it says so", func(t *testing.T, d *Door) {
		for _, c := range []*tally{{every: 2, field: "count"}, {every: -1, version: 1, field: "count"}} {
			b, _ := d.counted(t, d.Migrated(t), c)
			put(t, b.Autocommit(), order1, notes(9)...)
			b.loads(t, b.Autocommit(), order1, c)
			if stored, err := b.Snapshot(t.Context(), order1); stored || err != nil {
				t.Errorf("Snapshot = %v, %v, want false", stored, err)
			}
			same(t, "snapshot", d.snapshotSeq(t, b), "none")
		}
	}},
	{"P12 an event in an old version after the snapshot is upcast, and a snapshot of another chain of upcasters ignored (VER-1)", func(t *testing.T, d *Door) {
		catalog := func(version int) *rea.Catalog {
			upcast := map[int]rea.UpcastFunc{}
			for n := 1; n < version; n++ {
				upcast[n] = func(payload rea.Object) (rea.Object, error) {
					payload[fmt.Sprint("v", n+1)] = payload["n"]
					return payload, nil
				}
			}
			return catalogOf(t, rea.Type{Name: "order", SnapshotEvery: 2, FoldVersion: 1, Events: []rea.EventType{
				{Name: "Noted", Version: version, Upcast: upcast, Fold: rea.Merge},
			}})
		}
		address := d.Migrated(t)
		for version := 1; version <= 3; version++ {
			b := d.Open(t, address, rea.Config{Catalog: catalog(version)})
			for n := range 5 {
				old := event("Noted", fmt.Sprintf(`{"n": %d}`, n))
				old.Version = 1
				put(t, b.Autocommit(), order1, old)
				loaded, err := b.Autocommit().Load(t.Context(), order1)
				if err != nil {
					t.Fatal(err)
				}
				replayed, err := rea.Replay(t.Context(), b.Autocommit(), order1, catalog(version).Fold)
				if err != nil {
					t.Fatal(err)
				}
				same(t, "State", fieldTexts(loaded.State), fieldTexts(replayed.State))
			}
		}
	}},
	{"P12 a typed state has snapshots where JSON holds all of it", func(t *testing.T, d *Door) {
		c := catalogOf(t,
			rea.Type{Name: "order", SnapshotEvery: 2, FoldVersion: 1, Events: []rea.EventType{rea.On(rea.EventType{Name: "Noted"}, (*shownCount).noted)}},
			rea.Type{Name: "secret", SnapshotEvery: 2, FoldVersion: 1, Events: []rea.EventType{rea.On(rea.EventType{Name: "Noted"}, (*hiddenCount).noted)}})
		b := d.Open(t, d.Migrated(t), rea.Config{Catalog: c})
		secret := rea.Ref{Type: "secret", ID: "1"}
		for n := range 7 {
			put(t, b.Autocommit(), order1, event("Noted", fmt.Sprintf(`{"n": %d}`, n)))
			put(t, b.Autocommit(), secret, event("Noted", fmt.Sprintf(`{"n": %d}`, n)))
			shown, err := rea.Load[shownCount](t.Context(), b.Autocommit(), "1")
			if err != nil {
				t.Fatal(err)
			}
			hidden, err := rea.Load[hiddenCount](t.Context(), b.Autocommit(), "1")
			if err != nil {
				t.Fatal(err)
			}
			same(t, "count", fmt.Sprint(shown.State.Count, len(shown.State.Seen), hidden.State.Count), fmt.Sprint(n+1, n+1, n+1))
			object, err := b.Autocommit().Load(t.Context(), order1)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "as JSON", string(object.State["Count"]), fmt.Sprint(n+1))
		}
		same(t, "snapshot", d.snapshotSeq(t, b), "6")
		same(t, "snapshots", b.text(t, `SELECT CAST(count(*) AS text) FROM `+d.Tables+`snapshots`), "1")
	}},
	{"P12 whatever stands in the snapshots, at whatever seq, a load gives what the full replay gives", func(t *testing.T, d *Door) {
		c := &tally{every: 3, version: 1, field: "count"}
		b, _ := d.counted(t, d.Migrated(t), c)
		var n int
		rapid.Check(t, func(rt *rapid.T) {
			n++
			aggregate := rea.Ref{Type: "order", ID: fmt.Sprint(n)}
			put(t, b.Autocommit(), aggregate, notes(rapid.IntRange(1, 9).Draw(rt, "events"))...)
			for range rapid.IntRange(1, 6).Draw(rt, "steps") {
				where := ` WHERE aggregate_id = '` + aggregate.ID + `'`
				switch rapid.IntRange(0, 4).Draw(rt, "what") {
				case 0:
					put(t, b.Autocommit(), aggregate, notes(rapid.IntRange(1, 7).Draw(rt, "more"))...)
				case 1:
					if _, err := b.Snapshot(t.Context(), aggregate); err != nil {
						rt.Fatal(err)
					}
				case 2:
					set := rapid.SampledFrom([]string{
						`seq = seq - 1`, `seq = seq + 2`, `event_id = event_id - 1`, `state = 'xx'`, `state = '{}'`, `digest = 'x'`, `fingerprint = 'x'`,
						`state = (SELECT min(s.state) FROM ` + d.Tables + `snapshots s)`, `digest = (SELECT min(s.digest) FROM ` + d.Tables + `snapshots s)`,
					}).Draw(rt, "damage")
					b.run(t, `UPDATE `+d.Tables+`snapshots SET `+set+where)
				case 3:
					b.run(t, `DELETE FROM `+d.Tables+`snapshots`+where)
				default:
					b.loads(t, b.Autocommit(), aggregate, c)
				}
			}
			last := b.loads(t, b.Autocommit(), aggregate, c).Seq
			seq := rapid.Int64Range(1, last).Draw(rt, "seq")
			loaded, err := b.Autocommit().LoadAt(t.Context(), aggregate, rea.AtSeq(seq))
			if err != nil {
				rt.Fatal(err)
			}
			if got := string(loaded.State["count"]); got != fmt.Sprint(seq) {
				rt.Fatalf("count at seq %d = %s", seq, got)
			}
		})
	}},
}
