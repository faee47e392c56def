package cli

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea/adopt"
	"github.com/realtime-event-archive/rea/sqlite"
)

func (a *app) catalogInferCommand() *cobra.Command {
	var kind, status string
	var key []string
	cmd := &cobra.Command{
		Use:   "infer TABLE",
		Short: "Write a catalog to begin with, from a table and its rows' events",
		Long: `Print a rea.yaml on standard output: the statuses that the table's rows have, with how many of
them, and, where a guard has captured changes, the steps from one status to another that were seen,
each under a suggested name. What cannot be a status, is rare or NULL stands there as a
comment. Nothing is written to the database.

Type and key are those of the table's guard, else of its baseline.`,
		Example: `  rea catalog infer orders --type order --status status > rea.yaml
  rea catalog check`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if status == "" {
				return usagef("--status is missing: name the column that is the status")
			}
			return a.inferCatalog(cmd.Context(), args[0], kind, key, status)
		},
	}
	cmd.Flags().StringVar(&kind, "type", "", "aggregate type of the rows' objects (the guard's, or the baseline's)")
	cmd.Flags().StringSliceVar(&key, "id", nil, "columns that make the aggregate's id (the guard's, or the baseline's)")
	cmd.Flags().StringVar(&status, "status", "", "column that is the status")
	return cmd
}

func (a *app) inferCatalog(ctx context.Context, table, kind string, key []string, status string) error {
	archive, d, err := a.open(ctx, opening{role: "reader"})
	if err != nil {
		return err
	}
	defer archive.Close()
	if _, err := archive.Autocommit().Head(ctx); err != nil { // says that the schema is not there
		return err
	}
	known, columns, file, err := a.knownTable(ctx, d, table)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
	}
	if kind = cmp.Or(kind, known); kind == "" {
		return noType(table)
	}
	if len(key) == 0 {
		key = columns
	}
	var in *adopt.Inferred
	if file != nil {
		in, err = adopt.InferSQLite(ctx, file, table, kind, status)
	} else {
		var t *adopt.Table
		if t, err = adopt.Describe(ctx, a.pool, table, key); err == nil {
			in, err = adopt.Infer(ctx, a.pool, t, kind, status)
		}
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.env.Stdout, in.YAML())
	return err
}

// knownTable says as what a table is guarded, or its baseline taken. file is the archive's, on SQLite.
func (a *app) knownTable(ctx context.Context, d database, table string) (kind string, key []string, file *sqlite.Archive, err error) {
	if d.postgres != "" {
		kind, key, err = adopt.Known(ctx, a.pool, table)
		return kind, key, nil, err
	}
	if file, err = sqlite.Open(ctx, a.env.path(d.path), sqlite.Config{}); err != nil {
		return "", nil, nil, err
	}
	if kind, key, err = adopt.KnownSQLite(ctx, file, table); err != nil {
		file.Close()
	}
	return kind, key, file, err
}

func noType(table string) error {
	return usagef("%s has neither a guard nor a baseline: name what its rows are with --type", safe(table))
}
