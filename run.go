package rea

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// pollBusy is how soon Run looks again after there was something.
const pollBusy = 25 * time.Millisecond

// Run numbers what commits, and keeps the projections of Config.Catalog and Config.Projections, or those that are named, until
// ctx ends: then it returns nil. Of an inline one, which Apply has made, it folds the rows that are behind: appends do not fold
// events of old versions, nor see all that is written past REA. Several processes may run at once: each projection is moved by one of
// them at a time. A projection that the database does not have is made. What a projection fails on stops that one alone,
// and stands in Projections. A database that is lost is tried again with growing delay.
func (a *Archive) Run(ctx context.Context, names ...string) error {
	list, err := a.followed()
	if err != nil {
		return err
	}
	if len(names) > 0 {
		var chosen []Followed
		for _, name := range names {
			f, err := a.named(name)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(chosen, func(c Followed) bool { return c.Name == name }) {
				chosen = append(chosen, f)
			}
		}
		list = chosen
	}
	err = a.store.Autocommit().Ready(ctx, true)
	if errors.Is(err, ErrNoSchema) || errors.Is(err, ErrNewerSchema) {
		return err
	}
	r := &runner{archive: a, who: whoRuns()}
	for _, f := range list {
		r.followers = append(r.followers, &follower{runner: r, Followed: f, feed: a.feedReader(f), size: a.pageOf(f), known: -1, wake: make(chan struct{}, 1)})
	}
	var group sync.WaitGroup
	group.Go(func() { r.number(ctx) })
	group.Go(func() { r.snapshots(ctx) })
	for _, f := range r.followers {
		group.Go(func() { f.run(ctx) })
	}
	group.Wait()
	return nil
}

// whoRuns names this process, for people.
func whoRuns() string {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	return fmt.Sprintf("%s pid %d", clip(host), os.Getpid())
}

// runner is one call of Run.
type runner struct {
	archive   *Archive
	who       string
	followers []*follower
}

// number gives positions to what has committed, and wakes those who follow.
func (r *runner) number(ctx context.Context) {
	idle := idling{most: r.archive.config.PollEvery}
	lost := trouble{runner: r, doing: "numbering"}
	for ctx.Err() == nil {
		n, _, err := r.archive.Number(ctx)
		if err != nil {
			lost.wait(ctx, err)
			continue
		}
		lost.over()
		if n > 0 {
			for _, f := range r.followers {
				select {
				case f.wake <- struct{}{}:
				default: // it is awake
				}
			}
		}
		if n < passEvents {
			pause(ctx, idle.next(n > 0))
		}
	}
}

// idling gives the time until the next look: short after there was something, longer and longer otherwise.
type idling struct{ now, most time.Duration }

func (i *idling) next(busy bool) time.Duration {
	if busy || i.now == 0 {
		i.now = pollBusy
	} else {
		i.now *= 2
	}
	i.now = min(i.now, i.most)
	return i.now
}

// The delay between tries to reach a lost database grows from the first to the second.
const (
	firstTrouble = 100 * time.Millisecond
	lastTrouble  = 10 * time.Second
)

// trouble is a database that cannot be reached, or does not take writes.
type trouble struct {
	runner *runner
	doing  string
	delay  time.Duration // 0: there is none
	said   bool
}

// wait says the first error, and waits longer from one to the next.
func (t *trouble) wait(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if t.delay == 0 {
		if !errors.Is(err, ErrRetry) {
			t.said = true
			t.runner.archive.config.Logger.Warn("rea: will be tried again", "what", t.doing, "error", errorText(err))
		}
		t.delay = firstTrouble
	}
	pause(ctx, t.delay)
	t.delay = min(2*t.delay, lastTrouble)
}

func (t *trouble) over() {
	if t.said {
		t.runner.archive.config.Logger.Info("rea: goes on", "what", t.doing)
	}
	t.delay, t.said = 0, false
}

// errorText is what is logged and recorded of an error.
func errorText(err error) string {
	const most = 1000
	text := err.Error()
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
}
