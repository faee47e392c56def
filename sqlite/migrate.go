package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/migration"
)

//go:embed migrations/*.sql
var files embed.FS

var steps = func() []migration.Step {
	steps, err := migration.Read(files, "migrations")
	if err != nil {
		panic(err) // a bug of ours, which every test finds
	}
	return steps
}()

const versionsSQL = `
CREATE TABLE IF NOT EXISTS rea_schema_migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
) STRICT`

const appliedSQL = `SELECT version, name, checksum, applied_at FROM rea_schema_migrations ORDER BY version`

// applied is what the file says of one migration.
type applied struct {
	rea.Migration
	checksum string
}

// applied reads the table of versions. No table, and no file, is no version.
func (s *store) applied(ctx context.Context, db SQL) ([]applied, error) {
	var (
		list []applied
		row  applied
		at   string
	)
	err := each(ctx, db, func() (err error) {
		row.AppliedAt, err = time.Parse(rea.TimeLayout, at)
		list = append(list, row)
		return err
	}, []any{&row.Version, &row.Name, &row.checksum, &at}, appliedSQL)
	if err != nil {
		if err = s.mapError("read the schema's version", err); errors.Is(err, rea.ErrNoSchema) {
			return nil, nil
		}
		return nil, err
	}
	sums := map[int]string{}
	for _, row := range list {
		sums[row.Version] = row.checksum
	}
	return list, migration.Check(steps, sums)
}

func (s *store) schemaVersion(ctx context.Context) (int, error) {
	list, err := s.applied(ctx, s.reader)
	return newest(list), err
}

func newest(list []applied) int {
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].Version
}

// Migrations lists the migrations of a newer program too, if the file has them.
func (s *store) Migrations(ctx context.Context) ([]rea.Migration, error) {
	list, err := s.applied(ctx, s.reader)
	if err != nil {
		return nil, err
	}
	var all []rea.Migration
	for _, row := range list {
		all = append(all, row.Migration)
	}
	for _, step := range steps {
		if step.Version > newest(list) {
			all = append(all, rea.Migration{Version: step.Version, Name: step.Name})
		}
	}
	return all, nil
}

// Migrate makes the file where there is none, and puts it into WAL mode. It needs the archive's writer for nothing, so that
// it also runs while this process writes.
func (s *store) Migrate(ctx context.Context, report func(rea.Migration)) error {
	if list, err := s.applied(ctx, s.reader); err != nil {
		return err
	} else if done, err := s.upToDate(list); done || err != nil {
		return err // without a lock
	}
	w, err := newWriter(s.reader.path, "rwc", s.busy)
	if err != nil {
		return fmt.Errorf("rea: migrate: %w", err)
	}
	defer w.close()
	if err := s.useWAL(ctx, w); err != nil {
		if _, stat := os.Stat(s.reader.path); stat != nil {
			return s.cannotMake(err)
		}
		return s.mapError("migrate", err)
	}
	for {
		applied, done, err := s.migrateOnce(ctx, w)
		if done || err != nil {
			return err
		}
		if report != nil {
			report(applied)
		}
	}
}

// cannotMake says why there is no file: SQLite itself says no more than that it could not open one.
func (s *store) cannotMake(err error) error {
	folder := filepath.Dir(s.reader.path)
	info, why := os.Stat(folder)
	switch {
	case errors.Is(why, os.ErrNotExist):
		return fmt.Errorf("rea: %s cannot be made: the folder %s does not exist", s.path, filepath.Dir(s.path))
	case why == nil && !info.IsDir():
		return fmt.Errorf("rea: %s cannot be made: %s is no folder", s.path, filepath.Dir(s.path))
	case why == nil:
		var probe *os.File
		if probe, why = os.CreateTemp(folder, ".rea-*"); why == nil {
			_ = probe.Close()
			_ = os.Remove(probe.Name())
			return s.mapError("migrate", err)
		}
	}
	return fmt.Errorf("rea: %s cannot be made: %s: %w", s.path, folder, reason(why))
}

func (s *store) upToDate(list []applied) (bool, error) {
	found := newest(list)
	if found > len(steps) {
		return false, &rea.SchemaError{Found: found, Known: len(steps)}
	}
	return found == len(steps), nil
}

