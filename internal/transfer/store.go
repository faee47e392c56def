package transfer

import (
	"cmp"
	"context"
	"slices"

	"github.com/realtime-event-archive/rea"
)

// beforeCommit is called in each transaction of an import, when all but the commit is done. Tests kill here.
var beforeCommit = func() {}

// store stores a batch, and records that it is stored, in one transaction.
func (im *importer) store(ctx context.Context, b *batch) error {
	var next rea.ImportProgress
	lines := make([]rea.Line, len(b.parsed))
	err := im.archive.Do(ctx, func(tx *rea.Tx) error { // may run more than once
		found, err := tx.ImportProgress(ctx, im.source.hash)
		if err != nil {
			return err
		}
		if found.Lines != im.progress.Lines || found.Done {
			return ErrBusy
		}
		for i := range b.parsed {
			lines[i] = b.parsed[i].line
		}
		var results []rea.LineResult
		if len(lines) > 0 {
			if results, err = tx.Import(ctx, lines); err != nil {
				return err
			}
		}
		next = im.progress
		next.Lines, next.Done = b.lines, b.last
		list := tally(&next, b, results)
		if err := im.rejects.write(list); err != nil {
			return err
		}
		if err := tx.SaveImportProgress(ctx, next); err != nil {
			return err
		}
		beforeCommit()
		return nil
	})
	if err != nil {
		return err
	}
	if err := im.rejects.committed(); err != nil {
		return err
	}
	im.result.New += next.Stored - im.progress.Stored
	im.progress = next
	if im.options.Progress != nil {
		im.options.Progress(Progress{Lines: b.lines, Bytes: b.bytes, Size: im.source.size})
	}
	return nil
}

// tally adds the results of a batch to p, and gives its rejects by line number.
func tally(p *rea.ImportProgress, b *batch, results []rea.LineResult) []Reject {
	list := slices.Clone(b.rejects)
	for i, result := range results {
		switch {
		case result.Err != nil:
			list = append(list, newReject(b.parsed[i].number, cmp.Or(rea.Code(result.Err), "refused"), result.Err, b.parsed[i].text))
		case result.Duplicate:
			p.Duplicates++
		default:
			p.Stored++
		}
	}
	p.Rejected += int64(len(list))
	slices.SortFunc(list, func(a, b Reject) int { return cmp.Compare(a.Line, b.Line) })
	return list
}
