package storetest

import (
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
			if err := tx.Exec(t.Context(), statement); err == nil {
				t.Errorf("%s: error = nil, want a refusal", statement)
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
		if err == nil {
			t.Errorf("INSERT with an id: error = nil, want a refusal")
		}
		_ = tx.Rollback(t.Context())
		same(t, "count", b.count(t), 1)
	}},
}
