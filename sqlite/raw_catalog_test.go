package sqlite

import (
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// A plain INSERT names what the machine would have given, and the trigger checks it.
func TestAPlainInsertIsHeldToTheMachine(t *testing.T) {
	t.Parallel()
	of := func(paid string, renamed map[string]string) *rea.Catalog {
		c, err := rea.NewCatalog(rea.Type{Name: "order", Status: "status", Strict: true, Renamed: renamed, Events: []rea.EventType{
			{Name: "Placed", From: []string{rea.FromNone}, To: "placed"},
			{Name: "Paid", From: []string{"placed"}, To: paid},
			{Name: "Shipped", From: []string{paid}, To: "shipped"},
			{Name: "Noted", From: []string{rea.FromAny}},
			{Name: "Payed", AliasOf: "Paid"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	path := newFile(t)
	archive := openAt(t, path, Config{})
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	db := rawDB(t, archive, "")
	insert := func(want, values string) {
		t.Helper()
		_, err := db.Exec(`INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, status, catalog_version, correction, actor_id, reason) VALUES ` + values)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error = %v, want %q", values, err, want)
		}
	}
	apply := func(c *rea.Catalog) {
		t.Helper()
		if _, err := openAt(t, path, Config{Config: rea.Config{Catalog: c}}).Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	insert("RE002", `('order', '0', 1, 'Placed', 'placed', 1, 0, NULL, NULL)`)
	insert("", `('order', '0', 1, 'Placed', NULL, NULL, 0, NULL, NULL), ('order', '0', 2, 'Other', NULL, NULL, 0, NULL, NULL)`)
	apply(of("paid", nil))
	insert("RE002 illegal_step: this is not the status", `('order', '1', 1, 'Placed', NULL, NULL, 0, NULL, NULL)`)
	insert("RE002 illegal_step: catalog_version", `('order', '1', 1, 'Placed', 'placed', 2, 0, NULL, NULL)`)
	insert("does not allow", `('order', '1', 1, 'Paid', 'paid', 1, 0, NULL, NULL)`)
	insert("does not allow", `('order', '1', 1, 'Noted', NULL, 1, 0, NULL, NULL)`)
	insert("RE006", `('order', '1', 1, 'Other', NULL, 1, 0, NULL, NULL)`)
	insert("old name", `('order', '1', 1, 'Payed', 'paid', 1, 1, '42', 'test')`)
	insert("", `('order', '1', 1, 'Placed', 'placed', 1, 0, NULL, NULL), ('order', '1', 2, 'Paid', 'paid', 1, 0, NULL, NULL)`)
	insert("does not allow", `('order', '1', 3, 'Paid', 'paid', 1, 0, NULL, NULL)`)
	insert("RE001", `('order', '1', 2, 'Shipped', 'shipped', 1, 0, NULL, NULL)`)
	insert("RE002", `('payment', '1', 1, 'X', 'paid', 1, 0, NULL, NULL)`)
	insert("", `('order', '0', 3, 'Noted', 'placed', 1, 0, NULL, NULL)`) // from before the catalog
	insert("", `('order', '0', 4, 'Shipped', 'shipped', 1, 1, '42', 'a correction')`)
	apply(of("settled", map[string]string{"paid": "settled"}))
	insert("not the status", `('order', '1', 3, 'Noted', 'paid', 2, 0, NULL, NULL)`)
	insert("", `('order', '1', 3, 'Noted', 'settled', 2, 0, NULL, NULL), ('order', '1', 4, 'Shipped', 'shipped', 2, 0, NULL, NULL)`)
	if _, err := db.Exec(`DELETE FROM rea_catalogs`); err == nil || !strings.Contains(err.Error(), "RE007") {
		t.Errorf("DELETE of a catalog = %v, want RE007", err)
	}
}
