package cli

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea/guard"
)

func (a *app) guardCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Capture or refuse what is written to a table of the application",
		Long: `A guard watches a table of the application, in PostgreSQL: triggers make an event of each changed
row, in the same transaction, with login, address and statement (--mode capture), or refuse writes that
no event stands for (--mode refuse). The application is not changed. docs/guard.md tells all of it.`,
		Example: `  rea guard add public.orders --type order --status status
  rea log order 10086
  rea guard remove public.orders`,
		Args: cobra.ArbitraryArgs,
		RunE: group,
	}
	cmd.AddCommand(a.guardAddCommand(), a.guardStatusCommand(), a.guardCheckCommand(), a.guardChangeCommand(), a.guardRegenerateCommand(), a.guardBreakGlassCommand(), a.guardRemoveCommand())
	return cmd
}

// guarding opens the database, which has to be PostgreSQL, and hands its pool over. role is the kind that a login without the right lacks.
func (a *app) guarding(cmd *cobra.Command, role string, do func(ctx context.Context, pool *pgxpool.Pool, d database) error) error {
	d, err := a.resolve(false)
	if err != nil {
		return err
	}
	if d.postgres == "" {
		return usagef("%s: guards are PostgreSQL's: SQLite has no triggers that see a whole statement, and nobody to tell apart", cmd.CommandPath())
	}
	a.sayWhich()
	archive, d, err := a.open(cmd.Context(), opening{role: role})
	if err != nil {
		return err
	}
	defer archive.Close()
	return do(cmd.Context(), a.pool, d)
}

// byFlags are who changes a guard, and why.
func byFlags(cmd *cobra.Command, by *guard.By) {
	cmd.Flags().StringVar(&by.Actor, "actor", "", "who does this, for the event about it")
	cmd.Flags().StringVar(&by.Reason, "reason", "", "why, for the event about it")
}
