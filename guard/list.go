package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/adopt"
)

const loadSQL = `
SELECT g.guard_id, g.aggregate_type, g.mode, rea.guard_names(g, g.key), coalesce((rea.guard_names(g, ARRAY[g.status]))[1], ''), rea.guard_names(g, g.ignored),
       rea.guard_names(g, g.redacted), g.keeps_sql, g.needs_reason, g.on_truncate, g.glass_broken, cardinality(g.key)
FROM rea.guards g
WHERE g.relation = pg_catalog.to_regclass($1)`

// load reads the guard of a table that Describe has seen, but for its key.
func (g *Guard) load(ctx context.Context, db adopt.Queryer) error {
	var key []string
	var mode string
	parts := 0
	s := &g.Settings
	rows, err := db.Query(ctx, loadSQL, g.Table.SQL())
	if err != nil {
		return err
	}
	found := false
	_, err = pgx.ForEachRow(rows, []any{&g.ID, &s.Type, &mode, &key, &s.Status, &s.Ignore, &s.Redact, &s.SQL, &s.RequireReason, &s.Truncate, &g.GlassBroken, &parts}, func() error {
		found = true
		return nil
	})
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%w: rea: %s has no guard: `rea guard status` lists those that have", rea.ErrNotFound, g.Table)
	case len(key) < parts:
		return fmt.Errorf("rea: guard of %s: a column of its key is gone: `rea guard remove %[1]s`, and add it again", g.Table)
	}
	s.Mode, s.Key, g.Table.Key = Mode(mode), key, nil
	for _, name := range key {
		g.Table.Key = append(g.Table.Key, g.Table.Index(name))
	}
	return nil
}

// State is how a guard stands.
type State struct {
	Guard
	Problems []string // what is wrong, and what to type; none: it watches everything that it can
}

const stateSQL = `
WITH parts AS (
    SELECT g.guard_id, g.relation AS parent, t.relid, t.isleaf FROM rea.guards g, LATERAL (SELECT g.relation AS relid, true AS isleaf UNION SELECT p.relid, p.isleaf FROM pg_catalog.pg_partition_tree(g.relation) p) t
), wanted AS (
    SELECT p.guard_id, p.relid, o.name, o.type FROM parts p, (VALUES ('insert', 4), ('update', 16), ('delete', 8), ('truncate', 34)) o(name, type)
), triggers AS (
    SELECT w.*, t.tgenabled, f.proname FROM wanted w
    LEFT JOIN pg_catalog.pg_trigger t ON t.tgrelid = w.relid AND t.tgname::text = 'rea_guard_' || w.name AND t.tgtype = w.type
    LEFT JOIN pg_catalog.pg_proc f ON f.oid = t.tgfoid AND f.pronamespace = 'rea'::regnamespace AND f.proname::text = 'guard_' || w.guard_id || '_' || w.name
)
SELECT g.relation::text,
       ARRAY(SELECT DISTINCT t.relid::regclass::text FROM triggers t WHERE t.guard_id = g.guard_id AND t.proname IS NULL ORDER BY 1),
       ARRAY(SELECT DISTINCT t.relid::regclass::text FROM triggers t WHERE t.guard_id = g.guard_id AND t.proname IS NOT NULL AND t.tgenabled NOT IN ('O', 'A') ORDER BY 1),
       ARRAY(SELECT CASE WHEN c.name IS NULL THEN 'added ' || quote_ident(a.attname) WHEN a.attname IS NULL THEN 'dropped ' || quote_ident(c.name)
                         WHEN a.attname::text <> c.name THEN 'renamed ' || quote_ident(c.name) || ' to ' || quote_ident(a.attname)
                         ELSE 'retyped ' || quote_ident(c.name) END
             FROM (SELECT c.*, CASE WHEN g.made_for = g.relation::oid THEN c.number::text ELSE c.name END AS known
                   FROM pg_catalog.jsonb_to_recordset(g.columns) c(number smallint, name text, type text)) c
             FULL JOIN (SELECT a.attnum, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type,
                               CASE WHEN g.made_for = g.relation::oid THEN a.attnum::text ELSE a.attname::text END AS known
                        FROM pg_catalog.pg_attribute a WHERE a.attrelid = g.relation AND a.attnum > 0 AND NOT a.attisdropped) a
             ON a.known = c.known
             WHERE c.name IS NULL OR a.attname IS NULL OR a.attname::text <> c.name OR a.type <> c.type ORDER BY coalesce(a.attnum, c.number)),
       g.made_for <> g.relation::oid, EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = g.relation), g.mode = 'refuse' AND g.glass_broken,
       coalesce(pg_catalog.has_table_privilege(e.relowner, g.relation, 'SELECT') AND pg_catalog.has_schema_privilege(e.relowner, r.relnamespace, 'USAGE'), true),
       pg_catalog.pg_get_userbyid(e.relowner), coalesce((SELECT i.inhparent::regclass::text FROM pg_catalog.pg_inherits i WHERE i.inhrelid = g.relation AND r.relispartition), ''),
       ARRAY(SELECT format('ALTER TABLE %s NO INHERIT %s', i.inhrelid::regclass, i.inhparent::regclass) FROM pg_catalog.pg_inherits i
             WHERE NOT r.relispartition AND (i.inhrelid = g.relation OR i.inhparent = g.relation AND r.relkind = 'r') ORDER BY 1),
       ARRAY(SELECT DISTINCT t.tgrelid::regclass::text FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc f ON f.oid = t.tgfoid
             WHERE f.pronamespace = 'rea'::regnamespace AND f.proname::text ~ ('^guard_' || g.guard_id || '_[a-z]+$')
               AND NOT EXISTS (SELECT FROM parts p WHERE p.guard_id = g.guard_id AND p.relid = t.tgrelid) ORDER BY 1),
       ARRAY(SELECT format('the policy %I of %s', rea.foreign_policy(p.relid), p.relid::regclass) FROM parts p
             WHERE p.guard_id = g.guard_id AND rea.foreign_policy(p.relid) IS NOT NULL ORDER BY 1)
FROM rea.guards g LEFT JOIN pg_catalog.pg_class r ON r.oid = g.relation, pg_catalog.pg_class e
WHERE e.oid = 'rea.events'::regclass
ORDER BY g.guard_id`

