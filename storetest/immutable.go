package storetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

var immutable = []clause{
	{"P1 no statement changes or removes an event", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("OrderPlaced", `{"total": 10}`), event("NoteAdded"))
		before := of(t, b.Autocommit(), order1)
		for _, statement := range d.Changes {
			tx := b.begin(t)
			if err := tx.Exec(t.Context(), statement); !says(err, "RE007") && !says(err, "RE001") { // SQLite sees an overwriting INSERT as one of a taken seq
				t.Errorf("%s: error = %v, want RE007 or RE001", statement, err)
			}
			_ = tx.Rollback(t.Context())
		}
		if len(d.Changes) < 3 {
			t.Errorf("Changes = %d, want at least UPDATE, DELETE and what else this store has", len(d.Changes))
		}
		same(t, "events afterwards", of(t, b.Autocommit(), order1), before)
	}},
	{"P1 reading and appending leave stored events as they are", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit()
		put(t, tx.With(rea.By("42"), rea.Because("call"), rea.Once("k")), order1, event("OrderPlaced", `{"total": 10}`))
		before := of(t, tx, order1)[0]
		put(t, tx.With(rea.Once("k")), order1, event("OrderPlaced", `{"total":10.0}`))
		put(t, tx, order1, event("NoteAdded", `{"total": 11}`))
		after := b.history(t, rea.Filter{})[0]
		before.Position = after.Position
		same(t, "first event", after, before)
	}},
	{"P1 a raw row that names an id is refused", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("OrderPlaced"))
		tx := b.begin(t)
		err := tx.Exec(t.Context(), "INSERT INTO "+d.Tables+"events (id, aggregate_type, aggregate_id, seq, event_type) VALUES (1000, 'order', '1', 2, 'X')")
		if !says(err, "428C9") && !says(err, "id") { // SQLite's trigger has words and no SQLSTATE
			t.Errorf("INSERT with an id: error = %v, want one about the id", err)
		}
		_ = tx.Rollback(t.Context())
		same(t, "count", b.count(t), 1)
	}},
}

// says looks for a code in an error's SQLSTATE, or in its words.
func says(err error, code string) bool {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState() == code
	}
	return err != nil && strings.Contains(err.Error(), code)
}
