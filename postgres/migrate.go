package postgres

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

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

func checkSums(found map[int]applied) error {
	sums := make(map[int]string, len(found))
	for version, a := range found {
		sums[version] = a.checksum
	}
	return migration.Check(steps, sums)
}

func (s *store) Migrations(ctx context.Context) ([]rea.Migration, error) {
	var list []rea.Migration
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		found, err := appliedSteps(ctx, tx)
		if err != nil {
			return err
		}
		if err := checkSums(found); err != nil {
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
	prefix, err := s.rolePrefix(ctx)
	if err != nil {
		return err
	}
	if !changed {
		if missing, err := s.rolesMissing(ctx, prefix); err != nil || !missing {
			return err
		}
	}
	return s.installRoles(ctx, prefix)
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
		if err := checkSums(found); err != nil || len(found) == len(steps) {
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

// MigrationSQL prints what Migrate runs on an empty database, with the roles at the end.
func (s *store) MigrationSQL() string {
	var b strings.Builder
	b.WriteString("BEGIN;\n" + migrationLock + ";\n")
	for _, step := range steps {
		fmt.Fprintf(&b, "\n-- %04d_%s\n%s\n%s(%d, '%s', '%s');\n", step.Version, step.Name, step.SQL, recordSQL, step.Version, step.Name, step.Checksum)
	}
	fmt.Fprintf(&b, "\nSELECT r FROM rea.install_roles('%s') r;\nSELECT rea.hand_over_views();\nCOMMIT;\n", cmp.Or(s.config.RolePrefix, defaultPrefix))
	return b.String()
}
