package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/realtime-event-archive/rea"
)

// made is a view, a trigger or an index of others', with the statement that made it.
type made struct{ kind, name, table, text string }

func (m made) String() string { return m.kind + " " + m.name }

func (s *session) made(ctx context.Context, query string, args ...any) (list []made, err error) {
	var m made
	err = each(ctx, s.db, func() error { list = append(list, m); return nil }, []any{&m.kind, &m.name, &m.table, &m.text}, query, args...)
	return list, err
}

// viewsSQL leaves out REA's own, which name no projection's table: a view of others' may have the name of anything in them.
const viewsSQL = `
SELECT type, name, tbl_name, sql FROM sqlite_master
WHERE type IN ('view', 'trigger')
  AND NOT (name GLOB 'rea_*' AND name NOT GLOB 'rea_views_*' AND tbl_name GLOB 'rea_*' AND tbl_name NOT GLOB 'rea_views_*')
ORDER BY type DESC, rowid`

// undouble takes back what quotes within a quoted name become.
var undouble = strings.NewReplacer(`""`, `"`, "``", "`", `''`, `'`)

// views lists the views and triggers that name a table, or a view that does. SQLite renames no table beside a view that it cannot
// read. One that has the name in a text is listed too: no harm comes to it.
func (s *session) views(ctx context.Context, table string) (list []made, err error) {
	all, err := s.made(ctx, viewsSQL)
	names := []*regexp.Regexp{naming(table)}
	for i := 0; i < len(names); i++ {
		all = slices.DeleteFunc(all, func(m made) bool {
			if !names[i].MatchString(m.text + "\n" + undouble.Replace(m.text)) {
				return false
			}
			if list = append(list, m); m.kind == "view" {
				names = append(names, naming(m.name))
			}
			return true
		})
	}
	slices.SortStableFunc(list, func(x, y made) int { return -cmp.Compare(x.kind, y.kind) }) // a view before its triggers
	return list, err
}

// naming finds a name in SQL.
func naming(name string) *regexp.Regexp {
	if name == "" {
		return regexp.MustCompile("\"\"|``|\\[\\]|''")
	}
	word := func(c byte) string {
		if regexp.MustCompile(`\w`).Match([]byte{c}) {
			return `\b`
		}
		return ""
	}
	return regexp.MustCompile(`(?i)` + word(name[0]) + regexp.QuoteMeta(name) + word(name[len(name)-1]))
}

const foreignKeysSQL = `
SELECT DISTINCT 'foreign key of table ' || m.name
FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f
WHERE m.type = 'table' AND lower(f."table") = lower(?1)`

func (s *session) Dependents(ctx context.Context, f rea.Followed) (list []rea.Dependent, err error) {
	table := followedTable(f.Name, f.Fingerprint, false)
	views, err := s.views(ctx, table)
	for _, m := range views {
		list = append(list, rea.Dependent{Name: m.String(), Again: true})
	}
	if err == nil {
		var d rea.Dependent
		err = each(ctx, s.db, func() error { list = append(list, d); return nil }, []any{&d.Name}, foreignKeysSQL, table)
	}
	slices.SortFunc(list, func(x, y rea.Dependent) int { return strings.Compare(x.Name, y.Name) })
	return list, s.store.mapError("look for what depends on "+f.Name, err)
}

const indexesSQL = `SELECT type, name, tbl_name, sql FROM sqlite_master WHERE type = 'index' AND lower(tbl_name) = lower(?1) AND sql IS NOT NULL ORDER BY rowid`

