package rea

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// Filter selects events of the whole archive. The zero value selects all. Texts match byte by byte, prefixes
// literally (no wildcard has a meaning), and several conditions must all hold.
type Filter struct {
	Type        string // aggregate type
	ID          string // aggregate id
	TypePrefix  string // beginning of the aggregate type
	Event       string // event type
	EventPrefix string // beginning of the event type
	Actor       string
	Reason      string // found anywhere in the reason
	Correlation string
	XID         string
	Context     int64     // id of a context; 0: any, and none
	Since       time.Time // created_at not before; zero: no bound
	Until       time.Time // created_at before; zero: no bound
	After       int64     // position above this one
	Limit       int       // at most so many events; 0: all
	Catalog     *Catalog  // Event stands for its old names in this catalog too; nil: for itself alone
}

// Selective reports whether f leaves events out by anything but their position.
func (f Filter) Selective() bool {
	f.After, f.Limit, f.Catalog = 0, 0, nil
	return f != Filter{}
}

// Aliases gives the names under which Event is selected beside its own.
func (f Filter) Aliases() []string { return f.Catalog.Aliases(f.Type, f.Event) }

// check refuses what the two stores would read differently: texts that no event has, and times that no event has.
func (f Filter) check() error {
	for _, text := range []struct{ what, value string }{
		{"type", f.Type}, {"id", f.ID}, {"type prefix", f.TypePrefix}, {"event", f.Event}, {"event prefix", f.EventPrefix},
		{"actor", f.Actor}, {"reason", f.Reason}, {"correlation", f.Correlation}, {"xid", f.XID},
	} {
		if err := checkReason(text.value); err != nil {
			return &LimitError{What: "filter " + text.what, Problem: "is no text of an event: at most 4096 bytes of UTF-8 without U+0000"}
		}
	}
	for _, bound := range []time.Time{f.Since, f.Until} {
		if y := bound.UTC().Year(); !bound.IsZero() && (y < 1 || y > 9999) {
			return &LimitError{What: "filter time", Problem: "is outside the years 1 to 9999"}
		}
	}
	if f.After < 0 || f.Limit < 0 || f.Context < 0 {
		return &LimitError{What: "filter after, limit and context", Problem: "count from 0"}
	}
	return nil
}

// scanEvents is how many positions a selective filter looks at in one statement: enough to be quick over
// a range without matches, few enough to end well within a statement_timeout.
const scanEvents = 5_000

// Events yields the events of one aggregate with seq > after, by seq. It reads a page at a time and holds
// no rows open while the caller's code runs. An aggregate without events yields nothing.
func (tx *Tx) Events(ctx context.Context, aggregate Ref, after int64) iter.Seq2[Event, error] {
	return tx.events(ctx, aggregate, after, false)
}

// foldPages is how many times larger than Config.PageEvents the pages of a fold are. They hold less, and larger ones are
// not faster (bench load).
const foldPages = 2

// pages are used again: growing one takes longer than reading the events into it.
var pages = sync.Pool{New: func() any { return new([]Event) }}

// pageKept is how many events a page may have room for that is kept, some 300 bytes each.
const pageKept = 4_000

// events is Events. folding: what a fold does not need is left out.
func (tx *Tx) events(ctx context.Context, aggregate Ref, after int64, folding bool) iter.Seq2[Event, error] {
	return tx.paged(ctx, aggregate, after, folding, tx.session.Events)
}

// paged is events with a way of its own to read the first page.
func (tx *Tx) paged(ctx context.Context, aggregate Ref, after int64, folding bool,
	read func(context.Context, Stretch, []Event) ([]Event, bool, error)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := tx.readable(ctx, aggregate); err != nil {
			yield(Event{}, err)
			return
		}
		buffer := pages.Get().(*[]Event)
		page, used := *buffer, 0
		defer func() {
			if clear(page[:used]); cap(page) <= pageKept {
				*buffer = page[:0]
				pages.Put(buffer)
			}
		}()
		asked := Stretch{Aggregate: aggregate, After: after, Limit: tx.archive.config.PageEvents, Folding: folding}
		if folding {
			asked.Limit *= foldPages
		}
		for more := true; more; {
			got, further, err := read(ctx, asked, page[:0])
			if err != nil {
				page, used = nil, 0 // not used again: what stands in it is not known
				yield(Event{}, err)
				return
			}
			page, used, more, read = got, max(used, len(got)), further, tx.session.Events
			for i := range page { // an Event is large: it is copied once
				asked.After = page[i].Seq
				if !yield(page[i], nil) {
					return
				}
			}
		}
	}
}

// History yields the numbered events of the whole archive that match filter, by position, a page at a time.
// Events that have committed since the last pass have no position yet: Archive.CatchUp first gives them one.
func (tx *Tx) History(ctx context.Context, filter Filter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := filter.check(); err != nil {
			yield(Event{}, err)
			return
		}
		if err := tx.session.Ready(ctx, false); err != nil {
			yield(Event{}, err)
			return
		}
		tx.scan(ctx, &filter, yield)
	}
}

// scan moves filter.After over all that it has looked at. It reports false where yield did, or on an error.
func (tx *Tx) scan(ctx context.Context, filter *Filter, yield func(Event, error) bool) bool {
	left := filter.Limit
	for {
		size := tx.archive.config.PageEvents
		if filter.Selective() {
			size = scanEvents
		} else if filter.Limit > 0 {
			size = min(size, left)
		}
		page, last, err := tx.session.Page(ctx, *filter, filter.After, size)
		if err != nil {
			yield(Event{}, err)
			return false
		}
		for _, e := range page {
			filter.After = e.Position
			if !yield(e, nil) {
				return false
			}
			if left--; filter.Limit > 0 && left == 0 {
				return false
			}
		}
		if last == filter.After && len(page) == 0 {
			return true
		}
		filter.After = last
	}
}

// Head is the position of the last numbered event; 0: none.
func (tx *Tx) Head(ctx context.Context) (int64, error) {
	if err := tx.session.Ready(ctx, false); err != nil {
		return 0, err
	}
	return tx.session.Head(ctx)
}

// Count is the number of stored events, numbered or not.
func (tx *Tx) Count(ctx context.Context) (int64, error) {
	if err := tx.session.Ready(ctx, false); err != nil {
		return 0, err
	}
	return tx.session.Count(ctx)
}

func (tx *Tx) readable(ctx context.Context, aggregate Ref) error {
	if err := checkNames(aggregate, "", "", "", ""); err != nil {
		return err
	}
	return tx.session.Ready(ctx, false)
}

// Follow yields what History does and then goes on with what commits later, numbering it, until ctx ends
// (then it yields nothing more) or filter.Limit is reached. Lost connections are its caller's to retry, from
// the last position that it saw.
func (a *Archive) Follow(ctx context.Context, filter Filter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := filter.check(); err != nil {
			yield(Event{}, err)
			return
		}
		tx := a.Autocommit()
		given := 0
		counted := func(e Event, err error) bool {
			if err == nil {
				given++
			} else if ctx.Err() != nil {
				return false
			}
			return yield(e, err)
		}
		limit := filter.Limit
		for ctx.Err() == nil {
			n, _, err := a.Number(ctx)
			if err != nil && !errors.Is(err, ErrReadOnly) && !errors.Is(err, ErrNewerSchema) {
				counted(Event{}, err)
				return
			}
			if limit > 0 {
				filter.Limit = limit - given
			}
			if !tx.scan(ctx, &filter, counted) {
				return
			}
			if n == 0 && !pause(ctx, a.config.PollEvery) {
				return
			}
		}
	}
}
