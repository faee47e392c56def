package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// adoption is the fifth act: a table that an application has always changed in place.
func (d *demo) adoption(ctx context.Context) error {
	d.tell(`5. A table that is changed in place
-----------------------------------
Most tables are like the one of the first act, and their applications stay as they are. A baseline makes each row
an object whose first event says what the row was.
`)
	if d.server == "" {
		return d.baselineHere(ctx)
	}
	return d.guarded(ctx)
}

// baselineHere is what SQLite has of it.
func (d *demo) baselineHere(ctx context.Context) error {
	for _, statement := range []string{
		`CREATE TABLE parcels (id INTEGER PRIMARY KEY, status TEXT, place TEXT)`,
		`INSERT INTO parcels VALUES (1, 'packed', 'Oslo'), (2, 'packed', NULL), (3, 'lost', 'Rome')`,
	} {
		if err := d.query(ctx, statement); err != nil {
			return err
		}
	}
	if err := d.command(ctx, exitDone, "baseline", "parcels", "--type", "parcel", "--status", "status", "--yes"); err != nil {
		return err
	}
	if err := d.query(ctx, `UPDATE parcels SET status = 'sent' WHERE id < 3`); err != nil {
		return err
	}
	d.tell("\n# SQLite has no triggers for whole statements, and nobody to name: what came later shows as a difference.")
	if err := d.command(ctx, exitPartial, "baseline", "check", "parcels"); err != nil {
		return err
	}
	d.tell(`
# PostgreSQL can guard the table: each change becomes an event, with who and which statement, or is refused.
# To see it: rea demo --db postgres://USER@HOST/AN_EMPTY_DATABASE
`)
	return nil
}

// promo is the accident's script: AND binds closer than OR.
const promo = `UPDATE shop.orders SET status = 'cancelled' WHERE customer = 123 AND status = 'placed' OR status = 'paid'`

// guarded tells the accident on a guarded table, in a database that had nothing in it.
func (d *demo) guarded(ctx context.Context) error {
	conn, err := d.emptyServer(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	d.tell("# This goes on in %s.", safe(redact(d.server)))
	if err := d.onServer(ctx, exitDone, "migrate", "up"); err != nil {
		return err
	}
	if err := d.psql(ctx, conn, `CREATE SCHEMA shop; CREATE TABLE shop.orders (id bigint PRIMARY KEY, customer int NOT NULL, status text NOT NULL, total numeric NOT NULL)`,
		`INSERT INTO shop.orders SELECT 10000 + n, 100 + n % 40, (ARRAY['placed', 'paid', 'paid', 'shipped'])[1 + n % 4], n * 10.50 FROM generate_series(1, 400) n`); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"guard", "add", "shop.orders", "--type", "order", "--status", "status", "--yes"},
		{"baseline", "shop.orders", "--type", "order", "--status", "status", "--yes"},
	} {
		if err := d.onServer(ctx, exitDone, args...); err != nil {
			return err
		}
	}
	d.tell("\n# The script with its OR, as the application's login runs it:")
	if err := d.psql(ctx, conn, promo); err != nil {
		return err
	}
	var id string
	var statement int64
	if err := conn.QueryRow(ctx, `SELECT e.aggregate_id, e.context_id FROM rea.events e WHERE e.event_type = 'DirectUpdate' ORDER BY e.id LIMIT 1`).Scan(&id, &statement); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	d.tell("\n# One statement, one context, and each order that it changed is told with what it was before:")
	if err := d.onServer(ctx, exitDone, "log", "order", id); err != nil {
		return err
	}
	if err := d.onServer(ctx, exitDone, "log", "--context", fmt.Sprint(statement), "--limit", "3"); err != nil {
		return err
	}
	if err := d.onServer(ctx, exitDone, "guard", "check", "shop.orders"); err != nil {
		return err
	}
	d.tell("\n# The other mode: a row changes with an event that says so, or not at all.")
	if err := d.onServer(ctx, exitDone, "guard", "change", "shop.orders", "--mode", "refuse", "--add-column", "--yes"); err != nil {
		return err
	}
	if err := d.psql(ctx, conn, strings.Replace(promo, "'paid'", "'shipped'", 1)); err != nil {
		return err
	}
	d.tell("\n# To be rid of this act: rea guard remove, `rea migrate uninstall`, and DROP SCHEMA shop CASCADE.\n")
	return nil
}

// thereSQL names something that a database has beside what each new one has.
const thereSQL = `
SELECT coalesce((
    SELECT o.what || ' ' || pg_catalog.quote_ident(n.nspname) || coalesce('.' || pg_catalog.quote_ident(o.name), '')
    FROM pg_catalog.pg_namespace n
    JOIN (SELECT 1 AS turn, 'the relation' AS what, c.relnamespace AS schema, c.relname AS name FROM pg_catalog.pg_class c
          UNION ALL SELECT 2, 'the function', p.pronamespace, p.proname FROM pg_catalog.pg_proc p
          UNION ALL SELECT 3, 'the type', t.typnamespace, t.typname FROM pg_catalog.pg_type t WHERE t.typcategory <> 'A'
          UNION ALL SELECT 4, 'the schema', s.oid, NULL FROM pg_catalog.pg_namespace s WHERE s.nspname <> 'public') o ON o.schema = n.oid
    WHERE n.nspname !~ '^(pg_|information_schema$)'
    ORDER BY o.turn, n.nspname, o.name
    LIMIT 1), '')`

// emptyServer connects to the database that --db names, and refuses one that has anything in it: the demo makes tables.
func (d *demo) emptyServer(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, d.server)
	if err != nil {
		return nil, &connectionError{err}
	}
	var there string
	if err = conn.QueryRow(ctx, thereSQL).Scan(&there); err == nil && there != "" {
		err = usagef("the database of --db is not empty, it has %s: name one that has nothing in it, the demo makes tables there", safe(there))
	}
	if err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return conn, nil
}

// psql shows statements, runs them, and tells what each has done, or why not.
func (d *demo) psql(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		d.tell("psql> %s;", statement)
		tag, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
		var refused *pgconn.PgError
		switch {
		case errors.As(err, &refused):
			d.tell("ERROR:  %s", safe(refused.Message))
		case err != nil:
			return fmt.Errorf("demo: %w", err)
		default:
			d.tell("%s", tag)
		}
	}
	return nil
}

// onServer is command, on the database that --db names.
func (d *demo) onServer(ctx context.Context, want int, args ...string) error {
	d.elsewhere = d.server
	defer func() { d.elsewhere = "" }()
	return d.command(ctx, want, args...)
}
