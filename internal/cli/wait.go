package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

// waitFlags say for what to wait; exactly one of the first three is given.
type waitFlags struct {
	event, position int64
	head            bool
	timeout         time.Duration
}

func (a *app) waitCommand() *cobra.Command {
	var f waitFlags
	cmd := &cobra.Command{
		Use:   "wait NAME {--event ID | --position N | --head}",
		Short: "Wait until a projection has an event",
		Long: `Wait until a followed projection has the event with an id (which "rea append --json" and
rea.append give), or all events up to a position, or all that have committed by now (--head).
Somebody has to run it: see "rea run". An inline projection has an event when its append commits,
unless that is of an older version: then it waits until somebody who runs it has folded it.

An event has to have committed: an id that is not there is not_found (exit code 1), and so is
one whose transaction is still open, which looks the same. On a standby server it is waited for.

Exit code 3 at once where the projection does not go on (stalled, paused, to be rebuilt), and 1
after --timeout.`,
		Example: `  rea wait hourly_sales --head --timeout 30s
  rea wait hourly_sales --event 4711
  rea wait hourly_sales --position 4711`,
		Args:              between(1, 1),
		ValidArgsFunction: a.projectionNames(true, true, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := 0
			for _, flag := range []string{"event", "position", "head"} {
				if cmd.Flags().Changed(flag) {
					given++
				}
			}
			switch {
			case given != 1:
				return usagef("say what to wait for: one of --event ID, --position N and --head")
			case cmd.Flags().Changed("event") && f.event < 1, cmd.Flags().Changed("position") && f.position < 1:
				return usagef("--event and --position take a number from 1 on")
			case f.timeout < 0:
				return usagef("--timeout is a time such as 30s, not %s", f.timeout)
			}
			return a.wait(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().Int64Var(&f.event, "event", 0, "`id` of the event")
	cmd.Flags().Int64Var(&f.position, "position", 0, "position of the event")
	cmd.Flags().BoolVar(&f.head, "head", false, "all that has committed by now")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "give up after this time (never)")
	return cmd
}

func (a *app) wait(ctx context.Context, name string, f waitFlags) error {
	return a.withProjections(ctx, "reader", func(archive *rea.Archive, c *rea.Catalog, d database) error {
		p, err := a.projection(ctx, archive, name)
		if err != nil {
			return err
		}
		if p.mode == modeFollowed || p.State != rea.StateNew && p.State != rea.StateNeedsRebuild {
			if f.head {
				f.position = p.Head
			}
			if err := a.waitFor(ctx, archive, p, f); err != nil {
				return err
			}
			if p, err = a.projection(ctx, archive, name); err != nil {
				return err
			}
		} else {
			return &stuckError{p}
		}
		switch {
		case !a.table():
			return a.object(p.line(d))
		case p.mode == modeInline:
			_, err = fmt.Fprintf(a.env.Stdout, "%s is inline, and none of its rows is behind\n", safe(p.Name))
		default:
			_, err = fmt.Fprintf(a.env.Stdout, "%s is at position %d\n", safe(p.Name), p.Position)
		}
		return err
	})
}

// waitFor waits, shows how far it is, and gives up where the projection does not go on.
func (a *app) waitFor(ctx context.Context, archive *rea.Archive, p projection, f waitFlags) error {
	if f.position == 0 && f.event == 0 {
		return nil // the head of nothing
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.timeout > 0 {
		waiting, cancel = context.WithTimeout(waiting, f.timeout)
		defer cancel()
	}
	done := make(chan error, 1)
	go func() {
		if f.event > 0 {
			done <- archive.WaitForEvent(waiting, p.Name, f.event)
		} else {
			done <- archive.WaitFor(waiting, p.Name, f.position)
		}
	}()
	bar := a.newBar("wait for " + p.Name)
	defer bar.close()
	start, said, tick := p.Position, false, time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for {
		var err error
		select {
		case err = <-done:
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				return fmt.Errorf("%s has not come so far within %s: `rea projection list` says where it is, and `rea run` moves it", safe(p.Name), f.timeout)
			}
			return err
		case <-tick.C:
		}
		now, err := followedNow(ctx, archive, p.Name)
		if err != nil {
			continue // whoever waits tells
		}
		if f.position > 0 && a.env.IsTerminal(a.env.Stderr) {
			bar.set(now.Position-start, f.position-start, fmt.Sprintf("position %d", now.Position))
		}
		switch now.State {
		case rea.StateStalled, rea.StateNeedsRebuild, rea.StatePaused:
			if f.position == 0 || now.Position < f.position {
				cancel()
				if <-done == nil {
					return nil
				}
				return &stuckError{now}
			}
		case rea.StateFailing:
			if !said {
				a.say(safe(p.Name) + ": " + safe(now.trouble()))
				said = true
			}
		}
	}
}

// followedNow is where a followed projection stands.
func followedNow(ctx context.Context, archive *rea.Archive, name string) (projection, error) {
	list, err := archive.Projections(ctx)
	for _, s := range list {
		if s.Name == name {
			return projection{ProjectionStatus: s, mode: modeFollowed}, nil
		}
	}
	return projection{}, err
}

// stuckError says that a projection that somebody waits for does not go on.
type stuckError struct{ p projection }

func (e *stuckError) Error() string { return e.p.Name + " does not go on: " + e.p.trouble() }
