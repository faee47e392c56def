package postgres

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/migration"
)

//go:embed migrations/*.sql
var files embed.FS

// steps are embedded with the program: a mistake in them is a bug of REA's.
var steps = func() []migration.Step {
	steps, err := migration.Read(files, "migrations")
	if err != nil {
		panic(err)
	}
	return steps
}()

// migrationLock is the transaction-level lock under which each step runs, so that several processes may migrate.
// The path first: names in the steps then mean PostgreSQL's own, whatever the session's search_path says.
const migrationLock = `SET LOCAL search_path = pg_catalog, pg_temp;
SELECT pg_advisory_xact_lock(7497057, 2)`

const recordSQL = `INSERT INTO rea.schema_migrations (version, name, checksum) VALUES `

// schemaVersion is the newest applied version; 0: no schema.
func schemaVersion(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	var version int
	err := pool.QueryRow(ctx, `SELECT coalesce(max(m.version), 0) FROM rea.schema_migrations m`).Scan(&version)
	if state := sqlState(err); state == "42P01" || state == "3F000" {
		return 0, nil
	}
	return version, mapError("read the schema version", err)
}

type applied struct {
	checksum string
	at       time.Time
}

func appliedSteps(ctx context.Context, tx pgx.Tx) (map[int]applied, error) {
	found := make(map[int]applied)
	var there bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass('rea.schema_migrations') IS NOT NULL`).Scan(&there); err != nil || !there {
		return found, err
	}
	rows, err := tx.Query(ctx, `SELECT m.version, m.checksum, m.applied_at FROM rea.schema_migrations m ORDER BY m.version`)
	if err != nil {
		return nil, err
	}
	var version int
	var a applied
	_, err = pgx.ForEachRow(rows, []any{&version, &a.checksum, &a.at}, func() error {
		found[version] = a
		return nil
	})
	return found, err
}

func (s *store) Migrations(ctx context.Context) ([]rea.Migration, error) {
	var list []rea.Migration
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		found, err := appliedSteps(ctx, tx)
		if err != nil {
			return err
		}
		for _, step := range steps {
			m := rea.Migration{Version: step.Version, Name: step.Name}
			if a, ok := found[step.Version]; ok {
				m.AppliedAt = a.at.UTC()
			}
			list = append(list, m)
		}
		for version := len(steps) + 1; found[version] != (applied{}); version++ {
			list = append(list, rea.Migration{Version: version, Name: "unknown to this program", AppliedAt: found[version].at.UTC()})
		}
		return nil
	})
	return list, mapError("read the migrations", err)
}

// Migrate applies one step a transaction until none is missing, then hands roles their rights.
func (s *store) Migrate(ctx context.Context, report func(rea.Migration)) error {
	if err := s.checkServer(ctx); err != nil {
		return err
	}
	changed := false
	for {
		step, err := s.applyNext(ctx)
		if err != nil {
			return err
		}
		if step == nil {
			break
		}
		changed = true
		if report != nil {
			report(rea.Migration{Version: step.Version, Name: step.Name, AppliedAt: time.Now().UTC()})
		}
	}
	if !changed {
		if missing, err := s.rolesMissing(ctx); err != nil || !missing {
			return err
		}
	}
	return s.installRoles(ctx)
}

// rolesMissing: the login may make or record roles that a migration before it could not, or was killed before it did.
func (s *store) rolesMissing(ctx context.Context) (missing bool, err error) {
	err = s.pool.QueryRow(ctx, `
SELECT pg_catalog.has_function_privilege('rea.install_roles(text)', 'EXECUTE') AND pg_catalog.count(k.kind) < 5
       AND (me.rolcreaterole OR me.rolsuper
            OR pg_catalog.count(k.kind) < (SELECT pg_catalog.count(*) FROM pg_catalog.pg_roles p
                                           WHERE p.rolname::text = ANY (SELECT $1 || '_' || x.kind FROM pg_catalog.unnest('{owner,writer,importer,operator,reader}'::text[]) x(kind))))
FROM pg_catalog.pg_roles me LEFT JOIN rea.roles k ON true
WHERE me.rolname = current_user
GROUP BY me.rolcreaterole, me.rolsuper`, s.config.RolePrefix).Scan(&missing)
	return missing, mapError("read the roles", err)
}

func (s *store) checkServer(ctx context.Context) error {
	var encoding string
	var version int
	err := s.pool.QueryRow(ctx, `SELECT current_setting('server_encoding'), current_setting('server_version_num')::int`).Scan(&encoding, &version)
	switch {
	case err != nil:
		return mapError("migrate", err)
	case encoding != "UTF8":
		return fmt.Errorf("rea: migrate: the database's encoding is %s, an archive needs UTF8: create the database with ENCODING 'UTF8'", encoding)
	case version < 140000:
		return fmt.Errorf("rea: migrate: the server is PostgreSQL %d, an archive needs 14 or newer", version/10000)
	}
	return nil
}

// applyNext applies the first missing step and returns it; nil: none was missing.
func (s *store) applyNext(ctx context.Context) (*migration.Step, error) {
	var next *migration.Step
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, migrationLock, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		found, err := appliedSteps(ctx, tx)
		if err != nil {
			return err
		}
		if len(found) > len(steps) {
			return &rea.SchemaError{Found: len(found), Known: len(steps)}
		}
		sums := make(map[int]string, len(found))
		for version, a := range found {
			sums[version] = a.checksum
		}
		if err := migration.Check(steps, sums); err != nil || len(found) == len(steps) {
			return err
		}
		step := steps[len(found)]
		// Without arguments: the simple protocol takes the file's statements at once.
		if _, err := tx.Exec(ctx, step.SQL, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("migration %04d_%s: %w", step.Version, step.Name, err)
		}
		if _, err := tx.Exec(ctx, recordSQL+`($1, $2, $3)`, step.Version, step.Name, step.Checksum); err != nil {
			return err
		}
		next = &step
		return nil
	})
	if rea.Code(err) != "" {
		return nil, err
	}
	return next, mapError("migrate", err)
}

// installRoles makes the roles and grants; what the login may not do is a warning, not an error.
func (s *store) installRoles(ctx context.Context) error {
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, migrationLock, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT r FROM rea.install_roles($1) r`, s.config.RolePrefix)
		if err != nil {
			return err
		}
		notes, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, note := range notes {
			s.logger().WarnContext(ctx, "rea: "+note)
		}
		return err
	})
	return mapError("install roles", err)
}

// MigrationSQL prints what Migrate runs on an empty database, with the roles at the end.
func (s *store) MigrationSQL() string {
	var b strings.Builder
	b.WriteString("BEGIN;\n" + migrationLock + ";\n")
	for _, step := range steps {
		fmt.Fprintf(&b, "\n-- %04d_%s\n%s\n%s(%d, '%s', '%s');\n", step.Version, step.Name, step.SQL, recordSQL, step.Version, step.Name, step.Checksum)
	}
	fmt.Fprintf(&b, "\nSELECT r FROM rea.install_roles('%s') r;\nCOMMIT;\n", s.config.RolePrefix)
	return b.String()
}

// SchemaVersion is the newest version of the schema that this program knows.
func SchemaVersion() int { return len(steps) }
