package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
and the exit code is 3; the first one is said. A step that the applied catalog does not
allow (illegal_step) is listed with event, status and legal events. To try them again,
once they are mended: jq -r .text FILE.rejects.ndjson > mended.ndjson, then import that.
The whole file again, mended, stores a second time what has neither seq nor idempotency_key.`,
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
	in := a.stdin(ctx)
	if name != "-" {
		file, err := os.Open(a.env.path(name))
		if err != nil {
			return err // names the file
		}
		defer file.Close()
		if err := differ(file, a.env.path(rejects)); err != nil {
			return err
		}
		in = file
	}
	archive, _, err := a.open(ctx, opening{role: "importer"})
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := a.mayImport(ctx); err != nil {
		return err
	}
	bar := a.newBar("import")
	result, err := transfer.Import(ctx, archive, in, transfer.ImportOptions{
		Name: filepath.Base(name), BatchLines: batch, Rejects: a.env.path(rejects),
		Progress: func(p transfer.Progress) { bar.set(p.Bytes, p.Size, fmt.Sprintf("%d lines", p.Lines)) },
	})
	bar.close()
	if err != nil {
		switch {
		case ctx.Err() == nil:
			return err
		case result.Lines == 0:
			return &stoppedError{"nothing is stored yet", err}
		}
		return &stoppedError{fmt.Sprintf("%s done with: the same command goes on from there", areLines(result.Lines)), err}
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
		a.sayRejected(name, rejects, result)
		return partialError{}
	}
	return nil
}

// differ refuses rejects that would be written over the lines that they are of.
func differ(file *os.File, rejects string) error {
	a, err := file.Stat()
	b, missing := os.Stat(rejects)
	if err == nil && missing == nil && os.SameFile(a, b) {
		return usagef("--rejects is the file that is imported: name another one")
	}
	return nil
}

func areLines(n int64) string {
	if n == 1 {
		return "1 line is"
	}
	return fmt.Sprintf("%d lines are", n)
}

// sayRejected says which the first rejected line is, and where all of them are, as far as they are somewhere.
func (a *app) sayRejected(name, rejects string, r transfer.ImportResult) {
	if first := r.FirstReject; first.Line > 0 {
		a.say(fmt.Sprintf("line %d: %s", first.Line, safe(oneLine.Replace(strings.TrimPrefix(first.Message, "rea: ")))))
	}
	lines := counted(r.Rejected, "line") + " rejected"
	switch missing := r.Rejected - r.InRejects; {
	case missing == 0 && r.From == r.Lines:
		a.say(fmt.Sprintf("%s by the earlier import, see %s", lines, safe(rejects)))
	case missing == 0:
		a.say(fmt.Sprintf("%s, see %s", lines, safe(rejects)))
		a.say(fmt.Sprintf("next: jq -r .text %s > mended.ndjson, mend it, rea import mended.ndjson", quote(rejects)))
	case r.InRejects > 0:
		a.say(fmt.Sprintf("%s, see %s for %d of them: an earlier run put the others elsewhere", lines, safe(rejects), r.InRejects))
	default:
		a.say(fmt.Sprintf("%s by the earlier import, and not in %s. To see why, import into a new database:\n"+
			"  rea --db sqlite:try.db migrate up && rea --db sqlite:try.db import %s", lines, safe(rejects), quote(name)))
	}
}

func (a *app) printImport(name, rejects string, r transfer.ImportResult) error {
	// All that this run did not store, and that is stored.
	before := r.Stored - r.New + r.Duplicates
	if a.table() {
		_, err := fmt.Fprintf(a.env.Stdout, "%s: %s, %d new, %d already stored, %d rejected\n",
			safe(name), counted(r.Lines, "line"), r.New, before, r.Rejected)
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
	if r.InRejects > 0 {
		row.Rejects = &rejects
	}
	return a.object(row)
}
