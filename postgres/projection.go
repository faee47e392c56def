package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/realtime-event-archive/rea"
)

func (s *ownSession) Projections(ctx context.Context) ([]rea.AppliedProjection, error) {
	var list []rea.AppliedProjection
	var p rea.AppliedProjection
	err := each(ctx, s.db, func() error {
		list = append(list, p)
		return nil
	}, []any{&p.Name, &p.Of, &p.Version, &p.Definition, &p.Fingerprint}, `
SELECT p.name, p.aggregate_type, p.version, p.definition, p.fingerprint
FROM rea.projections p
WHERE p.mode = 'inline'
ORDER BY p.name`)
	return list, mapError("read the projections", err)
}

const tableColumnsSQL = `
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod)
FROM pg_attribute a
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped`

// keptSQL: the trigger is there and on, and both functions have the bodies that they were made with. 5: AFTER, ROW, INSERT.
const keptSQL = `
SELECT EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_namespace n ON n.oid = p.pronamespace
               WHERE t.tgrelid = 'rea.events'::regclass AND t.tgname::text = $1 AND t.tgenabled IN ('O', 'A') AND t.tgtype = 5
                 AND n.nspname = 'rea' AND p.proname::text = $1 AND p.prosrc = $2 AND p.prosecdef)
       AND EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
                   WHERE n.nspname = 'rea' AND p.proname::text = $3 AND p.prosrc = $4 AND p.prosecdef)`

func (s *ownSession) CheckStateTable(ctx context.Context, t rea.StateTable) (rea.TableCheck, error) {
	x := stateSQL{t}
	doing := "check " + x.table(false)
	found := map[string]string{}
	var name, kind string
	err := each(ctx, s.db, func() error {
		found[name] = kind
		return nil
	}, []any{&name, &kind}, tableColumnsSQL, x.table(false))
	switch {
	case err != nil:
		return 0, mapError(doing, err)
	case len(found) == 0:
		return rea.TableMissing, nil
	}
	recorded := false
	if err := s.one(ctx, &recorded, `SELECT EXISTS (SELECT FROM rea.projections p WHERE p.name = $1)`, t.Name); err != nil {
		return 0, mapError(doing, err)
	}
	if !recorded {
		return rea.TableUnplaced, nil
	}
	for _, c := range allColumns(t) {
		want := string(c.Type)
		if c.Type == rea.Timestamptz {
			want = "timestamp with time zone"
		}
		if kind := found[c.Name]; kind != want {
			return 0, fmt.Errorf("rea: the column %q of %s is %s, and should be %s: put it back, or drop the table and apply the catalog again",
				c.Name, x.table(false), orMissing(kind), c.Type)
		}
	}
	kept := false
	err = s.one(ctx, &kept, keptSQL, x.keeper(), x.keepBody(), x.mender(), x.mendBody())
	if err != nil || kept {
		return rea.TableWhole, mapError(doing, err)
	}
	return rea.TableUnkept, nil
}

func orMissing(kind string) string {
	if kind == "" {
		return "missing"
	}
	return "of type " + kind
}

// allColumns are those of the declaration, and REA's own.
func allColumns(t rea.StateTable) []rea.Column {
	return append([]rea.Column{{Name: "aggregate_id", Type: rea.Text}, {Name: "rea_seq", Type: rea.Bigint}, {Name: "rea_updated_at", Type: rea.Timestamptz}}, t.Columns...)
}

// own makes the transaction act as the owner of the archive, so that what it makes is the owner's, and names mean
// PostgreSQL's own.
func (s *ownSession) own(ctx context.Context) error {
	if s.owner {
		return nil
	}
	s.owner = true
	if err := s.db.exec(ctx, `SET LOCAL search_path = pg_catalog, pg_temp`); err != nil {
		return err
	}
	return s.db.exec(ctx, `
SELECT set_config('role', a.rolname, true)
FROM pg_class c JOIN pg_roles a ON a.oid = c.relowner
WHERE c.oid = 'rea.events'::regclass AND a.rolname <> current_user`)
}

