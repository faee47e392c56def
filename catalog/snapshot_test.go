package catalog_test

import (
	"testing"
)

func TestSnapshotSaysHowOftenAndUpcastersAreKnownByTheirText(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for text, want := range map[string]int{
		"{X: {version: 2, upcast: {1: [{unset: a}]}}}":                                    0,
		"{X: {version: 2, upcast: {1: [{unset: b}]}}}, snapshot: off":                     -1,
		"{X: {version: 2, upcast: {1: [{default: {a: 1}}]}}}, snapshot: {every: 7}":       7,
		"{X: {version: 2, upcast: {1: [{default: {a: '1'}}]}}}, snapshot: {every: 1}":     1,
		"{X: {version: 3, upcast: {1: [], 2: [{rename: {a: b}}]}}}, snapshot: {every: 1}": 1,
	} {
		c := parse(t, "rea: 1\naggregates: {t: {events: "+text+"}}\n")
		kind, _ := c.Type("t")
		if kind.SnapshotEvery != want {
			t.Errorf("SnapshotEvery of %s = %d, want %d", text, kind.SnapshotEvery, want)
		}
		if up := kind.Events[0].Upcasting; up == "" || seen[up] {
			t.Errorf("Upcasting of %s = %q, want a text of its own", text, up)
		} else {
			seen[up] = true
		}
	}
}
