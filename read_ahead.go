package rea

import (
	"context"
)

// feedReader reads the feed for one projection, a page ahead of what is applied: the server reads while this program folds.
type feedReader struct {
	archive *Archive
	filter  FollowFilter
	next    *pageAhead
}

// pageAhead is a page that is being read.
type pageAhead struct {
	from, to Offset
	events   []Event
	err      error
	cancel   context.CancelFunc
	done     chan struct{}
}

func (a *Archive) feedReader(f Followed) *feedReader {
	return &feedReader{archive: a, filter: a.filter(f)}
}

// wait returns when nothing is being read. It comes before a transaction begins: who holds one connection must not wait for who wants
// another.
func (p *feedReader) wait() {
	if p.next != nil {
		<-p.next.done
	}
}

// close stops reading.
func (p *feedReader) close() {
	if p.next != nil {
		p.next.cancel()
		<-p.next.done
		p.next = nil
	}
}

// read is FollowPage. What is committed has its position for ever, so it does not matter when it was read. Where the page is full,
// the next one is read meanwhile.
func (p *feedReader) read(ctx context.Context, session FollowPager, from Offset, limit int) (events []Event, to Offset, err error) {
	ready := p.take(from, limit)
	if ready != nil {
		events, to = ready.events, ready.to
	} else if events, to, err = session.FollowPage(ctx, p.filter, from, limit); err != nil {
		return nil, from, err
	}
	if p.filter.Lean && to.Position-from.Position == int64(limit) {
		p.begin(ctx, to, limit)
	}
	return events, to, nil
}

// take gives the page after an offset where it was read.
func (p *feedReader) take(from Offset, limit int) *pageAhead {
	next := p.next
	if next == nil {
		return nil
	}
	p.close()
	if next.err != nil || next.from != from || next.to == from || next.to.Position-from.Position > int64(limit) {
		return nil
	}
	return next
}

func (p *feedReader) begin(ctx context.Context, from Offset, limit int) {
	next := &pageAhead{from: from, done: make(chan struct{})}
	ctx, next.cancel = context.WithCancel(ctx)
	p.next = next
	go func() {
		defer close(next.done)
		next.err = p.archive.store.Snapshot(ctx, func(session SnapshotSession) (err error) {
			next.events, next.to, err = session.FollowPage(ctx, p.filter, from, limit)
			return err
		})
	}()
}
