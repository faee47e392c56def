package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/realtime-event-archive/rea"
)

// copyGrants gives the new table what others may do with the old one, beside the roles of REA.
const copyGrants = `
DECLARE
    old regclass := to_regclass(%[1]s);
    new regclass := to_regclass(%[2]s);
    g record;
BEGIN
    FOR g IN SELECT '' AS columns, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
             FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = old AND a.grantee <> c.relowner AND a.privilege_type = 'SELECT'
             UNION ALL
             SELECT format(' (%%I)', o.attname), CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
             FROM pg_attribute o JOIN pg_attribute n ON n.attrelid = new AND n.attname = o.attname, aclexplode(o.attacl) a
             WHERE o.attrelid = old AND o.attnum > 0 AND NOT o.attisdropped AND a.privilege_type = 'SELECT' LOOP
        EXECUTE format('GRANT SELECT%%s ON %%s TO %%s', g.columns, new, g.grantee);
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

// change is a statement that takes something of others' over to the new table.
type change struct {
	what string // it is about
	role string // who runs it; "": the owner of the archive, none: the session's login
	text string
}

// changes reads statements that query writes for a table and the one beside it.
func (s *ownSession) changes(ctx context.Context, f rea.Followed, query string, args ...any) (list []change, err error) {
	var c change
	x := followedSQL{f}
	err = each(ctx, s.db, func() error { list = append(list, c); return nil }, []any{&c.what, &c.role, &c.text}, query,
		append([]any{x.table(false), x.table(true)}, args...)...)
	return list, mapError("look at what others have made on "+x.table(false), err)
}

// make runs statements, and says what one that cannot be run is about.
func (s *ownSession) make(ctx context.Context, doing string, f rea.Followed, list []change) error {
	for _, c := range list {
		err := s.makeOne(ctx, doing, c)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && strings.Contains(" 0A 22 23 2B 42 ", " "+refused.Code[:2]+" ") {
			return &rea.DependentsError{Projection: f.Name, Inline: f.Inline, Dependents: []string{c.what + " (" + refused.Message + ")"}}
		}
		if err != nil {
			return err
		}
	}
	return mapError(doing, s.own(ctx))
}

func (s *ownSession) makeOne(ctx context.Context, doing string, c change) error {
	if c.role != "" && s.owner {
		if err := s.run(ctx, doing, "SET LOCAL ROLE NONE"); err != nil {
			return err
		}
		s.owner = false
	}
	switch c.role {
	case "":
		if err := s.own(ctx); err != nil {
			return mapError(doing, err)
		}
		return s.run(ctx, doing, c.text)
	case "none":
		return s.run(ctx, doing, c.text)
	}
	return s.runAs(ctx, doing, c.role, c.text)
}

// runAs runs a statement with the rights of a role and no others. SET ROLE would not do: what the statement calls while it is read,
// such as the CHECK of a domain, could set the role back and have the rights of the login. The expression of an index is computed
// as the owner of its table, in what PostgreSQL calls a security-restricted operation: no SET ROLE, no triggers that fire later, no
// PREPARE, no temporary tables, and settings go back. The role owns the table alone, and nothing runs again that it could change.
func (s *ownSession) runAs(ctx context.Context, doing, role, text string) error {
	role = quoteName(role)
	return s.run(ctx, doing,
		"CREATE TEMP TABLE rea_step AS SELECT "+quoteText(text)+" AS statement",
		"CREATE FUNCTION pg_temp.rea_run(text) RETURNS int LANGUAGE plpgsql AS 'BEGIN EXECUTE $1; RETURN 0; END'",
		"CREATE FUNCTION pg_temp.rea_step(text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN pg_temp.rea_run($1); END'",
		"GRANT EXECUTE ON FUNCTION pg_temp.rea_run(text), pg_temp.rea_step(text) TO "+role,
		"ALTER TABLE pg_temp.rea_step OWNER TO "+role,
		"CREATE INDEX ON pg_temp.rea_step (pg_temp.rea_step(statement))",
		"DROP TABLE pg_temp.rea_step",
		"DROP FUNCTION pg_temp.rea_step(text), pg_temp.rea_run(text)")
}

func (s *ownSession) RehearseSwitch(ctx context.Context, f rea.Followed, recreate bool) error {
	x := followedSQL{f}
	doing := "try the switch of " + x.table(false)
	if err := s.own(ctx); err != nil {
		return mapError(doing, err)
	}
	dependents, err := s.Dependents(ctx, f)
	if err == nil {
		err = rea.CheckDependents(f, dependents, recreate)
	}
	if err != nil {
		return err
	}
	indexes, err := s.changes(ctx, f, indexesSQL, true)
	if err != nil {
		return err
	}
	rest, err := s.changes(ctx, f, restSQL)
	if err != nil || len(indexes)+len(rest)+len(dependents) == 0 {
		return err
	}
	if err := s.run(ctx, doing, "SAVEPOINT rea_rehearsal", "SET LOCAL lock_timeout = '200ms'", "TRUNCATE "+x.table(true)); err != nil {
		return err
	}
	if err := s.switchTable(ctx, f, recreate, false); err != nil {
		return err
	}
	return s.run(ctx, doing, "ROLLBACK TO SAVEPOINT rea_rehearsal", "RELEASE SAVEPOINT rea_rehearsal")
}

// CopyIndexes leaves foreign keys to the switch: one stops the writers of the other table to the end of its transaction.
func (s *ownSession) CopyIndexes(ctx context.Context, f rea.Followed) (left int, err error) {
	x := followedSQL{f}
	doing := "copy the indexes to " + x.table(true)
	there := false
	err = s.one(ctx, &there, `SELECT to_regclass($1) IS NOT NULL`, x.table(true))
	if err == nil {
		err = s.own(ctx)
	}
	if err != nil || !there { // another process has switched it
		return 0, mapError(doing, err)
	}
	// one at a time; writers go on until there is an index to be built
	if err := s.run(ctx, doing, "LOCK TABLE "+x.table(true)+" IN SHARE UPDATE EXCLUSIVE MODE", "SET LOCAL lock_timeout = '200ms'"); err != nil {
		return 0, err
	}
	list, err := s.changes(ctx, f, indexesSQL, false)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return len(list) - 1, s.make(ctx, doing, f, list[:1])
}

func (s *ownSession) SwitchTable(ctx context.Context, f rea.Followed, recreate bool) error {
	return s.switchTable(ctx, f, recreate, true)
}

// switchTable does not wait long for the readers of the table. What is on it is looked at when nobody else can change it. Materialized
// views are filled if filled: a query may fail on no rows that holds on some.
func (s *ownSession) switchTable(ctx context.Context, f rea.Followed, recreate, filled bool) error {
	x := followedSQL{f}
	table, beside := x.table(false), x.table(true)
	doing := "switch the table of " + f.Name
	if err := s.own(ctx); err != nil {
		return mapError(doing, err)
	}
	there, err := s.TableThere(ctx, f)
	if err != nil {
		return err
	}
	rename := []string{fmt.Sprintf("ALTER TABLE %s RENAME TO %s", beside, quoteName(f.Name)),
		fmt.Sprintf("ALTER TABLE %s RENAME CONSTRAINT %s TO %s", table, quoteName(x.beside()+"_pkey"), quoteName(f.Name+"_pkey"))}
	if !there {
		return s.run(ctx, doing, rename...)
	}
	if err := s.run(ctx, doing, `SET LOCAL lock_timeout = '200ms'`, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		return err
	}
	dependents, err := s.Dependents(ctx, f)
	if err == nil {
		err = rea.CheckDependents(f, dependents, recreate)
	}
	if err != nil {
		return err
	}
	indexes, err := s.changes(ctx, f, indexesSQL, true) // those that came after CopyIndexes too
	if err == nil {
		err = s.make(ctx, doing, f, indexes)
	}
	if err != nil {
		return err
	}
	drop, err := s.changes(ctx, f, dropViewsSQL)
	if err != nil {
		return err
	}
	rest, err := s.changes(ctx, f, restSQL)
	if err != nil {
		return err
	}
	views, err := s.changes(ctx, f, viewsSQL, filled)
	if err != nil {
		return err
	}
	if err := s.make(ctx, doing, f, drop); err != nil {
		return err
	}
	err = s.run(ctx, doing, append([]string{"DO " + quoteText(fmt.Sprintf(copyGrants, quoteText(table), quoteText(beside))),
		"DO " + quoteText(fmt.Sprintf(copyComments, quoteText(table), quoteText(beside))), "DROP TABLE " + table}, rename...)...)
	if err != nil {
		return err
	}
	return s.make(ctx, doing, f, append(rest, views...))
}
