package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) catalogApplyCommand() *cobra.Command {
	var yes, recreate bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Make the catalog the state machine of the database",
		Long: `Show what the catalog changes of the database's state machine, and apply it: from then on
every writer in every language is held to its steps. Each catalog that is applied gets a number.
The tables of its inline projections are made and filled first, while appends go on; rows that
are behind are caught up every time. A table that takes the place of another takes over what
"rea projection rebuild" does, with --recreate-views too.

It asks on a terminal; elsewhere --yes confirms (exit code 4 without). Where the database
has exactly these declarations there is nothing to do. A catalog that does not know the present
status of some aggregates is refused (exit code 4), until renamed says what it is called now.
Rows that cannot be caught up are named (exit code 3).`,
		Example: `  rea catalog apply
  rea catalog apply --yes --db sqlite:shop.db --catalog shop/rea.yaml`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.catalogApply(cmd, yes, recreate) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&recreate, "recreate-views", false, recreateViews)
	return cmd
}

func (a *app) catalogApply(cmd *cobra.Command, yes, recreate bool) error {
	ctx := cmd.Context()
	f, err := a.mustCatalog()
	if err != nil {
		return err
	}
	archive, d, err := a.open(ctx, opening{role: "owner", catalog: f.Catalog, recreate: recreate})
	if err != nil {
		return err
	}
	defer archive.Close()
	plan, err := archive.PlanApply(ctx)
	switch {
	case err != nil:
		return err
	case len(plan.Unknown) > 0:
		return &rea.UnknownStatusError{Statuses: plan.Unknown}
	case plan.Nothing() && len(f.Catalog.Projections()) == 0:
		return a.printApplied(plan, d, false)
	case !plan.Nothing():
		a.sayPlan(plan, d)
	}
	if !plan.Nothing() {
		if err := a.confirm(ctx, yes, "apply it", "applied"); err != nil {
			return err
		}
	}
	change, err := archive.Apply(ctx)
	if err != nil {
		return err
	}
	for _, b := range change.Behind {
		a.say(fmt.Sprintf("%s of %s cannot be caught up, the first is %s: %s", numbered(b.Rows, "row"), safe(b.Projection), refText(b.First), safe(strings.TrimPrefix(b.Err.Error(), "rea: "))))
	}
	if change.New {
		a.say("every writer is held to it now; stored events stay as they are: rea catalog check looks at them")
	}
	return a.printApplied(change, d, len(f.Catalog.StateTables()) > 0)
}

func (a *app) sayPlan(plan rea.Change, d database) {
	for _, row := range plan.Removed {
		a.say("- " + safe(row.String()))
	}
	for _, row := range plan.Added {
		a.say("+ " + safe(row.String()))
	}
	for _, p := range plan.Projections {
		a.say(safe(projectionActions[p.Action][0] + " the projection " + p.Name + ": " + projectionActions[p.Action][1]))
	}
	if !plan.New {
		return
	}
	a.say(fmt.Sprintf("catalog %d of %s: %s to add, %s to remove", plan.Number, safe(d.String()),
		numbered(len(plan.Added), "declaration"), numbered(len(plan.Removed), "declaration")))
}

// projectionActions say in the plan what is done to a projection.
var projectionActions = map[string][2]string{
	rea.ActionMake:    {"+", "its table is made and filled"},
	rea.ActionRebuild: {"~", "another table is filled and takes the place of this one"},
	rea.ActionMend:    {"~", "appends keep its table again, and what they left out is filled in"},
	rea.ActionRemove:  {"-", "appends leave its table alone; it stays, for you to drop"},
}

// projectionRow is one of an applied catalog, in JSON.
type projectionRow struct {
	Name   string `json:"name"`
	Action string `json:"action"`
}

func (a *app) printApplied(change rea.Change, d database, inline bool) error {
	rows, behind := []projectionRow{}, 0
	for _, p := range change.Projections {
		rows = append(rows, projectionRow{p.Name, p.Action})
	}
	for _, b := range change.Behind {
		behind += b.Rows
	}
	if !a.table() {
		err := a.object(struct {
			Catalog     int             `json:"catalog"`
			Applied     bool            `json:"applied"`
			Added       int             `json:"added"`
			Removed     int             `json:"removed"`
			Projections []projectionRow `json:"projections"`
			Behind      int             `json:"rows_behind"`
		}{change.Number, change.New, len(change.Added), len(change.Removed), rows, behind})
		if err == nil && behind > 0 {
			err = partialError{}
		}
		return err
	}
	text := "applied catalog %d to %s\n"
	switch {
	case change.New:
	case len(rows) > 0:
		text = "applied the projections of catalog %d to %s\n"
	case inline:
		text = "this is catalog %d of %s, and the rows of its inline projections are caught up\n"
	default:
		text = "nothing to do: this is catalog %d of %s\n"
	}
	if _, err := fmt.Fprintf(a.env.Stdout, text, change.Number, safe(d.String())); err != nil || behind == 0 {
		return err
	}
	return partialError{}
}

// unknownStatus is one of a refused catalog, in JSON.
type unknownStatus struct {
	Type       string `json:"aggregate_type"`
	Status     string `json:"status"`
	Aggregates int64  `json:"aggregates"`
}

func unknownRows(statuses []rea.PresentStatus) []unknownStatus {
	rows := make([]unknownStatus, len(statuses))
	for i, s := range statuses {
		rows[i] = unknownStatus{s.Type, s.Status, s.Aggregates}
	}
	return rows
}
