package sqlite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// limitPages makes the file full: max_page_count is SQLite's own limit, per connection.
func limitPages(t *testing.T, archive *Archive, more int) {
	t.Helper()
	if err := archive.store.writer.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer archive.store.writer.rollback(t.Context())
	var pages, limit int
	if err := one(t.Context(), archive.store.writer, []any{&pages}, "PRAGMA page_count"); err != nil {
		t.Fatal(err)
	}
	if err := one(t.Context(), archive.store.writer, []any{&limit}, fmt.Sprintf("PRAGMA max_page_count = %d", pages+more)); err != nil {
		t.Fatal(err)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
	before := dump(t, archive)
	big := event("Noted", `{"text": "`+strings.Repeat("x", 100_000)+`"}`)
	ways := map[string]func() error{
		"an append": func() error { _, err := archive.Autocommit().Append(t.Context(), order(1), big); return err },
		"a batch": func() error {
			_, err := archive.Autocommit().Append(t.Context(), order(1), event("Paid", `{}`), big)
			return err
		},
		"a transaction that goes on after the error": func() error {
			return archive.Do(t.Context(), func(tx *rea.Tx) error {
				mustAppend(t, tx, order(2), event("Placed", `{}`))
				if _, err := tx.Append(t.Context(), order(1), big); err == nil {
					t.Error("no error")
				}
				_, _ = tx.Append(t.Context(), order(3), event("Placed", `{}`))
				return nil
			})
		},
		"an import": func() error {
			return archive.Do(t.Context(), func(tx *rea.Tx) error {
				_, err := tx.Import(t.Context(), []rea.Line{{Aggregate: order(5), Event: event("Placed", `{}`)}, {Aggregate: order(5), Event: big}})
				return err
			})
		},
	}
	for name, way := range ways {
		limitPages(t, archive, 10)
		if err := way(); err == nil || !strings.Contains(err.Error(), "no space left for "+archive.store.path) {
			t.Errorf("%s: err = %v", name, err)
		}
		if after := dump(t, archive); after != before {
			t.Errorf("%s: stored:\n%s", name, after)
		}
	}
	limitPages(t, archive, 1_000_000)
	if receipt := mustAppend(t, archive.Autocommit(), order(1), big); receipt.Seq() != 2 {
		t.Errorf("Seq = %d, want 2", receipt.Seq())
	}
}

// In the user's transaction the INSERT alone is taken back: nothing of the batch is left, the rest is there.
func TestFullDiskInTheUsersTransaction(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	tx := beginRaw(t, rawDB(t, archive, "_txlock=immediate&_pragma=max_page_count(40)"))
	mustAppend(t, archive.SQLTx(tx), order(1), event("Placed", `{}`))
	big := event("Noted", `{"text": "`+strings.Repeat("x", 200_000)+`"}`)
	if _, err := archive.SQLTx(tx).Append(t.Context(), order(1), event("Paid", `{}`), big); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("err = %v", err)
	}
	mustAppend(t, archive.SQLTx(tx), order(1), event("Paid", `{}`))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, want := dump(t, archive), "1 order/1 1 Placed {}\n2 order/1 2 Paid {}\n"; got != want {
		t.Errorf("stored:\n%swant:\n%s", got, want)
	}
}
