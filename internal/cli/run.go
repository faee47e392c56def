package cli

import (
	"context"
	"fmt"
	"log/slog"
	_ "time/tzdata" // zones of statistics, on systems without them

	"github.com/spf13/cobra"
)

func (a *app) runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run [NAME...]",
		Short: "Keep the followed projections, until it is stopped",
		Long: `Give a position to what commits, and keep the tables of the catalog's followed projections,
or of those that are named. Without a catalog it keeps the positions alone. Any number of
processes may run it beside the application: each projection is moved by one of them at a
time, and another goes on where one is killed.

It says when a projection fails, stalls and goes on, and ends with Ctrl-C or SIGTERM (exit
code 0). A database that is lost is tried again.`,
		Example: `  rea run
  rea run hourly_sales --db postgres://localhost/shop`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.projectionNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runProjections(cmd.Context(), args) },
	}
}

func (a *app) runProjections(ctx context.Context, names []string) error {
	c, err := a.catalog()
	if err != nil {
		return err
	}
	archive, d, err := a.open(ctx, opening{role: "owner", catalog: c, logger: slog.New(&warnings{app: a, talks: true})})
	if err != nil {
		return err
	}
	defer archive.Close()
	kept := len(names)
	if kept == 0 {
		kept = len(c.Followed())
	}
	a.say(fmt.Sprintf("keeping %s of %s, until Ctrl-C", numbered(kept, "projection"), safe(d.String())))
	return archive.Run(ctx, names...)
}

// projectionNames completes the names of followed projections.
func (a *app) projectionNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c, err := a.catalog()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, f := range c.Followed() {
		names = append(names, f.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
