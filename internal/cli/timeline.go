package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/realtime-event-archive/rea"
)

// change is what an event did to one field of the state.
type change struct {
	Field string          `json:"field"`
	Old   json.RawMessage `json:"old,omitempty"` // absent: the field is new
	New   json.RawMessage `json:"new"`
}

// changesOf lists the fields that a payload changes, by name; a value that is written again is none.
func changesOf(state rea.Object, e *rea.Event) ([]change, error) {
	var payload rea.Object
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return nil, fmt.Errorf("read %s seq %d: %w", e.Aggregate, e.Seq, err)
	}
	changes := []change{}
	for _, name := range slices.Sorted(maps.Keys(payload)) {
		if old, ok := state[name]; !ok || !bytes.Equal(old, payload[name]) {
			changes = append(changes, change{Field: name, Old: old, New: payload[name]})
		}
	}
	return changes, nil
}

// moment is one event of a timeline.
type moment struct {
	event     *rea.Event
	changes   []change
	backwards bool // its time is before that of the event before
}

// MarshalJSON is the event's own JSON with two fields more.
func (m moment) MarshalJSON() ([]byte, error) {
	b := bytes.TrimSuffix(marshal(m.event), []byte("}"))
	b = append(append(b, `,"changes":`...), marshal(m.changes)...)
	return fmt.Appendf(b, `,"time_runs_backwards":%t}`, m.backwards), nil
}

// timeline shows the events of one aggregate by seq, or its newest ones.
func (a *app) timeline(ctx context.Context, archive *rea.Archive, filter rea.Filter, newest int) error {
	if _, err := archive.CatchUp(ctx); err != nil { // positions for --after
		return err
	}
	aggregate := rea.Ref{Type: filter.Type, ID: filter.ID}
	out := a.newTimelineWriter(filter.Limit > 0 || filter.After > 0)
	kept := ring[moment]{size: newest}
	var (
		state  rea.Object
		before time.Time
		exists bool
		last   int64 // position
		shown  int
		marked bool
		more   bool
	)
	show := func(m moment) error {
		marked = marked || m.backwards
		return out.add(m)
	}
	for e, err := range archive.Autocommit().Events(ctx, aggregate, 0) {
		if err != nil {
			return err
		}
		changes, err := changesOf(state, &e)
		if err != nil {
			return err
		}
		m := moment{event: &e, changes: changes, backwards: e.CreatedAt.Before(before)}
		before, exists = e.CreatedAt, true
		if state, err = rea.Merge(state, e); err != nil {
			return err
		}
		if !matches(filter, &e) {
			continue
		}
		if more = filter.Limit > 0 && shown == filter.Limit; more {
			break
		}
		if last, shown = e.Position, shown+1; newest > 0 {
			kept.add(m)
		} else if err := show(m); err != nil {
			return err
		}
	}
	if !exists {
		return &rea.NotFoundError{Aggregate: aggregate}
	}
	for _, m := range kept.ordered() {
		if err := show(m); err != nil {
			return err
		}
	}
	if err := out.close(); err != nil {
		return err
	}
	switch {
	case more && last > 0:
		a.say(fmt.Sprintf("%s shown, there are more: go on with --after %d, the position of the last one", counted(int64(shown), "event"), last))
	case more: // committed this very moment
		a.say(fmt.Sprintf("%s shown, there are more: raise --limit", counted(int64(shown), "event")))
	case shown == 0:
		a.say(nothing(filter))
	}
	if marked && a.table() {
		a.say("< marks a time that is before that of the event above: seq is the order, clocks are not")
	}
	return ctx.Err()
}

// timelineWriter writes moments, in the chosen form.
type timelineWriter struct {
	list      *list
	grid      *grid
	positions bool
}

// newTimelineWriter shows positions where the reader pages by them.
func (a *app) newTimelineWriter(positions bool) *timelineWriter {
	if !a.table() {
		return &timelineWriter{list: a.list()}
	}
	return &timelineWriter{positions: positions, grid: a.grid(
		column{head: "POSITION", right: true, optional: true}, column{head: "SEQ", right: true}, column{head: "TIME"}, column{head: "EVENT"}, column{head: "STATUS", optional: true},
		column{head: "ACTOR", optional: true}, column{head: "REASON", optional: true}, column{head: "XID", optional: true, right: true},
		column{head: "CHANGES", optional: true},
	)}
}

func (w *timelineWriter) add(m moment) error {
	if w.list != nil {
		return w.list.add(m)
	}
	e := m.event
	at := rea.FormatTime(e.CreatedAt)
	if m.backwards {
		at += " <"
	}
	position := ""
	if w.positions && e.Position > 0 {
		position = strconv.FormatInt(e.Position, 10)
	}
	return w.grid.add(position, strconv.FormatInt(e.Seq, 10), at, eventName(e), fold(e.Status, 30), fold(e.Actor, 30), fold(e.Reason, 40), e.XID,
		changesText(m.changes))
}

func (w *timelineWriter) close() error {
	if w.list != nil {
		return w.list.close()
	}
	return w.grid.flush()
}

// The widths of changes in a table; --json has them in full.
const (
	fieldWidth   = 30
	valueWidth   = 32
	changesWidth = 100
)

// changesText is "status: "placed" -> "paid", paid_by: 42", with a bounded width.
func changesText(changes []change) string {
	var b strings.Builder
	for i, c := range changes {
		text := fold(c.Field, fieldWidth) + ": "
		if c.Old != nil {
			text += fold(string(c.Old), valueWidth) + " -> "
		}
		text += fold(string(c.New), valueWidth)
		if i > 0 {
			if b.Len()+len(text) > changesWidth {
				fmt.Fprintf(&b, ", … %d more", len(changes)-i)
				break
			}
			b.WriteString(", ")
		}
		b.WriteString(text)
	}
	return b.String()
}
