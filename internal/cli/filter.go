package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

// filterFlags select events, alike for every command that reads the archive.
type filterFlags struct {
	f            rea.Filter
	since, until string
	after        position
}

// position is the value of --after.
type position struct {
	n    int64
	head bool // the last one that there is when the command begins
}

const positionType = "position"

func (p *position) Type() string { return positionType }

func (p *position) String() string {
	if p.head {
		return "head"
	}
	return strconv.FormatInt(p.n, 10)
}

func (p *position) Set(text string) (err error) {
	if p.head = text == "head"; p.head {
		return nil
	}
	if p.n, err = strconv.ParseInt(text, 10, 64); err == nil && p.n < 0 {
		err = strconv.ErrSyntax
	}
	return err
}

func (f *filterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.f.Type, "type", "", "aggregate type")
	flags.StringVar(&f.f.TypePrefix, "type-prefix", "", "beginning of the aggregate type")
	flags.StringVar(&f.f.Event, "event", "", "event type")
	flags.StringVar(&f.f.EventPrefix, "event-prefix", "", "beginning of the event type")
	flags.StringVar(&f.f.Actor, "actor", "", "who did it")
	flags.StringVar(&f.f.Reason, "reason", "", "text that the reason contains")
	flags.StringVar(&f.f.Correlation, "correlation", "", "correlation id")
	flags.StringVar(&f.f.XID, "xid", "", "transaction that wrote it")
	flags.Int64Var(&f.f.Context, "context", 0, "context: the statement that a guard or a baseline recorded")
	flags.StringVar(&f.since, "since", "", "time of the event not before, such as 2024-06-01T12:00:00Z or 2024-06-01 (UTC)")
	flags.StringVar(&f.until, "until", "", "time of the event before")
	flags.Var(&f.after, "after", "position above this one")
	flags.IntVar(&f.f.Limit, "limit", 0, "at most so many events; 0: all")
}

// filter checks the flags. Texts match byte by byte; no character has a meaning of its own.
func (f *filterFlags) filter(cmd *cobra.Command) (filter rea.Filter, err error) {
	for _, name := range []string{"type", "type-prefix", "event", "event-prefix", "actor", "reason", "correlation", "xid", "since", "until"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return filter, usagef("--%s is empty: leave it out, or give it a value", name)
		}
	}
	filter = f.f
	if filter.After = f.after.n; filter.Limit < 0 {
		return filter, usagef("--limit is not negative: 0 means all")
	}
	if cmd.Flags().Changed("context") && filter.Context < 1 {
		return filter, usagef("--context counts from 1")
	}
	if filter.Since, err = parseMoment("--since", f.since); err != nil {
		return filter, err
	}
	if filter.Until, err = parseMoment("--until", f.until); err != nil {
		return filter, err
	}
	if !filter.Until.IsZero() && filter.Until.Before(filter.Since) {
		return filter, usagef("--until %s is before --since %s", f.until, f.since)
	}
	return filter, nil
}

// parseMoment reads a time, or a day as its beginning in UTC. "" is the zero time.
func parseMoment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	t, err := rea.ParseTime(text)
	switch {
	case errors.Is(err, rea.ErrLimit):
		return t, usagef("%s: %s", flag, strings.TrimPrefix(err.Error(), "rea: "))
	case err != nil:
		return t, usagef("%s takes a time such as 2024-06-01T12:00:00Z or 2024-06-01T14:00:00.5+02:00, or a day such as 2024-06-01 (in UTC), not %q", flag, clip(text))
	}
	return t, nil
}

// matches is what the databases do, for events that are read by aggregate.
func matches(f rea.Filter, e *rea.Event) bool {
	return (f.Event == "" || f.Event == e.Type || slices.Contains(f.Aliases(), e.Type)) && strings.HasPrefix(e.Type, f.EventPrefix) &&
		(f.Actor == "" || f.Actor == e.Actor) && strings.Contains(e.Reason, f.Reason) &&
		(f.Correlation == "" || f.Correlation == e.Correlation) && (f.XID == "" || f.XID == e.XID) && (f.Context == 0 || f.Context == e.ContextID) &&
		(f.Since.IsZero() || !e.CreatedAt.Before(f.Since)) && (f.Until.IsZero() || e.CreatedAt.Before(f.Until)) &&
		(f.After == 0 || e.Position == 0 || e.Position > f.After)
}
