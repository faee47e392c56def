package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/realtime-event-archive/rea"
)

const counted = `CREATE TABLE counted (id text PRIMARY KEY, events bigint NOT NULL, last text NOT NULL)`

// sql writes the parameters of a statement as the store wants them.
func (d *Door) sql(statement string) string {
	if d.Tables == "rea_" {
		return strings.ReplaceAll(statement, "$", "?")
	}
	return statement
}

// count is a function that counts an aggregate's events in the table counted, and refuses some after it has written.
func (d *Door) count(ctx context.Context, tx rea.SQL, e rea.Event) error {
	rows, err := tx.Exec(ctx, d.sql(`
INSERT INTO counted (id, events, last) VALUES ($1, 1, $2)
ON CONFLICT (id) DO UPDATE SET events = counted.events + 1, last = excluded.last`), e.Aggregate.ID, e.Type)
	if err != nil {
		return err
	}
	switch {
	case rows != 1:
		return fmt.Errorf("rows = %d, want 1", rows)
	case e.Type == "Bad":
		return errStop
	case e.Type == "Panic":
		panic("function")
	case e.Type == "Broken":
		_, _ = tx.Exec(ctx, `INSERT INTO counted (id) VALUES (NULL)`)
	}
	return nil
}

// counting opens an archive whose function counts.
func (d *Door) counting(t *testing.T, address string) *Base {
	return d.Open(t, address, rea.Config{Inline: []rea.Inline{{Name: "count", Of: "order", Apply: d.count}}})
}

// freshCounting is counting in a database of its own.
func (d *Door) freshCounting(t *testing.T) *Base {
	b := d.counting(t, d.Migrated(t))
	b.run(t, counted)
	return b
}

// rows tells the table counted: "1: 2 PaymentReceived, 2: 1 OrderPlaced".
func (b *Base) rows(t *testing.T) string {
	var told []string
	for _, id := range []string{"1", "2"} {
		told = append(told, b.text(t, `SELECT coalesce((SELECT '`+id+`: ' || CAST(events AS text) || ' ' || last FROM counted WHERE id = '`+id+`'), '')`))
	}
	return strings.Trim(strings.Join(told, ", "), ", ")
}

