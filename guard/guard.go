// Package guard captures or refuses what is written to an application's tables, in PostgreSQL, by triggers that it generates:
// each changed row becomes an event of the same transaction, with what the database observed about the statement.
//
//	g, err := guard.Add(ctx, pool, "public.orders", guard.Settings{Type: "order", Status: "status"}, guard.By{Actor: "42"})
//	_, err = pool.Exec(ctx, "UPDATE orders SET status = 'paid' WHERE id = 10086")   // order/10086: DirectUpdate
//
// docs/guard.md says what each setting does, and what slips past triggers.
package guard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/adopt"
)

// Mode says what a guard does with a write.
type Mode string

// The modes of a guard.
const (
	Capture Mode = "capture" // each changed row becomes an event
	Refuse  Mode = "refuse"  // a write that no event stands for is refused
)

// Settings are what a guard is told. The zero value of each field is its default; Type alone is needed.
type Settings struct {
	Type          string   // of the aggregates that the rows are
	Key           []string // columns whose values make the id, in order; none: those of the primary key
	Mode          Mode     // "": Capture
	Status        string   // column that is the status; "": none
	Ignore        []string // columns that are not looked at
	Redact        []string // columns of which only is known that they changed
	SQL           string   // what is kept of a statement: full, hash or off; "": full
	RequireReason bool     // refuse statements of transactions that gave no reason by rea.set_context
	Truncate      string   // capture or refuse; "": capture, under Refuse refuse
	AddColumn     bool     // add the column rea_seq that Refuse needs, where it is not there
}

// By is who changes a guard, and why: both claimed, and stored with the event.
type By struct {
	Actor  string // "": not said
	Reason string // "": not said
}

// Guard is a table that is watched.
type Guard struct {
	ID          int
	Table       *adopt.Table // Key is the guard's
	Settings    Settings     // as they are in force
	GlassBroken bool         // Refuse captures for now
	Forgotten   []string     // columns that were ignored, redacted or the status, and are gone: made anew after this renewal they are columns as others

	parts []part // the table and its partitions
}

// part is a table that carries triggers.
type part struct {
	oid  uint32
	name string // as SQL takes it
	leaf bool   // has rows of its own
}

// Beginner begins transactions: *pgxpool.Pool, *pgx.Conn and pgx.Tx do.
type Beginner interface {
	adopt.Queryer
	Begin(ctx context.Context) (pgx.Tx, error)
}

// redacted is what is recorded of a redacted column.
const redacted = "(redacted)"

// lockTries and lockTimeout bound the waiting for a lock on the table: who waits for it longer would keep everybody else waiting too.
const (
	lockTries   = 10
	lockTimeout = time.Second
)

// refusing reports whether the generated code refuses.
func (g *Guard) refusing() bool { return g.Settings.Mode == Refuse && !g.GlassBroken }

// column finds a column of the table by name, nil where the name is "".
func (g *Guard) column(name string) *adopt.Column {
	if i := g.Table.Index(name); name != "" && i >= 0 {
		return &g.Table.Columns[i]
	}
	return nil
}

// recorded are the columns that events speak of.
func (g *Guard) recorded() []adopt.Column {
	return slices.DeleteFunc(slices.Clone(g.Table.Columns), func(c adopt.Column) bool {
		return slices.Contains(g.Settings.Ignore, c.Name) || c.Name == adopt.SeqColumn
	})
}

// check refuses settings that do not fit the table, or one another.
func (g *Guard) check() error {
	s, t := &g.Settings, g.Table
	switch {
	case s.Type == "":
		return fmt.Errorf("rea: guard of %s: no aggregate type is given", t)
	case s.Mode != Capture && s.Mode != Refuse:
		return fmt.Errorf("rea: guard of %s: the mode %q is neither capture nor refuse", t, s.Mode)
	case !slices.Contains([]string{"full", "hash", "off"}, s.SQL):
		return fmt.Errorf("rea: guard of %s: %q is none of full, hash, off: what is kept of a statement", t, s.SQL)
	case s.Truncate != "capture" && s.Truncate != "refuse":
		return fmt.Errorf("rea: guard of %s: %q is neither capture nor refuse: what is done with TRUNCATE", t, s.Truncate)
	case s.Mode == Refuse && s.Truncate == "capture":
		return fmt.Errorf("rea: guard of %s: no event can stand for a TRUNCATE: a guard that refuses refuses it too", t)
	}
	for _, name := range slices.Concat([]string{s.Status}, s.Ignore, s.Redact) {
		if name != "" && g.column(name) == nil {
			return fmt.Errorf("rea: guard of %s: it has no column %s", t, name)
		}
	}
	hidden := slices.Concat(s.Ignore, s.Redact)
	if slices.Contains(hidden, s.Status) && s.Status != "" {
		return fmt.Errorf("rea: guard of %s: the status %s cannot be ignored or redacted", t, s.Status)
	}
	for _, k := range t.Key {
		switch c := t.Columns[k]; {
		case slices.Contains(hidden, c.Name):
			return fmt.Errorf("rea: guard of %s: the column %s is part of the id, and cannot be ignored or redacted", t, c.Name)
		case !c.NotNull:
			return fmt.Errorf("rea: guard of %s: the column %s of the key can be null, and such a row has no id: ALTER TABLE ... ALTER COLUMN ... SET NOT NULL", t, c.Name)
		}
	}
	return nil
}

// withDefaults fills in what was left out.
func (s Settings) withDefaults() Settings {
	if s.Mode == "" {
		s.Mode = Capture
	}
	if s.SQL == "" {
		s.SQL = "full"
	}
	if s.Truncate == "" {
		s.Truncate = string(s.Mode)
	}
	return s
}