// Status tells of all guards, and what is wrong with them: columns and partitions that came later, triggers that are off.
func Status(ctx context.Context, db Beginner) ([]State, error) {
	var list []State
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		var path string // that of the functions: names of types depend on it
		if err := tx.QueryRow(ctx, `SELECT current_setting('search_path') || left(set_config('search_path', 'pg_catalog, pg_temp', true), 0)`).Scan(&path); err != nil {
			return err
		}
		type row struct {
			name, keeper, parent             string
			bare, off, columns, kin, left    []string
			policies                         []string
			restored, there, broken, reading bool
		}
		rows, err := tx.Query(ctx, stateSQL)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (x row, err error) {
			return x, r.Scan(&x.name, &x.bare, &x.off, &x.columns, &x.restored, &x.there, &x.broken, &x.reading, &x.keeper, &x.parent, &x.kin, &x.left, &x.policies)
		})
		if err != nil {
			return err
		}
		for _, x := range found {
			if !x.there {
				list = append(list, State{Guard{Table: &adopt.Table{Name: x.name}}, []string{"the table was dropped: `rea guard remove " + x.name + "`"}})
				continue
			}
			s := State{}
			table, err := describe(ctx, tx, x.name)
			if err != nil {
				list = append(list, State{Guard{Table: &adopt.Table{Name: x.name}}, []string{err.Error()}})
				continue
			}
			s.Table = table
			if err := s.load(ctx, tx); err != nil {
				s.Problems = append(s.Problems, err.Error())
			} else if problem := s.keyProblem(ctx, tx); problem != "" {
				s.Problems = append(s.Problems, problem)
			}
			for _, p := range x.bare {
				s.Problems = append(s.Problems, fmt.Sprintf("%s has not all triggers of the guard: `rea guard regenerate %s`", p, x.name))
			}
			for _, p := range x.off {
				s.Problems = append(s.Problems, fmt.Sprintf("triggers of %s are switched off, or fire in replicas alone: `rea guard regenerate %s`", p, x.name))
			}
			for _, p := range x.left {
				s.Problems = append(s.Problems, fmt.Sprintf("%s is no partition of it any more, and what is written there is recorded still: attach it again, or drop its triggers rea_guard_insert, rea_guard_update, rea_guard_delete and rea_guard_truncate", p))
			}
			if x.parent != "" {
				s.Problems = append(s.Problems, fmt.Sprintf("it is a partition of %s now, and what is written there does not come by here: `rea guard remove %s`, and guard %[1]s", x.parent, x.name))
			}
			for _, statement := range x.kin {
				s.Problems = append(s.Problems, fmt.Sprintf("it inherits or is inherited from by now, and what is written through the other table does not come by here: `%s`", statement))
			}
			for _, c := range x.columns {
				s.Problems = append(s.Problems, fmt.Sprintf("%s since the guard was made, which goes the slow way: `rea guard regenerate %s`", c, x.name))
			}
			if x.restored && len(x.columns) == 0 {
				s.Problems = append(s.Problems, "the table was restored: `rea guard regenerate "+x.name+"`")
			}
			if x.broken {
				s.Problems = append(s.Problems, "the glass is broken: writes are captured, not refused: `rea guard break-glass "+x.name+" --end`")
			}
			if !x.reading {
				s.Problems = append(s.Problems, fmt.Sprintf("%s may not read the table, as TRUNCATE has it do: `rea guard regenerate %s`", x.keeper, x.name))
			}
			for _, policy := range x.policies {
				s.Problems = append(s.Problems, fmt.Sprintf("%s would choose the rows that %s sees, so TRUNCATE is refused, and a write whose rows a trigger changes again: let it name the roles that it is for (ALTER POLICY ... TO ...), or ALTER ROLE %[2]s BYPASSRLS", policy, x.keeper))
			}
			list = append(list, s)
		}
		_, err = tx.Exec(ctx, `SELECT set_config('search_path', $1, true)`, path)
		return err
	})
	return list, explain(nil, err)
}

