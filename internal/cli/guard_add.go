package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/realtime-event-archive/rea/adopt"
	"github.com/realtime-event-archive/rea/guard"
)

func (a *app) guardAddCommand() *cobra.Command {
	var s guard.Settings
	var by guard.By
	var mode string
	var yes bool
	cmd := &cobra.Command{
		Use:   "add TABLE --type TYPE",
		Short: "Watch a table",
		Long: `Watch a table: make the functions and triggers that capture or refuse what is written to it. Each row is an
aggregate of the type; its id is the key's text. The triggers need SHARE ROW EXCLUSIVE on the table for a
moment: writers wait for it, readers do not. It waits a second for the lock at most, and tries again.

You have to own the table, and be a member of the role that owns the archive (rea_owner), which gets the
right to read the table. It shows what it will do and asks on a terminal; elsewhere --yes confirms.`,
		Example: `  rea guard add public.orders --type order --status status
  rea guard add public.order_items --type order_item --id order_id,line --ignore updated_at --redact email
  rea guard add public.orders --type order --mode refuse --add-column --yes`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.Mode = guard.Mode(mode)
			if s.Type == "" {
				return usagef("which type are the rows of %s? --type order", args[0])
			}
			return a.guarding(cmd, "owner", func(ctx context.Context, pool *pgxpool.Pool, d database) error {
				table, err := adopt.Describe(ctx, pool, args[0], s.Key)
				if err != nil {
					return err
				}
				a.say(fmt.Sprintf("+ %s: %s writes, as events of the type %s, by %s", safe(table.String()), mode, safe(s.Type), safe(strings.Join(keyNames(table), ", "))))
				if err := a.confirm(ctx, yes, "add the guard", "added"); err != nil {
					return err
				}
				g, err := guard.Add(ctx, pool, args[0], s, by)
				if err != nil {
					return err
				}
				if !a.table() {
					return a.object(guardLine(g))
				}
				_, err = fmt.Fprintf(a.env.Stdout, "guarded %s: %s, type %s\n", safe(g.Table.String()), g.Settings.Mode, safe(g.Settings.Type))
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Type, "type", "", "aggregate type of the rows")
	flags.StringSliceVar(&s.Key, "id", nil, "columns that make the id, in order; else those of the primary key")
	settingsFlags(flags, &s, &mode)
	flags.BoolVar(&yes, "yes", false, "do not ask")
	byFlags(cmd, &by)
	return cmd
}

// settingsFlags are what may be said of a guard again later.
func settingsFlags(flags *pflag.FlagSet, s *guard.Settings, mode *string) {
	flags.StringVar(mode, "mode", string(guard.Capture), "capture writes, or refuse those that no event stands for")
	flags.StringVar(&s.Status, "status", "", "column that is the status")
	flags.StringSliceVar(&s.Ignore, "ignore", nil, "columns that are not looked at")
	flags.StringSliceVar(&s.Redact, "redact", nil, "columns of which only is recorded that they changed")
	flags.StringVar(&s.SQL, "sql", "full", "what is kept of a statement: full (8 KiB), hash or off")
	flags.BoolVar(&s.RequireReason, "require-reason", false, "refuse writes of transactions that gave no reason by rea.set_context")
	flags.StringVar(&s.Truncate, "truncate", "", "capture or refuse TRUNCATE; else as --mode")
	flags.BoolVar(&s.AddColumn, "add-column", false, "add the column rea_seq, which --mode refuse needs")
}

func keyNames(t *adopt.Table) []string {
	names := make([]string, len(t.Key))
	for i, k := range t.Key {
		names[i] = t.Columns[k].Name
	}
	return names
}

// guardJSON is a guard as --json gives it.
type guardJSON struct {
	Table         string   `json:"table"`
	Type          string   `json:"aggregate_type"`
	Mode          string   `json:"mode"`
	Key           []string `json:"key"`
	Status        *string  `json:"status"`
	Ignore        []string `json:"ignore"`
	Redact        []string `json:"redact"`
	SQL           string   `json:"sql"`
	RequireReason bool     `json:"require_reason"`
	Truncate      string   `json:"truncate"`
	GlassBroken   bool     `json:"glass_broken"`
}

func guardLine(g *guard.Guard) guardJSON {
	s := g.Settings
	line := guardJSON{Table: g.Table.String(), Type: s.Type, Mode: string(s.Mode), Key: keyNames(g.Table), Ignore: append([]string{}, s.Ignore...),
		Redact: append([]string{}, s.Redact...), SQL: s.SQL, RequireReason: s.RequireReason, Truncate: s.Truncate, GlassBroken: g.GlassBroken}
	if s.Status != "" {
		line.Status = &s.Status
	}
	return line
}
