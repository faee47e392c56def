package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/realtime-event-archive/rea/guard"
)

func (a *app) guardChangeCommand() *cobra.Command {
	var given guard.Settings
	var by guard.By
	var mode string
	var yes bool
	settings := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	settingsFlags(settings, &given, &mode)
	settings.Lookup("mode").DefValue, settings.Lookup("sql").DefValue = "", "" // what is not said stays
	cmd := &cobra.Command{
		Use:   "change TABLE",
		Short: "Give a guard other settings, with nothing unwatched in between",
		Long: `Give a guard other settings, in one transaction: nothing goes unwatched in between, as it does between
"remove" and "add". What is not said stays; --ignore and --redact name all of their columns ('' is none).
Type and key stay, for the events have them. A broken glass is whole again after it.

Writers wait for a moment (SHARE ROW EXCLUSIVE); readers too where --add-column adds one. Where columns came or
went, or are no longer ignored or redacted, the history is brought level as by "regenerate", and writers wait for
that.

It shows what it will do and asks on a terminal; elsewhere --yes confirms.`,
		Example: `  rea guard change public.orders --mode refuse --add-column
  rea guard change public.orders --sql hash --redact email,phone --yes`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var said []string
			settings.VisitAll(func(f *pflag.Flag) {
				if f.Changed {
					said = append(said, f.Name+" "+strings.Trim(f.Value.String(), "[]"))
				}
			})
			if len(said) == 0 {
				return usagef("what is to change of the guard of %s? --mode refuse", args[0])
			}
			given.Mode = guard.Mode(mode)
			plan := fmt.Sprintf("~ %s: %s", safe(args[0]), safe(strings.Join(said, ", ")))
			return a.changeGuard(cmd, plan, "change the guard", "changed the guard of", yes, func(ctx context.Context, pool *pgxpool.Pool) (*guard.Guard, string, error) {
				g, levelled, err := guard.Change(ctx, pool, args[0], func(present guard.Settings) guard.Settings {
					return merged(present, given, cmd.Flags().Changed)
				}, by)
				return g, level(g, levelled), err
			})
		},
	}
	cmd.Flags().AddFlagSet(settings)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	byFlags(cmd, &by)
	return cmd
}

// merged lays the settings that were said over those that hold.
func merged(s, given guard.Settings, said func(flag string) bool) guard.Settings {
	if said("mode") && given.Mode != s.Mode {
		s.Mode, s.Truncate = given.Mode, ""
	}
	if said("status") {
		s.Status = given.Status
	}
	if said("ignore") {
		s.Ignore = given.Ignore
	}
	if said("redact") {
		s.Redact = given.Redact
	}
	if said("sql") {
		s.SQL = given.SQL
	}
	if said("require-reason") {
		s.RequireReason = given.RequireReason
	}
	if said("truncate") {
		s.Truncate = given.Truncate
	}
	s.AddColumn = given.AddColumn
	return s
}
