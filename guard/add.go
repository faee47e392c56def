package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/adopt"
)

// Add puts a guard on a table, in one transaction: the functions, their triggers on the table and on each of its partitions, the event
// GuardAdded, and a try, which is undone: an UPDATE of one row to itself. Who adds it owns the table, and is a member of the archive's owner.
//
// CREATE TRIGGER takes SHARE ROW EXCLUSIVE on the table: writers wait for the moment until the commit. It waits a second for it at most, lets
// the others go on, and tries again, ten times in all.
func Add(ctx context.Context, db Beginner, table string, s Settings, by By) (*Guard, error) {
	g := &Guard{Settings: s.withDefaults()}
	err := g.within(ctx, db, table, s.Key, func(tx pgx.Tx) error {
		if err := g.check(); err != nil {
			return err
		}
		if err := g.rights(ctx, tx); err != nil {
			return err
		}
		if err := g.fits(ctx, tx); err != nil {
			return err
		}
		if err := g.seqColumn(ctx, tx); err != nil {
			return err
		}
		if err := g.insert(ctx, tx); err != nil {
			return err
		}
		if err := g.build(ctx, tx); err != nil {
			return err
		}
		if err := g.record(ctx, tx, "GuardAdded", by, g.facts()); err != nil {
			return err
		}
		return g.try(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// within runs fn in a transaction that may wait for a lock for a second only, again and again. Names of types are written under the
// search_path that the functions have.
func (g *Guard) within(ctx context.Context, db Beginner, table string, key []string, fn func(pgx.Tx) error) error {
	var err error
	for range lockTries {
		err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			var name, path, timeout, role string
			if err := tx.QueryRow(ctx, `SELECT coalesce((SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass($1)), $1),
    current_setting('search_path'), current_setting('lock_timeout'), current_setting('role')`, table).Scan(&name, &path, &timeout, &role); err != nil {
				return err
			}
			if err := set(ctx, tx, "pg_catalog, pg_temp", fmt.Sprint(lockTimeout.Milliseconds()), role); err != nil {
				return err
			}
			described, err := adopt.Describe(ctx, tx, name, key)
			if err != nil {
				return err
			}
			g.Table = described
			if err := fn(tx); err != nil {
				return err
			}
			return set(ctx, tx, path, timeout, role)
		})
		if err == nil || sqlState(err) != "55P03" {
			return explain(g.Table, err)
		}
	}
	return fmt.Errorf("rea: guard of %s: it is in use by transactions that stay open, and was not free within a second %d times: look for them in pg_stat_activity, then do it again: %w",
		table, lockTries, err)
}

func set(ctx context.Context, tx pgx.Tx, path, timeout, role string) error {
	_, err := tx.Exec(ctx, `SELECT set_config('search_path', $1, true), set_config('lock_timeout', $2, true), set_config('role', $3, true)`, path, timeout, role)
	return err
}

func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// explain says what the database's refusals mean here.
func explain(t *adopt.Table, err error) error {
	if err == nil || sqlState(err) == "" {
		return err
	}
	name := "the table"
	if t != nil {
		name = t.String()
	}
	switch sqlState(err) {
	case "3F000", "42P01":
		return fmt.Errorf("rea: guard of %s: the archive is not there, or an older one: run `rea migrate up`: %w (%w)", name, rea.ErrNoSchema, err)
	}
	return fmt.Errorf("rea: guard of %s: %w", name, err)
}

const rightsSQL = `
SELECT pg_has_role(current_user, c.relowner, 'USAGE'), pg_get_userbyid(c.relowner), pg_has_role(current_user, e.relowner, 'USAGE'), pg_get_userbyid(e.relowner)
FROM pg_class c, pg_class e
WHERE c.oid = $1 AND e.oid = 'rea.events'::regclass`

// rights refuses roles that may not change guards of the table.
func (g *Guard) rights(ctx context.Context, tx pgx.Tx) error {
	var owns, keeps bool
	var owner, keeper string
	if err := tx.QueryRow(ctx, rightsSQL, g.Table.OID).Scan(&owns, &owner, &keeps, &keeper); err != nil {
		return err
	}
	switch {
	case !owns:
		return fmt.Errorf("rea: guard of %s: only a role that owns the table can change it: GRANT %s TO the role, or connect as another one", g.Table, pgx.Identifier{owner}.Sanitize())
	case !keeps:
		return fmt.Errorf("rea: guard of %s: only a member of the archive's owner can change it: GRANT %s TO the role, or connect as another one", g.Table, pgx.Identifier{keeper}.Sanitize())
	}
	return nil
}

const fitsSQL = `
SELECT c.relispartition, c.relpersistence = 't',
       EXISTS (SELECT FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid = c.oid AND p.relkind = 'r')
       OR c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid),
       coalesce((SELECT f.relid::regclass::text FROM pg_partition_tree(c.oid) f JOIN pg_class x ON x.oid = f.relid WHERE x.relkind = 'f' LIMIT 1), ''),
       coalesce((SELECT g.aggregate_type FROM rea.guards g WHERE g.relation = c.oid), ''),
       coalesce((SELECT g.relation::text FROM rea.guards g WHERE g.aggregate_type = $2 AND g.relation <> c.oid), ''),
       EXISTS (SELECT FROM rea.guards g WHERE g.aggregate_type = $2 AND NOT EXISTS (SELECT FROM pg_class x WHERE x.oid = g.relation))
FROM pg_class c
WHERE c.oid = $1`

// fits refuses tables that cannot be guarded.
func (g *Guard) fits(ctx context.Context, tx pgx.Tx) error {
	var partition, temporary, inherits, dropped bool
	var foreign, guarded, other string
	err := tx.QueryRow(ctx, fitsSQL, g.Table.OID, g.Settings.Type).Scan(&partition, &temporary, &inherits, &foreign, &guarded, &other, &dropped)
	switch t := g.Table; {
	case err != nil:
		return err
	case guarded != "":
		return fmt.Errorf("%w: rea: %s is guarded already, as %s: `rea guard remove` first", rea.ErrConflict, t, guarded)
	case dropped:
		return fmt.Errorf("%w: rea: the type %s is that of a guard whose table was dropped: `rea guard remove %s` first", rea.ErrConflict, g.Settings.Type, other)
	case other != "":
		return fmt.Errorf("%w: rea: the guard of %s has the type %s: two tables cannot have one, for their ids would be mixed", rea.ErrConflict, other, g.Settings.Type)
	case partition:
		return fmt.Errorf("rea: %s is a partition: guard the table that it is one of", t)
	case temporary:
		return fmt.Errorf("rea: %s is a temporary table", t)
	case inherits:
		return fmt.Errorf("rea: %s inherits, or is inherited from: a write through one of the two fires no trigger of the other, so that neither can be guarded", t)
	case foreign != "":
		return fmt.Errorf("rea: guard of %s: its partition %s is a foreign table, which can have no such trigger", t, foreign)
	}
	return nil
}

// seqColumn sees to the column that a refusing guard needs. It can be null and has no default: no row is written anew.
func (g *Guard) seqColumn(ctx context.Context, tx pgx.Tx) error {
	if g.Settings.Mode != Refuse {
		return nil
	}
	c := g.column(adopt.SeqColumn)
	if c == nil && g.Settings.AddColumn {
		if _, err := tx.Exec(ctx, "ALTER TABLE "+g.Table.SQL()+" ADD COLUMN "+adopt.SeqColumn+" bigint"); err != nil {
			return err
		}
		key := g.keyNames()
		described, err := adopt.Describe(ctx, tx, g.Table.SQL(), key)
		if err != nil {
			return err
		}
		g.Table = described
		c = g.column(adopt.SeqColumn)
	}
	switch {
	case c == nil:
		return fmt.Errorf("rea: guard of %s: to refuse, it needs a column that says which event stands for a row: --add-column, or ALTER TABLE %s ADD COLUMN %s bigint", g.Table, g.Table.SQL(), adopt.SeqColumn)
	case c.Type != "bigint":
		return fmt.Errorf("rea: guard of %s: its column %s is %s, and should be bigint", g.Table, adopt.SeqColumn, c.Type)
	}
	return nil
}

func (g *Guard) keyNames() []string {
	names := make([]string, len(g.Table.Key))
	for i, k := range g.Table.Key {
		names[i] = g.Table.Columns[k].Name
	}
	return names
}

// numbers are those of columns in the database.
func (g *Guard) numbers(names []string) []int16 {
	list := make([]int16, 0, len(names))
	for _, name := range names {
		list = append(list, g.column(name).Number)
	}
	return list
}

func (g *Guard) columnsJSON() (string, error) {
	text, err := json.Marshal(g.Table.Columns)
	return string(text), err
}

const insertSQL = `
INSERT INTO rea.guards (relation, aggregate_type, mode, key, status, ignored, redacted, keeps_sql, needs_reason, on_truncate, columns, made_for)
VALUES ($1::oid::regclass, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::jsonb, $1)
RETURNING guard_id`

func (g *Guard) insert(ctx context.Context, tx pgx.Tx) error {
	columns, err := g.columnsJSON()
	if err != nil {
		return err
	}
	s := g.Settings
	var status *int16
	if c := g.column(s.Status); c != nil {
		status = &c.Number
	}
	err = tx.QueryRow(ctx, insertSQL, g.Table.OID, s.Type, string(s.Mode), g.numbers(g.keyNames()), status, g.numbers(s.Ignore), g.numbers(s.Redact),
		s.SQL, s.RequireReason, s.Truncate, columns).Scan(&g.ID)
	if err == nil {
		_, err = tx.Exec(ctx, `SELECT rea.guards_changed()`)
	}
	return err
}

// facts are what the events about a guard say of it.
func (g *Guard) facts() map[string]any {
	s := g.Settings
	return map[string]any{"table": g.Table.String(), "type": s.Type, "mode": s.Mode, "key": g.keyNames(), "status": s.Status, "ignore": append([]string{}, s.Ignore...),
		"redact": append([]string{}, s.Redact...), "sql": s.SQL, "require_reason": s.RequireReason, "truncate": s.Truncate}
}

// record writes an event about the guard, and what was observed.
func (g *Guard) record(ctx context.Context, tx pgx.Tx, event string, by By, facts map[string]any) error {
	payload, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `SELECT rea.record_guard($1, $2, $3::text::jsonb, nullif($4, ''), nullif($5, ''))`, name(g.Table), event, string(payload), by.Actor, by.Reason)
	return err
}

// name is the id of the aggregate that a guard is: schema.table, with what an id cannot have as %XX.
func name(t *adopt.Table) string {
	var b strings.Builder
	for i, r := range t.String() {
		edge := i == 0 || i == len(t.String())-1
		if r == '%' || unicode.IsControl(r) || r == ' ' && edge {
			fmt.Fprintf(&b, "%%%02X", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