// describe describes a guarded table, whatever became of its key since.
func describe(ctx context.Context, db adopt.Queryer, name string) (*adopt.Table, error) {
	t, err := adopt.Describe(ctx, db, name, nil)
	var noKey *adopt.KeyError
	if errors.As(err, &noKey) {
		err = nil
	}
	return t, err
}

// keyProblem is what became of a key that no longer names a row: "": nothing.
func (g *Guard) keyProblem(ctx context.Context, db adopt.Queryer) string {
	for _, k := range g.Table.Key {
		if c := g.Table.Columns[k]; !c.NotNull {
			return fmt.Sprintf("the column %s of the key can be null by now, and such a row is refused: ALTER TABLE ... ALTER COLUMN ... SET NOT NULL", c.Name)
		}
	}
	if _, err := adopt.Describe(ctx, db, g.Table.SQL(), g.Settings.Key); err != nil {
		return strings.TrimPrefix(err.Error(), "rea: ")
	}
	return ""
}

// find locks a guard's row in a transaction, describes the table, loads the guard, and hands both to fn.
func find(ctx context.Context, db Beginner, table string, fn func(g *Guard, tx pgx.Tx) error) (*Guard, error) {
	g := &Guard{}
	err := g.within(ctx, db, table, func(tx pgx.Tx, name string) (*adopt.Table, error) {
		if _, err := tx.Exec(ctx, `SELECT FROM rea.guards g WHERE g.relation = pg_catalog.to_regclass($1) FOR UPDATE`, name); err != nil {
			return nil, err
		}
		return describe(ctx, tx, name)
	}, func(tx pgx.Tx) error {
		*g = Guard{Table: g.Table}
		if err := g.load(ctx, tx); err != nil {
			return err
		}
		if err := g.rights(ctx, tx); err != nil {
			return err
		}
		return fn(g, tx)
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// errNoReason is that of breaking the glass without one.
var errNoReason = errors.New("rea: to break the glass takes a reason: it is what the record of it is for")
