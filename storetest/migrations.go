package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// steps migrates and tells which versions this call applied.
func (b *Base) steps(t *testing.T) ([]int, error) {
	var applied []int
	err := b.Migrate(limited(t), func(m rea.Migration) { applied = append(applied, m.Version) })
	return applied, err
}

// uses are the ways to use an archive; those that write come first.
func uses(t *testing.T, b *Base) (writing, reading map[string]func() error) {
	tx := b.Autocommit()
	return map[string]func() error{
			"append":  func() error { _, err := tx.Append(t.Context(), order1, event("X")); return err },
			"migrate": func() error { _, err := b.steps(t); return err },
			"run":     func() error { return b.Run(limited(t)) },
			"import": func() error {
				return b.Do(t.Context(), func(tx *rea.Tx) error {
					_, err := tx.Import(t.Context(), []rea.Line{line(order1, "X")})
					return err
				})
			},
		}, map[string]func() error{
			"events": func() error { return first(tx.Events(t.Context(), order1, 0)) },
			"page":   func() error { return first(tx.History(t.Context(), rea.Filter{})) },
			"load":   func() error { _, err := rea.Replay(t.Context(), tx, order1, told); return err },
			"head":   func() error { _, err := tx.Head(t.Context()); return err },
			"count":  func() error { _, err := tx.Count(t.Context()); return err },
		}
}

// first gives the error of an iterator's first step.
func first(events func(yield func(rea.Event, error) bool)) error {
	for _, err := range events {
		return err
	}
	return errors.New("no events")
}

var migrations = []clause{
	{"P17 a database without a schema says what to do, for reading and writing", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Empty(t), rea.Config{})
		writing, reading := uses(t, b)
		delete(writing, "migrate")
		for _, ways := range []map[string]func() error{writing, reading} {
			for name, use := range ways {
				err := use()
				if !errors.Is(err, rea.ErrNoSchema) || !strings.Contains(err.Error(), "rea migrate up") {
					t.Errorf("%s = %v, want ErrNoSchema with `rea migrate up`", name, err)
				}
			}
		}
		if _, err := b.steps(t); err != nil {
			t.Fatal(err)
		}
		put(t, b.Autocommit(), order1, event("X"))
	}},
	{"P17 each migration is applied once, in order, and then there is nothing to do", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Empty(t), rea.Config{})
		known, err := b.Migrations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var want []int
		for i, m := range known {
			want = append(want, i+1)
			same(t, "pending", fmt.Sprint(m.Version, m.AppliedAt.IsZero()), fmt.Sprint(i+1, true))
		}
		applied, err := b.steps(t)
		same(t, "applied", fmt.Sprint(applied, err), fmt.Sprint(want, " <nil>"))
		applied, err = b.steps(t)
		same(t, "applied again", fmt.Sprint(applied, err), "[] <nil>")
		known, err = b.Migrations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range known {
			same(t, fmt.Sprint("pending of ", m.Version), m.AppliedAt.IsZero(), false)
		}
	}},
	{"P18 several migrators at once apply each migration once and all succeed", func(t *testing.T, d *Door) {
		address := d.Empty(t)
		var migrators []func() ([]int, error)
		start := make(chan struct{})
		for range 5 {
			b := d.Open(t, address, rea.Config{})
			migrators = append(migrators, later(func() ([]int, error) { <-start; return b.steps(t) }))
		}
		close(start)
		times := map[int]int{}
		for i, migrator := range migrators {
			applied, err := migrator()
			if err != nil {
				t.Errorf("migrator %d: %v", i, err)
			}
			for _, version := range applied {
				times[version]++
			}
		}
		b := d.Open(t, address, rea.Config{})
		known, err := b.Migrations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range known {
			same(t, fmt.Sprint("times that version was applied: ", m.Version), times[m.Version], 1)
		}
		put(t, b.Autocommit(), order1, event("X"))
	}},
	{"P17 a newer schema refuses writing before any change, names both versions and two ways out, and is read", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		b := d.Open(t, address, rea.Config{})
		put(t, b.Autocommit(), order1, event("X"))
		b.history(t, rea.Filter{})
		known, err := b.Migrations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.run(t, fmt.Sprintf("INSERT INTO %sschema_migrations (version, name, checksum) VALUES (%d, 'later', 'sum')", d.Tables, len(known)+1))
		b = d.Open(t, address, rea.Config{})
		writing, reading := uses(t, b)
		for name, use := range writing {
			err := use()
			same(t, name, *refused[*rea.SchemaError](t, name, err), rea.SchemaError{Found: len(known) + 1, Known: len(known)})
			same(t, "Code of "+name, rea.Code(err), "newer_schema")
			for _, part := range []string{fmt.Sprint("version ", len(known)+1), fmt.Sprint("knows ", len(known)), "upgrade the program", "restore the database", "reading is allowed"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("message of %s = %q, want %q in it", name, err, part)
				}
			}
		}
		for name, use := range reading {
			if err := use(); err != nil {
				t.Errorf("%s = %v, want nil", name, err)
			}
		}
		head, err := b.CatchUp(t.Context())
		same(t, "CatchUp", fmt.Sprint(head, " ", rea.Code(err)), "1 newer_schema")
		same(t, "count", b.count(t), 1)
	}},
	{"P17 an older schema is refused until it is migrated", func(t *testing.T, d *Door) {
		address := d.Migrated(t)
		b := d.Open(t, address, rea.Config{})
		b.run(t, fmt.Sprintf("DELETE FROM %sschema_migrations WHERE version > 1", d.Tables))
		known, err := b.Migrations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		writing, reading := uses(t, d.Open(t, address, rea.Config{}))
		delete(writing, "migrate")
		for _, ways := range []map[string]func() error{writing, reading} {
			for name, use := range ways {
				same(t, name, *refused[*rea.SchemaError](t, name, use()), rea.SchemaError{Found: 1, Known: len(known)})
			}
		}
	}},
	{"P17 a migration of another build is refused", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		b.run(t, fmt.Sprintf("UPDATE %sschema_migrations SET checksum = 'other' WHERE version = 1", d.Tables))
		_, err := b.steps(t)
		if err == nil || !strings.Contains(err.Error(), "checksum") {
			t.Errorf("Migrate = %v, want an error about the checksum", err)
		}
	}},
	{"P1 uninstalling needs the exact number of events", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		put(t, b.Autocommit(), order1, event("A"), event("B"))
		for _, given := range []int64{0, 1, 3} {
			same(t, "refusal", *refused[*rea.NotConfirmedError](t, "Uninstall", b.Uninstall(t.Context(), given)), rea.NotConfirmedError{Events: 2, Given: given})
		}
		same(t, "count", b.count(t), 2)
		if err := b.Uninstall(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Autocommit().Append(t.Context(), order1, event("X")); !errors.Is(err, rea.ErrNoSchema) {
			t.Errorf("append after Uninstall = %v, want ErrNoSchema", err)
		}
		if _, err := b.steps(t); err != nil {
			t.Fatal(err)
		}
		same(t, "Seq in the new archive", put(t, b.Autocommit(), order1, event("X")).Seq(), 1)
	}},
}
