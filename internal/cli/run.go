package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones of statistics, on systems without them

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

// runFlags are those of `rea run`.
type runFlags struct {
	once       bool
	retryAfter time.Duration
	stallAfter int
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [NAME...]",
		Short: "Keep the projections, until it is stopped",
		Long: `Give a position to what commits, and keep the tables of the catalog's projections, or of those
that are named. Of an inline one, which appends keep, it folds the rows that they leave behind:
events of older versions, and on SQLite what is written past REA. Without a catalog it keeps the
positions alone. Any number of processes may run it beside the application: each projection is
moved by one of them at a time, and another goes on where one is killed. A changed catalog
wants a new start.

It says at its start where each projection stands, then when one fails, stalls and goes on, and
which other process moves one. It ends with Ctrl-C or SIGTERM (exit code 0). A database that is
lost is tried again. An event that fails is tried again after 1, 2, 4... 60 seconds; after
--stall-after tries its projection is stalled, and the others go on.

With --once it ends when all have what had committed at its start, and lists them: exit code 3
where one does not go on.`,
		Example: `  rea run
  rea run hourly_sales --db postgres://localhost/shop
  rea run --once --json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.projectionNames(true, true, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.stallAfter < 1:
				return usagef("--stall-after is 1 or more tries, not %d", f.stallAfter)
			case f.retryAfter <= 0:
				return usagef("--retry-after is a time such as 1s, not %s", f.retryAfter)
			}
			return a.run(cmd.Context(), args, f)
		},
	}
	cmd.Flags().BoolVar(&f.once, "once", false, "catch up, and end")
	cmd.Flags().DurationVar(&f.retryAfter, "retry-after", time.Second, "time until the second try of an event that fails")
	cmd.Flags().IntVar(&f.stallAfter, "stall-after", 8, "number of tries after which a projection is stalled")
	return cmd
}

func (a *app) run(ctx context.Context, names []string, f runFlags) error {
	c, err := a.catalog()
	if err != nil {
		return err
	}
	archive, d, err := a.open(ctx, opening{role: "runner", catalog: c, logger: slog.New(&warnings{app: a, talks: true, timed: a.timed()}),
		retryAfter: f.retryAfter, stallAfter: f.stallAfter})
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer archive.Close()
	kept := names
	if len(kept) == 0 {
		for _, p := range c.Projections() {
			kept = append(kept, p.Name)
		}
	}
	list, err := a.projections(ctx, archive)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	if c != nil { // without one it is said below
		if err := a.declared(c, kept); err != nil {
			return err
		}
	}
	if c == nil {
		if slices.ContainsFunc(list, func(p projection) bool { return p.mode == modeFollowed }) {
			return usagef("no catalog, and the database has followed projections: name it with --catalog FILE, set REA_CATALOG, or make ./%s", localCatalog)
		}
		a.say("no catalog (--catalog FILE, REA_CATALOG, ./" + localCatalog + "): the feed alone is kept")
	}
	makes, err := a.mayRun(ctx)
	if err != nil && len(kept) > 0 {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	watch := &runWatch{app: a, archive: archive, kept: kept, began: time.Now(), makes: makes, said: map[string]bool{}, me: thisProcess()}
	if !f.once {
		a.sayKept(list, kept, d)
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if f.once {
			watch.once(running, list)
			stop()
			return
		}
		watch.others(running)
	}()
	err = archive.Run(running, names...)
	stop()
	<-watched
	switch {
	case err != nil:
		return err
	case !f.once:
		a.logLine("stopped: the next start goes on from here")
		return nil
	case ctx.Err() != nil:
		return &stoppedError{"the next run goes on from here", ctx.Err()}
	}
	if list, err = a.projections(ctx, archive); err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(p projection) bool { return !slices.Contains(kept, p.Name) })
	if err := a.printProjections(list, d); err != nil {
		return err
	}
	if i := slices.IndexFunc(list, func(p projection) bool { return p.State == rea.StateNew && !p.Inline }); i >= 0 {
		return &rea.OwnerError{Projection: list[i].Name, Err: missingRight{}}
	}
	return a.judgeProjections(list, maxLag{})
}

// unlessStopped is nil where somebody has ended the command.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// sayKept says what is run, and where it stands.
func (a *app) sayKept(list []projection, kept []string, d database) {
	a.logLine(fmt.Sprintf("keeping %s of %s, until Ctrl-C or SIGTERM", numbered(len(kept), "projection"), safe(d.String())))
	for _, p := range list {
		switch {
		case !slices.Contains(kept, p.Name):
		case p.mode == modeInline && p.State == rea.StateNew:
			a.logLine(fmt.Sprintf("%s, inline: %s", safe(p.Name), safe(p.trouble())))
		case p.State == rea.StateNew:
			a.logLine(fmt.Sprintf("%s: new, its table is made and filled from %s", safe(p.Name), counted(p.Head, "event")))
		case p.Trouble != "":
			a.logLine(fmt.Sprintf("%s: %s at position %d of %d: %s", safe(p.Name), p.State, p.Position, p.Head, safe(p.trouble())))
		default:
			a.logLine(fmt.Sprintf("%s: at position %d of %d", safe(p.Name), p.Position, p.Head))
		}
	}
}

// runWatch looks at the projections while they are run.
type runWatch struct {
	app     *app
	archive *rea.Archive
	kept    []string
	began   time.Time
	makes   bool // tables of new projections
	me      string
	said    map[string]bool
}

// thisProcess is how rea names this process in rea.projections.runner.
func thisProcess() string {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	return fmt.Sprintf("%s pid %d", host, os.Getpid())
}

// others says once of each process that moves one of the projections, too.
func (w *runWatch) others(ctx context.Context) {
	for w.pause(ctx, 2*time.Second) {
		list, err := w.archive.Projections(ctx)
		if err != nil {
			continue // the runner tells
		}
		for _, p := range list {
			key := p.Name + " " + p.Runner
			if !slices.Contains(w.kept, p.Name) || p.Runner == "" || p.Runner == w.me || w.said[key] || !p.UpdatedAt.After(w.began) {
				continue
			}
			w.said[key] = true
			line := "%s: %s moves it; this process takes over where that one ends"
			if p.State == rea.StateNeedsRebuild {
				line = "%s: %s has moved it, by another definition than the one that this process has read: this process leaves it alone, and has to be started anew with the newer catalog"
			}
			w.app.logLine(fmt.Sprintf(line, safe(p.Name), safe(p.Runner)))
		}
	}
}

// once returns when each projection has what the list knew of, does not go on, or has failed again.
func (w *runWatch) once(ctx context.Context, list []projection) {
	head, tries := int64(0), map[string]int{}
	for _, p := range list {
		head, tries[p.Name] = max(head, p.Head), p.Failed.Attempts
	}
	bar := w.app.newBar("run")
	defer bar.close()
	for w.pause(ctx, 20*time.Millisecond) {
		list, err := w.archive.Projections(ctx)
		if err != nil {
			continue
		}
		left, least := 0, head
		for _, p := range list {
			done := false
			switch p.State {
			case rea.StateNew:
				done = !w.makes || p.Inline // which is for `rea catalog apply`
			case rea.StateStalled, rea.StatePaused, rea.StateNeedsRebuild:
				done = true
			case rea.StateFailing:
				done = p.Failed.Attempts > tries[p.Name]
			case rea.StateRunning:
				done = p.Position >= head
				tries[p.Name] = 0 // what it fails on now is another event
			}
			if done || !slices.Contains(w.kept, p.Name) {
				continue
			}
			left++
			least = min(least, p.Position)
		}
		if left == 0 {
			return
		}
		if w.app.env.IsTerminal(w.app.env.Stderr) {
			bar.set(least, head, fmt.Sprintf("position %d", least))
		}
	}
}

func (w *runWatch) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// timed reports whether lines of a log carry the time: not for a person, and not where the journal adds it.
func (a *app) timed() bool {
	return !a.env.IsTerminal(a.env.Stderr) && a.env.Getenv("JOURNAL_STREAM") == ""
}

// logLine is say for a command that goes on for long.
func (a *app) logLine(line string) {
	if a.timed() {
		line = rea.FormatTime(time.Now()) + " " + line
	}
	a.say(strings.TrimRight(line, "\n"))
}
