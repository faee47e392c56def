package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/adopt"
)

// compareFlags are those of the commands that compare tables with their events.
type compareFlags struct {
	kind  string
	key   []string
	limit int
}

func (a *app) baselineCheckCommand() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "check TABLE",
		Short: "Compare a table with what its events say",
		Long: `Fold the events of each row's object, and compare every column with the row, in one view of both:
rows without events (missing: the baseline has not come to them), rows that are not what the
events say (different), events without a row (extra), rows whose events say that they were
deleted (deleted). It writes nothing and keeps nobody waiting. Columns that the table's guard
ignores or redacts are left out.

Type and key are those of the table's guard, else of its baseline. Events of the application's
own are folded by the catalog. Exit code 3 where there is a difference.`,
		Example: `  rea baseline check orders
  rea baseline check orders --limit 1000 --json`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.compareTables(cmd.Context(), func(context.Context) ([]string, error) { return args, nil }, f)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.kind, "type", "", "aggregate type of the rows' objects (the guard's, or the baseline's)")
	cmd.Flags().StringSliceVar(&f.key, "id", nil, "columns that make the aggregate's id (the guard's, or the baseline's)")
	return cmd
}

func (f *compareFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.limit, "limit", 20, "list at most so many differences of each table")
}

func (f *compareFlags) check() error {
	if f.limit < 1 {
		return usagef("--limit is 1 or more differences, not %d", f.limit)
	}
	return nil
}

// differenceLine is a difference in JSON: one column of a row that is different, or another row.
type differenceLine struct {
	Table         string  `json:"table"`
	Difference    string  `json:"difference"` // missing, different, extra, deleted
	AggregateType string  `json:"aggregate_type"`
	AggregateID   string  `json:"aggregate_id"`
	Seq           *int64  `json:"seq"` // of the last event
	Column        *string `json:"column"`
	TableValue    *string `json:"table_value"`
	EventsValue   *string `json:"events_value"`
}

func linesOf(table string, d adopt.Difference) []differenceLine {
	line := differenceLine{Table: table, Difference: d.Kind, AggregateType: d.Aggregate.Type, AggregateID: d.Aggregate.ID}
	if d.Seq > 0 {
		line.Seq = &d.Seq
	}
	if d.Kind != adopt.DiffDifferent {
		return []differenceLine{line}
	}
	var lines []differenceLine
	for _, c := range d.Columns {
		line := line
		line.Column, line.TableValue, line.EventsValue = &c.Column, given(string(c.Table)), given(string(c.Events))
		lines = append(lines, line)
	}
	return lines
}

// compareTables compares the tables that list gives.
func (a *app) compareTables(ctx context.Context, list func(context.Context) ([]string, error), f compareFlags) error {
	rules, err := a.catalog()
	if err != nil {
		return err
	}
	archive, d, err := a.open(ctx, opening{role: "reader", catalog: rules})
	if err != nil {
		return err
	}
	defer archive.Close()
	if _, err := archive.Autocommit().Head(ctx); err != nil { // says that the schema is not there
		return err
	}
	tables, err := list(ctx)
	if err != nil {
		return err
	}
	var lines []differenceLine
	found := false
	for _, table := range tables {
		bar, listed := a.newBar("check "+table), int64(0)
		o := adopt.CheckOptions{Type: f.kind, Catalog: rules,
			Progress: func(rows, of int64) { bar.set(rows, of, counted(rows, "row")) },
			Report: func(d adopt.Difference) {
				if listed++; listed <= int64(f.limit) {
					lines = append(lines, linesOf(table, d)...)
				}
			},
		}
		result, err := a.compareTable(ctx, d, table, f.key, o)
		bar.close()
		if err != nil {
			return err
		}
		a.sayCompared(table, result, listed, int64(f.limit))
		found = found || result.Found()
	}
	if err := a.printDifferences(lines); err != nil {
		return err
	}
	if found {
		return partialError{}
	}
	return nil
}

func (a *app) compareTable(ctx context.Context, d database, table string, key []string, o adopt.CheckOptions) (result adopt.CheckResult, err error) {
	kind, known, file, err := a.knownTable(ctx, d, table)
	if err != nil {
		return result, err
	}
	if file != nil {
		defer file.Close()
	}
	if o.Type == "" {
		o.Type = kind
	}
	if len(key) == 0 {
		key = known
	}
	if o.Type == "" {
		return result, noType(table)
	}
	if file != nil {
		return adopt.CheckSQLite(ctx, file, table, key, o)
	}
	t, err := adopt.Describe(ctx, a.pool, table, key)
	if err != nil {
		return result, err
	}
	return adopt.Check(ctx, a.pool, t, o)
}

func (a *app) sayCompared(table string, r adopt.CheckResult, found, limit int64) {
	if !r.Found() {
		a.say(fmt.Sprintf("%s: %s, as the events say", safe(table), counted(r.Rows, "row")))
		return
	}
	var counts []string
	for _, kind := range []string{adopt.DiffMissing, adopt.DiffDifferent, adopt.DiffExtra, adopt.DiffDeleted} {
		if n := r.Diffs[kind]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	text := fmt.Sprintf("%s: %s, %s", safe(table), counted(r.Rows, "row"), strings.Join(counts, ", "))
	if found > limit {
		text += fmt.Sprintf("; the first %d of %d are listed", limit, found)
	}
	a.say(text)
}

func (a *app) printDifferences(lines []differenceLine) error {
	if !a.table() {
		out := a.list()
		for _, line := range lines {
			if err := out.add(line); err != nil {
				return err
			}
		}
		return out.close()
	}
	g := a.grid(column{head: "TABLE"}, column{head: "DIFFERENCE"}, column{head: "OBJECT"}, column{head: "SEQ", right: true, optional: true},
		column{head: "COLUMN", optional: true}, column{head: "TABLE HAS", optional: true}, column{head: "EVENTS SAY", optional: true})
	for _, line := range lines {
		seq, has, say := "", "", ""
		if line.Seq != nil {
			seq = fmt.Sprint(*line.Seq)
		}
		if line.Column != nil {
			has, say = orNothing(line.TableValue), orNothing(line.EventsValue)
		}
		if err := g.add(safe(line.Table), line.Difference, refText(rea.Ref{Type: line.AggregateType, ID: line.AggregateID}), seq,
			safe(text(line.Column)), has, say); err != nil {
			return err
		}
	}
	return g.flush()
}

// orNothing is a JSON value for people; nil: there is none.
func orNothing(s *string) string {
	if s == nil {
		return "-"
	}
	return fold(*s, 40)
}
