package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// No statement on a hot path reads events from the beginning, also before ANALYZE and with other values.
func TestPlans(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	db := rawDB(t, archive, "")
	for query, want := range map[string]string{
		headOfSQL:      "USING INDEX sqlite_autoindex_rea_events_1 (aggregate_type=? AND aggregate_id=?)",
		lastPlaceSQL:   "USING INDEX sqlite_autoindex_rea_events_1 (aggregate_type=? AND aggregate_id=?)",
		eventsSQL:      "USING INDEX sqlite_autoindex_rea_events_1 (aggregate_type=? AND aggregate_id=? AND seq>?)",
		knownSQL:       "USING INDEX sqlite_autoindex_rea_events_1 (aggregate_type=? AND aggregate_id=? AND seq>?)",
		storedAtSQL:    "USING INDEX sqlite_autoindex_rea_events_1 (aggregate_type=? AND aggregate_id=? AND seq=?)",
		storedUnderSQL: "USING INDEX rea_events_idempotency_key (aggregate_type=? AND aggregate_id=? AND idempotency_key=?)",
		pageSQL:        "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
		pageOfSQL:      "USING INDEX sqlite_autoindex_rea_events_1 (aggregate_type=? AND aggregate_id=?)",
		headSQL:        "SEARCH rea_events",
		presentSQL:     "USING COVERING INDEX sqlite_autoindex_rea_events_1 (aggregate_type=? AND aggregate_id>?)",
	} {
		args := []any{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "[]", "16"}
		var plan strings.Builder
		var id, parent, unused int
		var step string
		err := each(t.Context(), db, func() error { plan.WriteString(step + "\n"); return nil },
			[]any{&id, &parent, &unused, &step}, "EXPLAIN QUERY PLAN "+query, args...)
		if err != nil {
			t.Fatal(err)
		}
		got := plan.String()
		if query == presentSQL { // of what it has found, one row an aggregate
			got = strings.Replace(got, "USE TEMP B-TREE FOR GROUP BY", "", 1)
		}
		if !strings.Contains(got, want) || strings.Contains(got, "SCAN rea_events") || strings.Contains(got, "SCAN e") || strings.Contains(got, "TEMP B-TREE") {
			t.Errorf("plan of%s\n%s\nwant %s", query, got, want)
		}
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	at := time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)
	var lines []rea.Line
	for i := range 12 {
		lines = append(lines, rea.Line{
			Aggregate: rea.Ref{Type: []string{"50%_off", "50x_off", "Order", "order"}[i%4], ID: fmt.Sprint(i % 2)},
			Event:     event([]string{"Paid", "paid", `P\aid`}[i%3], "{}"), Actor: fmt.Sprint(i % 3), Reason: []string{"", "a 100% match", "A"}[i%3],
			CreatedAt: at.Add(time.Duration(i) * time.Microsecond),
		})
	}
	err := archive.Do(t.Context(), func(tx *rea.Tx) error {
		_, err := tx.Import(t.Context(), lines)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// Old names of an event, among them one that is no other's.
	names, err := rea.NewCatalog(
		rea.Type{Name: "Order", Events: []rea.EventType{{Name: "Paid"}, {Name: "paid", AliasOf: "Paid"}}},
		rea.Type{Name: "order", Events: []rea.EventType{{Name: "Paid"}, {Name: `P\aid`, AliasOf: "Paid"}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		filter rea.Filter
		want   string
	}{
		"all":               {rea.Filter{}, "1 2 3 4 5 6 7 8 9 10 11 12"},
		"after, limit":      {rea.Filter{After: 3, Limit: 2}, "4 5"},
		"type":              {rea.Filter{Type: "order"}, "4 8 12"},
		"id":                {rea.Filter{ID: "1"}, "2 4 6 8 10 12"},
		"aggregate":         {rea.Filter{Type: "order", ID: "1", After: 4}, "8 12"},
		"aggregate, event":  {rea.Filter{Type: "order", ID: "1", Event: `P\aid`}, "12"},
		"aggregate, limit":  {rea.Filter{Type: "order", ID: "1", Limit: 1}, "4"},
		"no aggregate":      {rea.Filter{Type: "order", ID: "0"}, ""},
		"type prefix":       {rea.Filter{TypePrefix: "50%_"}, "1 5 9"},
		"event, old names":  {rea.Filter{Event: "Paid", Type: "order", Catalog: names}, "4 12"},
		"event, no names":   {rea.Filter{Event: "paid", Type: "order", Catalog: names}, "8"},
		"all old names":     {rea.Filter{Event: "Paid", Catalog: names, Limit: 5}, "1 2 3 4 5"},
		"event prefix":      {rea.Filter{EventPrefix: `P\`}, "3 6 9 12"},
		"event prefix case": {rea.Filter{EventPrefix: "p"}, "2 5 8 11"},
		"reason":            {rea.Filter{Reason: "0%"}, "2 5 8 11"},
		"reason case":       {rea.Filter{Reason: "A"}, "3 6 9 12"},
		"actor":             {rea.Filter{Actor: "0", Type: "Order"}, "7"},
		"xid":               {rea.Filter{XID: "1", After: 11}, "12"},
		"since":             {rea.Filter{Since: at.Add(10 * time.Microsecond)}, "11 12"},
		"since a bit more":  {rea.Filter{Since: at.Add(10*time.Microsecond + 1)}, "12"},
		"until":             {rea.Filter{Until: at.Add(2 * time.Microsecond)}, "1 2"},
		"until a bit more":  {rea.Filter{Until: at.Add(2*time.Microsecond + 1)}, "1 2 3"},
		"another zone":      {rea.Filter{Until: at.In(time.FixedZone("", 3600))}, ""},
		"far away":          {rea.Filter{Since: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), After: 11}, "12"},
	} {
		for _, size := range []int{0, 1, 3} {
			sized := openAt(t, archive.store.path, Config{Config: rea.Config{PageEvents: size}})
			var got []string
			for e, err := range sized.Autocommit().History(t.Context(), c.filter) {
				if err != nil {
					t.Fatal(name, err)
				}
				got = append(got, fmt.Sprint(e.Position))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: %v, want %s", name, got, c.want)
			}
		}
	}
}

// A page looks at no more than it was asked to, and says how far it has looked.
func TestPageIsBounded(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	events := make([]rea.NewEvent, 10)
	for i := range events {
		events[i] = event("Noted", `{}`)
	}
	mustAppend(t, archive.Autocommit(), order(1), events...)
	mustAppend(t, archive.Autocommit(), order(2), event("Placed", `{}`))
	session := archive.store.Autocommit()
	for _, c := range []struct {
		filter      rea.Filter
		after, last int64
		limit, n    int
	}{
		{rea.Filter{Event: "Placed"}, 0, 4, 4, 0}, {rea.Filter{Event: "Placed"}, 8, 11, 4, 1}, {rea.Filter{Event: "Placed"}, 11, 11, 4, 0},
		{rea.Filter{Type: "order", ID: "1"}, 0, 4, 4, 4}, {rea.Filter{Type: "order", ID: "1"}, 8, 11, 4, 2}, {rea.Filter{}, 20, 20, 4, 0},
	} {
		page, last, err := session.Page(t.Context(), c.filter, c.after, c.limit)
		if err != nil || last != c.last || len(page) != c.n {
			t.Errorf("Page(%+v, %d, %d) = %d events, %d, %v, want %d, %d", c.filter, c.after, c.limit, len(page), last, err, c.n, c.last)
		}
	}
}

// Whoever takes the file out of WAL mode makes it slower, and nothing else.
func TestOtherJournalMode(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	archive.Close() // the mode changes only while nobody else is connected
	archive = openAt(t, archive.store.path, Config{})
	db, err := openFile(archive.store.reader.path, "rw", "_journal_mode=DELETE&_txlock=immediate&_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	var mode string
	for mode != "delete" {
		archive.Close()
		if err := db.QueryRow("PRAGMA journal_mode = DELETE").Scan(&mode); err != nil {
			t.Fatal(err)
		}
	}
	archive = openAt(t, archive.store.path, Config{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 25 {
				if err := archive.Do(t.Context(), func(tx *rea.Tx) error { return appendNext(t.Context(), tx, order(i%2)) }); err != nil {
					t.Error(err)
				}
				if _, err := archive.Autocommit().Count(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	tx := beginRaw(t, db)
	mustAppend(t, archive.SQLTx(tx), order(3), event("Placed", `{}`))
	if err := tx.Commit(); err != nil || count(t, archive) != 101 {
		t.Errorf("%v, %d events, want 101", err, count(t, archive))
	}
}

func ExampleArchive_SQLTx() {
	ctx := context.Background()
	folder, _ := os.MkdirTemp("", "rea")
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "shop.db")

	archive, _ := Open(ctx, path, Config{})
	defer archive.Close()
	_ = archive.Migrate(ctx, nil)

	db, _ := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_busy_timeout=5000")
	defer func() { _ = db.Close() }()
	tx, _ := db.BeginTx(ctx, nil)
	_, _ = tx.ExecContext(ctx, "CREATE TABLE orders (id TEXT, status TEXT)")
	_, _ = tx.ExecContext(ctx, "INSERT INTO orders VALUES ('10086', 'placed')")
	receipt, err := archive.SQLTx(tx).Append(ctx, rea.Ref{Type: "order", ID: "10086"}, rea.NewEvent{Type: "OrderPlaced"})
	fmt.Println(receipt.Seq(), err)
	fmt.Println(tx.Commit())
	// Output:
	// 1 <nil>
	// <nil>
}
