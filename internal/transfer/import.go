package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/realtime-event-archive/rea"
)

// ImportOptions say how an import runs. The zero value works.
type ImportOptions struct {
	// Name of the file, for people: it is recorded in rea.imports.
	Name string
	// BatchLines is how many lines are stored in one transaction. 0: 5,000.
	BatchLines int
	// Rejects is the file that takes the lines that are not stored. "": they are counted only.
	Rejects string
	// Progress is told after each batch. Nil: nobody.
	Progress func(Progress)
}

// Progress says how far an import has come.
type Progress struct {
	Lines       int64 // done with
	Bytes, Size int64 // done with, and in all, decompressed
}

// ImportResult is what became of the lines of a file, over all its runs. Empty lines are counted in Lines alone.
type ImportResult struct {
	Lines      int64
	Stored     int64
	Duplicates int64 // stored before, by another file or another writer
	Rejected   int64
	New        int64 // of Stored, by this run
	From       int64 // lines that earlier runs had done
	Done       bool

	InRejects   int64  // of Rejected, that are in the file of rejects
	FirstReject Reject // the first of these, without its text; Line is 0 where none is
}

// ErrBusy says that another process is importing the same content.
var ErrBusy = errors.New("rea: import: another process is importing the same content: wait for it, then run this again to see the result")

// maxBatchBytes ends a batch of large lines early, which bounds memory.
const maxBatchBytes = 8 << 20

// importer is one run over one file.
type importer struct {
	archive  *rea.Archive
	options  ImportOptions
	source   *source
	progress rea.ImportProgress
	rejects  *rejects
	result   ImportResult
}

// Import stores the lines of r, NDJSON or gzip of it. The content is known by its hash: an import that was
// stopped goes on where its last committed batch ended, and one that is finished stores nothing again. Lines
// of another content are stored once if they have a seq or a key, and as new events otherwise. A line that
// cannot be stored goes to the rejects, and the others go on. Empty lines and a byte order mark are passed
// over. Memory is bounded. Errors: ErrBusy, *NotRejectsError, and those of the archive; what was committed stays.
func Import(ctx context.Context, archive *rea.Archive, r io.Reader, options ImportOptions) (ImportResult, error) {
	if options.BatchLines <= 0 {
		options.BatchLines = 5_000
	}
	// The schema is looked at first: hashing a large file to learn that there is none helps nobody.
	if _, err := archive.Autocommit().Head(ctx); err != nil {
		return ImportResult{}, err
	}
	src, err := open(ctx, r)
	if err != nil {
		return ImportResult{}, err
	}
	defer src.close()
	im := &importer{archive: archive, options: options, source: src}
	if im.progress, err = archive.Autocommit().ImportProgress(ctx, src.hash); err != nil {
		return ImportResult{}, err
	}
	im.progress.Source, im.progress.Name = src.hash, options.Name
	im.result.From = im.progress.Lines
	if im.progress.Done {
		im.result.InRejects, im.result.FirstReject = rejectsAt(options.Rejects, src.hash, im.progress.Rejected)
	} else {
		err = im.run(ctx)
	}
	p := im.progress
	im.result.Lines, im.result.Stored, im.result.Duplicates, im.result.Rejected, im.result.Done = p.Lines, p.Stored, p.Duplicates, p.Rejected, p.Done
	return im.result, err
}

func (im *importer) run(ctx context.Context) (err error) {
	if im.rejects, err = openRejects(im.options.Rejects, im.source.hash, im.progress.Lines); err != nil {
		return err
	}
	defer func() {
		im.result.InRejects, im.result.FirstReject = im.rejects.count, im.rejects.first
		err = errors.Join(err, im.rejects.close())
	}()

	ctx, cancel := context.WithCancelCause(ctx)
	batches := make(chan *batch, 1)
	read, done := make(chan struct{}), im.progress.Lines
	defer func() { cancel(nil); <-read }()
	go func() { // reads and parses ahead of the database
		defer close(read)
		defer close(batches)
		if err := im.read(ctx, done, batches); err != nil {
			cancel(err)
		}
	}()
	for b := range batches {
		if err := im.store(ctx, b); err != nil {
			if context.Cause(ctx) != nil {
				break // which is why
			}
			return err
		}
	}
	if cause := context.Cause(ctx); cause == errChanged {
		return fmt.Errorf("%w: %d lines of it are stored, and of these, those without seq or idempotency_key would be stored a second time if the changed file is imported", cause, im.progress.Stored)
	} else if cause != nil {
		return cause
	}
	return nil
}

var errChanged = errors.New("rea: import: the file has changed while it was read")

// batch is what one transaction stores.
type batch struct {
	parsed  []parsed
	rejects []Reject // lines that are wrong by themselves
	lines   int64    // the number of its last line
	bytes   int64    // read up to there
	last    bool
}

// parsed is a line that may be stored. Its text is kept in case the database refuses it.
type parsed struct {
	number int64
	text   []byte
	line   rea.Line
}

// read sends the lines after the first done ones, in batches, the last one marked.
func (im *importer) read(ctx context.Context, done int64, batches chan<- *batch) error {
	content, err := im.source.reader(ctx)
	if err != nil {
		return fmt.Errorf("rea: import: read: %w", err)
	}
	in := newLines(content)
	b := &batch{}
	var size int64
	send := func() bool {
		b.lines, b.bytes = in.number, in.read
		select {
		case batches <- b:
			b, size = &batch{}, 0
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		text, n, err := in.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("rea: import: read line %d: %w", in.number+1, err)
		}
		if in.number <= done {
			continue
		}
		b.add(in.number, text, n)
		if size += n; size >= maxBatchBytes || len(b.parsed)+len(b.rejects) >= im.options.BatchLines {
			if !send() {
				return nil
			}
		}
	}
	if content.sum() != im.source.hash {
		return errChanged
	}
	b.last = true
	send()
	return nil
}

func (b *batch) add(number int64, text []byte, size int64) {
	if text == nil {
		b.rejects = append(b.rejects, newReject(number, "limit", &rea.LimitError{
			What: "line", Limit: MaxLineBytes, Problem: fmt.Sprintf("is %d bytes long, the limit is %d", size, MaxLineBytes),
		}, nil))
		return
	}
	if s := (scanner{src: text}); s.next() == 0 && s.pos == len(text) {
		return // empty
	}
	line, err := ParseLine(text)
	if err != nil {
		reject := newReject(number, rea.Code(err), err, text)
		for _, problem := range []string{"a line must", "unknown field", "the field "} { // of the line, not of its payload
			if rest, ok := strings.CutPrefix(reject.Message, "rea: payload at $: "+problem); ok {
				reject.Message = "rea: " + problem + rest
			}
		}
		b.rejects = append(b.rejects, reject)
		return
	}
	b.parsed = append(b.parsed, parsed{number, text, line})
}
