package cli

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/realtime-event-archive/rea/internal/shop"
)

// biggest is what the demo adds to the definition of hourly_sales.
const biggest = "amount: {sum: $.amount}, biggest: {max: $.amount}"

// projections is the fourth act: tables that are computed from the events.
func (d *demo) projections(ctx context.Context) error {
	d.tell(`4. Tables that are computed from the events
-------------------------------------------
order_state of the catalog is inline: each append keeps its row, in the same transaction. It has a row
for each order, so that the present is one SELECT away, and so is what a table of present states
forgets. (Events of an older version wait for the next ` + "`rea catalog apply`" + `, which knows how to read them.)
`)
	if err := d.command(ctx, exitDone, "catalog", "apply", "--yes"); err != nil {
		return err
	}
	d.tell("\n# How long does it take from the order to the parcel?")
	if err := d.query(ctx, `SELECT count(*) AS shipped, round(24 * avg(julianday(shipped_at) - julianday(placed_at)), 1) AS hours_on_average
FROM rea_views_order_state WHERE shipped_at IS NOT NULL`); err != nil {
		return err
	}
	d.tell("\n# hourly_sales is followed: `rea run` keeps it, beside the shop. Here it catches up once.")
	if err := d.command(ctx, exitDone, "run", "--once"); err != nil {
		return err
	}
	d.tell("")
	if err := d.query(ctx, `SELECT bucket, orders, amount FROM rea_views_hourly_sales ORDER BY bucket DESC LIMIT 3`); err != nil {
		return err
	}
	if err := os.WriteFile(d.catalog(), []byte(strings.Replace(shop.Catalog, "amount: {sum: $.amount}", biggest, 1)), 0o666); err != nil {
		return err
	}
	d.tell(`
# Somebody wants the biggest payment of each hour, too, and adds a measure to rea.yaml: biggest: {max: $.amount}
# A table that was filled by another definition is never patched: another one is filled beside it, and they switch.`)
	if err := d.command(ctx, exitDone, "projection", "rebuild", "hourly_sales", "--yes"); err != nil {
		return err
	}
	d.tell("")
	if err := d.query(ctx, `SELECT bucket, orders, amount, biggest FROM rea_views_hourly_sales ORDER BY bucket DESC LIMIT 3`); err != nil {
		return err
	}
	d.tell("\n# Somebody \"puts order %d right\" by hand, past the events:", shop.Story)
	if err := d.query(ctx, fmt.Sprintf(`UPDATE rea_views_order_state SET status = 'shipped' WHERE aggregate_id = '%d'`, shop.Story)); err != nil {
		return err
	}
	d.tell("\n# The events know better. (To mend it: `version: 2` for order_state in rea.yaml, and `rea catalog apply`.)")
	if err := d.command(ctx, exitPartial, "projection", "check"); err != nil {
		return err
	}
	d.tell("")
	return nil
}

// query shows a statement and what it gives, as the shell of SQLite does.
func (d *demo) query(ctx context.Context, statement string) error {
	d.tell("sqlite> %s;", strings.ReplaceAll(statement, "\n", "\n   ...> "))
	db, err := sql.Open("sqlite", filepath.Join(d.dir, "shop.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	g := &grid{w: d.out}
	for _, name := range names {
		g.columns = append(g.columns, column{head: name})
	}
	for rows.Next() {
		cells, into := make([]string, len(names)), make([]any, len(names))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := g.add(cells...); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return g.flush()
}
