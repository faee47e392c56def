package storetest

import (
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

var snapshotRuns = []clause{
	{"P12 a runner stores snapshots of what is appended, and leaves those of another fold alone", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		first := &tally{every: 4, version: 1, field: "count"}
		b := d.Open(t, address, rea.Config{Catalog: first.catalog(t), NoSnapshots: true, PollEvery: 5 * time.Millisecond})
		order2 := rea.Ref{Type: order1.Type, ID: "2"}
		stored := func(id string) string {
			return b.text(t, `SELECT coalesce((SELECT CAST(seq AS text) || ' ' || fingerprint FROM `+d.Tables+`snapshots WHERE aggregate_type = 'order' AND aggregate_id = '`+id+`'), '')`)
		}
		// until appends to an aggregate until the runner has looked at what came before
		until := func(aggregate rea.Ref) {
			t.Helper()
			for ctx := limited(t); stored(aggregate.ID) == ""; {
				put(t, b.Autocommit(), aggregate, notes(4)...)
				if ctx.Err() != nil {
					t.Fatalf("no snapshot of %s", aggregate)
				}
			}
		}
		put(t, b.Autocommit(), order1, notes(7)...)
		stop := b.start(t)
		until(order1)
		b.loads(t, b.Autocommit(), order1, first)
		stop()
		was := stored("1")

		second := &tally{every: 4, version: 2, field: "counted"}
		b = d.Open(t, address, rea.Config{Catalog: second.catalog(t), NoSnapshots: true, PollEvery: 5 * time.Millisecond})
		stop = b.start(t)
		until(order2)
		put(t, b.Autocommit(), order1, notes(8)...)
		until(rea.Ref{Type: order1.Type, ID: "3"})
		stop()
		same(t, "the snapshot of the other fold", stored("1"), was)
		b.loads(t, b.Autocommit(), order1, second)
	}},
}
