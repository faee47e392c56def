package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/realtime-event-archive/rea"
)

const uninstallSQL = `
DROP VIEW IF EXISTS rea_projection_offsets;
DROP VIEW IF EXISTS rea_history;
DROP VIEW IF EXISTS rea_telling;
DROP VIEW IF EXISTS rea_said;
DROP TABLE IF EXISTS rea_baselines;
DROP TABLE IF EXISTS rea_contexts;
DROP TABLE IF EXISTS rea_snapshots;
DROP TABLE IF EXISTS rea_imports;
DROP TABLE IF EXISTS rea_rebuilds;
DROP TABLE IF EXISTS rea_projections;
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
	if err := s.refuseDependents(ctx); err != nil {
		return s.mapError("uninstall", err)
	}
	views, err := s.views(ctx)
	if err != nil {
		return s.mapError("uninstall", err)
	}
	drop := uninstallSQL
	for _, name := range views {
		drop = "DROP TABLE " + quoteName(name) + ";" + drop
	}
	_, err = s.writer.conn.ExecContext(context.WithoutCancel(ctx), drop)
	return s.mapError("uninstall", err)
}

// views lists the tables of the recorded projections, with those that are being built.
func (s *store) views(ctx context.Context) (names []string, err error) {
	found := 0
	if err := one(ctx, s.writer, []any{&found}, `SELECT count(*) FROM sqlite_master WHERE name = 'rea_projections'`); err != nil || found == 0 {
		return nil, err
	}
	var name string
	err = each(ctx, s.writer, func() error { names = append(names, name); return nil }, []any{&name}, `
SELECT m.name FROM sqlite_master m JOIN rea_projections p ON m.name = ?1 || p.name OR substr(m.name, 1, length(?1 || p.name) + 1) = ?1 || p.name || '.'
WHERE m.type = 'table'`, viewPrefix)
	return names, err
}

// dependentsSQL lists what may use REA's tables and is not REA's: views, triggers and virtual tables with their
// text, and tables with a foreign key to one of them.
const dependentsSQL = `
SELECT CASE WHEN type = 'table' THEN 'virtual table' ELSE type END || ' ' || name,
       sql || iif(type = 'trigger', ' ON ' || tbl_name, '')
FROM sqlite_master
WHERE (type IN ('view', 'trigger') OR type = 'table' AND sql LIKE 'CREATE VIRTUAL%')
  AND lower(name) NOT IN ('rea_history', 'rea_projection_offsets', 'rea_said', 'rea_telling', 'rea_events_insert', 'rea_events_id', 'rea_events_update', 'rea_events_delete',
    'rea_catalogs_insert', 'rea_catalogs_update', 'rea_catalogs_delete')
UNION ALL
SELECT 'foreign key of table ' || m.name, f."table"
FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f
WHERE m.type = 'table'
ORDER BY 1`

var ourTable = regexp.MustCompile(`(?i)\brea_(events|contexts|baselines|imports|snapshots|history|said|telling|catalogs|steps|renames|projections|rebuilds|projection_offsets|schema_migrations)\b|\brea_views_`)

// refuseDependents: SQLite would drop triggers on our tables with them, and leave views and keys that fail on use.
func (s *store) refuseDependents(ctx context.Context) error {
	var list []string
	var what, text string
	err := each(ctx, s.writer, func() error {
		if ourTable.MatchString(text) && (len(list) == 0 || list[len(list)-1] != what) {
			list = append(list, what)
		}
		return nil
	}, []any{&what, &text}, dependentsSQL)
	if err != nil || len(list) == 0 {
		return err
	}
	return fmt.Errorf("this depends on REA's tables, drop it first: %s", strings.Join(list, ", "))
}
