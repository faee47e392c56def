package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/realtime-event-archive/rea"
)

// group lets appends that wait for the same turn share one transaction, and so one write to the disk: whoever gets
// the turn takes all that wait along. Each is refused or stored by itself, and none is answered before the commit.
type group struct {
	mu      sync.Mutex
	waiting []*waiter
}

type waiter struct {
	call    rea.Call
	ctx     context.Context
	receipt rea.Receipt
	err     error
	done    chan struct{} // closed when receipt or err is there
}

// maxGroup bounds how many calls share a transaction, and with it how long the first of them waits.
const maxGroup = 256

func (g *group) append(ctx context.Context, s *store, call rea.Call) (rea.Receipt, error) {
	w := &waiter{call: call, ctx: ctx, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()

	deadline := time.Now().Add(s.busy)
	timer := time.NewTimer(s.busy)
	defer timer.Stop()
	for {
		var gaveUp error
		select {
		case <-w.done:
			return w.receipt, w.err
		case s.writer.turn <- struct{}{}:
			if gaveUp = s.writer.beginInTurn(ctx, deadline); gaveUp == nil {
				g.run(s) // takes w along, unless too many came before it
			}
		case <-ctx.Done():
			gaveUp = ctx.Err()
		case <-timer.C:
			gaveUp = &BusyError{Wait: s.busy}
		}
		if gaveUp != nil && g.leave(w) {
			return rea.Receipt{}, s.mapError("append to "+call.Aggregate.String(), gaveUp)
		}
		if gaveUp != nil {
			<-w.done // somebody has taken it along
		}
	}
}

// leave takes w out of the queue, and reports false where it is not there any more.
func (g *group) leave(w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.waiting {
		if other == w {
			g.waiting = append(g.waiting[:i:i], g.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (g *group) take() []*waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := g.waiting[:min(len(g.waiting), maxGroup)]
	g.waiting = append([]*waiter(nil), g.waiting[len(taken):]...)
	return taken
}

// run appends what waits, in the transaction that has begun, and ends it. Where one call ended it for all, the
// others run in another one.
func (g *group) run(s *store) {
	taken := g.take()
	defer func() {
		for _, w := range taken { // also after a panic, which must not leave anybody waiting
			close(w.done)
		}
	}()
	for rest := s.appendAll(taken); len(rest) > 0; rest = s.appendAll(rest) {
		if err := s.writer.begin(context.Background()); err != nil {
			for _, w := range rest {
				w.receipt, w.err = rea.Receipt{}, s.mapError("append to "+w.call.Aggregate.String(), err)
			}
			return
		}
	}
}

// appendAll gives those of list that it took back because another one ended the transaction.
func (s *store) appendAll(list []*waiter) (again []*waiter) {
	shared := &ownSession{session: session{store: s, db: s.writer}}
	defer func() { _ = shared.Rollback(context.Background()) }()
	stored := false
	for i, w := range list {
		if w.err = w.ctx.Err(); w.err != nil {
			continue
		}
		shared.first = 0 // an xid of its own
		w.receipt, w.err = shared.Append(context.WithoutCancel(w.ctx), w.call)
		if shared.lost {
			for _, before := range list[:i] {
				if before.err == nil {
					again = append(again, before)
				}
			}
			return append(again, list[i+1:]...)
		}
		stored = stored || w.err == nil
	}
	if !stored {
		return nil
	}
	if err := shared.Commit(context.Background()); err != nil {
		for _, w := range list {
			if w.err == nil {
				w.receipt, w.err = rea.Receipt{}, err
			}
		}
	}
	return nil
}
