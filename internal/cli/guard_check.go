package cli

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
)

func (a *app) guardCheckCommand() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "check {TABLE | all}",
		Short: "Compare guarded tables with what their events say",
		Long: `Fold the events of each row's object, and compare every column with the row, in one view of both:
what slipped past the triggers (a table rewritten by ALTER, a partition detached, replication, restored files,
triggers switched off) is a row that is missing, different, extra or deleted, named with its
key and columns. all checks each guarded table. It writes nothing and keeps nobody waiting.

Ignored and redacted columns are left out. Exit code 3 where there is a difference.`,
		Example: `  rea guard check orders
  rea guard check all --json`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.compareTables(cmd.Context(), func(ctx context.Context) ([]string, error) { return a.guardedTables(ctx, args[0]) }, f)
		},
	}
	f.add(cmd)
	return cmd
}

const guardedSQL = `
SELECT pg_catalog.format('%I.%I', n.nspname, c.relname)
FROM rea.guards g JOIN pg_catalog.pg_class c ON c.oid = g.relation JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE $1 = 'all' OR g.relation = pg_catalog.to_regclass($1)
ORDER BY 1`

// guardedTables are the names of the guarded tables: of one, or of all.
func (a *app) guardedTables(ctx context.Context, name string) ([]string, error) {
	if a.pool == nil {
		return nil, usagef("guards are of PostgreSQL alone: on SQLite, see `rea baseline check`")
	}
	rows, err := a.pool.Query(ctx, guardedSQL, name)
	if err != nil {
		return nil, err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(tables) == 0 && name != "all" {
		return nil, notThere(fold(name, 60) + " is not guarded: see `rea baseline check`")
	}
	if err == nil && len(tables) == 0 {
		a.say("no table is guarded")
	}
	return tables, err
}
