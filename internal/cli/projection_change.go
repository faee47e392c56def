package cli

import (
	"context"
	"fmt"
	"maps"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

// changing opens the archive, finds the followed projection, lets change do something, and prints what it says, or
// the projection as it stands then. role is the kind of role that it takes.
func (a *app) changing(cmd *cobra.Command, role, name string, change func(context.Context, *rea.Archive, projection) (said string, err error)) error {
	ctx := cmd.Context()
	return a.withProjections(ctx, role, func(archive *rea.Archive, c *rea.Catalog, d database) error {
		p, err := a.projection(ctx, archive, name)
		switch {
		case err != nil:
			return err
		case p.mode == modeInline && p.State == rea.StateNew:
			return &stuckError{p}
		}
		said, err := change(ctx, archive, p)
		if err != nil {
			return err
		}
		if a.table() {
			_, err := fmt.Fprintln(a.env.Stdout, said)
			return err
		}
		if p, err = a.projection(ctx, archive, name); err != nil {
			return err
		}
		return a.object(p.line(d))
	})
}

func refusedInline(p projection) error {
	return &refusedError{fmt.Sprintf("%s is inline: appends keep it; `rea projection check %[1]s` looks at it, `rea catalog apply` makes it anew once its version in the catalog is raised", safe(p.Name))}
}

func (a *app) projectionPauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pause NAME",
		Short: "Let nobody move a projection, until it is resumed",
		Long: `Let nobody move a followed projection until "rea projection resume": its table stays as it
is, and the other projections go on. It waits for the page that is being applied. An inline one is
kept by appends all the same: what stops is the folding of rows that they leave behind.`,
		Example:           `  rea projection pause hourly_sales`,
		Args:              between(1, 1),
		ValidArgsFunction: a.projectionNames(true, false, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changing(cmd, "runner", args[0], func(ctx context.Context, archive *rea.Archive, p projection) (string, error) {
				if p.State == rea.StatePaused {
					return fmt.Sprintf("%s is paused already, at position %d", safe(p.Name), p.Position), nil
				}
				said := fmt.Sprintf("paused %s at position %d", safe(p.Name), p.Position)
				if p.Inline {
					said += ": appends keep its table as before, and nobody folds the rows that they leave behind"
				}
				return said, archive.PauseProjection(ctx, p.Name)
			})
		},
	}
}

func (a *app) projectionResumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "resume NAME",
		Short:             "Let a paused projection go on",
		Long:              `Let a projection that was paused go on, wherever "rea run" keeps it.`,
		Example:           `  rea projection resume hourly_sales`,
		Args:              between(1, 1),
		ValidArgsFunction: a.projectionNames(true, false, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changing(cmd, "runner", args[0], func(ctx context.Context, archive *rea.Archive, p projection) (string, error) {
				if p.State != rea.StatePaused {
					return fmt.Sprintf("%s is not paused: nothing to do", safe(p.Name)), nil
				}
				return fmt.Sprintf("%s goes on after position %d", safe(p.Name), p.Position), archive.ResumeProjection(ctx, p.Name)
			})
		},
	}
}

func (a *app) projectionRetryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "retry NAME",
		Short: "Let a projection that fails or is stalled try its event again at once",
		Long: `Let a followed projection that fails or is stalled try its event again at once, wherever
"rea run" keeps it: after mending what "rea projection list" says. Whoever runs it has to be
started anew where the catalog was changed.`,
		Example:           `  rea projection retry hourly_sales`,
		Args:              between(1, 1),
		ValidArgsFunction: a.projectionNames(true, false, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changing(cmd, "runner", args[0], func(ctx context.Context, archive *rea.Archive, p projection) (string, error) {
				if p.Failed.Attempts == 0 || p.State == rea.StatePaused {
					return fmt.Sprintf("%s does not fail: nothing to do", safe(p.Name)), nil
				}
				return fmt.Sprintf("%s tries again: %s", safe(p.Name), failingText(p.Failing, p.Failed.Position)), archive.RetryProjection(ctx, p.Name)
			})
		},
	}
}

func (a *app) projectionSkipCommand() *cobra.Command {
	var position int64
	var actor string
	var yes bool
	cmd := &cobra.Command{
		Use:   "skip NAME --position N",
		Short: "Make a projection leave out the event that it fails on, for good",
		Long: `Make a followed projection leave out the event that it fails on, which --position names. It is
recorded with the error and with --actor; rebuilds and checks leave it out too. The event itself
stays in the archive. Where a rebuild has failed, --position may name that event: the next
"rea projection rebuild" goes on behind it, and the projection leaves it out from the switch on.

It asks on a terminal; elsewhere --yes confirms (exit code 4 without).`,
		Example: `  rea projection skip hourly_sales --position 4711
  rea projection skip hourly_sales --position 4711 --actor ada --yes`,
		Args:              between(1, 1),
		ValidArgsFunction: a.projectionNames(true, false, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if position < 1 {
				return usagef("--position says which event to leave out: `rea projection list` names the one that the projection fails on")
			}
			if actor == "" {
				if u, err := user.Current(); err == nil {
					actor = u.Username
				}
			}
			return a.changing(cmd, "runner", args[0], func(ctx context.Context, archive *rea.Archive, p projection) (string, error) {
				failing := map[int64]string{}
				if r := p.Rebuild; r != nil && r.FailedPosition > 0 {
					failing[r.FailedPosition] = failingText(p.RebuildFailing, r.FailedPosition) + " (on which its rebuild fails: from then on)"
				}
				if p.Failed.Position > 0 {
					failing[p.Failed.Position] = failingText(p.Failing, p.Failed.Position)
				}
				switch what := failing[position]; {
				case len(failing) == 0:
					return "", &refusedError{safe(p.Name) + " does not fail: there is nothing to leave out"}
				case what == "":
					return "", &refusedError{fmt.Sprintf("%s does not fail on position %d, but on %s: only that one can be left out", safe(p.Name), position,
						joined(slices.Sorted(maps.Keys(failing))))}
				default:
					a.say(fmt.Sprintf("to be left out of %s for good: %s", safe(p.Name), what))
				}
				if err := a.confirm(ctx, yes, "leave it out", "left out"); err != nil {
					return "", err
				}
				return fmt.Sprintf("%s leaves out position %d", safe(p.Name), position), archive.SkipEvent(ctx, p.Name, position, actor)
			})
		},
	}
	cmd.Flags().Int64Var(&position, "position", 0, "position of the event that it fails on")
	cmd.Flags().StringVar(&actor, "actor", "", "who decides so (the login of the system)")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func joined(positions []int64) string {
	list := make([]string, len(positions))
	for i, position := range positions {
		list[i] = fmt.Sprint(position)
	}
	return strings.Join(list, " and ")
}
