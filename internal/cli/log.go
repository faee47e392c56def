package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

// tableLimit is how many events of the whole archive a table shows where --limit does not say.
const tableLimit = 100

// mostLast bounds --last: so many events are kept in memory.
const mostLast = 10_000

type logFlags struct {
	filterFlags
	follow bool
	last   int
}

func (a *app) logCommand() *cobra.Command {
	var f logFlags
	cmd := &cobra.Command{
		Use:   "log [TYPE [ID]]",
		Short: "Show events: the timeline of one aggregate, or the archive by position",
		Long: `Show what happened. With TYPE and ID: the timeline of one aggregate by seq, with the
fields that each event changed: as the catalog folds it, or the fields of its payload. An
event that the catalog cannot read is shown with the reason. Otherwise: the archive by
position, 100 events a table unless --limit or --last says other. TYPE/ID as one word is
the same as TYPE ID.

--after goes on behind a position, in the archive and in a timeline alike: where --limit
has left events out, the command says which. A timeline shows the column POSITION with
--limit and --after. --last N shows the newest N that match, in order.

Conditions must all hold, and match byte by byte; no character has a meaning of its own.
--event finds an event under its old names too, where the catalog has them.
--follow goes on with what commits later, until Ctrl-C; with --after head only that. It
prints every event at least once; to go on later, give the last position to --after.

ACTOR and REASON are what the writer claimed. LOGIN and XID are what the database observed; where
a guard or a baseline recorded a statement, CONTEXT is its number, which --context takes, and the
line "observed" says who ran it, from where, and its text, once for events that share it.

Order is by seq and position, never by time. A time that is earlier than that of the event
before is marked <. Control characters in stored data are shown escaped. On a terminal the
last column ends with the line; -o json has everything.`,
		Example: `  rea log order 10086
  rea log order/10086 --last 3
  rea log --actor 42 --since 2024-06-01 --reason promotion
  rea log order --event OrderCancelled --json
  rea log --context 37
  rea log --follow -o jsonl --after 5120
  rea log --follow --after head`,
		Args: between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				args = splitRef(args)
			}
			filter, err := f.logFilter(cmd, args)
			if err != nil {
				return err
			}
			if len(args) == 2 || filter.Event != "" {
				if filter.Catalog, err = a.catalog(); err != nil {
					return err
				}
			}
			archive, _, err := a.open(cmd.Context(), opening{role: "reader"})
			if err != nil {
				return err
			}
			defer archive.Close()
			switch {
			case f.follow:
				return a.follow(cmd.Context(), archive, filter, f)
			case len(args) == 2:
				return a.timeline(cmd.Context(), archive, filter, f.last)
			case a.table() && f.last == 0 && !cmd.Flags().Changed("limit"):
				filter.Limit = tableLimit
			}
			return a.history(cmd.Context(), archive, filter, f.last)
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&f.last, "last", 0, "the newest so many events that match")
	cmd.Flags().Lookup("after").Usage += "; head: the last one that there is, with --follow"
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with events that commit later")
	return cmd
}

func (f *logFlags) logFilter(cmd *cobra.Command, args []string) (rea.Filter, error) {
	filter, err := f.filter(cmd)
	switch {
	case err != nil:
		return filter, err
	case cmd.Flags().Changed("last") && (f.last < 1 || f.last > mostLast):
		return filter, usagef("--last is 1 to %d events, not %d", mostLast, f.last)
	case f.last > 0 && cmd.Flags().Changed("limit"):
		return filter, usagef("--last is for the newest events and --limit for the oldest: choose one")
	case f.last > 0 && f.after.head:
		return filter, usagef("nothing is after head but what comes later: leave --last or --after head out")
	case f.after.head && !f.follow:
		return filter, usagef("--after head is for --follow: nothing is there yet")
	case len(args) == 0:
		return filter, nil
	}
	for _, name := range []string{"type", "type-prefix"} {
		if cmd.Flags().Changed(name) {
			return filter, usagef("TYPE is given as an argument and as --%s: choose one", name)
		}
	}
	if filter.Type = args[0]; filter.Type == "" {
		return filter, usagef("TYPE is empty")
	}
	if len(args) == 2 {
		if filter.ID = args[1]; filter.ID == "" {
			return filter, usagef("ID is empty")
		}
	}
	return filter, nil
}

// history shows the archive by position, or its newest events.
func (a *app) history(ctx context.Context, archive *rea.Archive, filter rea.Filter, newest int) error {
	head, err := a.catchUp(ctx, archive)
	if err != nil {
		return err
	}
	out := a.newEventWriter(archive, false)
	if newest > 0 {
		if err := a.newest(ctx, archive, filter, newest, head, out); err != nil {
			return err
		}
		return out.close(ctx)
	}
	limit := filter.Limit
	if limit > 0 {
		filter.Limit = limit + 1 // one more tells whether there are more
	}
	shown, last, more := 0, int64(0), false
	for e, err := range archive.Autocommit().History(ctx, filter) {
		if err != nil {
			return err
		}
		if more = limit > 0 && shown == limit; more {
			break
		}
		if err := out.add(ctx, e); err != nil {
			return err
		}
		shown, last = shown+1, e.Position
	}
	if err := out.close(ctx); err != nil {
		return err
	}
	if more {
		a.say(fmt.Sprintf("%s shown, there are more: go on with --after %d", counted(int64(shown), "event"), last))
	} else if shown == 0 && ctx.Err() == nil {
		a.say(nothing(filter))
	}
	return ctx.Err()
}