func (s *ownSession) run(ctx context.Context, doing string, statements ...string) error {
	for _, statement := range statements {
		err := s.db.exec(ctx, statement)
		if sqlState(err) == "55P03" {
			return retry(doing, err)
		}
		if err != nil {
			return mapError(doing, err)
		}
	}
	return nil
}

// retry: a lock did not come in time.
func retry(doing string, err error) error {
	return fmt.Errorf("rea: %s: %w (%w)", doing, rea.ErrRetry, err)
}

// LockProjections: appends do not read rea.projections.
func (s *ownSession) LockProjections(ctx context.Context) error {
	const doing = "lock the list of projections"
	if err := s.own(ctx); err != nil {
		return mapError(doing, err)
	}
	return s.run(ctx, doing, `SET LOCAL lock_timeout = '1s'`, `LOCK TABLE rea.projections IN SHARE ROW EXCLUSIVE MODE`)
}

func (s *ownSession) BuildStateTable(ctx context.Context, t rea.StateTable) error {
	x := stateSQL{t}
	return s.build(ctx, t.Name, x.beside(), x.table(true), x.create())
}

// build makes a table beside that of a projection, unless it is there, and drops what was built for another definition.
func (s *ownSession) build(ctx context.Context, projection, beside, table, create string) error {
	doing := "build " + table
	built, err := s.built(ctx, projection)
	if err != nil {
		return mapError(doing, err)
	}
	there := false
	for _, name := range built {
		if name == beside {
			there = true
		} else if err := s.run(ctx, doing, "DROP TABLE rea_views."+quoteName(name)); err != nil {
			return err
		}
	}
	if there {
		return nil
	}
	return s.run(ctx, doing, create, "SELECT rea.guard_view("+quoteText(table)+"::regclass)")
}

// built lists the tables that were begun beside that of a projection.
func (s *ownSession) built(ctx context.Context, projection string) (names []string, err error) {
	var name string
	err = each(ctx, s.db, func() error {
		names = append(names, name)
		return nil
	}, []any{&name}, `
SELECT c.relname::text FROM pg_class c
WHERE c.relnamespace = 'rea_views'::regnamespace AND c.relkind = 'r'
  AND starts_with(c.relname::text, $1 || '.') AND right(c.relname::text, 8) ~ '^[0-9a-f]{8}$' AND length(c.relname::text) = length($1 || '.') + 8`, projection)
	return names, err
}

// copyGrants gives the new table what others may do with the old one, beside the roles of REA.
const copyGrants = `
DECLARE
    g record;
BEGIN
    FOR g IN SELECT a.privilege_type, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
             FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = to_regclass(%[1]s) AND a.grantee <> c.relowner AND a.privilege_type = 'SELECT' LOOP
        EXECUTE format('GRANT %%s ON %%s TO %%s', g.privilege_type, to_regclass(%[2]s), g.grantee);
    END LOOP;
END`

// copyComments gives the new table the comments of the old one.
const copyComments = `
DECLARE
    old regclass := to_regclass(%[1]s);
    new regclass := to_regclass(%[2]s);
    o record;
BEGIN
    IF obj_description(old, 'pg_class') IS NOT NULL THEN
        EXECUTE format('COMMENT ON TABLE %%s IS %%L', new, obj_description(old, 'pg_class'));
    END IF;
    FOR o IN SELECT n.attname, col_description(old, a.attnum) AS comment FROM pg_attribute a JOIN pg_attribute n ON n.attrelid = new AND n.attname = a.attname
             WHERE a.attrelid = old AND a.attnum > 0 AND col_description(old, a.attnum) IS NOT NULL LOOP
        EXECUTE format('COMMENT ON COLUMN %%s.%%I IS %%L', new, o.attname, o.comment);
    END LOOP;
END`

