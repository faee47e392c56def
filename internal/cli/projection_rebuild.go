package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) projectionRebuildCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "rebuild NAME",
		Short: "Fill a projection's table anew from the events, and switch",
		Long: `Fill another table from all events beside the one that is read, by the definition that the
catalog has now, catch up, and put it in the place of the old one. Appends, readers and runners go
on meanwhile: readers see the old rows until the switch. Killed, the same command goes on where
it was. What depends on the table (a view, a foreign key) is listed, and refuses it.

It shows what it will do and asks on a terminal; elsewhere --yes confirms (exit code 4
without). An inline projection is made anew by "rea catalog apply", once its version is raised.`,
		Example: `  rea projection rebuild hourly_sales
  rea projection rebuild hourly_sales --yes --json`,
		Args:              between(1, 1),
		ValidArgsFunction: a.projectionNames(true, false, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changing(cmd, "owner", args[0], func(ctx context.Context, archive *rea.Archive, p projection) (string, error) {
				return a.rebuild(ctx, archive, p, yes)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) rebuild(ctx context.Context, archive *rea.Archive, p projection, yes bool) (string, error) {
	plan := fmt.Sprintf("~ %s: another table is filled from %s and takes the place of this one", safe(p.Name), counted(p.Head, "event"))
	if p.State == rea.StateNew {
		plan = fmt.Sprintf("+ %s: its table is made and filled from %s", safe(p.Name), counted(p.Head, "event"))
	}
	a.say(plan)
	if p.State == rea.StateNeedsRebuild {
		a.say("  " + safe(p.trouble()))
	}
	if n := len(p.Skipped); n > 0 {
		a.say(fmt.Sprintf("  %s left out, as before", counted(int64(n), "event")))
	}
	if err := a.confirm(ctx, yes, "rebuild it", "rebuilt"); err != nil {
		return "", err
	}
	bar, last := a.newBar("rebuild "+p.Name), int64(0)
	err := archive.Rebuild(ctx, p.Name, func(at rea.RebuildProgress) {
		last = at.Position
		bar.set(at.Position, at.Head, fmt.Sprintf("position %d", at.Position))
	})
	bar.close()
	if err != nil && ctx.Err() != nil {
		return "", &stoppedError{"readers see the old rows: the same command goes on from there", err}
	}
	return fmt.Sprintf("rebuilt %s up to position %d", safe(p.Name), last), err
}