func (s *session) RehearseSwitch(ctx context.Context, f rea.Followed, recreate bool) error {
	doing, table := "try the switch of "+f.Name, followedTable(f.Name, f.Fingerprint, false)
	views, err := s.Dependents(ctx, f)
	if err == nil {
		err = rea.CheckDependents(f, views, recreate)
	}
	if err != nil {
		return err
	}
	indexes, err := s.made(ctx, indexesSQL, table)
	if err != nil || len(views)+len(indexes) == 0 {
		return s.store.mapError(doing, err)
	}
	exec := func(query string) {
		if err == nil {
			_, err = s.change(ctx, doing, query)
		}
	}
	exec("SAVEPOINT rea_rehearsal")
	exec("DROP TABLE " + quoteName(followedTable(f.Name, f.Fingerprint, true)))
	if err == nil {
		err = s.BuildTable(ctx, f)
	}
	if err == nil {
		err = s.SwitchTable(ctx, f, recreate)
	}
	exec("ROLLBACK TO SAVEPOINT rea_rehearsal")
	exec("RELEASE SAVEPOINT rea_rehearsal")
	return err
}

func (s *session) exec(ctx context.Context, query string) error {
	_, err := s.db.ExecContext(context.WithoutCancel(ctx), query)
	return err
}

// CopyIndexes does nothing: readers of SQLite do not wait for a switch.
func (s *session) CopyIndexes(context.Context, rea.Followed) (int, error) { return 0, nil }

func (s *session) SwitchTable(ctx context.Context, f rea.Followed, recreate bool) error {
	doing := "switch the table of " + f.Name
	table, beside := followedTable(f.Name, f.Fingerprint, false), followedTable(f.Name, f.Fingerprint, true)
	dependents, err := s.Dependents(ctx, f)
	if err == nil {
		err = rea.CheckDependents(f, dependents, recreate)
	}
	if err != nil {
		return err
	}
	indexes, err := s.made(ctx, indexesSQL, table)
	if err != nil {
		return s.store.mapError(doing, err)
	}
	views, err := s.views(ctx, table)
	if err != nil {
		return s.store.mapError(doing, err)
	}
	var statements []string
	for _, m := range views { // with a view go its triggers
		statements = append(statements, fmt.Sprintf("DROP %s IF EXISTS %s", m.kind, quoteName(m.name)))
	}
	statements = append(statements, "DROP TABLE IF EXISTS "+quoteName(table), fmt.Sprintf("ALTER TABLE %s RENAME TO %s", quoteName(beside), quoteName(table)))
	for _, statement := range statements {
		if err := s.exec(ctx, statement); err != nil {
			return s.store.mapError(doing, err)
		}
	}
	for _, m := range slices.Concat(indexes, views) {
		if m.kind == "trigger" {
			continue
		}
		if err := s.exec(ctx, m.text); err != nil {
			return s.again(doing, f, m, err)
		}
	}
	for _, m := range views {
		if m.kind == "trigger" {
			err = s.exec(ctx, m.text)
		}
		if err == nil {
			err = s.holds(ctx, table, m)
		}
		if err != nil {
			return s.again(doing, f, m, err)
		}
	}
	return nil
}

// holds reports whether a view or trigger that was made again can be used: SQLite does not look at what they name before. A trigger
// is looked at when a table is renamed.
func (s *session) holds(ctx context.Context, table string, m made) error {
	if m.kind == "view" {
		rows, err := s.db.QueryContext(ctx, "SELECT * FROM "+quoteName(m.name)+" LIMIT 0")
		if err != nil {
			return err
		}
		return rows.Close()
	}
	for _, statement := range []string{"SAVEPOINT rea_look", fmt.Sprintf("ALTER TABLE %s RENAME TO %s", quoteName(table), quoteName(table+".look")),
		"ROLLBACK TO SAVEPOINT rea_look", "RELEASE SAVEPOINT rea_look"} {
		if err := s.exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// again says what could not be made again on the new table.
func (s *session) again(doing string, f rea.Followed, m made, err error) error {
	switch resultCode(err) {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT:
		return &rea.DependentsError{Projection: f.Name, Inline: f.Inline, Dependents: []string{m.String() + " (" + err.Error() + ")"}}
	}
	return s.store.mapError(doing, err)
}
