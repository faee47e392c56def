package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
)

// permissionError says which role gives the right that a login lacks.
type permissionError struct {
	role, login string
	err         error
}

func (e *permissionError) Error() string {
	return fmt.Sprintf("%s may not do this, it needs the role %s: GRANT %s TO %s", e.login, e.role, identifier(e.role), identifier(e.login))
}

func (e *permissionError) Unwrap() error { return e.err }

func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// roleSQL finds the role of a kind by who may use the schema: rea.roles may not be readable. The schema's owner is
// the role of the kind owner. has: the login has it, or may read without it, and lacks a right that is not the archive's.
const roleSQL = `
SELECT one.login, one.database, one.there, one.role,
       EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname::text = one.role AND pg_catalog.pg_has_role(r.oid, 'MEMBER'))
       OR $1 = 'reader' AND EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relnamespace = one.schema AND c.relname = 'events' AND pg_catalog.has_table_privilege(c.oid, 'SELECT'))
FROM (SELECT current_user::text AS login, current_database()::text AS database, n.oid IS NOT NULL AS there, n.oid AS schema,
             coalesce(CASE WHEN $1 = 'owner' THEN pg_catalog.pg_get_userbyid(n.nspowner)::text
                      ELSE (SELECT r.rolname::text FROM pg_catalog.aclexplode(n.nspacl) a JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
                            WHERE pg_catalog.right(r.rolname::text, pg_catalog.length($1) + 1) = '_' || $1 LIMIT 1) END,
                      'rea_' || $1) AS role
      FROM (SELECT) x LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = 'rea') one`

// permission makes an error for a missing right one that says how to give it.
func (a *app) permission(ctx context.Context, err error) error {
	if a.pool == nil || sqlState(err) != "42501" || errors.As(err, new(*permissionError)) || errors.As(err, new(*rea.OwnerError)) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var login, database, role string
	var there, has bool
	if a.pool.QueryRow(ctx, roleSQL, a.role).Scan(&login, &database, &there, &role, &has) != nil {
		return err // what is known stays known
	}
	if !there {
		return fmt.Errorf("%s may not make the schema rea: GRANT CREATE ON DATABASE %s TO %s (%w)", login, identifier(database), identifier(login), err)
	}
	if has {
		return err
	}
	return &permissionError{role, login, err}
}

// mayImport is asked before a large file is read. Without a schema the import itself says so.
func (a *app) mayImport(ctx context.Context) error {
	if a.pool == nil {
		return nil
	}
	const rightsSQL = `
SELECT pg_catalog.has_table_privilege('rea.imports', 'INSERT') AND pg_catalog.has_table_privilege('rea.imports', 'UPDATE')
   AND pg_catalog.has_column_privilege('rea.events', 'created_at', 'INSERT')`
	var may bool
	err := a.pool.QueryRow(ctx, rightsSQL).Scan(&may)
	switch {
	case sqlState(err) == "42501":
		return err
	case err != nil || may:
		return nil
	}
	return missingRight{}
}

// mayRun is asked before a runner begins, which would try again for ever. makes: it may make tables, too.
func (a *app) mayRun(ctx context.Context) (makes bool, err error) {
	if a.pool == nil {
		return true, nil
	}
	const rightsSQL = `
SELECT coalesce(pg_catalog.bool_or(r.may), false), coalesce(pg_catalog.bool_or(r.may AND r.owns), false)
FROM (SELECT m.owns, pg_catalog.pg_has_role(session_user, m.role, CASE WHEN pg_catalog.current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END) AS may
      FROM (SELECT c.relowner, true FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass('rea.events')
            UNION ALL
            SELECT p.oid, false FROM rea.roles k JOIN pg_catalog.pg_roles p ON p.rolname::text = k.role_name WHERE k.kind = 'runner') m(role, owns)) r`
	var may bool
	if err := a.pool.QueryRow(ctx, rightsSQL).Scan(&may, &makes); err != nil || may {
		return err != nil || makes, nil // what is wrong otherwise is told by what comes next
	}
	return false, missingRight{}
}

// missingRight is what the server would answer later.
type missingRight struct{}

func (missingRight) Error() string    { return "permission denied" }
func (missingRight) SQLState() string { return "42501" }

var plainIdentifier = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// identifier writes a name as SQL takes it.
func identifier(name string) string {
	if plainIdentifier.MatchString(name) {
		return name
	}
	return pgx.Identifier{name}.Sanitize()
}