// switchTable puts the table that was built in the place of the one that is read, and does not wait long for its readers.
func (s *ownSession) switchTable(ctx context.Context, doing, name, beside string) error {
	table, built := "rea_views."+quoteName(name), "rea_views."+quoteName(beside)
	err := s.run(ctx, doing, `SET LOCAL lock_timeout = '200ms'`,
		"DO "+quoteText(fmt.Sprintf(copyGrants, quoteText(table), quoteText(built))), "DO "+quoteText(fmt.Sprintf(copyComments, quoteText(table), quoteText(built))),
		"DROP TABLE IF EXISTS "+table,
		fmt.Sprintf("ALTER TABLE %s RENAME TO %s", built, quoteName(name)),
		fmt.Sprintf("ALTER TABLE %s RENAME CONSTRAINT %s TO %s", table, quoteName(beside+"_pkey"), quoteName(name+"_pkey")))
	if sqlState(err) == "2BP01" {
		return fmt.Errorf("%w: something depends on the table, a view most likely: drop that, do this again, and make it again", err)
	}
	return err
}

// InstallStateTable locks rea.events first: whoever has appended holds ROW EXCLUSIVE on it to the end of his transaction, so
// that no event of his can be without the trigger and come after what was filled. Not rea.steps beside it: appends take
// the two in either order. The table comes second and is not waited for long, for its readers may wait to append.
func (s *ownSession) InstallStateTable(ctx context.Context, t rea.StateTable, built bool) error {
	x := stateSQL{t}
	doing := "make appends keep " + x.table(false)
	if err := s.run(ctx, doing, `SET LOCAL lock_timeout = '1s'`, `LOCK TABLE rea.events IN SHARE ROW EXCLUSIVE MODE`); err != nil {
		return err
	}
	if built {
		if err := s.switchTable(ctx, doing, x.Name, x.beside()); err != nil {
			return err
		}
	}
	err := s.run(ctx, doing, x.mendFunction(), x.keepFunction(), x.trigger(),
		fmt.Sprintf("REVOKE ALL ON FUNCTION rea.%s(), rea.%s(text, bigint) FROM PUBLIC", quoteName(x.keeper()), quoteName(x.mender())))
	if err != nil {
		return err
	}
	definition, fingerprint := t.Definition()
	return mapError(doing, s.db.exec(ctx, `
INSERT INTO rea.projections AS p (name, mode, aggregate_type, version, definition, fingerprint)
VALUES ($1, 'inline', $2, $3, $4, $5)
ON CONFLICT (name) DO UPDATE
SET mode = excluded.mode, aggregate_type = excluded.aggregate_type, version = excluded.version, definition = excluded.definition,
    fingerprint = excluded.fingerprint, made_by = excluded.made_by, made_at = excluded.made_at,
    position = CASE WHEN $6 THEN 0 ELSE p.position END, event_id = CASE WHEN $6 THEN 0 ELSE p.event_id END`,
		t.Name, t.Of, t.Version, definition, fingerprint, built))
}

func (s *ownSession) RemoveProjection(ctx context.Context, name string) error {
	x := stateSQL{rea.StateTable{Name: name}}
	doing := "make appends leave " + x.table(false)
	err := s.run(ctx, doing, `SET LOCAL lock_timeout = '1s'`,
		fmt.Sprintf("DROP TRIGGER IF EXISTS %s ON rea.events", quoteName(x.keeper())),
		fmt.Sprintf("DROP FUNCTION IF EXISTS rea.%s(), rea.%s(text, bigint)", quoteName(x.keeper()), quoteName(x.mender())))
	if err != nil {
		return err
	}
	return mapError(doing, s.db.exec(ctx, `DELETE FROM rea.projections WHERE name = $1`, name))
}

// viewGone: an inline projection's table is not there any more, and its trigger still is.
func viewGone(err error) bool {
	return sqlState(err) == "42P01" && strings.Contains(err.Error(), "rea_views.")
}
