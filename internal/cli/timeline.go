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

// timeline shows the events of one aggregate by seq.
func (a *app) timeline(ctx context.Context, archive *rea.Archive, filter rea.Filter) error {
	if _, err := archive.CatchUp(ctx); err != nil { // positions for --after
		return err
	}
	aggregate := rea.Ref{Type: filter.Type, ID: filter.ID}
	out := a.newTimelineWriter()
	var (
		state  rea.Object
		before time.Time
		exists bool
		last   int64 // position
		shown  int
		marked bool
		more   bool
	)
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
		if err := out.add(m); err != nil {
			return err
		}
		last, shown, marked = e.Position, shown+1, marked || m.backwards
	}
	if !exists {
		return &rea.NotFoundError{Aggregate: aggregate}
	}
	if err := out.close(); err != nil {
		return err
	}
	switch {
	case more:
		a.say(fmt.Sprintf("%d events shown, there are more: go on with --after %d", shown, last))
	case shown == 0:
		a.say("no event matches")
	}
	if marked && a.table() {
		a.say("< marks a time that is before that of the event above: seq is the order, clocks are not")
	}
	return ctx.Err()
}

// timelineWriter writes moments, in the chosen form.
type timelineWriter struct {
	list *list
	grid *grid
}

func (a *app) newTimelineWriter() *timelineWriter {
	if !a.table() {
		return &timelineWriter{list: a.list()}
	}
	return &timelineWriter{grid: a.grid(
		column{head: "SEQ", right: true}, column{head: "TIME"}, column{head: "EVENT"}, column{head: "STATUS", optional: true},
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
	return w.grid.add(strconv.FormatInt(e.Seq, 10), at, eventName(e), fold(e.Status, 30), fold(e.Actor, 30), fold(e.Reason, 40), e.XID,
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
