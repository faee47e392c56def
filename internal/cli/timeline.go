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
	New   json.RawMessage `json:"new,omitempty"` // absent: the field is gone
}

// changesOf lists the fields in which two states differ, by name; a value that is written again is no change.
func changesOf(before, after rea.Object) []change {
	changes := []change{}
	for name, value := range after {
		if old, ok := before[name]; !ok || !bytes.Equal(old, value) {
			changes = append(changes, change{Field: name, Old: old, New: value})
		}
	}
	for name, old := range before {
		if _, ok := after[name]; !ok {
			changes = append(changes, change{Field: name, Old: old})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(a.Field, b.Field) })
	return changes
}

// moment is one event of a timeline: as it is stored, and what the catalog makes of it.
type moment struct {
	event     *rea.Event
	context   *rea.Context // what was observed; nil: nothing more
	current   *rea.Event   // under its present name and in its newest version; nil: as it is stored
	changes   []change
	status    string // after it
	retired   bool
	illegal   bool   // one of REA's own, and no declared step leads from the status before to the one after
	problem   string // why the catalog cannot read it
	backwards bool   // its time is before that of the event before
}

// read folds an event into state, which it leaves as it is. What the catalog cannot read changes nothing.
func (m *moment) read(rules *rea.Catalog, state rea.Object, e *rea.Event) (after rea.Object) {
	m.event, m.changes = e, []change{}
	current, retired, err := rules.Upcast(*e)
	m.retired = retired
	if err == nil && (current.Type != e.Type || current.Version != e.Version) {
		m.current = &current
	}
	if err == nil {
		after, err = rules.Fold(maps.Clone(state), *e)
	}
	if err != nil {
		m.problem, after = strings.TrimPrefix(err.Error(), "rea: "), state
	} else {
		m.changes = changesOf(state, after)
	}
	if m.status = e.Status; m.status == "" {
		m.status = rules.Status(e.Aggregate.Type, after)
	}
	return after
}

// MarshalJSON is the event's own JSON with more fields: changes and time_runs_backwards always; current, retired
// and problem where the catalog has something to say.
func (m moment) MarshalJSON() ([]byte, error) {
	b := bytes.TrimSuffix(marshal(observedEvent{m.event, m.context}), []byte("}"))
	b = append(append(b, `,"changes":`...), marshal(m.changes)...)
	b = fmt.Appendf(b, `,"time_runs_backwards":%t`, m.backwards)
	if m.current != nil {
		b = append(append(b, `,"current":`...), marshal(struct {
			Type    string          `json:"event_type"`
			Version int             `json:"event_version"`
			Payload json.RawMessage `json:"payload"`
		}{m.current.Type, m.current.Version, m.current.Payload})...)
	}
	if m.retired {
		b = append(b, `,"retired":true`...)
	}
	if m.illegal {
		b = append(b, `,"illegal":true`...)
	}
	if m.problem != "" {
		b = append(append(b, `,"problem":`...), marshal(m.problem)...)
	}
	return append(b, '}'), nil
}

// timeline shows the events of one aggregate by seq, or its newest ones.
func (a *app) timeline(ctx context.Context, archive *rea.Archive, filter rea.Filter, newest int) error {
	if _, err := a.catchUp(ctx, archive); err != nil { // positions for --after
		return err
	}
	aggregate := rea.Ref{Type: filter.Type, ID: filter.ID}
	out := a.newTimelineWriter(archive, filter.Limit > 0 || filter.After > 0)
	kept := ring[moment]{size: newest}
	var (
		state  rea.Object
		before time.Time
		status string
		exists bool
		last   int64 // position
		shown  int
		marked bool
		more   bool
		unread int
	)
	show := func(m moment) error {
		marked = marked || m.backwards
		return out.add(ctx, m)
	}
	for e, err := range archive.Autocommit().Events(ctx, aggregate, 0) {
		if err != nil {
			return err
		}
		m := moment{backwards: e.CreatedAt.Before(before)}
		state = m.read(filter.Catalog, state, &e)
		m.illegal = rea.BuiltIn(e.Type) && e.Type != "BaselineCreated" && !filter.Catalog.Leads(e.Aggregate.Type, status, m.status, e.Seq > 1)
		status = m.status
		before, exists = e.CreatedAt, true
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
		if m.problem != "" {
			unread++
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
	if err := out.close(ctx); err != nil {
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
	if unread > 0 {
		a.say(numbered(unread, "event") + " that the catalog cannot read: left out of the changes and of the status")
	}
	return ctx.Err()
}

// timelineWriter writes moments, in the chosen form.
type timelineWriter struct {
	observer[moment]
	sightings
	list      *list
	grid      *grid
	positions bool
}

// newTimelineWriter shows positions where the reader pages by them.
func (a *app) newTimelineWriter(archive *rea.Archive, positions bool) *timelineWriter {
	w := &timelineWriter{positions: positions}
	w.observer = observer[moment]{
		tx: archive.Autocommit(), every: observedEvents, write: w.put,
		event: func(m *moment) *rea.Event { return m.event },
	}
	if !a.table() {
		w.list = a.list()
		return w
	}
	w.grid = a.grid(
		column{head: "POSITION", right: true, optional: true}, column{head: "SEQ", right: true}, column{head: "TIME"}, column{head: "EVENT"}, column{head: "STATUS", optional: true},
		column{head: "ACTOR", optional: true}, column{head: "REASON", optional: true}, column{head: "LOGIN", optional: true}, column{head: "XID", optional: true, right: true},
		column{head: "CONTEXT", optional: true, right: true}, column{head: "CHANGES", optional: true},
	)
	return w
}

func (w *timelineWriter) put(m *moment, c *rea.Context) error {
	m.context = c
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
	err := w.grid.add(position, strconv.FormatInt(e.Seq, 10), at, m.name(), fold(m.status, 30), fold(e.Actor, 30), fold(e.Reason, 40), fold(e.DBUser, 30), e.XID, contextName(e),
		m.text())
	if err != nil {
		return err
	}
	return w.below(w.grid, e, c)
}

// name is the event's, with what it is called or counted today.
func (m *moment) name() string {
	name := eventName(m.event)
	switch {
	case m.retired:
		name += " (retired)"
	case m.illegal:
		name += " (illegal)"
	case m.current != nil && m.current.Type != m.event.Type:
		name += " = " + eventName(m.current)
	case m.current != nil:
		name += " = v" + strconv.Itoa(m.current.Version)
	}
	return name
}

func (m *moment) text() string {
	if m.problem != "" {
		return "cannot be read: " + fold(m.problem, 4*changesWidth)
	}
	return changesText(m.changes)
}

func (w *timelineWriter) close(ctx context.Context) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
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
		if c.New != nil {
			text += fold(string(c.New), valueWidth)
		} else {
			text += "(gone)"
		}
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
