package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// settableSQL names a column that an UPDATE may set to itself, one of the key before others; no row: all are generated.
const settableSQL = `
SELECT quote_ident(a.attname) FROM pg_attribute a
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity <> 'a' AND a.attgenerated = ''
ORDER BY a.attnum = ANY ($2::int2[]) DESC, a.attnum LIMIT 1`

// try runs the new code once: an UPDATE of a row to itself, which is undone. Where the table does not let anybody do that, an UPDATE of
// no row; where not even that, it is not tried.
func (g *Guard) try(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, settableSQL, g.Table.OID, g.numbers(g.keyNames()))
	if err != nil {
		return err
	}
	settable, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(settable) == 0 {
		return err
	}
	key := strings.Join(g.keyFields("rea_t"), ", ")
	for _, condition := range []string{fmt.Sprintf("(%s) IN (SELECT %[1]s FROM %s rea_t LIMIT 1 FOR UPDATE SKIP LOCKED)", key, g.Table.SQL()), "false"} {
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, fmt.Sprintf(`UPDATE %s rea_t SET %s = rea_t.%[2]s WHERE %s`, g.Table.SQL(), settable[0], condition)); err != nil {
				return err
			}
			return errTried
		})
		switch {
		case errors.Is(err, errTried):
			return nil
		case g.isOurs(err):
			return fmt.Errorf("a try of the triggers failed, nothing is changed: %w", err)
		}
	}
	return nil
}

// isOurs reports whether a try failed for a reason of the guard's, or one that goes away. It refuses what a trigger of the application's
// makes of the row (RE011): then it works. Others are the table's own: a constraint that is not valid, a trigger that refuses.
func (g *Guard) isOurs(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return true
	}
	switch e.Code[:2] {
	case "40", "53", "55", "57", "58", "XX":
		return true
	}
	return e.Code != "RE011" && strings.Contains(e.Where, fmt.Sprintf("guard_%d_", g.ID))
}

func (g *Guard) keyFields(alias string) []string {
	list := make([]string, len(g.Table.Key))
	for i, k := range g.Table.Key {
		list[i] = field(alias, g.Table.Columns[k].Name)
	}
	return list
}
