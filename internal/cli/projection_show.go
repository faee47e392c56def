package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) projectionShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show one projection: its table, where it stands, what it leaves out",
		Long: `Show one projection: its table and columns, where it stands, why it does not go on, and the
events that somebody has made it leave out. Exit code 3 where it does not go on.`,
		Example: `  rea projection show hourly_sales
  rea projection show hourly_sales --json`,
		Args:              between(1, 1),
		ValidArgsFunction: a.projectionNames(true, true, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withProjections(ctx, "reader", func(archive *rea.Archive, c *rea.Catalog, d database) error {
				p, err := a.projection(ctx, archive, args[0])
				if err != nil {
					return err
				}
				if err := a.showProjection(p, c, d); err != nil {
					return err
				}
				return a.judgeProjections([]projection{p}, maxLag{})
			})
		},
	}
}

// tableColumn is a column of a projection's table, in JSON.
type tableColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// columnsOf lists the columns of a declared projection's table.
func columnsOf(c *rea.Catalog, name string) []tableColumn {
	list := []tableColumn{}
	for _, p := range c.Projections() {
		switch {
		case p.Name != name:
		case p.Of != "":
			list = append(list, tableColumn{"aggregate_id", "text"})
			for _, column := range p.Columns {
				list = append(list, tableColumn{column.Name, string(column.Type)})
			}
			list = append(list, tableColumn{"rea_seq", "bigint"}, tableColumn{"rea_updated_at", "timestamptz"})
		default:
			list = append(list, tableColumn{"bucket", "timestamptz"}, tableColumn{"bucket_local", "text"})
			for _, by := range p.By {
				list = append(list, tableColumn{by.Name, "text"})
			}
			for _, m := range p.Measures {
				kind := "numeric"
				if m.Kind == rea.MeasureCount {
					kind = "bigint"
				}
				list = append(list, tableColumn{m.Name, kind})
			}
		}
	}
	return list
}

func (a *app) showProjection(p projection, c *rea.Catalog, d database) error {
	line, columns := p.line(d), columnsOf(c, p.Name)
	if !a.table() {
		skipped := p.Skipped
		if skipped == nil {
			skipped = []rea.Skipped{}
		}
		return a.object(struct {
			projectionLine
			Columns []tableColumn `json:"columns"`
			Events  []rea.Skipped `json:"skipped_events"`
		}{line, columns, skipped})
	}
	var b strings.Builder
	say := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, value)
		}
	}
	say("name", safe(p.Name))
	kind := p.mode + " table of " + map[string]string{rea.KindState: "states", rea.KindStatistics: "statistics"}[p.Kind]
	if p.Kind == rea.KindGo {
		kind = "followed by a function of a program's"
	}
	if p.of != "" {
		kind += ", one row for each " + safe(p.of)
	}
	say("kind", kind)
	say("version", fmt.Sprint(p.Version))
	say("table", safe(text(line.Table)))
	names := make([]string, len(columns))
	for i, column := range columns {
		names[i] = safe(column.Name) + " " + column.Type
	}
	say("columns", strings.Join(names, ", "))
	state := p.word()
	if p.mode == modeInline && p.State == rea.StateRunning {
		state = "kept in the transaction of each append"
	}
	say("state", state)
	if line.Position != nil {
		say("position", fmt.Sprintf("%d of %d", p.Position, p.Head))
	}
	if line.Position != nil && p.mode != modeInline {
		lag := "not known"
		if line.Lag != nil {
			lag = counted(*line.Lag, "event")
		}
		if line.LagSince != nil {
			lag += ", since " + *line.LagSince
		}
		say("lag", lag)
	}
	say("updated", text(line.UpdatedAt))
	say("runner", safe(p.Runner))
	for _, s := range p.Skipped {
		by := ""
		if s.By != "" {
			by = " by " + fold(s.By, 40)
		}
		say("skipped", fmt.Sprintf("position %d%s at %s: %s", s.Position, by, safe(s.At), fold(oneLine.Replace(s.Error), 500)))
	}
	if _, err := fmt.Fprint(a.env.Stdout, b.String()); err != nil {
		return err
	}
	return a.printTrouble(p)
}
