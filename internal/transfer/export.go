package transfer

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/realtime-event-archive/rea"
)

// ExportOptions say what Export writes. The zero value is everything, plain.
type ExportOptions struct {
	Filter rea.Filter
	Gzip   bool
	// Progress is told, now and then, up to which position the archive is written, and the last one. Nil: nobody.
	Progress func(position, head int64)
}

// Export writes the events that match, one line each, in position order, up to the last event that had
// committed when it was called, and says how many. Import of the lines into an empty archive and another
// Export give the same bytes, whichever the stores. Memory is bounded.
func Export(ctx context.Context, archive *rea.Archive, w io.Writer, options ExportOptions) (events int64, err error) {
	head, err := archive.CatchUp(ctx)
	if err != nil {
		return 0, err
	}
	finish := func() error { return nil }
	if options.Gzip {
		zipped := gzip.NewWriter(w)
		w, finish = zipped, zipped.Close // only at the end: what breaks off must not look whole
	}
	out := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	for e, err := range archive.Autocommit().History(ctx, options.Filter) {
		if err != nil {
			return events, err
		}
		if e.Position > head {
			break
		}
		line = AppendLine(line[:0], &e)
		if _, err := out.Write(line); err != nil {
			return events, fmt.Errorf("rea: export: write: %w", err)
		}
		if events++; options.Progress != nil && events%1000 == 0 {
			options.Progress(e.Position, head)
		}
	}
	if err := errors.Join(out.Flush(), finish()); err != nil {
		return events, fmt.Errorf("rea: export: write: %w", err)
	}
	if options.Progress != nil {
		options.Progress(head, head)
	}
	return events, ctx.Err()
}
