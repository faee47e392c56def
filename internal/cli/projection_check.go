package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) projectionCheckCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Compare projections with their events: find what was written by another way",
		Long: `Fold the events anew, as far as each projection has come, and list the rows of its table that
are not what the events say: missing, extra, or different in a column. Somebody has written to
the table past REA. All declared projections are checked, or those that are named, inline ones too.
It reads every event, in one snapshot, and keeps nobody waiting.

Exit code 3 where it finds something. To mend a followed one: "rea projection rebuild NAME";
an inline one: raise its version in the catalog, and "rea catalog apply".`,
		Example: `  rea projection check
  rea projection check order_state --limit 1000 --json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.projectionNames(true, true, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usagef("--limit is 1 or more rows, not %d", limit)
			}
			ctx := cmd.Context()
			return a.withProjections(ctx, "reader", func(archive *rea.Archive, c *rea.Catalog, _ database) error {
				return a.checkProjections(ctx, archive, c, args, limit)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "list at most so many rows of each projection")
	return cmd
}

// driftLine is a row that is not what the events say, in JSON.
type driftLine struct {
	Projection    string   `json:"projection"`
	Drift         string   `json:"drift"` // missing, extra, different
	AggregateType *string  `json:"aggregate_type"`
	AggregateID   *string  `json:"aggregate_id"`
	Bucket        *string  `json:"bucket"`
	By            []string `json:"by"`     // dimensions
	Column        *string  `json:"column"` // of a different row: the first one that differs
	TableValue    *string  `json:"table_value"`
	FoldValue     *string  `json:"fold_value"`
}

func (a *app) checkProjections(ctx context.Context, archive *rea.Archive, c *rea.Catalog, names []string, limit int) error {
	of, inline := map[string]string{}, map[string]bool{}
	for _, p := range c.Projections() {
		of[p.Name], inline[p.Name] = p.Of, p.Inline
	}
	if len(names) == 0 {
		for _, p := range c.Projections() {
			names = append(names, p.Name)
		}
		if len(names) == 0 {
			return usagef("the catalog declares no projections: name it with --catalog FILE")
		}
	}
	if err := a.declared(c, names); err != nil {
		return err
	}
	var drifts []driftLine
	var unchecked []error
	found := false
	for _, name := range names {
		n, behind := 0, false
		err := archive.CheckProjection(ctx, name, func(d rea.Drift) {
			behind = behind || inline[name] && (d.Kind == rea.DriftMissing || d.Column == "rea_seq")
			if n++; n <= limit {
				drifts = append(drifts, driftOf(name, of[name], d))
			}
		})
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, rea.ErrNoSchema):
			return err
		case errors.Is(err, rea.ErrNotFound):
			unchecked = append(unchecked, notThere(safe(name)+" is not made yet: `rea run`"))
		case err != nil:
			unchecked = append(unchecked, err)
		case n > limit:
			a.say(fmt.Sprintf("%s: %s drifted, the first %d of them are listed", safe(name), numbered(n, "row"), limit))
		case n > 0:
			a.say(fmt.Sprintf("%s: %s drifted", safe(name), numbered(n, "row")))
		default:
			a.say(safe(name) + ": as the events say")
		}
		if behind {
			a.say("  rows that are missing or behind: `rea run` fills them in, and so does `rea catalog apply` (appends leave events of older versions to them)")
		}
		switch {
		case n == 0:
		case inline[name]:
			a.say("  to mend it: raise its version in the catalog, and `rea catalog apply`")
		default:
			a.say("  to mend it: `rea projection rebuild " + safe(name) + "`")
		}
		found = found || n > 0
	}
	if err := a.printDrifts(drifts); err != nil {
		return err
	}
	if !found && len(unchecked) == 1 {
		return unchecked[0]
	}
	for _, err := range unchecked {
		a.say("not checked: " + safe(a.text(err)))
	}
	switch {
	case found:
		return partialError{}
	case len(unchecked) > 0:
		return fmt.Errorf("%s could not be checked", numbered(len(unchecked), "projection"))
	}
	return nil
}

func driftOf(name, of string, d rea.Drift) driftLine {
	line := driftLine{Projection: name, Drift: d.Kind, By: []string{}, Column: given(d.Column), TableValue: d.Stored, FoldValue: d.Want}
	if of != "" {
		line.AggregateType, line.AggregateID = &of, &d.Key[0]
	} else {
		line.Bucket, line.By = &d.Key[0], append(line.By, d.Key[1:]...)
	}
	return line
}

func (a *app) printDrifts(drifts []driftLine) error {
	if !a.table() {
		out := a.list()
		for _, d := range drifts {
			if err := out.add(d); err != nil {
				return err
			}
		}
		return out.close()
	}
	g := a.grid(column{head: "PROJECTION"}, column{head: "DRIFT"}, column{head: "ROW"}, column{head: "COLUMN", optional: true},
		column{head: "TABLE HAS", optional: true}, column{head: "EVENTS SAY", optional: true})
	for _, d := range drifts {
		row := ""
		if d.AggregateID != nil {
			row = refText(rea.Ref{Type: *d.AggregateType, ID: *d.AggregateID})
		} else {
			row = fold(strings.Join(append([]string{*d.Bucket}, d.By...), " "), 80)
		}
		has, say := "", ""
		if d.Drift == rea.DriftDifferent {
			has, say = orNull(d.TableValue), orNull(d.FoldValue)
		}
		if err := g.add(safe(d.Projection), d.Drift, row, safe(text(d.Column)), has, say); err != nil {
			return err
		}
	}
	return g.flush()
}

func orNull(s *string) string {
	if s == nil {
		return "NULL"
	}
	return fold(*s, 40)
}
