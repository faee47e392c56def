package postgres

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const defaultPrefix = "rea"

// rolePrefix is the one that the roles of this archive have, or will have. Another one than the configured is refused.
func (s *store) rolePrefix(ctx context.Context) (string, error) {
	var installed string
	err := s.pool.QueryRow(ctx, `
SELECT coalesce((SELECT pg_catalog.left(k.role_name, -1 - pg_catalog.length(k.kind)) FROM rea.roles k LIMIT 1), '')`).Scan(&installed)
	if err != nil {
		return "", mapError("read the roles", err)
	}
	if given := s.config.RolePrefix; given != "" && installed != "" && given != installed {
		return "", fmt.Errorf("rea: migrate: the roles of this archive begin with %s_, not %s_: leave the prefix out", installed, given)
	}
	return cmp.Or(installed, s.config.RolePrefix, defaultPrefix), nil
}

// rolesMissing: the login may make or record roles that a migration before it could not, or was killed before it did.
func (s *store) rolesMissing(ctx context.Context, prefix string) (missing bool, err error) {
	err = s.pool.QueryRow(ctx, `
SELECT pg_catalog.has_function_privilege('rea.install_roles(text)', 'EXECUTE') AND pg_catalog.count(k.kind) < 6
       AND (me.rolcreaterole OR me.rolsuper
            OR pg_catalog.count(k.kind) < (SELECT pg_catalog.count(*) FROM pg_catalog.pg_roles p
                                           WHERE p.rolname::text = ANY (SELECT $1 || '_' || x.kind FROM pg_catalog.unnest('{owner,writer,importer,operator,reader,runner}'::text[]) x(kind))))
FROM pg_catalog.pg_roles me LEFT JOIN rea.roles k ON true
WHERE me.rolname = current_user
GROUP BY me.rolcreaterole, me.rolsuper`, prefix).Scan(&missing)
	return missing, mapError("read the roles", err)
}

// installRoles makes the roles and grants; what the login may not do is a warning, not an error.
func (s *store) installRoles(ctx context.Context, prefix string) error {
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, migrationLock, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT r FROM rea.install_roles($1) r`, prefix)
		if err != nil {
			return err
		}
		notes, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, note := range notes {
			s.logger().WarnContext(ctx, "rea: "+note)
		}
		if err == nil {
			_, err = tx.Exec(ctx, `SELECT rea.hand_over_views()`)
		}
		return err
	})
	return mapError("install roles", err)
}
