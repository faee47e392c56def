package shop_test

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/realtime-event-archive/rea/internal/shop"
	"github.com/realtime-event-archive/rea/sqlite"
)

func TestHistoryIsTheSameAtEveryRun(t *testing.T) {
	t.Parallel()
	if a, b := shop.New(300), shop.New(300); !reflect.DeepEqual(a, b) {
		t.Error("two histories of 300 orders differ")
	}
}

func TestScriptHitsTheSameOrdersInTheTableAndInTheArchive(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s := shop.New(500)
	hit, meant := s.Hit()
	if meant == 0 || meant*10 > len(hit) {
		t.Fatalf("the script hits %d orders, %d of them meant: the accident is none", len(hit), meant)
	}

	table, err := s.NewTable(ctx, filepath.Join(dir, "plain.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if o, err := table.Order(ctx, shop.Story); err != nil || o.Status != "paid" {
		t.Fatalf("order %d is %q (%v), want paid", shop.Story, o.Status, err)
	}
	if rows, err := table.RunScript(ctx); err != nil || rows != int64(len(hit)) {
		t.Errorf("the script changed %d rows (%v), want %d", rows, err, len(hit))
	}
	if o, err := table.Order(ctx, shop.Story); err != nil || o.Status != "cancelled" {
		t.Errorf("order %d is %q (%v), want cancelled", shop.Story, o.Status, err)
	}

	archive, err := sqlite.Open(ctx, filepath.Join(dir, "shop.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := archive.Migrate(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Import(ctx, archive.Archive); err != nil {
		t.Fatal(err)
	}
	if err := s.RunScript(ctx, archive.Archive); err != nil {
		t.Fatal(err)
	}
	count, err := archive.Autocommit().Count(ctx)
	if want := int64(len(s.Lines) + len(hit) + 1); err != nil || count != want {
		t.Errorf("the archive holds %d events (%v), want %d", count, err, want)
	}
}
