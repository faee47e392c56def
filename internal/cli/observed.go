package cli

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/realtime-event-archive/rea"
)

// observer finds the contexts of events before they are written. While it waits for enough of them it keeps the events,
// and, so that order is kept, those that have none.
type observer[T any] struct {
	tx    *rea.Tx
	every int // events that are looked up at once
	event func(*T) *rea.Event
	write func(*T, *rea.Context) error

	kept  []T
	bytes int
}

// Events are kept up to these numbers.
const (
	observedEvents = 500
	observedBytes  = 4 << 20
)

func (o *observer[T]) add(ctx context.Context, v T) error {
	e := o.event(&v)
	if e.ContextID == 0 && len(o.kept) == 0 {
		return o.write(&v, nil)
	}
	o.kept = append(o.kept, v)
	if o.bytes += len(e.Payload); len(o.kept) < o.every && o.bytes < observedBytes {
		return nil
	}
	return o.flush(ctx)
}

// flush writes what is kept.
func (o *observer[T]) flush(ctx context.Context) error {
	if len(o.kept) == 0 {
		return nil
	}
	var ids []int64
	for i := range o.kept {
		if id := o.event(&o.kept[i]).ContextID; id != 0 && (len(ids) == 0 || ids[len(ids)-1] != id) {
			ids = append(ids, id)
		}
	}
	list, err := o.tx.Contexts(ctx, ids...)
	if err != nil {
		return err
	}
	found := make(map[int64]*rea.Context, len(list))
	for i := range list {
		found[list[i].ID] = &list[i]
	}
	for i := range o.kept {
		if err := o.write(&o.kept[i], found[o.event(&o.kept[i]).ContextID]); err != nil {
			return err
		}
	}
	clear(o.kept)
	o.kept, o.bytes = o.kept[:0], 0
	return nil
}

// observedEvent is an event with its context, which is null in JSON where there is none.
type observedEvent struct {
	event   *rea.Event
	context *rea.Context
}

func (o observedEvent) MarshalJSON() ([]byte, error) {
	b := append(bytes.TrimSuffix(marshal(o.event), []byte("}")), `,"context":`...)
	return append(append(b, marshal(o.context)...), '}'), nil
}

// sightings writes below events what is claimed and what was observed, once for consecutive events that share both.
type sightings struct{ last rea.Event }

func (s *sightings) below(g *grid, e *rea.Event, c *rea.Context) error {
	same := e.ContextID == s.last.ContextID && e.Actor == s.last.Actor && e.Reason == s.last.Reason
	s.last = rea.Event{ContextID: e.ContextID, Actor: e.Actor, Reason: e.Reason}
	if c == nil || same {
		return nil
	}
	if err := g.note("    claimed:  " + claimedText(e)); err != nil {
		return err
	}
	return g.note("    observed: " + contextText(c))
}

// claimedText is who is said to have done it, and why.
func claimedText(e *rea.Event) string {
	text := "nothing"
	switch {
	case e.Actor != "" && e.Reason != "":
		text = "actor " + fold(e.Actor, 30) + ", reason " + fold(e.Reason, 60)
	case e.Actor != "":
		text = "actor " + fold(e.Actor, 30)
	case e.Reason != "":
		text = "reason " + fold(e.Reason, 60)
	}
	return text
}

// observedText is what the database saw itself of who wrote an event; "": nothing.
func observedText(e *rea.Event, c *rea.Context) string {
	if c != nil {
		return contextText(c)
	}
	text := ""
	if e.DBUser != "" {
		text = "login " + fold(e.DBUser, 30)
	}
	if e.XID != "" && text != "" {
		text += ", transaction " + e.XID
	}
	return text
}

// statementWidth is how much of a statement is shown.
const statementWidth = 200

// contextText is "login app (role shop), psql from 10.0.0.3, process 812, UPDATE of 37 rows of public.orders: UPDATE orders SET ...".
func contextText(c *rea.Context) string {
	text := ""
	if c.Login != "" {
		text = "login " + fold(c.Login, 30)
		if c.Role != "" && c.Role != c.Login {
			text += " (role " + fold(c.Role, 30) + ")"
		}
		text += ", "
	}
	if c.Program != "" {
		text += fold(c.Program, 30) + " "
	}
	if c.Address != "" {
		text += "from " + fold(c.Address, 45) + " "
	}
	text += fmt.Sprintf("process %d, %s of %s of %s", c.PID, fold(c.Operation, 20), counted(c.Rows, "row"), fold(c.Table, 60))
	if c.Depth > 1 {
		text += " by a trigger"
	}
	switch {
	case c.Statement != "":
		text += ": " + fold(c.Statement, statementWidth)
	case c.StatementSHA256 != "":
		text += ": statement with SHA-256 " + fold(c.StatementSHA256, 64)
	}
	return text
}

// contextName is the cell of an event's context.
func contextName(e *rea.Event) string {
	if e.ContextID == 0 {
		return ""
	}
	return strconv.FormatInt(e.ContextID, 10)
}
