package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/realtime-event-archive/rea"
)

// The delay between tries to reach a lost database grows from the first to the second.
const (
	firstDelay = 500 * time.Millisecond
	lastDelay  = 30 * time.Second
)

// follow shows the archive by position and goes on until ctx ends, which is no error. A database that is lost
// on the way is tried again, from the last event that was shown.
func (a *app) follow(ctx context.Context, archive *rea.Archive, filter rea.Filter, f logFlags) error {
	out := a.newEventWriter(archive, true)
	if f.after.head || f.last > 0 {
		head, err := a.catchUp(ctx, archive)
		if err != nil {
			return err
		}
		if f.last > 0 {
			if err := a.newest(ctx, archive, filter, f.last, head, out); err != nil {
				return err
			}
		}
		filter.After = max(filter.After, head)
	}
	delay, limited := firstDelay, filter.Limit > 0
	for {
		began := time.Now()
		lost, wrong := error(nil), error(nil)
		for e, err := range archive.Follow(ctx, filter) {
			if err != nil {
				lost = err
				break
			}
			if wrong = out.add(ctx, e); wrong != nil {
				break
			}
			filter.After, delay = e.Position, firstDelay
			if limited {
				filter.Limit--
			}
		}
		switch {
		case wrong != nil:
			return wrong
		case ctx.Err() != nil, lost == nil, limited && filter.Limit == 0:
			return out.close(context.WithoutCancel(ctx))
		case !passing(lost):
			return errors.Join(lost, out.close(context.WithoutCancel(ctx)))
		}
		if time.Since(began) > delay {
			delay = firstDelay
		}
		a.say(fmt.Sprintf("the database does not answer, next try in %s: %s", delay, safe(a.text(lost))))
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return out.close(context.WithoutCancel(ctx))
		case <-timer.C:
		}
		delay = min(2*delay, lastDelay)
	}
}

// passing reports whether another try may succeed.
func passing(err error) bool {
	if strings.HasPrefix(sqlState(err), "42") { // a right or a function is missing
		return false
	}
	switch rea.Code(err) {
	case "", "retry", "read_only":
		return true
	}
	return false
}
