package storetest

import (
	"testing"

	"github.com/realtime-event-archive/rea"
)

// inlineStatuses are about what an archive says of its inline projections.
var inlineStatuses = []clause{
	{"P6 an archive says which inline projections are kept as they are declared", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		states := func(b *Base, want string) {
			t.Helper()
			list, err := b.InlineProjections(limited(t))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, s := range list {
				got += s.Name + " " + s.Of + " " + s.State + "; "
				if (s.Trouble == "") != (s.State == rea.StateRunning) {
					t.Errorf("%s is %s, and the trouble is %q", s.Name, s.State, s.Trouble)
				}
			}
			same(t, "inline projections", got, want)
		}
		types := []rea.Type{keptType()}
		states(d.Open(t, address, rea.Config{Catalog: keeping(t, types, kept())}), "order_state order new; ")
		b, _ := d.keep(t, address, types, kept())
		states(b, "order_state order running; ")
		states(d.Open(t, address, rea.Config{}), "order_state order running; ")
		raised, other := kept(), kept()
		raised.Version, other.Name = 2, "another"
		states(d.Open(t, address, rea.Config{Catalog: keeping(t, types, raised, other)}), "another order new; order_state order needs rebuild; ")
	}},
}
