package storetest

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/realtime-event-archive/rea"
)

// machineModel is what SPEC 5 says of statuses, in the plainest form: per aggregate the events with what is stored of
// each, and every catalog that was applied.
type machineModel struct {
	catalogs []rea.Type // number - 1
	events   map[rea.Ref][]machineEvent
}

type machineEvent struct {
	kind, status string
	catalog      int
}

func eventOf(t rea.Type, kind string) *rea.EventType {
	for i := range t.Events {
		if t.Events[i].Name == kind {
			return &t.Events[i]
		}
	}
	return nil
}

// present is the last event's stored status through every renamed since; where it is null, that of the last event that
// has one or leads to one.
func (m *machineModel) present(events []machineEvent) string {
	now := m.catalogs[len(m.catalogs)-1]
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		if e.status != "" {
			for _, later := range m.catalogs[e.catalog:] {
				if name, ok := later.Renamed[e.status]; ok {
					e.status = name
				}
			}
			return e.status
		}
		declared := eventOf(now, e.kind)
		if declared != nil && declared.AliasOf != "" {
			declared = eventOf(now, declared.AliasOf)
		}
		if declared != nil && declared.To != "" && now.Status != "" {
			return declared.To
		}
	}
	return ""
}

func (m *machineModel) append(ref rea.Ref, kinds []string, correction bool) (code string) {
	events := append([]machineEvent(nil), m.events[ref]...)
	for _, kind := range kinds {
		e := machineEvent{kind: kind}
		if n := len(m.catalogs); n > 0 {
			now := m.catalogs[n-1]
			declared := eventOf(now, kind)
			if now.Status != "" {
				e.status, e.catalog = m.present(events), n
			}
			switch {
			case declared == nil && now.Strict:
				return "unknown_type"
			case declared == nil:
			case declared.AliasOf != "" || declared.Retired:
				return "illegal_step"
			default:
				legal := len(declared.From) == 0
				for _, from := range declared.From {
					legal = legal || from == rea.FromNone && len(events) == 0 ||
						len(events) > 0 && (from == rea.FromAny || from == e.status)
				}
				if !legal && !correction {
					return "illegal_step"
				}
				if declared.To != "" {
					e.status = declared.To
				}
			}
		}
		events = append(events, e)
	}
	m.events[ref] = events
	return ""
}

// unknown: some aggregate's present status is none that the newest catalog knows.
func (m *machineModel) unknown() bool {
	now := m.catalogs[len(m.catalogs)-1]
	if now.Status == "" {
		return false
	}
	for _, events := range m.events {
		if status := m.present(events); status != "" {
			known := false
			for _, s := range now.Statuses() {
				known = known || s == status
			}
			if !known {
				return true
			}
		}
	}
	return false
}

var machineKinds = []string{"A", "B", "C", "D", "E"}

// machineType draws a declaration over few names; what cannot be a catalog is drawn again.
var machineType = rapid.Custom(func(t *rapid.T) rea.Type {
	decl := rea.Type{Name: "order", Strict: rapid.IntRange(0, 4).Draw(t, "strict") == 0}
	if rapid.IntRange(0, 7).Draw(t, "machine") > 0 {
		decl.Status = "status"
	}
	for _, kind := range machineKinds {
		e := rea.EventType{Name: kind}
		switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
		case what == 0:
			continue
		case what == 1:
			e.Retired = true
		case what == 2 && kind != "A":
			e.AliasOf = "A"
		case decl.Status != "":
			e.To = rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "to")
			e.From = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"none", "any", "x", "y", "z"}), 0, 3, rapid.ID[string]).Draw(t, "from")
		}
		decl.Events = append(decl.Events, e)
	}
	if rapid.Bool().Draw(t, "renames") && decl.Status != "" {
		decl.Renamed = rapid.MapOfN(rapid.SampledFrom([]string{"x", "y", "z"}), rapid.SampledFrom([]string{"x", "y", "z"}), 1, 2).Draw(t, "renamed")
	}
	return decl
}).Filter(func(t rea.Type) bool {
	_, err := rea.NewCatalog(t)
	return err == nil
})

var machineModels = []clause{
	{"P10 catalogs that change over stored events are as the model says", func(t *testing.T, d *Door) {
		var bases []string
		rapid.Check(t, func(rt *rapid.T) {
			if testing.Short() && len(bases) >= 10 {
				return
			}
			address := d.Migrated(t)
			bases = append(bases, address)
			b := d.Open(t, address, rea.Config{})
			defer b.Close()
			model := &machineModel{events: map[rea.Ref][]machineEvent{}}
			text := ""
			for range rapid.IntRange(5, 30).Draw(rt, "actions") {
				if rapid.IntRange(0, 3).Draw(rt, "action") == 0 {
					decl := machineType.Draw(rt, "catalog")
					c, err := rea.NewCatalog(decl)
					if err != nil {
						rt.Fatal(err)
					}
					changing := d.Open(t, address, rea.Config{Catalog: c})
					change, err := changing.Apply(t.Context())
					changing.Close()
					as := fmt.Sprintf("%+v", c.Types())
					switch {
					case as == text:
						if err != nil || change.New {
							rt.Fatalf("apply the same = %+v, %v, want nothing", change, err)
						}
						continue
					}
					model.catalogs = append(model.catalogs, decl)
					if model.unknown() {
						model.catalogs = model.catalogs[:len(model.catalogs)-1]
						if !errors.Is(err, rea.ErrUnknownStatus) {
							rt.Fatalf("apply = %v, want ErrUnknownStatus", err)
						}
						continue
					}
					if err != nil || !change.New || change.Number != len(model.catalogs) {
						rt.Fatalf("apply = %+v, %v, want catalog %d", change, err, len(model.catalogs))
					}
					text = as
					continue
				}
				ref := []rea.Ref{order1, order2}[rapid.IntRange(0, 1).Draw(rt, "aggregate")]
				kinds := rapid.SliceOfN(rapid.SampledFrom(append([]string{"Other"}, machineKinds...)), 1, 3).Draw(rt, "kinds")
				correction := rapid.IntRange(0, 5).Draw(rt, "correction") == 0
				want := model.append(ref, kinds, correction)
				tx := b.Autocommit()
				if correction {
					tx = tx.With(rea.Correction(), rea.By("42"), rea.Because("test"))
				}
				var events []rea.NewEvent
				for _, kind := range kinds {
					events = append(events, event(kind))
				}
				_, err := tx.Append(t.Context(), ref, events)
				if rea.Code(err) != want || want == "" && err != nil {
					rt.Fatalf("append %v to %s = %v, want %q", kinds, ref, err, want)
				}
			}
			for _, ref := range []rea.Ref{order1, order2} {
				var want []rea.Event
				for _, e := range model.events[ref] {
					want = append(want, rea.Event{Status: e.status, CatalogVersion: e.catalog})
				}
				if got := statuses(of(t, b.Autocommit(), ref)); got != statuses(want) {
					rt.Fatalf("statuses of %s = %s, want %s", ref, got, statuses(want))
				}
			}
		})
	}},
}
