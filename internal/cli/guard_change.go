package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea/guard"
)

// changeGuard shows what becomes of a guard, asks, does it, and prints it.
func (a *app) changeGuard(cmd *cobra.Command, plan, do, done string, yes bool, change func(ctx context.Context, pool *pgxpool.Pool) (*guard.Guard, string, error)) error {
	return a.guarding(cmd, "owner", func(ctx context.Context, pool *pgxpool.Pool, _ database) error {
		a.say(plan)
		if err := a.confirm(ctx, yes, do, done); err != nil {
			return err
		}
		g, said, err := change(ctx, pool)
		if err != nil {
			return err
		}
		if !a.table() {
			return a.object(guardLine(g))
		}
		_, err = fmt.Fprintf(a.env.Stdout, "%s %s%s\n", done, safe(g.Table.String()), said)
		return err
	})
}

// level says how many rows were brought level, and which columns the guard does not know any more.
func level(g *guard.Guard, rows int64) string {
	said := ", " + counted(rows, "row") + " brought level"
	if g != nil && len(g.Forgotten) > 0 {
		said += "; gone, and neither ignored, redacted nor the status when made anew: " + safe(strings.Join(g.Forgotten, ", "))
	}
	return said
}

func (a *app) guardRemoveCommand() *cobra.Command {
	var by guard.By
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove TABLE",
		Short: "Watch a table no longer",
		Long: `Take the triggers and functions of a guard away. The events that it recorded stay, and one more says that
it was removed. DROP TRIGGER needs ACCESS EXCLUSIVE on the table for a moment.

It shows what it will do and asks on a terminal; elsewhere --yes confirms.`,
		Example: `  rea guard remove public.orders
  rea guard remove public.orders --actor 42 --reason 'the table moves' --yes`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeGuard(cmd, fmt.Sprintf("- %s: its writes are neither captured nor refused any more", safe(args[0])), "remove the guard", "removed the guard of", yes,
				func(ctx context.Context, pool *pgxpool.Pool) (*guard.Guard, string, error) {
					g, err := guard.Remove(ctx, pool, args[0], by)
					return g, "", err
				})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	byFlags(cmd, &by)
	return cmd
}

func (a *app) guardRegenerateCommand() *cobra.Command {
	var by guard.By
	var yes bool
	cmd := &cobra.Command{
		Use:   "regenerate TABLE",
		Short: "Make a guard anew, after the table's columns or partitions changed",
		Long: `Make the functions and triggers of a guard anew, for the columns and partitions as they are now, switch the
triggers on, and bring the history level: a row whose events say something else, because columns came, went, or
were renamed, gets an event. Until then a guard records such a table the slow way. Writers wait until it is done.

It shows what it will do and asks on a terminal; elsewhere --yes confirms.`,
		Example: `  rea guard regenerate public.orders
  rea guard regenerate public.orders --yes --json`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeGuard(cmd, fmt.Sprintf("~ %s: its guard is made anew, and the history brought level with the columns", safe(args[0])), "make it anew", "regenerated the guard of", yes,
				func(ctx context.Context, pool *pgxpool.Pool) (*guard.Guard, string, error) {
					g, levelled, err := guard.Regenerate(ctx, pool, args[0], by)
					return g, level(g, levelled), err
				})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	byFlags(cmd, &by)
	return cmd
}

func (a *app) guardBreakGlassCommand() *cobra.Command {
	var by guard.By
	var yes, end bool
	cmd := &cobra.Command{
		Use:   "break-glass TABLE --reason TEXT",
		Short: "Let a guard that refuses capture for now",
		Long: `Let a guard that refuses capture for now: in an incident, somebody has to write the table by hand. Nothing is
refused then, and nothing is silent: each changed row becomes an event, and breaking the glass is one too.
"--end" lets the guard refuse again; "rea guard status" exits with 3 until then. Both bring the history level as
"regenerate" does, where columns came or went.

It shows what it will do and asks on a terminal; elsewhere --yes confirms.`,
		Example: `  rea guard break-glass public.orders --actor 42 --reason 'incident 7: stuck payments'
  rea guard break-glass public.orders --end`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !end && by.Reason == "" {
				return usagef("to break the glass takes a reason: --reason TEXT")
			}
			plan, do, done, change := "~ %s: writes are captured and not refused, until --end", "break the glass", "broke the glass of", guard.BreakGlass
			if end {
				plan, do, done, change = "~ %s: writes that no event stands for are refused again", "mend the glass", "mended the glass of", guard.MendGlass
			}
			return a.changeGuard(cmd, fmt.Sprintf(plan, safe(args[0])), do, done, yes, func(ctx context.Context, pool *pgxpool.Pool) (*guard.Guard, string, error) {
				g, levelled, err := change(ctx, pool, args[0], by)
				return g, level(g, levelled), err
			})
		},
	}
	cmd.Flags().BoolVar(&end, "end", false, "let the guard refuse again")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	byFlags(cmd, &by)
	return cmd
}
