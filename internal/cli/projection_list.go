package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) projectionListCommand() *cobra.Command {
	var most maxLag
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the projections: how far each has come, and what keeps it",
		Long: `List the projections that the database or the catalog has: the position that each followed
one has come to, how many events it lacks and since when, who moved it last. An inline one has
each event when its append commits; its position says up to where a runner has looked for rows
that appends leave behind (events of older versions), empty where none has. It has no LAG, and
--max-lag leaves it out. For one that does not go on: the event that it fails on, how often and
since when, and what to type.

STATE is caught up, behind (whoever runs it next goes on: see UPDATED and RUNNER), new, paused,
failing, stalled, needs rebuild; kept, of an inline one.

LAG is empty where it is not known: the position is not one of this archive's, or the table was
filled by another definition. Exit code 3 where a projection does not go on (but for paused ones),
or lags by more than --max-lag, which is a number of events or a time.`,
		Example: `  rea projection list
  rea projection list --json
  rea projection list --max-lag 30s || echo "look at it"`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return a.withProjections(ctx, "reader", func(archive *rea.Archive, c *rea.Catalog, d database) error {
				list, err := a.projections(ctx, archive)
				if err != nil {
					return err
				}
				if err := a.printProjections(list, d); err != nil {
					return err
				}
				return a.judgeProjections(list, most)
			})
		},
	}
	cmd.Flags().Var(&most, "max-lag", "exit with 3 where one lacks more `events` (1000), or lags longer (30s)")
	return cmd
}

// maxLag is the value of --max-lag.
type maxLag struct {
	text   string // "": no limit
	events int64
	time   time.Duration // 0: events counts
}

func (m *maxLag) String() string { return m.text }
func (m *maxLag) Type() string   { return "lag" }

func (m *maxLag) Set(text string) (err error) {
	m.text, m.time = text, 0
	if m.events, err = strconv.ParseInt(text, 10, 64); err == nil && m.events >= 0 {
		return nil
	}
	if m.time, err = time.ParseDuration(text); err != nil || m.time <= 0 {
		return fmt.Errorf("a number of events such as 1000, or a time such as 30s")
	}
	return nil
}

// passed says by how much a followed projection is beyond the limit; "": it is not.
func (m maxLag) passed(p projection) string {
	lag, known := p.Lag()
	switch {
	case m.text == "" || p.mode == modeInline:
	case !known || p.State == rea.StateNeedsRebuild:
		return "its lag is not known"
	case m.time > 0 && !p.lagSince.IsZero() && time.Since(p.lagSince) > m.time:
		return fmt.Sprintf("it lacks events since %s, which is longer than %s", rea.FormatTime(p.lagSince), m.text)
	case m.time == 0 && lag > m.events:
		return fmt.Sprintf("it lacks %s, which is more than %s", counted(lag, "event"), m.text)
	}
	return ""
}

// judgeProjections gives the exit code.
func (a *app) judgeProjections(list []projection, most maxLag) error {
	found := false
	for _, p := range list {
		found = found || p.stuck()
		if passed := most.passed(p); passed != "" {
			a.say(safe(p.Name) + ": " + passed)
			found = true
		}
	}
	if found {
		return partialError{}
	}
	return nil
}

func (a *app) printProjections(list []projection, d database) error {
	if !a.table() {
		out := a.list()
		for _, p := range list {
			if err := out.add(p.line(d)); err != nil {
				return err
			}
		}
		return out.close()
	}
	if len(list) == 0 {
		a.say("no projections: docs/projections.md says how to declare one in rea.yaml")
	}
	g := a.grid(column{head: "NAME"}, column{head: "MODE"}, column{head: "KIND"}, column{head: "STATE"}, column{head: "POSITION", right: true}, column{head: "LAG", right: true},
		column{head: "LAG SINCE", optional: true}, column{head: "UPDATED", optional: true}, column{head: "RUNNER", optional: true})
	for _, p := range list {
		line := p.line(d)
		err := g.add(safe(p.Name), p.mode, p.Kind, p.word(), number(line.Position), number(line.Lag), text(line.LagSince), text(line.UpdatedAt), fold(p.Runner, 40))
		if err != nil {
			return err
		}
	}
	if err := g.flush(); err != nil {
		return err
	}
	for _, p := range list {
		if err := a.printTrouble(p); err != nil {
			return err
		}
	}
	return nil
}

func number(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// printTrouble says below the table why a projection does not go on.
func (a *app) printTrouble(p projection) error {
	trouble := p.trouble()
	switch {
	case trouble == "" && p.Rebuild == nil:
		return nil
	case trouble == "":
		trouble = "a rebuild of it is not finished"
	}
	text := fmt.Sprintf("\n%s: %s\n", safe(p.Name), safe(trouble))
	if p.Failing != nil {
		text += fmt.Sprintf("  event     %s\n", failingText(p.Failing, 0))
	}
	if p.Failed.Attempts > 0 {
		text += fmt.Sprintf("  attempts  %d since %s\n  error     %s\n", p.Failed.Attempts, rea.FormatTime(p.Failed.Since), fold(oneLine.Replace(p.Failed.Error), 500))
	}
	if !p.Failed.NextTry.IsZero() {
		text += fmt.Sprintf("  next try  %s\n", rea.FormatTime(p.Failed.NextTry))
	}
	if r := p.Rebuild; r != nil {
		text += fmt.Sprintf("  rebuild   at position %d of %d", r.Position, p.Head)
		if r.FailedPosition > 0 {
			text += fmt.Sprintf(", fails on %s\n  error     %s", failingText(p.RebuildFailing, r.FailedPosition), fold(oneLine.Replace(r.Error), 500))
		}
		if text += "\n"; r.FailedPosition > 0 || p.Trouble == "" {
			text += fmt.Sprintf("  go on     %s\n", rebuildHint(p))
		}
	}
	_, err := fmt.Fprint(a.env.Stdout, text)
	return err
}

// rebuildHint is what to type for a rebuild that is not finished.
func rebuildHint(p projection) string {
	hint := "`rea projection rebuild " + safe(p.Name) + "`"
	if p.Rebuild.FailedPosition > 0 {
		hint += fmt.Sprintf(", after mending what the error says, or after `rea projection skip %s --position %d`", safe(p.Name), p.Rebuild.FailedPosition)
	}
	return hint
}

// failingText names the event that a projection fails on. position serves where the event is not there.
func failingText(e *rea.Event, position int64) string {
	if e == nil {
		return fmt.Sprintf("position %d", position)
	}
	return fmt.Sprintf("%s seq %d, %s, position %d", refText(e.Aggregate), e.Seq, fold(e.Type, 60), e.Position)
}
