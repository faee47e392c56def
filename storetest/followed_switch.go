package storetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// followedSwitches are about what others have made on a projection's table when another one takes its place.
var followedSwitches = []clause{
	{"P11 a rebuild makes views on the table again, and takes indexes over", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		catalog := keeping(t, []rea.Type{keptType()}, hourly())
		plain := d.running(t, address, rea.Config{Catalog: catalog})
		plain.fill(t, 5)
		plain.settled(t, "hourly_sales")
		index := d.view("by_hour")
		plain.run(t, "CREATE UNIQUE INDEX "+strings.TrimPrefix(index, "rea_views.")+" ON "+d.view("hourly_sales")+" (bucket_local)")
		plain.run(t, "CREATE VIEW my_sales AS SELECT sum(orders) AS n, max(least) AS least FROM "+d.view("hourly_sales"))
		plain.run(t, "CREATE VIEW a_second AS SELECT n + 1 AS n FROM my_sales")
		e := refused[*rea.DependentsError](t, "rebuild", plain.Rebuild(limited(t), "hourly_sales", nil))
		if !e.Again || len(e.Dependents) != 2 || !strings.Contains(e.Error(), "`rea projection rebuild hourly_sales --recreate-views`") {
			t.Errorf("rebuild = %v, want two views and the flag that helps", e)
		}
		b := d.Open(t, address, rea.Config{Catalog: catalog, RecreateViews: true})
		for range 2 {
			if err := b.Rebuild(limited(t), "hourly_sales", nil); err != nil {
				t.Fatal(err)
			}
			plain.fill(t, 1)
			plain.settled(t, "hourly_sales")
		}
		same(t, "the view on the view", b.text(t, "SELECT CAST(n AS TEXT) FROM a_second"), "8")
		tx := b.begin(t)
		if _, err := tx.Text(limited(t), "INSERT INTO "+d.view("hourly_sales")+" (bucket, bucket_local) SELECT '2001-01-01T00:00:00.000000Z', bucket_local FROM "+d.view("hourly_sales")+" RETURNING bucket_local"); err == nil {
			t.Error("a row was taken that the unique index forbids")
		}
		tx.rollback(t)
		b.run(t, "DROP INDEX "+index)
		b.undrifted(t, "hourly_sales")
	}},
	{"P11 a view or an index over a column that goes keeps the table, and is named before anything is done", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		types := []rea.Type{keptType()}
		old := d.running(t, address, rea.Config{Catalog: keeping(t, types, hourly())})
		old.fill(t, 5)
		old.settled(t, "hourly_sales")
		changed := hourly()
		changed.Measures = slices.DeleteFunc(changed.Measures, func(m rea.Measure) bool { return m.Name == "least" })
		b := d.Open(t, address, rea.Config{Catalog: keeping(t, types, changed), RecreateViews: true})
		index := strings.TrimPrefix(d.view("by_least"), "rea_views.")
		for _, c := range []struct{ make, drop, says string }{
			{"CREATE VIEW my_sales AS SELECT orders, least FROM " + d.view("hourly_sales"), "DROP VIEW my_sales", "my_sales"},
			{"CREATE INDEX " + index + " ON " + d.view("hourly_sales") + " (least)", "DROP INDEX " + d.view("by_least"), "by_least"},
		} {
			b.run(t, c.make)
			e := refused[*rea.DependentsError](t, "rebuild", b.Rebuild(limited(t), "hourly_sales", nil))
			if e.Again || len(e.Dependents) != 1 || !strings.Contains(e.Dependents[0], c.says) || !strings.Contains(e.Dependents[0], "least") {
				t.Errorf("rebuild = %v, want what does not hold, and why", e)
			}
			list, err := b.Projections(limited(t))
			if err != nil || list[0].Rebuild != nil {
				t.Errorf("Rebuild = %+v, %v, want none", list[0].Rebuild, err)
			}
			same(t, "orders", d.total(t, b), "5")
			b.run(t, c.drop)
		}
		if err := b.Rebuild(limited(t), "hourly_sales", nil); err != nil {
			t.Fatal(err)
		}
		b.undrifted(t, "hourly_sales")
	}},
	{"P11 an inline table that is made anew keeps views and indexes in the same way", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		types := []rea.Type{keptType()}
		b, _ := d.keep(t, address, types, kept())
		put(t, b.Autocommit(), order1, event("Placed", `{"total": 1}`))
		b.run(t, "CREATE VIEW my_orders AS SELECT status FROM "+d.view(kept().Name))
		index := d.view("by_status")
		b.run(t, "CREATE INDEX "+strings.TrimPrefix(index, "rea_views.")+" ON "+d.view(kept().Name)+" (status)")
		again := kept()
		again.Version = 2
		catalog := keeping(t, types, again)
		_, err := d.Open(t, address, rea.Config{Catalog: catalog}).Apply(limited(t))
		e := refused[*rea.DependentsError](t, "apply", err)
		if !e.Again || len(e.Dependents) != 1 || !strings.Contains(e.Dependents[0], "my_orders") || !strings.Contains(e.Error(), "`rea catalog apply --recreate-views`") {
			t.Errorf("apply = %v, want the view and the flag that helps", e)
		}
		b = d.Open(t, address, rea.Config{Catalog: catalog, RecreateViews: true})
		if _, err := b.Apply(limited(t)); err != nil {
			t.Fatal(err)
		}
		put(t, b.Autocommit(), order1, event("Paid", `{"amount": 1}`))
		same(t, "status", b.text(t, "SELECT status FROM my_orders"), "paid")
		b.run(t, "DROP INDEX "+index)
		d.drift(t, b, types, again)
	}},
}
