package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

// tableLimit is how many events of the whole archive a table shows where --limit does not say.
const tableLimit = 100

type logFlags struct {
	filterFlags
	follow bool
}

func (a *app) logCommand() *cobra.Command {
	var f logFlags
	cmd := &cobra.Command{
		Use:   "log [TYPE [ID]]",
		Short: "Show events: the timeline of one aggregate, or the archive by position",
		Long: `Show what happened. With TYPE and ID: the timeline of one aggregate by seq, with the
fields that each event changed: as the catalog folds it, or the fields of its payload. An
event that the catalog cannot read is shown with the reason. Otherwise: the archive by position, 100 events a table
unless --limit says other; --after goes on from there.

Conditions must all hold, and match byte by byte; no character has a meaning of its own.
--event finds an event under its old names too, where the catalog has them.
--follow goes on with what commits later, until Ctrl-C. It prints every event at least
once; to go on later, give the last position to --after.

Order is by seq and position, never by time. A time that is earlier than that of the event
before is marked <. Control characters in stored data are shown escaped.`,
		Example: `  rea log order 10086
  rea log --actor 42 --since 2024-06-01 --reason promotion
  rea log order --event OrderCancelled --json
  rea log --follow -o jsonl --after 5120`,
		Args: between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.logFilter(cmd, args)
			if err != nil {
				return err
			}
			if len(args) == 2 || filter.Event != "" {
				if filter.Catalog, err = a.catalog(); err != nil {
					return err
				}
			}
			archive, _, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer archive.Close()
			switch {
			case f.follow:
				return a.follow(cmd.Context(), archive, filter)
			case len(args) == 2:
				return a.timeline(cmd.Context(), archive, filter)
			default:
				return a.history(cmd.Context(), archive, filter, cmd.Flags().Changed("limit"))
			}
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with events that commit later")
	return cmd
}

func (f *logFlags) logFilter(cmd *cobra.Command, args []string) (rea.Filter, error) {
	filter, err := f.filter(cmd)
	if err != nil || len(args) == 0 {
		return filter, err
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

// history shows the archive by position.
func (a *app) history(ctx context.Context, archive *rea.Archive, filter rea.Filter, limited bool) error {
	if _, err := archive.CatchUp(ctx); err != nil {
		return err
	}
	limit := filter.Limit
	if a.table() && !limited {
		limit = tableLimit
	}
	if limit > 0 {
		filter.Limit = limit + 1 // one more tells whether there are more
	}
	out := a.newEventWriter(false)
	shown, last, more := 0, int64(0), false
	for e, err := range archive.Autocommit().History(ctx, filter) {
		if err != nil {
			return err
		}
		if more = limit > 0 && shown == limit; more {
			break
		}
		if err := out.add(&e); err != nil {
			return err
		}
		shown, last = shown+1, e.Position
	}
	if err := out.close(); err != nil {
		return err
	}
	if more {
		a.say(fmt.Sprintf("%d events shown, there are more: go on with --after %d", shown, last))
	} else if shown == 0 && a.table() {
		a.say("no events")
	}
	return ctx.Err()
}

// eventWriter writes events by position, in the chosen form.
type eventWriter struct {
	list   *list
	grid   *grid
	stream bool // each event at once, for --follow
}

const payloadWidth = 60

func (a *app) newEventWriter(stream bool) *eventWriter {
	if !a.table() {
		return &eventWriter{list: a.list(), stream: stream}
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
		column{head: "XID", optional: true, right: true, width: 6},
		column{head: "PAYLOAD", width: payloadWidth},
	)
	g.stream = stream
	return &eventWriter{grid: g}
}

func (w *eventWriter) add(e *rea.Event) error {
	if w.grid != nil {
		return w.grid.add(
			strconv.FormatInt(e.Position, 10), rea.FormatTime(e.CreatedAt), fold(e.Aggregate.Type, 30)+"/"+fold(e.Aggregate.ID, 40),
			strconv.FormatInt(e.Seq, 10), eventName(e), fold(e.Status, 30), fold(e.Actor, 30), fold(e.Reason, 40), e.XID,
			fold(string(e.Payload), payloadWidth),
		)
	}
	if err := w.list.add(e); err != nil || !w.stream {
		return err
	}
	return w.list.w.Flush()
}

func (w *eventWriter) close() error {
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
