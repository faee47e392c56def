package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea/doctor"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look at the archive: how well it is protected, and what is wrong",
		Long: `Say how well the archive is protected, and why not better (L0 nothing, L1 triggers, L2 and an owner
as whom nobody logs in, L3 and a checkpoint elsewhere), who can get around that, and what is wrong: triggers,
rights, the sequence of ids, open transactions, projections that have stopped, guards that are out of date,
baselines that are half done. Behind "->" is what to do. It writes nothing. Exit code 3: something is wrong.`,
		Example: `  rea doctor
  rea doctor --json`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			c, err := a.catalog()
			if err != nil {
				return err
			}
			archive, d, err := a.open(ctx, opening{role: "reader", catalog: c})
			if err != nil {
				return err
			}
			defer archive.Close()
			if _, err := archive.Autocommit().Head(ctx); err != nil { // says that the schema is not there
				return err
			}
			var list []doctor.Finding
			if a.pool != nil {
				list, err = doctor.Postgres(ctx, a.pool, archive)
			} else {
				list, err = doctor.SQLite(ctx, a.env.path(d.path), archive)
			}
			if err != nil {
				return err
			}
			return a.printDiagnosis(list)
		},
	}
}

func (a *app) printDiagnosis(list []doctor.Finding) error {
	out, found := a.list(), false
	for _, f := range list {
		found = found || !f.OK
		if !a.table() {
			if err := out.add(f); err != nil {
				return err
			}
			continue
		}
		mark := "ok  "
		if !f.OK {
			mark = "BAD "
		}
		level := ""
		if f.Level != nil {
			level = *f.Level + ": "
		}
		fmt.Fprintf(a.env.Stdout, "%s %-12s %s%s\n", mark, f.Check, level, safe(f.Text))
		if f.Next != nil {
			fmt.Fprintf(a.env.Stdout, "     %-12s -> %s\n", "", safe(*f.Next))
		}
	}
	if !a.table() {
		if err := out.close(); err != nil {
			return err
		}
	}
	if found {
		return partialError{}
	}
	return nil
}
