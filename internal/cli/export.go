package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/transfer"
)

func (a *app) exportCommand() *cobra.Command {
	var zip, force bool
	var f filterFlags
	cmd := &cobra.Command{
		Use:   "export [FILE | -]",
		Short: "Write events as NDJSON, in the form that import takes",
		Long: `Write all events, or those that match, as NDJSON in position order, up to the last one
that had committed at the start. Import into an empty archive and another export give the
same bytes, whichever the databases. A FILE appears when it is complete; one that ends in
.gz is written as gzip. One that exists is refused (exit code 4) unless --force is given;
the database itself always is.

Whole aggregates can be imported elsewhere: those of --type, and the first ones of --limit.
Other conditions leave events out between, for which an import rejects those behind them.`,
		Example: `  rea export events.ndjson.gz
  rea export --type order > orders.ndjson
  rea export today.ndjson --since 2024-06-01T00:00:00Z --force`,
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter(cmd)
			if err != nil {
				return err
			}
			if filter.Event != "" {
				if filter.Catalog, err = a.catalog(); err != nil {
					return err
				}
			}
			name := "-"
			if len(args) == 1 {
				name = args[0]
			}
			switch {
			case f.after.head:
				return usagef("--after head is for rea log --follow: nothing is there yet")
			case a.format == formatJSON || cmd.Flags().Changed("output") && a.table():
				return usagef("an export is always NDJSON: leave --json and -o out, or use rea log --json")
			}
			options := transfer.ExportOptions{Filter: filter, Gzip: zip || strings.HasSuffix(name, ".gz")}
			return a.export(cmd, name, force, options)
		},
	}
	cmd.Flags().BoolVar(&zip, "gzip", false, "compress")
	cmd.Flags().BoolVar(&force, "force", false, "write over a file that exists")
	f.add(cmd)
	return cmd
}

func (a *app) export(cmd *cobra.Command, name string, force bool, options transfer.ExportOptions) error {
	ctx := cmd.Context()
	archive, d, err := a.open(ctx, opening{role: "reader", page: 2_000})
	if err != nil {
		return err
	}
	defer archive.Close()
	if name != "-" {
		if err := a.mayWrite(name, d, force); err != nil {
			return err
		}
	}
	if leavesHoles(options.Filter) {
		a.say("note: the conditions leave events out between these, so that another archive will reject them; --type takes whole aggregates")
	}
	bar := a.newBar("export")
	if name != "-" || !a.env.IsTerminal(a.env.Stdout) { // where the events themselves are seen, a bar is in the way
		options.Progress = func(position, head int64) { bar.set(position, head, fmt.Sprintf("position %d", position)) }
	}
	var events int64
	var left *transfer.LeftOutError
	err = a.toFile(name, force, func(w io.Writer) error {
		events, err = transfer.Export(ctx, archive, w, options)
		if errors.As(err, &left) {
			return nil // what is written is whole by itself
		}
		return err
	})
	bar.close()
	if err != nil {
		return err
	}
	a.say(counted(events, "event") + " written")
	if left != nil {
		a.say(fmt.Sprintf("the server takes no writes: %s without a position left out", counted(left.Events, "event")))
		return partialError{}
	}
	return nil
}

// leavesHoles reports whether a filter may leave out an event in front of one that it takes, of the same aggregate.
func leavesHoles(f rea.Filter) bool {
	f.Type, f.TypePrefix, f.ID, f.Limit = "", "", "", 0
	return f != rea.Filter{}
}

// mayWrite protects what is there: the archive itself, always, and any other file without force.
func (a *app) mayWrite(name string, d database, force bool) error {
	path := a.env.path(name)
	if d.postgres == "" && isDatabase(path, a.env.path(d.path)) {
		return &refusedError{name + " is the open database: name another file"}
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &refusedError{name + " is a folder: name a file in it"}
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&(os.ModeDevice|os.ModeNamedPipe) == 0 && !force {
		return exists(name)
	}
	return nil
}

func exists(name string) error {
	return &refusedError{name + " exists: name another file, or add --force"}
}

// isDatabase reports whether path is the SQLite file, or one of those that SQLite keeps beside it, under any name.
func isDatabase(path, database string) bool {
	target, err := os.Stat(path)
	if real, linked := filepath.EvalSymlinks(database); linked == nil {
		database = real // beside which the others are
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		file, missing := os.Stat(database + suffix)
		if err == nil && missing == nil && os.SameFile(target, file) || filepath.Clean(path) == database+suffix {
			return true
		}
	}
	return false
}

// toFile lets write fill the file of a name, which appears when write is done, in place of an older one with force.
func (a *app) toFile(name string, force bool, write func(io.Writer) error) (err error) {
	if name == "-" {
		return write(a.env.Stdout)
	}
	path := a.env.path(name)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a device, a pipe
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err // names the file
		}
		return errors.Join(write(file), file.Close())
	}
	// Not os.CreateTemp, whose files nobody else may read.
	file, err := os.OpenFile(path+".part", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return &refusedError{name + ".part exists: another export writes it, or was killed: wait for it, or remove it"}
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", name, errors.Unwrap(err)) // without the name of the part
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	if err := errors.Join(write(file), file.Sync(), file.Close()); err != nil {
		return err
	}
	if !force { // a file that has come meanwhile stays, where the file system has links
		switch err := os.Link(file.Name(), path); {
		case err == nil:
			return os.Remove(file.Name())
		case errors.Is(err, os.ErrExist):
			return exists(name)
		}
	}
	return os.Rename(file.Name(), path)
}
