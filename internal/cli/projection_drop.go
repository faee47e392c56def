package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) projectionDropCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "drop NAME",
		Short: "Drop the table of a projection that the catalog does not declare any more",
		Long: `Forget a followed projection that the catalog does not declare any more: how far it has come,
what it has left out, and its table. The events stay. The tables of a program's function stay too.
One that is declared is refused, and so is one whose table something depends on (a view, a foreign
key), which is listed.

It shows what it will do and asks on a terminal; elsewhere --yes confirms (exit code 4
without). An inline one that is taken out of the catalog: "rea catalog apply" makes appends leave
its table alone, which is then yours (DROP TABLE).`,
		Example: `  rea projection drop hourly_sales
  rea projection drop hourly_sales --catalog shop/rea.yaml --yes`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := a.mustCatalog(); err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.withProjections(ctx, "owner", func(archive *rea.Archive, c *rea.Catalog, d database) error {
				p, err := a.projection(ctx, archive, args[0])
				if err != nil {
					return err
				}
				return a.dropProjection(ctx, archive, c, d, p, yes)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) dropProjection(ctx context.Context, archive *rea.Archive, c *rea.Catalog, d database, p projection, yes bool) error {
	name := safe(p.Name)
	switch {
	case slices.ContainsFunc(c.Projections(), func(x rea.Projection) bool { return x.Name == p.Name }):
		return &refusedError{"the catalog declares " + name + ": take it out of the file first"}
	case p.mode == modeInline:
		return &refusedError{fmt.Sprintf("%s is inline: `rea catalog apply` makes appends leave its table alone, which is then yours: DROP TABLE %s", name, safe(p.table(d)))}
	}
	what := "its table " + safe(p.table(d)) + " is dropped"
	if p.Kind == rea.KindGo {
		what = "the tables of the program's function stay; a program that still has it fills them again, from the first event on: empty them before that"
	}
	a.say(fmt.Sprintf("- %s: its position %d is forgotten, and %s; the events stay", name, p.Position, what))
	if p.Runner != "" {
		a.say(fmt.Sprintf("  moved last at %s by %s: whoever still declares it makes it again", rea.FormatTime(p.UpdatedAt), safe(p.Runner)))
	}
	if err := a.confirm(ctx, yes, "drop it", "dropped"); err != nil {
		return err
	}
	if err := archive.DropProjection(ctx, p.Name); err != nil {
		return err
	}
	if !a.table() {
		return a.object(struct {
			Name    string `json:"name"`
			Dropped bool   `json:"dropped"`
		}{p.Name, true})
	}
	_, err := fmt.Fprintln(a.env.Stdout, "dropped "+name)
	return err
}