// catchUp goes on, with a note, where the server takes no writes.
func (a *app) catchUp(ctx context.Context, archive *rea.Archive) (head int64, err error) {
	head, err = archive.CatchUp(ctx)
	if errors.Is(err, rea.ErrReadOnly) || errors.Is(err, rea.ErrNewerSchema) {
		a.say("note: nothing can be numbered here: events that committed since the last pass have no position yet and are not shown")
		return head, nil
	}
	return head, err
}

// nothing says that no event was found; names are often misspelt.
func nothing(filter rea.Filter) string {
	after := filter.After
	typ := filter.Type
	filter.Type, filter.After, filter.Limit = "", 0, 0
	switch {
	case filter.Selective():
		return "no event matches"
	case typ != "" && after == 0:
		return "no events of the type " + fold(typ, 40) + ": names match byte by byte, `rea log --last 5` shows some"
	case typ != "" || after > 0:
		return "no more events"
	}
	return "no events"
}

// newest writes the newest n events up to head that match. All are read, and n kept, where a filter leaves some out.
func (a *app) newest(ctx context.Context, archive *rea.Archive, filter rea.Filter, n int, head int64, out *eventWriter) error {
	if !filter.Selective() {
		filter.After = max(filter.After, head-int64(n))
	}
	kept := ring[rea.Event]{size: n}
	for e, err := range archive.Autocommit().History(ctx, filter) {
		if err != nil {
			return err
		}
		if e.Position > head {
			break
		}
		kept.add(e)
	}
	if len(kept.list) == 0 && ctx.Err() == nil {
		a.say(nothing(filter))
	}
	for _, e := range kept.ordered() {
		if err := out.add(ctx, e); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// ring keeps the last size values.
type ring[T any] struct {
	size, next int
	list       []T
}

func (r *ring[T]) add(v T) {
	if len(r.list) < r.size {
		r.list = append(r.list, v)
		return
	}
	r.list[r.next] = v
	r.next = (r.next + 1) % r.size
}

func (r *ring[T]) ordered() []T { return slices.Concat(r.list[r.next:], r.list[:r.next]) }

// eventWriter writes events by position, in the chosen form.
type eventWriter struct {
	observer[rea.Event]
	sightings
	list   *list
	grid   *grid
	stream bool // each event at once, for --follow
}

const payloadWidth = 60

func (a *app) newEventWriter(archive *rea.Archive, stream bool) *eventWriter {
	w := &eventWriter{stream: stream}
	w.observer = observer[rea.Event]{
		tx: archive.Autocommit(), every: observedEvents, write: w.put,
		event: func(e *rea.Event) *rea.Event { return e },
	}
	if stream {
		w.every = 1
	}
	if !a.table() {
		w.list = a.list()
		return w
	}
	g := a.grid(
		column{head: "POSITION", right: true, width: 8},
		column{head: "TIME", width: len(rea.TimeLayout)},
		column{head: "AGGREGATE", width: 20},
		column{head: "SEQ", right: true, width: 4},
		column{head: "EVENT", width: 20},
		column{head: "STATUS", optional: true},
		column{head: "ACTOR", optional: true, width: 10},
		column{head: "REASON", optional: true, width: 20},
		column{head: "LOGIN", optional: true, width: 10},
		column{head: "XID", optional: true, right: true, width: 6},
		column{head: "CONTEXT", optional: true, right: true},
		column{head: "PAYLOAD", width: payloadWidth},
	)
	g.stream = stream
	w.grid = g
	return w
}

func (w *eventWriter) put(e *rea.Event, c *rea.Context) error {
	if w.grid != nil {
		err := w.grid.add(
			strconv.FormatInt(e.Position, 10), rea.FormatTime(e.CreatedAt), fold(e.Aggregate.Type, 30)+"/"+fold(e.Aggregate.ID, 40),
			strconv.FormatInt(e.Seq, 10), eventName(e), fold(e.Status, 30), fold(e.Actor, 30), fold(e.Reason, 40), fold(e.DBUser, 30), e.XID, contextName(e),
			fold(string(e.Payload), payloadWidth),
		)
		if err != nil {
			return err
		}
		return w.below(w.grid, e, c)
	}
	if err := w.list.add(observedEvent{e, c}); err != nil || !w.stream {
		return err
	}
	return w.list.w.Flush()
}

func (w *eventWriter) close(ctx context.Context) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	if w.grid != nil {
		return w.grid.flush()
	}
	return w.list.close()
}

// eventName is the event's type, with its version where that is not the first, marked where it is a correction.
func eventName(e *rea.Event) string {
	name := fold(e.Type, 40)
	if e.Version > 1 {
		name += " v" + strconv.Itoa(e.Version)
	}
	if e.Correction {
		name += " (correction)"
	}
	return name
}
