package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// functionSnapshots: what an inline function sees may be taken back, and another event get its seq, and on SQLite its id.
var functionSnapshots = []clause{
	{"P12 no snapshot is kept of an event that goes with a refused append, whatever was loaded meanwhile", func(t *testing.T, d *Door) {
		catalog := catalogOf(t, rea.Type{Name: "order", SnapshotEvery: 1, Events: []rea.EventType{
			does(rea.EventType{Name: "Noted"}, setTo("n", "$.n"))}, FoldVersion: 1})
		var during *rea.Tx
		b := d.Open(t, d.Migrated(t), rea.Config{Catalog: catalog, Inline: []rea.Inline{{Name: "looks", Apply: func(ctx context.Context, _ rea.SQL, e rea.Event) error {
			if string(e.Payload) != `{"n": "bad"}` {
				return nil
			}
			_, err := during.Load(ctx, e.Aggregate)
			return errors.Join(err, errStop)
		}}}})
		err := b.Do(limited(t), func(tx *rea.Tx) error {
			during = tx
			if _, err := tx.Append(limited(t), order1, event("Noted", `{"n": "bad"}`)); !errors.Is(err, errStop) {
				t.Errorf("append = %v, want the function's error", err)
			}
			_, err := tx.Append(limited(t), order1, event("Noted", `{"m": "good"}`))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := b.Autocommit().Load(limited(t), order1)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "n", string(loaded.State["n"]), "")
	}},
}
