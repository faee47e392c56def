package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

const partsSQL = `
SELECT t.relid::oid, t.relid::regclass::text, c.relkind = 'r'
FROM (SELECT $1::oid::regclass AS relid UNION SELECT p.relid FROM pg_partition_tree($1::oid::regclass) p) t JOIN pg_class c ON c.oid = t.relid
ORDER BY t.relid <> $1::oid::regclass, t.relid`

// build makes the functions for the columns as they are, and the triggers that are missing.
func (g *Guard) build(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, partsSQL, g.Table.OID)
	if err != nil {
		return err
	}
	g.parts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p part, err error) { return p, row.Scan(&p.oid, &p.name, &p.leaf) })
	if err != nil {
		return err
	}
	var hash int64
	if err := tx.QueryRow(ctx, "SELECT "+fmt.Sprintf(columnsHash, "$1"), g.Table.OID).Scan(&hash); err != nil {
		return err
	}
	var statements []string
	for _, operation := range operations {
		statements = append(statements, g.function(operation, hash), fmt.Sprintf("REVOKE EXECUTE ON FUNCTION rea.guard_%d_%s() FROM PUBLIC", g.ID, operation))
	}
	for _, p := range g.parts {
		for _, operation := range operations {
			statements = append(statements, g.trigger(p, operation))
		}
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `SELECT rea.hand_over_guard($1, $2::oid)`, g.ID, g.Table.OID)
	return err
}

// trigger is the statement that makes a trigger, or makes it anew, and on.
func (g *Guard) trigger(p part, operation string) string {
	when, tables := "AFTER", map[string]string{
		"insert": "NEW TABLE AS rea_new", "update": "OLD TABLE AS rea_old NEW TABLE AS rea_new", "delete": "OLD TABLE AS rea_old",
	}[operation]
	if operation == "truncate" {
		when = "BEFORE"
	} else {
		tables = "REFERENCING " + tables
	}
	return fmt.Sprintf("CREATE OR REPLACE TRIGGER rea_guard_%[1]s %[2]s %[3]s ON %[4]s %[5]s FOR EACH STATEMENT EXECUTE FUNCTION rea.guard_%[6]d_%[1]s(); ALTER TABLE %[4]s ENABLE TRIGGER rea_guard_%[1]s",
		operation, when, strings.ToUpper(operation), p.name, tables, g.ID)
}

// errTried undoes what a try did.
var errTried = errors.New("tried")

// triedSQL finds the column that a try writes: one of the key, if it may be written. Identities that are GENERATED ALWAYS, and generated
// columns, take DEFAULT alone: where there are no others no row is written.
const triedSQL = `
SELECT coalesce((SELECT quote_ident(a.attname) FROM pg_attribute a
                 WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity <> 'a' AND a.attgenerated = ''
                 ORDER BY a.attnum = ANY ($2) DESC, a.attnum
                 LIMIT 1), '')`

// try runs the new code once: an UPDATE of a row to itself, which is undone.
func (g *Guard) try(ctx context.Context, tx pgx.Tx) error {
	var column string
	if err := tx.QueryRow(ctx, triedSQL, g.Table.OID, g.numbers(g.keyNames())).Scan(&column); err != nil {
		return err
	}
	set := fmt.Sprintf("%[1]s = rea_t.%[1]s WHERE (%[2]s) IN (SELECT %[2]s FROM %[3]s rea_t LIMIT 1 FOR UPDATE SKIP LOCKED)",
		column, strings.Join(g.keyFields("rea_t"), ", "), g.Table.SQL())
	if column == "" {
		set = pgx.Identifier{g.keyNames()[0]}.Sanitize() + " = DEFAULT WHERE false"
	}
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf("UPDATE %s rea_t SET %s", g.Table.SQL(), set)); err != nil {
			return fmt.Errorf("a try of the triggers failed, nothing is changed: %w", err)
		}
		return errTried
	})
	if errors.Is(err, errTried) {
		return nil
	}
	return err
}

func (g *Guard) keyFields(alias string) []string {
	list := make([]string, len(g.Table.Key))
	for i, k := range g.Table.Key {
		list[i] = field(alias, g.Table.Columns[k].Name)
	}
	return list
}
