package transfer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
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
// Export give the same bytes, whichever the stores. Memory is bounded. *LeftOutError: all is written that has a position.
func Export(ctx context.Context, archive *rea.Archive, w io.Writer, options ExportOptions) (events int64, err error) {
	head, err := archive.CatchUp(ctx)
	if errors.Is(err, rea.ErrReadOnly) || errors.Is(err, rea.ErrNewerSchema) {
		var stored int64
		if stored, err = archive.Autocommit().Count(ctx); err != nil {
			return 0, err
		}
		if stored > head { // positions have no holes
			defer func() {
				if err == nil {
					err = &LeftOutError{Events: stored - head}
				}
			}()
		}
	} else if err != nil {
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
		if !oneLine(e.Payload) || e.Metadata != nil && !oneLine(e.Metadata) {
			return events, fmt.Errorf("rea: export: %s at seq %d is damaged: its payload or metadata is no JSON on one line", e.Aggregate, e.Seq)
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

// oneLine protects the format from what another program has stored.
func oneLine(b []byte) bool { return !bytes.ContainsAny(b, "\r\n") && json.Valid(b) }

// LeftOutError says that the server takes no writes, so that the newest events got no position and are not written.
type LeftOutError struct{ Events int64 }

func (e *LeftOutError) Error() string {
	return fmt.Sprintf("rea: export: the server takes no writes: %d events without a position are left out", e.Events)
}