// useWAL sets what the file keeps for ever: readers and the writer do not wait for each other. It is not
// possible inside a transaction.
func (s *store) useWAL(ctx context.Context, w *writer) error {
	return w.patient(ctx, time.Now().Add(w.wait), func() error {
		if err := w.open(ctx); err != nil {
			return err
		}
		var mode string
		if err := one(ctx, w, []any{&mode}, "PRAGMA journal_mode = WAL"); err != nil {
			return err
		}
		if mode != "wal" {
			return fmt.Errorf("%s stays in journal mode %s: its file system may lack shared memory", s.path, mode)
		}
		return nil
	})
}

// migrateOnce applies the next migration in a transaction of its own, which looks again at what is there: other
// processes may be migrating too.
func (s *store) migrateOnce(ctx context.Context, w *writer) (m rea.Migration, done bool, err error) {
	if err := w.begin(ctx); err != nil {
		return m, false, s.mapError("migrate", err)
	}
	committed := false
	defer func() {
		if !committed {
			w.rollback(ctx)
		}
	}()
	list, err := s.applied(ctx, w)
	if err != nil {
		return m, false, err
	}
	if done, err := s.upToDate(list); done || err != nil {
		return m, done, err
	}
	step := steps[newest(list)]
	// The script has several statements, which a prepared one cannot have. Not interrupted: it is short
	// work, and an interrupt would end the transaction in its middle.
	if _, err := w.conn.ExecContext(context.WithoutCancel(ctx), versionsSQL+";\n"+step.SQL); err != nil {
		return m, false, s.mapError(fmt.Sprintf("migration %04d_%s", step.Version, step.Name), err)
	}
	m = rea.Migration{Version: step.Version, Name: step.Name, AppliedAt: time.Now().UTC().Truncate(time.Microsecond)}
	const record = `INSERT INTO rea_schema_migrations (version, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)`
	if _, err := w.ExecContext(ctx, record, int64(step.Version), step.Name, step.Checksum, rea.FormatTime(m.AppliedAt)); err != nil {
		return m, false, s.mapError("migrate", err)
	}
	committed = true // or rolled back
	return m, false, s.mapError("migrate", w.commit(ctx))
}

func (s *store) MigrationSQL() string {
	var b strings.Builder
	b.WriteString("-- REA's tables for an empty SQLite database in UTF-8: sqlite3 FILE < THIS\n\nPRAGMA journal_mode = WAL;\nBEGIN IMMEDIATE;\n")
	b.WriteString(versionsSQL + ";\n")
	for _, step := range steps {
		fmt.Fprintf(&b, "\n-- %04d_%s\n\n%s\n", step.Version, step.Name, step.SQL)
		fmt.Fprintf(&b, "INSERT INTO rea_schema_migrations (version, name, checksum) VALUES (%d, '%s', '%s');\n", step.Version, step.Name, step.Checksum)
	}
	b.WriteString("\nCOMMIT;\n")
	return b.String()
}

const uninstallSQL = `
DROP VIEW IF EXISTS rea_history;
DROP TABLE IF EXISTS rea_imports;
DROP TABLE IF EXISTS rea_renames;
DROP TABLE IF EXISTS rea_steps;
DROP TABLE IF EXISTS rea_catalogs;
DROP TABLE IF EXISTS rea_events;
DROP TABLE IF EXISTS rea_schema_migrations;`

// Uninstall drops what the migrations have made, and no table of somebody else's that begins with rea_ too.
func (s *store) Uninstall(ctx context.Context, events int64) error {
	if _, err := os.Stat(s.reader.path); errors.Is(err, os.ErrNotExist) {
		return &rea.SchemaError{Known: len(steps)}
	}
	if err := s.writer.begin(ctx); err != nil {
		return s.mapError("uninstall", err)
	}
	if err := s.uninstall(ctx, events); err != nil {
		s.writer.rollback(ctx)
		return err
	}
	s.found.Store(0)
	s.machine.Store(nil)
	return s.mapError("uninstall", s.writer.commit(ctx))
}

func (s *store) uninstall(ctx context.Context, events int64) error {
	list, err := s.applied(ctx, s.writer)
	if err != nil {
		return err
	}
	if found := newest(list); found == 0 || found > len(steps) {
		return &rea.SchemaError{Found: found, Known: len(steps)}
	}
	var stored int64
	if err := one(ctx, s.writer, []any{&stored}, countSQL); err != nil {
		return s.mapError("uninstall", err)
	}
	if stored != events {
		return &rea.NotConfirmedError{Events: stored, Given: events}
	}
	_, err = s.writer.conn.ExecContext(context.WithoutCancel(ctx), uninstallSQL)
	return s.mapError("uninstall", err)
}

// SchemaVersion is the newest version of the schema that this program knows.
func SchemaVersion() int { return len(steps) }
