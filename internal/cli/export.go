package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/transfer"
)

func (a *app) exportCommand() *cobra.Command {
	var zip bool
	var f filterFlags
	cmd := &cobra.Command{
		Use:   "export [FILE | -]",
		Short: "Write events as NDJSON, in the form that import takes",
		Long: `Write all events, or those that match, as NDJSON in position order, up to the last one
that had committed at the start. Import into an empty archive and another export give the
same bytes, whichever the databases. A FILE appears when it is complete; one that ends in
.gz is written as gzip.`,
		Example: `  rea export > events.ndjson
  rea export orders.ndjson.gz --type order --since 2024-06-01T00:00:00Z`,
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
			options := transfer.ExportOptions{Filter: filter, Gzip: zip || strings.HasSuffix(name, ".gz")}
			return a.export(cmd, name, options)
		},
	}
	cmd.Flags().BoolVar(&zip, "gzip", false, "compress")
	f.add(cmd)
	return cmd
}

func (a *app) export(cmd *cobra.Command, name string, options transfer.ExportOptions) error {
	ctx := cmd.Context()
	archive, _, err := a.openWith(ctx, false, "", rea.Config{PageEvents: 2_000})
	if err != nil {
		return err
	}
	defer archive.Close()
	bar := a.newBar("export")
	if name != "-" || !a.env.IsTerminal(a.env.Stdout) { // where the events themselves are seen, a bar is in the way
		options.Progress = func(position, head int64) { bar.set(position, head, fmt.Sprintf("position %d", position)) }
	}
	var events int64
	err = a.toFile(name, func(w io.Writer) error {
		events, err = transfer.Export(ctx, archive, w, options)
		return err
	})
	bar.close()
	if err != nil {
		return err
	}
	a.say(fmt.Sprintf("%d events written", events))
	return nil
}

// toFile lets write fill the file of a name, which appears, or replaces an older one, when write is done.
func (a *app) toFile(name string, write func(io.Writer) error) (err error) {
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
	file, err := os.OpenFile(fmt.Sprintf("%s.%d.part", path, os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
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
	return os.Rename(file.Name(), path)
}
