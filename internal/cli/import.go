package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea/internal/transfer"
)

func (a *app) importCommand() *cobra.Command {
	var rejects string
	var batch int
	cmd := &cobra.Command{
		Use:   "import {FILE | -}",
		Short: "Store events from NDJSON, plain or gzip",
		Long: `Store events from NDJSON, one event a line, plain or gzip; - reads standard input.

Fields: aggregate_type, aggregate_id, event_type (these are required), event_version, seq,
payload, actor_id, reason, correlation_id, idempotency_key, key_events, metadata, created_at,
correction. An unknown field rejects its line. Empty lines are passed over.

The file is known by the hash of its content. An import that was stopped or killed goes on
where it was when the same command runs again; a finished one stores nothing again. In
another file, a line with seq or idempotency_key that is stored already counts as such,
and a line without either is a new event.

Lines that cannot be stored go to the rejects file, with number, code, message and text,
and the exit code is 3. To try them again: jq -r .text FILE.rejects.ndjson | rea import -`,
		Example: `  rea import events.ndjson.gz
  zcat events.ndjson.gz | rea import - --rejects bad.ndjson`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if batch < 1 || batch > 100_000 {
				return usagef("--batch is 1 to 100000 lines, not %d", batch)
			}
			if cmd.Flags().Changed("rejects") && rejects == "" {
				return usagef("--rejects is empty: leave it out, or name a file")
			}
			if rejects == "" {
				rejects = args[0] + ".rejects.ndjson"
				if args[0] == "-" {
					rejects = "stdin.rejects.ndjson"
				}
			}
			return a.importFile(cmd, args[0], rejects, batch)
		},
	}
	cmd.Flags().StringVar(&rejects, "rejects", "", "file for lines that cannot be stored (FILE.rejects.ndjson)")
	cmd.Flags().IntVar(&batch, "batch", 5_000, "lines a transaction")
	return cmd
}

func (a *app) importFile(cmd *cobra.Command, name, rejects string, batch int) error {
	ctx := cmd.Context()
	var in io.Reader = a.env.Stdin
	if name != "-" {
		file, err := os.Open(a.env.path(name))
		if err != nil {
			return err // names the file
		}
		defer file.Close()
		in = file
	}
	archive, _, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer archive.Close()
	bar := a.newBar("import")
	result, err := transfer.Import(ctx, archive, in, transfer.ImportOptions{
		Name: filepath.Base(name), BatchLines: batch, Rejects: a.env.path(rejects),
		Progress: func(p transfer.Progress) { bar.set(p.Bytes, p.Size, fmt.Sprintf("%d lines", p.Lines)) },
	})
	bar.close()
	if err != nil {
		if ctx.Err() != nil {
			return &stoppedError{fmt.Sprintf("%d lines are done with: the same command goes on from there", result.Lines), err}
		}
		return err
	}
	if result.From > 0 && result.New == 0 && result.From == result.Lines {
		a.say("this content was imported before")
	} else if result.From > 0 {
		a.say(fmt.Sprintf("went on after line %d, where an earlier import was stopped", result.From))
	}
	if err := a.printImport(name, rejects, result); err != nil {
		return err
	}
	if result.Rejected > 0 {
		a.say(fmt.Sprintf("%d lines were rejected, see %s", result.Rejected, safe(rejects)))
		return partialError{}
	}
	return nil
}

func (a *app) printImport(name, rejects string, r transfer.ImportResult) error {
	// All that this run did not store, and that is stored.
	before := r.Stored - r.New + r.Duplicates
	if a.table() {
		_, err := fmt.Fprintf(a.env.Stdout, "%s: %d lines, %d new, %d already stored, %d rejected\n",
			safe(name), r.Lines, r.New, before, r.Rejected)
		return err
	}
	row := struct {
		File     string  `json:"file"`
		Lines    int64   `json:"lines"`
		New      int64   `json:"new"`
		Stored   int64   `json:"already_stored"`
		Rejected int64   `json:"rejected"`
		Rejects  *string `json:"rejects_file"`
	}{File: name, Lines: r.Lines, New: r.New, Stored: before, Rejected: r.Rejected}
	if r.Rejected > 0 {
		row.Rejects = &rejects
	}
	return a.object(row)
}
