package rea

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
)

// Load folds all events of an aggregate by Config.Catalog, or by Merge where that does not declare the type. Where
// the type has snapshots, it begins at the last one, and stores a new one when it is time: the state is the same
// as without. An aggregate without events is a *NotFoundError.
func (tx *Tx) Load(ctx context.Context, aggregate Ref) (*Loaded[Object], error) {
	return tx.LoadAt(ctx, aggregate, At{})
}

// LoadAt is Load as it was at a moment. A moment before the first event is a *NotFoundError, a seq or position
// beyond the last one a *NoSuchSeqError.
func (tx *Tx) LoadAt(ctx context.Context, aggregate Ref, at At) (*Loaded[Object], error) {
	f := tx.archive.config.Catalog.engine(aggregate.Type)
	last, err := tx.load(ctx, aggregate, at, f)
	if err != nil {
		return nil, err
	}
	loaded := &Loaded[Object]{Aggregate: aggregate, Seq: last.Seq, Last: last, tx: tx}
	switch f := f.(type) {
	case *objects:
		loaded.State = f.state.own()
	case *folding:
		loaded.State, err = f.object()
	}
	return loaded, err
}

// engine is a state on its way through its events.
type engine interface {
	// read makes the text of a snapshot the state. After an error the state is as at the beginning.
	read(text json.RawMessage) error
	apply(e Event) error
	// text writes the state so that read gives the same; ok: it can be written so.
	text() (text json.RawMessage, ok bool)
}

// engine begins the state of an aggregate.
func (c *Catalog) engine(aggregateType string) engine {
	if c != nil {
		if a := c.types[aggregateType]; a != nil && a.state != nil {
			return c.folding(a, reflect.New(a.state).Interface())
		}
	}
	return &objects{catalog: c}
}

// objects is the state of a catalog without Go types.
type objects struct {
	catalog *Catalog
	state   Object
}

func (o *objects) read(text json.RawMessage) (err error) {
	if o.state, err = ParseObject(text); err != nil {
		o.state = nil
	}
	return err
}

func (o *objects) apply(e Event) (err error) {
	o.state, err = o.catalog.Fold(o.state, e)
	return err
}

func (o *objects) text() (json.RawMessage, bool) { return o.state.text() }

// own copies the values: a state may live long, and is not to keep the payloads that they came in.
func (o Object) own() Object {
	size := 0
	for _, v := range o {
		size += len(v)
	}
	memory := make([]byte, 0, size)
	for key, v := range o {
		if v != nil {
			from := len(memory)
			memory = append(memory, v...)
			o[key] = memory[from:len(memory):len(memory)]
		}
	}
	return o
}

// load brings f to a moment, and keeps a snapshot in passing where one is due.
func (tx *Tx) load(ctx context.Context, aggregate Ref, at At, f engine) (last Event, err error) {
	t := tx.archive.config.Catalog.snapshots(aggregate.Type)
	if t == nil || at.kind == 't' || at.kind == 'p' { // no event alone proves that all before it are within such a moment
		return tx.replay(ctx, aggregate, at, tx.events(ctx, aggregate, 0, at.kind != 'p'), f.apply)
	}
	read, err := tx.resume(ctx, aggregate, at, f)
	if err == nil && tx.keep != nil && at.IsZero() && read.due(t) {
		if s, ok := read.snapshot(t, f); ok {
			tx.keep(ctx, keeping{s, read.useless})
		}
	}
	return read.last, err
}

// resumed says how a state was read.
type resumed struct {
	last    Event
	from    int64  // the seq of the snapshot that it began with; 0: with none
	useless string // the digest of a snapshot that is of no use to anybody; "": there is none
}

// due: so many events had to be folded that the next load shall not do it again.
func (r resumed) due(t *aggregateType) bool { return r.last.Seq-r.from >= int64(t.every) }

// snapshot is what f has come to.
func (r resumed) snapshot(t *aggregateType, f engine) (s Snapshot, ok bool) {
	text, ok := f.text()
	if !ok || len(text) > MaxPayloadBytes {
		return s, false
	}
	s = Snapshot{Aggregate: r.last.Aggregate, Seq: r.last.Seq, EventID: r.last.ID, Fingerprint: t.fingerprint, State: text}
	s.Digest = s.digest()
	return s, true
}

// errReplay: the snapshot is not what it seemed, and everything is to be read again.
var errReplay = errors.New("replay")

// resume brings f to a moment, the latest or a seq, from the snapshot on that there is, if it is one of this fold and all
// that it says of itself is true. It takes no round trip more than reading the events does.
func (tx *Tx) resume(ctx context.Context, aggregate Ref, at At, f engine) (read resumed, err error) {
	t := tx.archive.config.Catalog.snapshots(aggregate.Type)
	upTo := int64(math.MaxInt64)
	if at.kind == 's' {
		upTo = at.number
	}
	var found *Snapshot
	first := func(ctx context.Context, asked Stretch, page []Event) (_ []Event, more bool, err error) {
		page, more, found, err = tx.session.Resume(ctx, asked, t.fingerprint, upTo, page)
		return page, more, err
	}
	var problem string
	read.last, err = tx.replay(ctx, aggregate, at, tx.paged(ctx, aggregate, 0, true, first), func(e Event) error {
		if found == nil || found.State == nil || e.Seq != found.Seq {
			return f.apply(e)
		}
		if problem = found.problem(e, t.fingerprint, f); problem != "" {
			return errReplay
		}
		read.from = e.Seq
		return nil
	})
	if errors.Is(err, errReplay) {
		read.last, err = tx.replay(ctx, aggregate, at, tx.events(ctx, aggregate, 0, true), f.apply)
	}
	if err != nil || found == nil || read.from > 0 {
		return read, err
	}
	log := tx.archive.config.Logger
	switch {
	case problem != "":
	case found.Fingerprint != t.fingerprint:
		read.useless = found.Digest
		log.DebugContext(ctx, "rea: a snapshot of another fold is ignored", "aggregate", aggregate.String())
		return read, nil
	case found.Seq > upTo:
		return read, nil // it is later than the moment
	case found.Seq > read.last.Seq:
		problem = "it is ahead of the events"
	default:
		problem = "its event is another one"
	}
	read.useless = found.Digest
	log.WarnContext(ctx, "rea: a snapshot is ignored, the events are read instead", "aggregate", aggregate.String(), "reason", problem)
	return read, nil
}

// problem makes s the state of f, or says why it must not be. e is the event at its seq.
func (s *Snapshot) problem(e Event, fingerprint string, f engine) string {
	switch {
	case s.EventID != e.ID || s.Fingerprint != fingerprint:
		return "it is of another event"
	case s.Digest != s.digest():
		return "it is damaged"
	case f.read(s.State) != nil:
		return "its state cannot be read"
	}
	return ""
}

// text is the state as JSON, where reading it back gives the same: a field that JSON does not hold would be lost.
func (f *folding) text() (json.RawMessage, bool) {
	text, err := marshal(f.state)
	if err != nil {
		return nil, false
	}
	again := reflect.New(f.of.state)
	if decodeInto(text, again.Interface()) != nil || !reflect.DeepEqual(again.Interface(), f.state) {
		return nil, false
	}
	return text, true
}

// snapshots gives an aggregate type that has snapshots, nil where it is none.
func (c *Catalog) snapshots(aggregateType string) *aggregateType {
	if c == nil {
		return nil
	}
	if a := c.types[aggregateType]; a != nil && a.every > 0 {
		return a
	}
	return nil
}
