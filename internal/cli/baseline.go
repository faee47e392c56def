package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea/adopt"
	"github.com/realtime-event-archive/rea/sqlite"
)

// baselineFlags are those of `rea baseline`.
type baselineFlags struct {
	kind, status, where, rejects string
	key, columns                 []string
	batch                        int
	yes                          bool
}

func (a *app) baselineCommand() *cobra.Command {
	var f baselineFlags
	cmd := &cobra.Command{
		Use:   "baseline TABLE",
		Short: "Give each row of an application's table its first event",
		Long: `Store one event BaselineCreated, seq 1, for each row of a table whose object has no event yet:
what the row is now, column by column, as it is. The table stays as it is. From then on the object
has a history, however old it is: blame says "baseline" of what was there before.

Guard the table first (PostgreSQL: "rea guard add"), so that each change from then on is an
event too: what changes in an unguarded table after its baseline is known to nobody.

It goes by the table's key, --batch rows a transaction, whose rows it locks against changes (not
against readers): a statement of the application's waits for one chunk at most. Stopped or killed,
the same command goes on where it was; a second run stores nothing again, and takes the
rows that came since. Rows that cannot be taken (a NULL in the key, a key that is no id,
more than 16 MiB) are listed on standard error and in the rejects file, and the exit code is 3.

Columns of types json and xml become texts, spelt as they are. Under --where, an SQL condition on the
table's columns, the other rows get no events. It shows what it will do and asks on a
terminal; elsewhere --yes confirms (exit code 4 without).`,
		Example: `  rea baseline orders --type order --id id --status status
  rea baseline shop.lines --type line --id order_id,line_no --where "created_at >= '2020-01-01'" --yes
  rea baseline check orders`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.batch < 1 || f.batch > 100_000 {
				return usagef("--batch is 1 to 100000 rows, not %d", f.batch)
			}
			if f.kind == "" {
				return usagef("--type is missing: name what the rows are, such as order")
			}
			if f.rejects == "" {
				f.rejects = strings.ReplaceAll(args[0], "/", "_") + ".rejects.ndjson"
			}
			return a.baseline(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.kind, "type", "", "aggregate type of the rows' objects")
	cmd.Flags().StringSliceVar(&f.key, "id", nil, "columns that make the aggregate's id, in order (the primary key)")
	cmd.Flags().StringVar(&f.status, "status", "", "column that is the status")
	cmd.Flags().StringSliceVar(&f.columns, "columns", nil, "columns that the events keep, the key's besides (all)")
	cmd.Flags().StringVar(&f.where, "where", "", "SQL condition that chooses rows")
	cmd.Flags().StringVar(&f.rejects, "rejects", "", "file for rows that cannot be taken (TABLE.rejects.ndjson)")
	cmd.Flags().IntVar(&f.batch, "batch", adopt.DefaultBatch, "rows a transaction")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	cmd.AddCommand(a.baselineCheckCommand())
	return cmd
}

// baseline is one in either store.
type baseline interface {
	Table() string
	Plan(ctx context.Context) (adopt.BaselinePlan, error)
	Run(ctx context.Context) (adopt.BaselineResult, error)
}

func (a *app) baseline(ctx context.Context, table string, f baselineFlags) error {
	bar := a.newBar("baseline")
	defer bar.close()
	rows := int64(0)
	program, _ := buildVersion()
	b, close, err := a.openBaseline(ctx, table, f.key, adopt.BaselineOptions{
		Type: f.kind, Status: f.status, Columns: f.columns, Where: f.where, Batch: f.batch, Version: program, Rejects: a.env.path(f.rejects),
		Progress: func(p adopt.BaselineProgress) { bar.set(p.Rows(), rows, counted(p.Rows(), "row")) },
	})
	if err != nil {
		return err
	}
	defer close()
	plan, err := b.Plan(ctx)
	if err != nil {
		return err
	}
	rows = plan.Rows
	a.sayBaselinePlan(b.Table(), f, plan)
	if err := a.confirm(ctx, f.yes, "take it", "taken"); err != nil {
		return err
	}
	result, err := b.Run(ctx)
	bar.close()
	if err != nil && ctx.Err() != nil {
		return &stoppedError{counted(result.Rows(), "row") + " done with: the same command goes on from there", err}
	}
	if err != nil {
		return err
	}
	return a.printBaseline(b.Table(), f.rejects, result)
}

// openBaseline prepares the baseline of a table of the resolved database.
func (a *app) openBaseline(ctx context.Context, table string, key []string, o adopt.BaselineOptions) (b baseline, close func(), err error) {
	archive, d, err := a.open(ctx, opening{role: "operator"})
	if err != nil {
		return nil, nil, err
	}
	close = archive.Close
	defer func() {
		if err != nil {
			close()
		}
	}()
	if _, err := archive.Autocommit().Head(ctx); err != nil { // says that the schema is not there
		return nil, nil, err
	}
	if d.postgres != "" {
		t, err := adopt.Describe(ctx, a.pool, table, key)
		if err != nil {
			return nil, nil, err
		}
		b, err = adopt.NewBaseline(ctx, a.pool, t, o)
		return b, close, err
	}
	file, err := sqlite.Open(ctx, a.env.path(d.path), sqlite.Config{})
	if err != nil {
		return nil, nil, err
	}
	close = func() { file.Close(); archive.Close() }
	b, err = adopt.NewSQLiteBaseline(ctx, file, table, key, o)
	return b, close, err
}

func (a *app) sayBaselinePlan(table string, f baselineFlags, plan adopt.BaselinePlan) {
	a.say(fmt.Sprintf("+ %s: %s of type %s, %d with events already, %d to take", safe(table), counted(plan.Rows, "row"), safe(f.kind),
		plan.Known, plan.Rows-plan.Known))
	if plan.Resumed {
		a.say(fmt.Sprintf("  goes on after %s, where an earlier run was stopped", counted(plan.Before.Rows(), "row")))
	}
	if plan.Guard == nil && a.pool != nil {
		a.say("warning: " + safe(table) + " is not guarded: what changes in it from now on is recorded by nobody. Guard first: rea guard add " + quote(table) + " --type " + quote(f.kind))
	}
}

func (a *app) printBaseline(table, rejects string, r adopt.BaselineResult) error {
	for _, reject := range r.First {
		a.say(fmt.Sprintf("row %s: %s", keyText(reject.Key), safe(oneLine.Replace(reject.Message))))
	}
	if r.Refused > 0 {
		a.say(fmt.Sprintf("%s cannot be taken, see %s", counted(r.Refused, "row"), safe(rejects)))
	}
	var err error
	if a.table() {
		_, err = fmt.Fprintf(a.env.Stdout, "%s: %s, %d new, %d with events already, %d refused\n", safe(table), counted(r.Rows(), "row"),
			r.New, r.Rows()-r.New-r.Refused, r.Refused)
	} else {
		row := struct {
			Table   string  `json:"table"`
			Rows    int64   `json:"rows"`
			New     int64   `json:"new"`
			Known   int64   `json:"already_known"`
			Refused int64   `json:"refused"`
			Rejects *string `json:"rejects_file"`
		}{Table: table, Rows: r.Rows(), New: r.New, Known: r.Rows() - r.New - r.Refused, Refused: r.Refused}
		if r.Refused > 0 {
			row.Rejects = &rejects
		}
		err = a.object(row)
	}
	if err == nil && r.Refused > 0 {
		return partialError{}
	}
	return err
}

// keyText is a key for people.
func keyText(key []*string) string {
	parts := make([]string, len(key))
	for i, value := range key {
		parts[i] = orNull(value)
	}
	return strings.Join(parts, "/")
}
