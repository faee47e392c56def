package storetest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

var times = []clause{
	{"P7 the archive gives an append its time, in UTC and microseconds", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		before := time.Now().Add(-time.Minute)
		put(t, b.Autocommit(), order1, event("A"))
		e := of(t, b.Autocommit(), order1)[0]
		if e.CreatedAt.Before(before) || e.CreatedAt.After(time.Now().Add(time.Minute)) {
			t.Errorf("CreatedAt = %v, want about now", e.CreatedAt)
		}
		same(t, "location", e.CreatedAt.Location(), time.UTC)
		same(t, "parts of a microsecond", e.CreatedAt.Nanosecond()%1000, 0)
		same(t, "RecordedAt", e.RecordedAt, time.Time{})
	}},
	{"P7 an imported time is kept to the microsecond, and the recording time stands beside it", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		zone := time.FixedZone("east", 9*3600)
		given := []time.Time{
			time.Date(2024, 2, 29, 23, 59, 59, 999999000, time.UTC), time.Date(2024, 3, 1, 8, 0, 0, 1000, zone),
			time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC),
			time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC), time.Date(2023, 11, 5, 8, 40, 0, 0, time.UTC),
		}
		for _, at := range given[:2] {
			imported(t, b, line(order1, "A", func(l *rea.Line) { l.CreatedAt = at }))
		}
		for _, at := range given[3:] {
			imported(t, b, line(order1, "A", func(l *rea.Line) { l.CreatedAt = at }))
		}
		// the zero time.Time is year 1's first instant: not given
		imported(t, b, line(order1, "A", func(l *rea.Line) { l.CreatedAt = given[2].Add(time.Microsecond) }))
		want := []time.Time{given[0], given[1].UTC(), given[3], given[4], given[5], given[2].Add(time.Microsecond)}
		for i, e := range of(t, b.Autocommit(), order1) {
			same(t, "CreatedAt", e.CreatedAt, want[i])
			if time.Since(e.RecordedAt).Abs() > time.Minute {
				t.Errorf("RecordedAt = %v, want about now", e.RecordedAt)
			}
		}
	}},
	{"P7 times outside the years 1 to 9999 and parts of a microsecond are refused", func(t *testing.T, d *Door) {
		for _, at := range []time.Time{
			time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC),
			time.Date(2024, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("east", 3600)),
		} {
			l := line(order1, "A", func(l *rea.Line) { l.CreatedAt = at })
			same(t, "What", refused[*rea.LimitError](t, at.String(), l.Normalize()).What, "created_at")
		}
	}},
	{"P17 every field that a writer may set comes back as it was given", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit().With(rea.By("42"), rea.Because("because\nof\ttwo lines"), rea.Correlate("c-1"), rea.Once("k-1"),
			rea.Metadata([]byte(`{"trace":"t","ip":[1,2]}`)), rea.Correction())
		e := event("OrderPlaced", `{"a":1}`)
		e.Version = 7
		receipt := put(t, tx, order1, e)
		got := of(t, b.Autocommit(), order1)[0]
		want := rea.Event{
			ID: receipt.Events[0].ID, Aggregate: order1, Seq: 1, Type: "OrderPlaced", Version: 7, Payload: json.RawMessage(`{"a": 1}`),
			Correction: true, Actor: "42", Reason: "because\nof\ttwo lines", Correlation: "c-1", Key: "k-1", KeyEvents: 1,
			Metadata: json.RawMessage(`{"ip": [1, 2], "trace": "t"}`), XID: got.XID, DBUser: got.DBUser, CreatedAt: got.CreatedAt,
		}
		want.Position = got.Position // where ids are positions it has one already
		same(t, "event", got, want)
		if got.XID == "" {
			t.Errorf("XID is empty, want the number of a transaction")
		}
	}},
	{"P17 what was not given is empty, version is 1 and the payload an empty object", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		receipt := put(t, b.Autocommit(), order1, event("OrderPlaced"))
		got := of(t, b.Autocommit(), order1)[0]
		same(t, "event", got, rea.Event{
			ID: receipt.Events[0].ID, Position: got.Position, Aggregate: order1, Seq: 1, Type: "OrderPlaced", Version: 1,
			Payload: json.RawMessage(`{}`), XID: got.XID, DBUser: got.DBUser, CreatedAt: got.CreatedAt,
		})
	}},
	{"P17 Config.Actor says who acts, and By says it instead", func(t *testing.T, d *Door) {
		type who struct{}
		b := d.Open(t, d.Migrated(t), rea.Config{Actor: func(ctx context.Context) string { name, _ := ctx.Value(who{}).(string); return name }})
		for _, c := range []struct {
			ctx  string
			by   []rea.Option
			want string
		}{{"ann", nil, "ann"}, {"ann", []rea.Option{rea.By("bob")}, "bob"}, {"", nil, ""}} {
			receipt, err := b.Autocommit().With(c.by...).Append(context.WithValue(t.Context(), who{}, c.ctx), order1, event("X"))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "Actor", of(t, b.Autocommit(), order1)[receipt.Seq()-1].Actor, c.want)
		}
	}},
}
