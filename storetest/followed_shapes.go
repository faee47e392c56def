package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// paidAt stores a payment of a moment.
func paidAt(t *testing.T, b *Base, moment, payload string) {
	t.Helper()
	when, err := time.Parse(time.RFC3339, moment)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Do(limited(t), func(tx *rea.Tx) error {
		results, err := tx.Import(limited(t), []rea.Line{{Aggregate: order1, Event: event("Paid", payload), CreatedAt: when}})
		if err == nil {
			err = results[0].Err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// buckets lists the rows of a table of statistics: bucket_local, dimensions, sum.
func (d *Door) buckets(t *testing.T, b *Base, name, columns string) string {
	t.Helper()
	all := "group_concat(x, ' | ')"
	if d.Concurrent {
		all = "string_agg(x, ' | ' ORDER BY x)"
	}
	return b.text(t, "SELECT "+all+" FROM (SELECT bucket_local || ' ' || "+columns+" AS x FROM "+d.view(name)+" ORDER BY 1) y")
}

var followedShapes = []clause{
	{"P7 buckets are by instant in a named zone, whatever the clocks do", func(t *testing.T, d *Door) {
		zoned := func(name, zone string, every time.Duration) rea.Projection {
			p := hourly()
			p.Name, p.Zone, p.Every, p.Measures = name, zone, every, p.Measures[1:2]
			return p
		}
		b := d.running(t, d.Migrated(t), rea.Config{PollEvery: 5 * time.Millisecond, Catalog: keeping(t, []rea.Type{keptType()},
			zoned("la", "America/Los_Angeles", time.Hour), zoned("kolkata", "Asia/Kolkata", time.Hour), zoned("la_day", "America/Los_Angeles", 24*time.Hour),
			zoned("quarter", "Asia/Kathmandu", 15*time.Minute))})
		paidAt(t, b, "2023-11-05T08:40:00Z", `{"amount": 1}`)
		paidAt(t, b, "2023-11-05T09:40:00Z", `{"amount": 2}`)
		paidAt(t, b, "2024-03-10T09:59:59Z", `{"amount": 4}`)
		paidAt(t, b, "2024-03-10T10:00:00Z", `{"amount": 8}`)
		names := []string{"la", "kolkata", "la_day", "quarter"}
		b.settled(t, names...)
		const amount = "CAST(amount AS TEXT)"
		same(t, "Los Angeles", d.buckets(t, b, "la", amount),
			"2023-11-05T01:00:00-07:00 1 | 2023-11-05T01:00:00-08:00 2 | 2024-03-10T01:00:00-08:00 4 | 2024-03-10T03:00:00-07:00 8")
		same(t, "Kolkata", d.buckets(t, b, "kolkata", amount),
			"2023-11-05T14:00:00+05:30 1 | 2023-11-05T15:00:00+05:30 2 | 2024-03-10T15:00:00+05:30 12")
		same(t, "days", d.buckets(t, b, "la_day", amount), "2023-11-05T00:00:00-07:00 3 | 2024-03-10T00:00:00-08:00 12")
		same(t, "quarters", d.buckets(t, b, "quarter", amount),
			"2023-11-05T14:15:00+05:45 1 | 2023-11-05T15:15:00+05:45 2 | 2024-03-10T15:30:00+05:45 4 | 2024-03-10T15:45:00+05:45 8")
		for _, name := range names {
			b.undrifted(t, name)
		}
	}},
	{"P6 statistics have dimensions, which may be absent, and old versions and names count", func(t *testing.T, d *Door) {
		p := rea.Projection{Name: "by_region", On: []string{"Placed", "Paid"}, By: []rea.Dimension{
			{Name: "region", Operand: rea.Operand{Path: []string{"customer", "region"}}}, {Name: "event", Operand: rea.Operand{Attribute: "@event_type"}}},
			Measures: []rea.Measure{{Name: "n", Kind: rea.MeasureCount}, {Name: "total", Kind: rea.MeasureSum, Operand: rea.Operand{Path: []string{"total"}}}}}
		b := d.running(t, d.Migrated(t), rea.Config{PollEvery: 5 * time.Millisecond, PageEvents: 2, Catalog: keeping(t, []rea.Type{keptType()}, p)})
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1.50, "customer": {"region": "eu"}}`),
			rea.NewEvent{Type: "Placed", Version: 1, Payload: []byte(`{"sum": 2, "customer": {"region": "eu"}}`)}, event("PlacedV1", `{"sum": 3}`),
			event("Ordered", `{"total": null}`), event("Paid", `{"customer": {"region": 7}}`), event("Noted"), event("Touched"))
		b.settled(t, "by_region")
		query := "SELECT CAST(n AS TEXT) || ' ' || coalesce(CAST(total AS TEXT), 'NULL') FROM " + d.view("by_region") + " WHERE "
		same(t, "eu", b.text(t, query+"region = 'eu'"), "2 3.50")
		same(t, "absent", b.text(t, query+"region = '' AND event = 'Placed'"), "2 3")
		same(t, "a number", b.text(t, query+"region = '7'"), "1 NULL")
		b.undrifted(t, "by_region")
	}},
	{"P9 an event of a newer program stalls its projections with a typed error, and times order nothing", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		b := d.running(t, d.Migrated(t), rea.Config{PollEvery: 5 * time.Millisecond, RetryAfter: time.Millisecond, StallAfter: 2, Catalog: keeping(t, types, hourly(), followedState())})
		paidAt(t, b, "2024-03-10T10:00:00Z", `{"amount": 8, "at": "2024-03-10T10:00:00Z"}`)
		paidAt(t, b, "2023-03-10T10:00:00Z", `{"amount": 1, "at": "2023-03-10T10:00:00Z"}`)
		paidAt(t, b, "2023-03-10T10:00:00Z", `{"amount": 2}`)
		b.settled(t, "hourly_sales", "order_state")
		d.drift(t, b, types, followedState())
		same(t, "at", *d.rows(t, b, followedState())["1"][5], "2023-03-10T10:00:00.000000Z")
		put(t, b.Autocommit(), order1, rea.NewEvent{Type: "Paid", Version: 2, Payload: []byte(`{"amount": 1}`)})
		for _, name := range []string{"hourly_sales", "order_state"} {
			s := b.status(t, name, func(s rea.ProjectionStatus) bool { return s.State == rea.StateStalled })
			if !strings.Contains(s.Failed.Error, "order/1") || !strings.Contains(s.Failed.Error, "Paid") || !strings.Contains(s.Failed.Error, "2") {
				t.Errorf("error = %q, want the event, its version and its aggregate", s.Failed.Error)
			}
		}
	}},
	{"P8 payloads that fill a page each are projected as others are", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		b := d.Open(t, d.Migrated(t), rea.Config{PollEvery: 5 * time.Millisecond, Catalog: keeping(t, types, hourly(), followedState())})
		large := `{"amount": 1, "text": "` + strings.Repeat("x", rea.MaxPageBytes*5/8) + `"}`
		for range 3 {
			put(t, b.Autocommit(), order1, event("Paid", large), event("Other"))
		}
		put(t, b.Autocommit(), order1, event("Paid", `{"amount": 2}`))
		b.start(t)
		b.settled(t, "hourly_sales", "order_state")
		same(t, "orders", d.total(t, b), "4")
		b.undrifted(t, "hourly_sales")
		b.undrifted(t, "order_state")
	}},
	{"P6 rows of an inline table that somebody has edited are found", func(t *testing.T, d *Door) {
		b := d.kept(t)
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1.50}`), event("Paid", `{"amount": 2, "at": "2024-02-29T12:00:00Z"}`))
		put(t, b.Autocommit(), order2, event("Placed", `{"total": 3}`), event("Noted", `{"day": "2024-02-29", "urgent": true, "data": [1.0]}`))
		b.undrifted(t, "order_state")
		b.run(t, "UPDATE "+d.view("order_state")+" SET payments = 7 WHERE aggregate_id = '1'")
		b.run(t, "DELETE FROM "+d.view("order_state")+" WHERE aggregate_id = '2'")
		var found []string
		if err := b.CheckProjection(limited(t), "order_state", func(d rea.Drift) { found = append(found, d.Kind+" "+d.Key[0]+" "+d.Column) }); err != nil {
			t.Fatal(err)
		}
		same(t, "drift", strings.Join(found, ", "), "different 1 payments, missing 2 ")
	}},
	{"P6 a followed table keeps lists", func(t *testing.T, d *Door) {
		order := rea.Type{Name: "order", Events: []rea.EventType{
			does(rea.EventType{Name: "Tagged"}, on(rea.OpAppend, "tags", "$.tag")), does(rea.EventType{Name: "Untagged"}, on(rea.OpRemove, "tags", "$.tag")),
		}}
		p := rea.Projection{Name: "tags", Of: "order", Columns: []rea.Column{{Name: "tags", Type: rea.JSONB}}}
		b := d.running(t, d.Migrated(t), rea.Config{PollEvery: 5 * time.Millisecond, PageEvents: 2, Catalog: keeping(t, []rea.Type{order}, p)})
		put(t, b.Autocommit(), order1, event("Untagged", `{"tag": "a"}`), event("Tagged", `{"tag": "a"}`), event("Tagged", `{"tag": {"b": 1.0}}`), event("Tagged", `{"tag": "a"}`),
			event("Tagged", `{}`), event("Untagged", `{"tag": {"b": 1}}`))
		b.settled(t, "tags")
		same(t, "tags", b.text(t, "SELECT CAST(tags AS TEXT) FROM "+d.view("tags")), `["a", "a"]`)
		b.undrifted(t, "tags")
	}},
	{"P6 a row lacks nothing when events between are missing: they are folded first", func(t *testing.T, d *Door) {
		types := []rea.Type{keptType()}
		b := d.Open(t, d.Migrated(t), rea.Config{PollEvery: 5 * time.Millisecond, PageEvents: 3, Catalog: keeping(t, types, followedState())})
		stop := b.start(t)
		b.fill(t, 30)
		b.settled(t, "order_state")
		stop()
		b.run(t, "DELETE FROM "+d.view("order_state"))
		b.fill(t, 30)
		b.start(t)
		b.settled(t, "order_state")
		d.drift(t, b, types, followedState())
	}},
	{"P6 one can wait until a projection has an event", func(t *testing.T, d *Door) {
		b := d.running(t, d.Migrated(t), rea.Config{PollEvery: 5 * time.Millisecond, Catalog: keeping(t, []rea.Type{keptType()}, hourly())})
		for n := range 3 {
			receipt := put(t, b.Autocommit(), order1, event("Paid", `{"amount": 1}`))
			if err := b.WaitForEvent(limited(t), "hourly_sales", receipt.Events[0].ID); err != nil {
				t.Fatal(err)
			}
			same(t, "orders", d.total(t, b), string(rune('1'+n)))
		}
		same(t, "offsets", b.text(t, "SELECT projection_name || ' ' || CAST(last_processed_seq AS TEXT) FROM "+d.Tables+"projection_offsets WHERE updated_at IS NOT NULL"), "hourly_sales 3")
	}},
	{"P6 nobody waits for an event that is not there", func(t *testing.T, d *Door) {
		b := d.running(t, d.Migrated(t), rea.Config{PollEvery: 5 * time.Millisecond, Catalog: keeping(t, []rea.Type{keptType()}, hourly())})
		put(t, b.Autocommit(), order1, event("Paid", `{"amount": 1}`))
		b.settled(t, "hourly_sales")
		missing := func(id int64) {
			t.Helper()
			if err := b.WaitForEvent(limited(t), "hourly_sales", id); !errors.Is(err, rea.ErrNotFound) {
				t.Errorf("wait for the event %d = %v, want ErrNotFound", id, err)
			}
		}
		missing(1_000_000)
		tx, err := b.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id := put(t, tx.Tx, order2, event("Paid", `{"amount": 1}`)).Events[0].ID
		missing(id) // nobody can tell the two
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.WaitForEvent(limited(t), "hourly_sales", id); err != nil {
			t.Error(err)
		}
	}},
}
