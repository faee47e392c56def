package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
)

// dependentsSQL lists what outside the schemas rea and rea_views depends on a table, row type, function or operator inside: views,
// columns, keys, functions, policies... DROP ... CASCADE would take them along.
const dependentsSQL = `
WITH inside AS (
    SELECT 'pg_class'::regclass AS class, c.oid FROM pg_class c WHERE c.relnamespace IN (SELECT n.oid FROM pg_namespace n WHERE n.nspname IN ('rea', 'rea_views'))
    UNION ALL SELECT 'pg_proc'::regclass, p.oid FROM pg_proc p WHERE p.pronamespace = 'rea'::regnamespace
    UNION ALL SELECT 'pg_type'::regclass, t.oid FROM pg_type t WHERE t.typnamespace IN (SELECT n.oid FROM pg_namespace n WHERE n.nspname IN ('rea', 'rea_views'))
    UNION ALL SELECT 'pg_operator'::regclass, o.oid FROM pg_operator o WHERE o.oprnamespace = 'rea'::regnamespace
), dependents AS (
    SELECT DISTINCT CASE WHEN w.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END AS class, coalesce(w.ev_class, d.objid) AS oid,
           CASE WHEN w.oid IS NULL THEN d.objsubid ELSE 0 END AS sub
    FROM pg_depend d JOIN inside i ON d.refclassid = i.class AND d.refobjid = i.oid
    LEFT JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
    WHERE d.deptype = 'n'
)
SELECT pg_describe_object(d.class, d.oid, d.sub)
FROM dependents d CROSS JOIN LATERAL pg_identify_object(d.class, d.oid, d.sub) o
WHERE coalesce(o.schema, substring(o.identity FROM ' on ([^.]+)\.'), '') NOT IN ('rea', 'rea_views')
ORDER BY 1`

// Uninstall drops the schema and the roles that installing made, in one transaction. Roles that other databases
// still use stay, with a warning.
func (s *store) Uninstall(ctx context.Context, events int64) error {
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, migrationLock+`; LOCK TABLE rea.events IN ACCESS EXCLUSIVE MODE`, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		if found, err := appliedSteps(ctx, tx); err != nil {
			return err
		} else if len(found) > len(steps) {
			return &rea.SchemaError{Found: len(found), Known: len(steps)}
		}
		var stored int64
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM rea.events`).Scan(&stored); err != nil {
			return err
		}
		if stored != events {
			return &rea.NotConfirmedError{Events: stored, Given: events}
		}
		if err := s.removeGuards(ctx, tx); err != nil {
			return err
		}
		if err := refuseDependents(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT r.role_name FROM rea.roles r WHERE r.made_here ORDER BY r.role_name`)
		if err != nil {
			return err
		}
		roles, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DROP SCHEMA IF EXISTS rea_views CASCADE; DROP SCHEMA rea CASCADE`, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		for _, role := range roles {
			err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint
				_, err := tx.Exec(ctx, "DROP ROLE "+pgx.Identifier{role}.Sanitize())
				return err
			})
			if err != nil {
				s.logger().WarnContext(ctx, "rea: a role stays", "role", role, "reason", err)
			}
		}
		return nil
	})
	if rea.Code(err) != "" {
		return err
	}
	s.schema.Store(nil)
	return mapError("uninstall", err)
}

// removeGuards takes the triggers of guards off the application's tables, and tells which.
func (s *store) removeGuards(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT g.guard_id, g.relation::text FROM rea.guards g ORDER BY g.guard_id`)
	if err != nil {
		return err
	}
	guards, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		ID    int
		Table string
	}])
	if err != nil {
		return err
	}
	for _, g := range guards {
		if _, err := tx.Exec(ctx, `SELECT rea.remove_guard($1)`, g.ID); err != nil {
			return fmt.Errorf("remove the guard of %s, which takes its owner: %w", g.Table, err)
		}
		s.logger().WarnContext(ctx, "rea: a table is guarded no more", "table", g.Table)
	}
	return nil
}

func refuseDependents(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, dependentsSQL)
	if err != nil {
		return err
	}
	dependents, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(dependents) == 0 {
		return err
	}
	return fmt.Errorf("outside the schemas rea and rea_views this depends on them, drop it first: %s", strings.Join(dependents, ", "))
}

func (s *store) logger() *slog.Logger {
	if s.config.Logger != nil {
		return s.config.Logger
	}
	return slog.Default()
}
