package rea_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/realtime-event-archive/rea"
)

// TestStepEqualsANaiveModel holds Step against a table of all legal steps that is made without it.
func TestStepEqualsANaiveModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "events")
		events := make([]rea.EventType, n)
		var statuses []string
		for i := range events {
			events[i].Name = fmt.Sprintf("E%d", i)
			if rapid.Bool().Draw(t, "leads") {
				events[i].To = fmt.Sprintf("s%d", rapid.IntRange(0, 2).Draw(t, "to"))
				if !slices.Contains(statuses, events[i].To) {
					statuses = append(statuses, events[i].To)
				}
			}
		}
		legal := map[[2]string]bool{} // event, status; "none": no event yet; "": an event, no status
		for i := range events {
			from := rapid.SliceOfNDistinct(rapid.SampledFrom(append([]string{rea.FromNone, rea.FromAny}, statuses...)), 0, 3, rapid.ID).Draw(t, "from")
			events[i].From = from
			for _, status := range append([]string{rea.FromNone, ""}, statuses...) {
				for _, f := range from {
					if f == status || f == rea.FromAny && status != rea.FromNone {
						legal[[2]string{events[i].Name, status}] = true
					}
				}
				if len(from) == 0 {
					legal[[2]string{events[i].Name, status}] = true
				}
			}
		}
		strict := rapid.Bool().Draw(t, "strict")
		c, err := rea.NewCatalog(rea.Type{Name: "t", Status: "status", Strict: strict, Events: events})
		if err != nil {
			t.Fatal(err)
		}
		status, exists := "", false
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			i := rapid.IntRange(0, n).Draw(t, "event")
			if i == n {
				after, err := c.Step("t", "Other", status, exists)
				if errors.Is(err, rea.ErrUnknownType) != strict || after != status {
					t.Fatalf("an undeclared event gives %q, %v; strict is %t", after, err, strict)
				}
				continue
			}
			at := status
			if !exists {
				at = rea.FromNone
			}
			after, err := c.Step("t", events[i].Name, status, exists)
			if want := legal[[2]string{events[i].Name, at}]; want != (err == nil) {
				t.Fatalf("%s from %q: %v, want legal = %t", events[i].Name, at, err, want)
			}
			var refused *rea.TransitionError
			if errors.As(err, &refused) {
				for _, e := range events {
					if want := len(e.From) > 0 && legal[[2]string{e.Name, at}]; want != slices.Contains(refused.Legal, e.Name) {
						t.Fatalf("legal = %v from %q, want %s there: %t", refused.Legal, at, e.Name, want)
					}
				}
				continue
			}
			if want := events[i].To; want != "" && after != want || want == "" && after != status {
				t.Fatalf("%s from %q leads to %q, want %q", events[i].Name, at, after, want)
			}
			status, exists = after, true
		}
	})
}

func TestStepsThatAreRefusedSayWhatIsLegal(t *testing.T) {
	t.Parallel()
	c := mustCatalog(t,
		rea.Type{Name: "order", Status: "status", Strict: true, Events: []rea.EventType{
			{Name: "Placed", From: []string{rea.FromNone}, To: "placed"}, {Name: "Paid", From: []string{"placed"}, To: "paid"},
			{Name: "Payed", AliasOf: "Paid"}, {Name: "Noted", From: []string{rea.FromAny}}, {Name: "Free"}, {Name: "Touched", Retired: true},
		}},
		rea.Type{Name: "note", Strict: true, Events: []rea.EventType{{Name: "Written"}}},
	)
	for _, k := range []struct {
		aggregate, event, status string
		exists                   bool
		want                     string
	}{
		{"order", "Placed", "", false, ""}, {"order", "Noted", "paid", true, ""}, {"order", "Free", "", false, ""}, {"other", "X", "", false, ""}, {"note", "Written", "", true, ""},
		{"order", "Paid", "paid", true, "rea: order: Paid is illegal in status paid: legal now: Noted"},
		{"order", "Noted", "", false, "rea: order: Noted is illegal without a status: legal now: Placed"},
		{"order", "Placed", "placed", true, "rea: order: Placed is illegal in status placed: legal now: Paid, Noted"},
		{"order", "Payed", "placed", true, "rea: order: Payed is an old name: append Paid"},
		{"order", "Touched", "placed", true, "rea: order: Touched is retired: it is not appended any more"},
		{"order", "X", "placed", true, "rea: order: the catalog does not know X: declare it, and apply the catalog"},
		{"note", "X", "", true, "rea: note: the catalog does not know X: declare it, and apply the catalog"},
	} {
		_, err := c.Step(k.aggregate, k.event, k.status, k.exists)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != k.want {
			t.Errorf("%s %s from %q: %s, want %s", k.aggregate, k.event, k.status, got, k.want)
		}
	}
}
