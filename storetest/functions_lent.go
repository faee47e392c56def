package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

var functionsLent = []clause{
	{"P3 an inline function has the transaction for one call and one statement at a time", func(t *testing.T, d *Door) {
		var kept rea.SQL
		b := d.Open(t, d.Migrated(t), rea.Config{Inline: []rea.Inline{{Name: "reads", Apply: func(ctx context.Context, tx rea.SQL, e rea.Event) error {
			kept = tx
			var got []string
			var name string
			collect := func() error { got = append(got, name); return nil }
			rows, err := tx.Query(ctx, []any{&name}, collect, d.sql(`SELECT name FROM business WHERE name <> $1 ORDER BY name`), "c")
			if err != nil {
				return err
			}
			same(t, "rows", fmt.Sprint(rows, got), "2 [a b]")
			rows, err = tx.Query(ctx, []any{&name}, func() error { return errStop }, `SELECT name FROM business`)
			same(t, "rows until an error", fmt.Sprint(rows, err), "1 stop")
			rows, err = tx.Query(ctx, []any{&name}, nil, d.sql(`UPDATE business SET name = 'd' WHERE name = $1 RETURNING name`), "c")
			same(t, "written row", fmt.Sprint(rows, " ", name, " ", err), "1 d <nil>")
			rows, err = tx.Query(ctx, []any{&name}, nil, `SELECT name FROM business WHERE name = 'c'`)
			same(t, "no row", fmt.Sprint(rows, err), "0 <nil>")
			rows, err = tx.Exec(ctx, `UPDATE business SET name = name`)
			same(t, "changed rows", fmt.Sprint(rows, err), "3 <nil>")
			_, err = tx.Query(ctx, []any{&name}, func() error {
				_, err := tx.Exec(ctx, `DELETE FROM business`)
				return err
			}, `SELECT name FROM business`)
			if err == nil || !strings.Contains(err.Error(), "another statement is running") {
				t.Errorf("a statement while rows are open: %v", err)
			}
			func() {
				defer func() { same(t, "panic", recover(), any("row")) }()
				_, _ = tx.Query(ctx, []any{&name}, func() error { panic("row") }, `SELECT name FROM business`)
			}()
			return nil
		}}}})
		b.run(t, business)
		b.run(t, `INSERT INTO business VALUES ('a'), ('b'), ('c')`)
		tx := b.begin(t)
		put(t, tx.Tx, order1, event("A"))
		if _, err := kept.Exec(t.Context(), `DELETE FROM business`); err == nil || !strings.Contains(err.Error(), "not lent any more") {
			t.Errorf("a statement after the function has returned: %v", err)
		}
		tx.commit(t)
		same(t, "business rows", b.text(t, `SELECT CAST(count(*) AS text) FROM business`), "3")
	}},
	{"P3 an inline function appends nothing to its own archive", func(t *testing.T, d *Door) {
		var b, other *Base
		b = d.Open(t, d.Migrated(t), rea.Config{Inline: []rea.Inline{{Name: "appends", Of: "order", Apply: func(ctx context.Context, _ rea.SQL, e rea.Event) error {
			_, err := b.Autocommit().Append(ctx, order2, event("B"))
			err = errors.Join(err, b.Do(ctx, func(*rea.Tx) error { return nil }))
			if got := strings.Count(err.Error(), "the inline function appends appends nothing"); got != 2 {
				t.Errorf("refusals = %d, want 2: %v", got, err)
			}
			_, err = other.Autocommit().Append(ctx, order2, event("Elsewhere"))
			return err
		}}}})
		other = d.fresh(t)
		put(t, b.Autocommit(), order1, event("A"))
		same(t, "history", story(b.history(t, rea.Filter{})), "order/1#1 A")
		same(t, "history of the other archive", story(other.history(t, rea.Filter{})), "order/2#1 Elsewhere")
	}},
	{"P4 what one goroutine of a transaction was told is stored does not go with another one's inline function", func(t *testing.T, d *Door) {
		var b *Base
		begun, told := make(chan struct{}), make(chan struct{})
		b = d.Open(t, d.Migrated(t), rea.Config{Inline: []rea.Inline{{Name: "fails", Of: "order", Apply: func(context.Context, rea.SQL, rea.Event) error {
			close(begun)
			select {
			case <-told:
				t.Error("an append came between another one and its savepoint")
			case <-time.After(50 * time.Millisecond): // nobody may come, so there is no signal to wait for
			}
			return errStop
		}}}})
		err := b.Do(limited(t), func(tx *rea.Tx) error {
			var wait sync.WaitGroup
			wait.Go(func() {
				<-begun
				put(t, tx, rea.Ref{Type: "invoice", ID: "1"}, event("Told"))
				close(told)
			})
			_, err := tx.Append(limited(t), order1, event("A"))
			refused[*rea.ProjectionError](t, "the other one", err)
			wait.Wait()
			return nil
		})
		same(t, "error of Do", err, nil)
		same(t, "history", story(b.history(t, rea.Filter{})), "invoice/1#1 Told")
	}},
	{"P6 each archive runs its own inline functions", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		without := d.Open(t, address, rea.Config{})
		without.run(t, counted)
		one, two := d.counting(t, address), d.counting(t, address)
		for range 3 {
			put(t, one.Autocommit(), order1, event("A"))
			put(t, two.Autocommit(), order1, event("B"))
			put(t, without.Autocommit(), order1, event("Unseen"))
		}
		same(t, "rows", without.rows(t), "1: 6 B")
		same(t, "count", without.count(t), 9)
	}},
	{"P17 an import runs inline functions for what it stores, in the order of its lines", func(t *testing.T, d *Door) {
		var got []string
		b := d.Open(t, d.Migrated(t), rea.Config{PageEvents: 2, Inline: []rea.Inline{
			{Name: "count", Of: "order", Apply: d.count},
			{Name: "order", Of: "order", Apply: func(_ context.Context, _ rea.SQL, e rea.Event) error {
				got = append(got, story([]rea.Event{e}))
				return nil
			}},
		}})
		b.run(t, counted)
		put(t, b.Autocommit(), order1, event("A"))
		got = nil
		lines := []rea.Line{
			line(order1, "A", at(1)), line(order2, "A"), line(order1, "B"), line(order1, "C"), line(order1, "D"), line(order1, "E"),
			line(order1, "X", at(9)), line(rea.Ref{Type: "invoice", ID: "1"}, "A"), line(order2, "B", at(2)),
		}
		same(t, "results", strings.Join(imported(t, b, lines...), " "), "duplicate stored stored stored stored stored hole stored stored")
		same(t, "order", strings.Join(got, ", "), "order/2#1 A, order/1#2 B, order/1#3 C, order/1#4 D, order/1#5 E, order/2#2 B")
		same(t, "rows", b.rows(t), "1: 5 E, 2: 2 B")
		err := b.Do(limited(t), func(tx *rea.Tx) error {
			_, err := tx.Import(t.Context(), []rea.Line{line(order1, "F"), line(order2, "Bad"), line(order2, "G")})
			refused[*rea.ProjectionError](t, "import", err)
			results, err := tx.Import(t.Context(), []rea.Line{line(order2, "H"), line(order2, "B", at(2))})
			same(t, "seqs", fmt.Sprint(results[0].Seq, results[1].Seq), "3 2")
			return err
		})
		same(t, "error of Do", err, nil)
		same(t, "rows", b.rows(t), "1: 5 E, 2: 3 H")
		same(t, "count", b.count(t), 9)
	}},
	{"P18 a program killed at any moment leaves an event with the rows of its inline function, or neither", func(t *testing.T, d *Door) {
		if address := os.Getenv(childOf); address != "" {
			b := d.counting(t, address)
			for n := 0; ; n++ {
				put(t, b.Autocommit(), order1, event("A"), event("B"))
				err := b.Do(t.Context(), func(tx *rea.Tx) error {
					put(t, tx, order2, event("C"))
					_, err := tx.Append(t.Context(), order2, event("Bad"))
					refused[*rea.ProjectionError](t, "Do", err)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				say(n)
			}
		}
		address := d.Migrated(t)
		b := d.counting(t, address)
		b.run(t, counted)
		for round := range 3 {
			cmd, out := child(t, address)
			for hear(t, out) != fmt.Sprint(7*round) {
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			ones, twos := len(of(t, b.Autocommit(), order1)), len(of(t, b.Autocommit(), order2))
			same(t, "rows", b.rows(t), fmt.Sprintf("1: %d B, 2: %d C", ones, twos))
		}
	}},
}

// functionRaces need two transactions that have both written.
var functionRaces = []clause{
	{"P3 a deadlock of inline functions is run again by Do", func(t *testing.T, d *Door) {
		var once [2]sync.Once
		var first [2]chan struct{}
		first[0], first[1] = make(chan struct{}), make(chan struct{})
		b := d.Open(t, d.Migrated(t), rea.Config{Inline: []rea.Inline{{Name: "locks", Apply: func(ctx context.Context, tx rea.SQL, e rea.Event) error {
			mine := int(e.Aggregate.ID[0] - '1')
			for i, name := range []string{"ab"[mine : mine+1], "ba"[mine : mine+1]} {
				if _, err := tx.Exec(ctx, `UPDATE business SET name = name WHERE name = $1`, name); err != nil {
					return err
				}
				if i == 0 {
					once[mine].Do(func() { close(first[mine]) })
					<-first[1-mine]
				}
			}
			return nil
		}}}})
		b.run(t, business)
		b.run(t, `INSERT INTO business VALUES ('a'), ('b')`)
		tries := make([]int, 2)
		var wait sync.WaitGroup
		for i, ref := range []rea.Ref{order1, order2} {
			wait.Go(func() {
				err := b.Do(limited(t), func(tx *rea.Tx) error {
					tries[i]++
					_, err := tx.Append(t.Context(), ref, event("A"))
					return err
				})
				same(t, "error of Do", err, nil)
			})
		}
		wait.Wait()
		if tries[0]+tries[1] < 3 {
			t.Errorf("tries = %v, want one more than two", tries)
		}
		same(t, "count", b.count(t), 2)
	}},
}
