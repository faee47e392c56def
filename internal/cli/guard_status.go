package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea/guard"
)

func (a *app) guardStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the guards, and what is wrong with them",
		Long: `List the guards, and what is wrong with them: columns that came, went or were renamed since, partitions
without triggers, triggers that are switched off, a broken glass. Exit code 3: something is.`,
		Example: `  rea guard status
  rea guard status --json`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.guarding(cmd, "reader", func(ctx context.Context, pool *pgxpool.Pool, _ database) error {
				states, err := guard.Status(ctx, pool)
				if err != nil {
					return err
				}
				return a.printGuards(states)
			})
		},
	}
}

func (a *app) printGuards(states []guard.State) error {
	wrong := false
	for _, s := range states {
		wrong = wrong || len(s.Problems) > 0
	}
	if !a.table() {
		list := a.list()
		for _, s := range states {
			if err := list.add(struct {
				guardJSON
				Problems []string `json:"problems"`
			}{guardLine(&s.Guard), append([]string{}, s.Problems...)}); err != nil {
				return err
			}
		}
		if err := list.close(); err != nil {
			return err
		}
	} else if len(states) == 0 {
		fmt.Fprintln(a.env.Stdout, "no table is guarded: `rea guard add TABLE --type TYPE`")
	}
	for _, s := range states {
		if !a.table() {
			break
		}
		mode := string(s.Settings.Mode)
		if s.GlassBroken {
			mode += ", glass broken"
		}
		fmt.Fprintf(a.env.Stdout, "%s: %s, type %s, id %s\n", safe(s.Table.String()), mode, safe(s.Settings.Type), safe(strings.Join(keyNames(s.Table), ", ")))
		for _, p := range s.Problems {
			fmt.Fprintf(a.env.Stdout, "  ! %s\n", safe(strings.TrimPrefix(p, "rea: ")))
		}
	}
	if wrong {
		return partialError{}
	}
	return nil
}