var functions = []clause{
	{"P3 an event and the rows of an inline function commit together, and go together", func(t *testing.T, d *Door) {
		b := d.freshCounting(t)
		put(t, b.Autocommit(), order1, event("A"), event("B"))
		same(t, "rows", b.rows(t), "1: 2 B")
		tx := b.begin(t)
		put(t, tx.Tx, order1, event("C"))
		put(t, tx.Tx, order2, event("D"))
		tx.rollback(t)
		same(t, "rows after a rollback", b.rows(t), "1: 2 B")
		tx = b.begin(t)
		put(t, tx.Tx, order1, event("C"))
		tx.exec(t, `SAVEPOINT s`)
		put(t, tx.Tx, order1, event("D"))
		tx.exec(t, `ROLLBACK TO SAVEPOINT s`)
		put(t, tx.Tx, order1, event("E"))
		put(t, tx.Tx, rea.Ref{Type: "invoice", ID: "1"}, event("Other"))
		tx.commit(t)
		same(t, "rows after a savepoint", b.rows(t), "1: 4 E")
		err := b.Do(limited(t), func(tx *rea.Tx) error {
			put(t, tx, order2, event("A"))
			return errStop
		})
		same(t, "error of Do", err, errStop)
		same(t, "rows after Do's error", b.rows(t), "1: 4 E")
		same(t, "count", b.count(t), 5)
	}},
	{"P3 an error of an inline function leaves nothing of the append, and the transaction goes on", func(t *testing.T, d *Door) {
		b := d.freshCounting(t)
		put(t, b.Autocommit(), order1, event("A"))
		refuses := func(what string, tx *rea.Tx) {
			t.Helper()
			_, err := tx.With(rea.Once("k")).Append(limited(t), order1, event("B"), event("Bad"), event("C"))
			got := refused[*rea.ProjectionError](t, what, err)
			same(t, what, *got, rea.ProjectionError{Aggregate: order1, Projection: "count", Event: "Bad", Seq: 3, Err: errStop})
			same(t, what+": class", rea.Code(err), "projection")
			same(t, what+": cause", errors.Is(err, errStop), true)
		}
		refuses("autocommit", b.Autocommit())
		same(t, "rows", b.rows(t), "1: 1 A")
		tx := b.begin(t)
		put(t, tx.Tx, order1, event("A"))
		_, err := tx.Append(limited(t), order1, event("Bad"))
		same(t, "Seq", refused[*rea.ProjectionError](t, "user's transaction", err).Seq, 3)
		same(t, "own view", len(of(t, tx.Tx, order1)), 2)
		put(t, tx.With(rea.Expect(2)), order1, event("D"))
		tx.commit(t)
		same(t, "rows", b.rows(t), "1: 3 D")
		err = b.Do(limited(t), func(tx *rea.Tx) error {
			_, err := tx.Append(limited(t), order2, event("Bad"))
			refused[*rea.ProjectionError](t, "Do", err)
			put(t, tx, order2, event("E"))
			return nil
		})
		same(t, "error of Do", err, nil)
		same(t, "rows", b.rows(t), "1: 3 D, 2: 1 E")
		same(t, "count", b.count(t), 4)
	}},
	{"P3 a statement that fails in an inline function refuses the append, whatever the function makes of it", func(t *testing.T, d *Door) {
		b := d.freshCounting(t)
		_, err := b.Autocommit().Append(limited(t), order1, event("Broken"))
		refused[*rea.ProjectionError](t, "autocommit", err)
		tx := b.begin(t)
		_, err = tx.Append(limited(t), order1, event("A"), event("Broken"), event("B"))
		refused[*rea.ProjectionError](t, "user's transaction", err)
		put(t, tx.Tx, order1, event("C"))
		tx.commit(t)
		same(t, "rows", b.rows(t), "1: 1 C")
		same(t, "count", b.count(t), 1)
	}},
	{"P3 a panic of an inline function leaves nothing, and the user's transaction goes on", func(t *testing.T, d *Door) {
		b := d.freshCounting(t)
		caught := func(tx *rea.Tx) (what any) {
			defer func() { what = recover() }()
			_, _ = tx.Append(limited(t), order1, event("A"), event("Panic"))
			return nil
		}
		same(t, "panic in autocommit", caught(b.Autocommit()), any("function"))
		tx := b.begin(t)
		same(t, "panic in the user's transaction", caught(tx.Tx), any("function"))
		put(t, tx.Tx, order1, event("B"))
		tx.commit(t)
		err := b.Do(limited(t), func(tx *rea.Tx) error {
			same(t, "panic in Do", caught(tx), any("function"))
			put(t, tx, order1, event("C"))
			return nil
		})
		same(t, "error of Do", err, nil)
		same(t, "rows", b.rows(t), "1: 2 C")
		same(t, "count", b.count(t), 2)
	}},
	{"P3 a context that ends in an inline function leaves the user's transaction usable", func(t *testing.T, d *Door) {
		var cancel context.CancelFunc
		b := d.Open(t, d.Migrated(t), rea.Config{Inline: []rea.Inline{{Name: "cancels", Apply: func(ctx context.Context, tx rea.SQL, e rea.Event) error {
			if e.Type != "Cancels" {
				return nil
			}
			cancel()
			_, err := tx.Exec(ctx, `CREATE TABLE never (id text)`)
			return err
		}}}})
		tx := b.begin(t)
		ctx, stop := context.WithCancel(t.Context())
		cancel = stop
		_, err := tx.Append(ctx, order1, event("A"), event("Cancels"))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want %v", err, context.Canceled)
		}
		put(t, tx.Tx, order1, event("B"))
		tx.commit(t)
		same(t, "history", story(b.history(t, rea.Filter{})), "order/1#1 B")
	}},
	{"P3 neither a refused append nor a duplicate runs an inline function", func(t *testing.T, d *Door) {
		b := d.freshCounting(t)
		for _, where := range []string{"autocommit", "transaction"} {
			tx := b.begin(t)
			use := tx.Tx
			if where == "autocommit" {
				tx.rollback(t)
				use = b.Autocommit()
			}
			put(t, use.With(rea.Once(where)), order1, event("A"), event("B"))
			again := put(t, use.With(rea.Once(where)), order1, event("A"), event("B"))
			same(t, "Duplicate", again.Duplicate, true)
			_, err := use.With(rea.Once(where)).Append(limited(t), order1, event("C"))
			refused[*rea.KeyReusedError](t, where, err)
			_, err = use.With(rea.Expect(9)).Append(limited(t), order1, event("C"))
			refused[*rea.ConflictError](t, where, err)
			_, err = use.Append(limited(t), order1, event("C", `{"a": 1, "a": 2}`))
			refused[*rea.PayloadError](t, where, err)
			if where != "autocommit" {
				tx.commit(t)
			}
		}
		same(t, "rows", b.rows(t), "1: 4 B")
	}},
	{"P6 inline functions get each event by seq as it is stored, a page at a time, in the order of the functions", func(t *testing.T, d *Door) {
		var got []rea.Event
		var order []string
		b := d.Open(t, d.Migrated(t), rea.Config{PageEvents: 2, Inline: []rea.Inline{
			{Name: "z", Apply: func(_ context.Context, _ rea.SQL, e rea.Event) error {
				got = append(got, e)
				order = append(order, fmt.Sprint("z", e.Seq))
				return nil
			}},
			{Name: "a", Of: "order", Apply: func(_ context.Context, _ rea.SQL, e rea.Event) error {
				order = append(order, fmt.Sprint("a", e.Seq))
				return nil
			}},
			{Name: "other", Of: "invoice", Apply: func(context.Context, rea.SQL, rea.Event) error { return errStop }},
		}})
		tx := b.Autocommit().With(rea.By("42"), rea.Because("why"), rea.Correlate("c"), rea.Once("k"), rea.Metadata([]byte(`{"m": 1}`)))
		put(t, tx, order1, event("A", `{"n": 1.50}`), event("B"), event("C"), event("D"), event("E"))
		same(t, "order", strings.Join(order, " "), "z1 a1 z2 a2 z3 a3 z4 a4 z5 a5")
		stored := of(t, b.Autocommit(), order1)
		for i := range stored {
			stored[i].Position = got[i].Position // comes after the commit
		}
		same(t, "events", got, stored)
	}},
	{"P9 inline functions get the newest version of an event, and none that is retired", func(t *testing.T, d *Door) {
		catalog, err := rea.NewCatalog(rea.Type{Name: "order", Events: []rea.EventType{
			{Name: "A", Version: 2, Upcast: map[int]rea.UpcastFunc{1: func(o rea.Object) (rea.Object, error) {
				o["b"] = o["a"]
				delete(o, "a")
				return o, nil
			}}},
			{Name: "Gone", Retired: true},
		}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		b := d.Open(t, d.Migrated(t), rea.Config{Catalog: catalog, Inline: []rea.Inline{{Name: "versions", Apply: func(_ context.Context, _ rea.SQL, e rea.Event) error {
			got = append(got, fmt.Sprintf("%s %d %s", e.Type, e.Version, e.Payload))
			return nil
		}}}})
		old := event("A", `{"a": 1}`)
		old.Version = 1
		put(t, b.Autocommit(), order1, old, event("Gone"))
		same(t, "events", got, []string{`A 2 {"b": 1}`})
		_, err = b.Autocommit().Append(limited(t), order1, event("Unknown"))
		refused[*rea.UnknownTypeError](t, "unknown to the program's catalog", err)
		same(t, "count", b.count(t), 2)
	}},
	{"P6 inline functions of eight writers on one aggregate count what is stored", func(t *testing.T, d *Door) {
		b := d.freshCounting(t)
		put(t, b.Autocommit(), order1, event("A"))
		var wait sync.WaitGroup
		for writer := range 8 {
			wait.Go(func() {
				for n := range 5 {
					if writer%2 == 0 {
						put(t, b.Autocommit(), order1, event("A"), event("B"))
						continue
					}
					err := b.Do(limited(t), func(tx *rea.Tx) error {
						loaded, err := rea.Replay(t.Context(), tx, order1, rea.Merge)
						if err != nil {
							return err
						}
						if n == 4 { // undone, and not counted
							_, _ = loaded.Append(t.Context(), event("C"), event("Bad"))
						}
						_, err = loaded.Append(t.Context(), event("A"), event("B"))
						return err
					})
					if err != nil {
						t.Errorf("Do: %v", err)
					}
				}
			})
		}
		wait.Wait()
		same(t, "rows", b.rows(t), "1: 81 B")
		same(t, "events", len(of(t, b.Autocommit(), order1)), 81)
		dense(t, b.history(t, rea.Filter{}))
	}},
}
