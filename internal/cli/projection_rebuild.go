package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) projectionRebuildCommand() *cobra.Command {
	var yes, recreate bool
	cmd := &cobra.Command{
		Use:   "rebuild NAME...",
		Short: "Fill a projection's table anew from the events, and switch",
		Long: `Fill another table from all events beside the one that is read, by the definition that the
catalog has now, catch up, and put it in the place of the old one. Appends, readers and runners go
on meanwhile: readers see the old rows until the switch. Killed, the same command goes on where
it was. Several are made anew one after the other.

Indexes, constraints, statistics and triggers of yours on the table are taken over. Views that
depend on it are listed, and refuse it: with --recreate-views they are dropped and made again as
they were, in the transaction of the switch. What cannot be taken over (a foreign key to the table,
a view over a column that is gone) is named before anything is filled (exit code 4).
docs/projections.md has the list.

It shows what it will do and asks on a terminal; elsewhere --yes confirms (exit code 4
without). An inline projection is made anew by "rea catalog apply", once its version is raised.`,
		Example: `  rea projection rebuild hourly_sales
  rea projection rebuild hourly_sales order_parcel --yes
  rea projection rebuild hourly_sales --recreate-views`,
		Args:              between(1, 1000),
		ValidArgsFunction: a.projectionNames(true, false, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, flag := range partial {
				if cmd.Flags().Changed(flag) {
					return &refusedError{"nobody replays a part of the events into a table that has them already: it would have them twice. A rebuild fills another table from the first event on, and readers see the old one until then: `rea projection rebuild " + safe(strings.Join(args, " ")) + "`"}
				}
			}
			f, err := a.mustCatalog()
			if err != nil {
				return err
			}
			archive, d, err := a.open(cmd.Context(), opening{role: "owner", catalog: f.Catalog, recreate: recreate})
			if err != nil {
				return err
			}
			defer archive.Close()
			return a.rebuild(cmd.Context(), archive, f.Catalog, d, args, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&recreate, "recreate-views", false, recreateViews)
	for _, flag := range partial {
		cmd.Flags().String(flag, "", "")
		_ = cmd.Flags().MarkHidden(flag) // there is a flag of that name
	}
	return cmd
}

// recreateViews says what the flag of two commands does.
const recreateViews = "drop the views that depend on the table, and make them again (SQLite: triggers too)"

// partial are the flags by which people ask for a replay of a part, which is refused with the reason.
var partial = []string{"from", "after", "position", "since"}

func (a *app) rebuild(ctx context.Context, archive *rea.Archive, c *rea.Catalog, d database, names []string, yes bool) error {
	if err := a.declared(c, names); err != nil {
		return err
	}
	list, err := a.projections(ctx, archive)
	if err != nil {
		return err
	}
	var chosen []projection
	for i, name := range names {
		for _, p := range list {
			switch {
			case p.Name != name || slices.Contains(names[:i], name):
			case p.mode == modeInline:
				return refusedInline(p)
			default:
				chosen = append(chosen, p)
			}
		}
	}
	for _, p := range chosen {
		a.sayRebuild(p)
	}
	them := "it"
	if len(chosen) > 1 {
		them = "them"
	}
	if err := a.confirm(ctx, yes, "rebuild "+them, "rebuilt"); err != nil {
		return err
	}
	for _, p := range chosen {
		if err := a.rebuildOne(ctx, archive, p); err != nil {
			return err
		}
	}
	if a.table() {
		return nil
	}
	if list, err = a.projections(ctx, archive); err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(p projection) bool { return !slices.Contains(names, p.Name) })
	if len(list) == 1 {
		return a.object(list[0].line(d))
	}
	return a.printProjections(list, d)
}

func (a *app) sayRebuild(p projection) {
	plan := fmt.Sprintf("~ %s: another table is filled from %s and takes the place of this one", safe(p.Name), counted(p.Head, "event"))
	if p.State == rea.StateNew {
		plan = fmt.Sprintf("+ %s: its table is made and filled from %s", safe(p.Name), counted(p.Head, "event"))
	}
	a.say(plan)
	if p.State == rea.StateNeedsRebuild {
		why, _, _ := strings.Cut(p.trouble(), ": `rea ") // what to type is being typed
		a.say("  " + safe(why))
	}
	if r := p.Rebuild; r != nil {
		a.say(fmt.Sprintf("  one was begun, and has come to position %d: it goes on from there, if it was by this definition", r.Position))
	}
	if n := len(p.Skipped); n > 0 {
		a.say(fmt.Sprintf("  %s left out, as before", counted(int64(n), "event")))
	}
}

func (a *app) rebuildOne(ctx context.Context, archive *rea.Archive, p projection) error {
	bar, last := a.newBar("rebuild "+p.Name), int64(0)
	err := archive.Rebuild(ctx, p.Name, func(at rea.RebuildProgress) {
		last = at.Position
		bar.set(at.Position, at.Head, fmt.Sprintf("position %d", at.Position))
	})
	bar.close()
	switch {
	case err != nil && ctx.Err() != nil:
		return &stoppedError{"readers see the old rows: the same command goes on from there", err}
	case err != nil || !a.table():
		return err
	}
	_, err = fmt.Fprintf(a.env.Stdout, "rebuilt %s up to position %d\n", safe(p.Name), last)
	return err
}
