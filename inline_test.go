package rea_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
)

func TestInlineFunctionsAreCheckedOnce(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, rea.SQL, rea.Event) error { return nil }
	for want, list := range map[string][]rea.Inline{
		"Config.Inline[1].Name is empty":          {{Name: "a", Apply: nothing}, {Apply: nothing}},
		"the inline function a has no Apply":      {{Name: "a"}},
		"two inline functions are called a":       {{Name: "a", Apply: nothing}, {Name: "a", Of: "order", Apply: nothing}},
		"Config.Inline[0].Of has a leading space": {{Name: "a", Of: " order", Apply: nothing}},
	} {
		archive, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "shop.db"), sqlite.Config{Config: rea.Config{Inline: list}})
		if err == nil {
			archive.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want one with %q", err, want)
		}
	}
	list := []rea.Inline{{Name: "a", Apply: nothing}}
	archive, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "shop.db"), sqlite.Config{Config: rea.Config{Inline: list}})
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	list[0].Apply = nil // the archive has a list of its own
	if _, err := archive.Autocommit().Append(t.Context(), rea.Ref{Type: "order", ID: "1"}, rea.NewEvent{Type: "A"}); err != nil {
		t.Error(err)
	}
}
