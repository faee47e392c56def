package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/adopt"
)

// Change gives a guard the settings that change makes of those in force: Mode, Status, Ignore, Redact, SQL, RequireReason, Truncate and
// AddColumn. Changes of one guard wait for one another; change may be called again. The event GuardChanged says what it was and is.
// Type and Key stay: the events have them. Columns that are no longer ignored or redacted bring the history level too, as Regenerate does.
func Change(ctx context.Context, db Beginner, table string, change func(Settings) Settings, by By) (*Guard, int64, error) {
	return renewed(ctx, db, table, func(g *Guard, tx pgx.Tx) (int64, error) {
		before, hidden := g.facts(), slices.Concat(g.Settings.Ignore, g.Settings.Redact)
		s := change(g.Settings)
		s.Type, s.Key = g.Settings.Type, g.Settings.Key
		g.Settings, g.GlassBroken = s.withDefaults(), false
		if err := g.check(); err != nil {
			return 0, err
		}
		if err := g.seqColumn(ctx, tx); err != nil {
			return 0, err
		}
		facts := g.facts()
		facts["before"] = before
		shown := slices.DeleteFunc(hidden, func(c string) bool { return slices.Contains(s.Ignore, c) || slices.Contains(s.Redact, c) })
		return g.renew(ctx, tx, "GuardChanged", by, facts, shown...)
	})
}

// BreakGlass lets a guard that refuses capture for now: nothing is refused, and nothing is silent. by needs a reason. It levels the history
// as Regenerate does.
func BreakGlass(ctx context.Context, db Beginner, table string, by By) (*Guard, int64, error) {
	if strings.TrimSpace(by.Reason) == "" {
		return nil, 0, errNoReason
	}
	return renewed(ctx, db, table, func(g *Guard, tx pgx.Tx) (int64, error) {
		if g.Settings.Mode != Refuse || g.GlassBroken {
			return 0, fmt.Errorf("rea: guard of %s: there is no glass to break: it captures", g.Table)
		}
		g.GlassBroken = true
		return g.renew(ctx, tx, "GlassBroken", by, g.facts())
	})
}

// MendGlass lets a guard whose glass was broken refuse again. It levels the history as Regenerate does.
func MendGlass(ctx context.Context, db Beginner, table string, by By) (*Guard, int64, error) {
	return renewed(ctx, db, table, func(g *Guard, tx pgx.Tx) (int64, error) {
		if !g.GlassBroken {
			return 0, fmt.Errorf("rea: guard of %s: its glass is not broken", g.Table)
		}
		g.GlassBroken = false
		return g.renew(ctx, tx, "GlassMended", by, g.facts())
	})
}

// renewed runs fn as find does, and gives how many rows it levelled.
func renewed(ctx context.Context, db Beginner, table string, fn func(g *Guard, tx pgx.Tx) (int64, error)) (*Guard, int64, error) {
	var levelled int64
	g, err := find(ctx, db, table, func(g *Guard, tx pgx.Tx) (err error) {
		levelled, err = fn(g, tx)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return g, levelled, nil
}

const updateSQL = `
UPDATE rea.guards SET mode = $2, status = $3, ignored = $4, redacted = $5, keeps_sql = $6, needs_reason = $7, on_truncate = $8, glass_broken = $9,
       columns = $10::text::jsonb, key = $11, made_for = $12::oid
WHERE guard_id = $1`

// forgottenSQL finds the columns of a guard's settings that are gone, of which the row that is written anew no longer knows.
const forgottenSQL = `
SELECT c.name FROM rea.guards g, pg_catalog.jsonb_to_recordset(g.columns) c(number smallint, name text)
WHERE g.guard_id = $1 AND c.number = ANY (g.ignored || g.redacted || g.status) AND (rea.guard_names(g, ARRAY[c.number]))[1] IS NULL
ORDER BY c.number`

// renew writes a guard's row, code and triggers anew, records the event, tries the code, and levels the history: for the columns that
// came and went since the row was written, which it then knows no longer, and for those that are shown from now on. It gives the number of rows.
func (g *Guard) renew(ctx context.Context, tx pgx.Tx, event string, by By, facts map[string]any, shown ...string) (levelled int64, err error) {
	came, went, err := g.changedColumns(ctx, tx)
	if err != nil {
		return 0, err
	}
	facts["came"], facts["went"] = came, went
	rows, err := tx.Query(ctx, forgottenSQL, g.ID)
	if err != nil {
		return 0, err
	}
	if g.Forgotten, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return 0, err
	}
	columns, err := g.columnsJSON()
	if err != nil {
		return 0, err
	}
	s := g.Settings
	var status *int16
	if c := g.column(s.Status); c != nil {
		status = &c.Number
	}
	if _, err := tx.Exec(ctx, updateSQL, g.ID, string(s.Mode), status, g.numbers(s.Ignore), g.numbers(s.Redact), s.SQL, s.RequireReason, s.Truncate, g.GlassBroken,
		columns, g.numbers(g.keyNames()), g.Table.OID); err != nil {
		return 0, err
	}
	if err := g.build(ctx, tx); err != nil {
		return 0, err
	}
	if err := g.record(ctx, tx, event, by, facts); err != nil {
		return 0, err
	}
	if err := g.try(ctx, tx); err != nil {
		return 0, err
	}
	for _, c := range shown {
		if !slices.Contains(came, c) {
			came = append(came, c)
		}
	}
	if len(came)+len(went) == 0 {
		return 0, nil
	}
	err = tx.QueryRow(ctx, `SELECT rea.level_guard($1, $2, $3)`, g.ID, came, went).Scan(&levelled)
	return levelled, err
}

// goneSQL finds the guard of a table that was dropped, which has its number for a name, and what the table was called.
const goneSQL = `
SELECT g.guard_id, (SELECT e.aggregate_id FROM rea.events e WHERE e.aggregate_type = 'rea.guard' AND e.event_type = 'GuardAdded' AND e.payload ->> 'type' = g.aggregate_type
                    ORDER BY e.id DESC LIMIT 1)
FROM rea.guards g
WHERE g.relation::oid::text = $1 AND NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = g.relation)`

// Remove takes a guard's triggers and functions away. The events stay, and one more says that it was removed. Of a table that was dropped
// Status tells the number, which stands for its name here.
func Remove(ctx context.Context, db Beginner, table string, by By) (*Guard, error) {
	gone := &Guard{Table: &adopt.Table{}}
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, goneSQL, table)
		if err != nil {
			return err
		}
		var called string
		if _, err := pgx.ForEachRow(rows, []any{&gone.ID, &called}, func() error { return nil }); err != nil || gone.ID == 0 {
			return err
		}
		gone.Table.Schema, gone.Table.Name, _ = strings.Cut(called, ".")
		if err := gone.record(ctx, tx, "GuardRemoved", by, map[string]any{"table": called}); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `SELECT rea.remove_guard($1)`, gone.ID)
		return err
	})
	if err != nil || gone.ID != 0 {
		return gone, explain(gone.Table, err)
	}
	return find(ctx, db, table, func(g *Guard, tx pgx.Tx) error {
		if err := g.record(ctx, tx, "GuardRemoved", by, g.facts()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `SELECT rea.remove_guard($1)`, g.ID)
		return err
	})
}
