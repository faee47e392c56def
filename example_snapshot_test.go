package rea_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
)

func ExampleTx_Load() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	folds := 0
	count := func(state rea.Object, e rea.Event) (rea.Object, error) {
		folds++
		state["readings"] = fmt.Append(nil, e.Seq)
		return state, nil
	}
	catalog, err := rea.NewCatalog(rea.Type{
		Name: "meter", SnapshotEvery: 100, FoldVersion: 1, // raised when count changes
		Events: []rea.EventType{{Name: "Read", Fold: count}},
	})
	if err != nil {
		log.Fatal(err)
	}
	archive, err := sqlite.Open(ctx, filepath.Join(dir, "meters.db"), sqlite.Config{Config: rea.Config{Catalog: catalog}})
	if err != nil {
		log.Fatal(err)
	}
	defer archive.Close()
	if err := archive.Migrate(ctx, nil); err != nil {
		log.Fatal(err)
	}
	meter, tx := rea.Ref{Type: "meter", ID: "7"}, archive.Autocommit()
	if _, err := tx.Append(ctx, meter, slices.Repeat([]rea.NewEvent{{Type: "Read"}}, 250)); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		folds = 0
		loaded, err := tx.Load(ctx, meter)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("seq %d: %s readings, %d events folded\n", loaded.Seq, loaded.State["readings"], folds)
	}
	// Output:
	// seq 250: 250 readings, 250 events folded
	// seq 250: 250 readings, 0 events folded
}
