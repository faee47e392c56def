package rea

import (
	"context"
	"encoding/json"
	"fmt"
)

// Limits that both stores keep.
const (
	MaxCallEvents    = 10_000   // events of one append
	MaxMetadataBytes = 64 << 10 // metadata, in jsonb's text form
	MaxCallBytes     = 32 << 20 // payloads of one append together, in jsonb's text form
	MaxPageBytes     = 16 << 20 // payloads read from the database at a time, ended by the event that passes it
)

// Tx is REA in one transaction: the user's own (Archive.Tx, Archive.SQLTx), one of REA's (Archive.Do), or none
// at all (Archive.Autocommit). REA never commits, rolls back or re-configures a transaction that it did not
// begin. A refused append leaves nothing behind and the transaction usable. It is as safe for concurrent use
// as the transaction under it.
type Tx struct {
	archive *Archive
	session Session
	options options
	turn    chan struct{}                  // holds one element while somebody appends; nil: they need not take turns
	keep    func(context.Context, keeping) // takes snapshots of what was loaded; nil: it may never commit
}

type options struct {
	expect      *int64
	actor       string
	reason      string
	correlation string
	key         string
	metadata    json.RawMessage
	correction  bool
}

// Option says something about the appends made through the Tx that With returns.
type Option func(*options)

// Expect says the last seq that the caller believes in; 0: the aggregate must not exist.
func Expect(seq int64) Option { return func(o *options) { o.expect = &seq } }

// By claims who acts, instead of Config.Actor.
func By(actor string) Option { return func(o *options) { o.actor = actor } }

// Because gives the reason, at most 4,096 bytes.
func Because(reason string) Option { return func(o *options) { o.reason = reason } }

// Correlate groups events of several aggregates under one id of the caller's.
func Correlate(id string) Option { return func(o *options) { o.correlation = id } }

// Once gives the call an idempotency key, whose scope is the aggregate: the same key with the same
// content stores once and gives the first result again; with other content it is a *KeyReusedError.
func Once(key string) Option { return func(o *options) { o.key = key } }

// Metadata adds a JSON object of the caller's (trace id, address), at most 64 KiB.
func Metadata(object json.RawMessage) Option { return func(o *options) { o.metadata = object } }

// Correction marks the events as a correction, which may make a step that is otherwise illegal.
// It needs an actor, a reason, and the database's operator right.
func Correction() Option { return func(o *options) { o.correction = true } }

// With returns a copy of tx whose appends carry the options.
func (tx *Tx) With(opts ...Option) *Tx {
	with := *tx
	for _, opt := range opts {
		opt(&with.options)
	}
	return &with
}

// Append stores events of one aggregate, all or nothing, in one statement. Each of events is a NewEvent, a payload whose
// Go type Config.Catalog has registered with On for the aggregate's type (the value or a pointer to it), or a
// []NewEvent. Errors: *UnregisteredError, *LimitError, *PayloadError (before any SQL), *SchemaError, *KeyReusedError, *ConflictError, *TransitionError, *UnknownTypeError, *ProjectionError, each
// leaving the transaction usable (but for a *ProjectionError of a column on PostgreSQL); ErrRetry, ErrReadOnly and the
// driver's own errors end it.
func (tx *Tx) Append(ctx context.Context, aggregate Ref, events ...any) (Receipt, error) {
	list, err := tx.archive.config.Catalog.newEvents(aggregate, events)
	if err != nil {
		return Receipt{}, err
	}
	call, err := tx.call(ctx, aggregate, list)
	if err != nil {
		return Receipt{}, err
	}
	if err := tx.session.Ready(ctx, true); err != nil {
		return Receipt{}, err
	}
	if len(tx.archive.config.Inline) > 0 {
		return tx.appendInline(ctx, call)
	}
	return tx.session.Append(ctx, call)
}

// call checks everything that can be checked without the database, in the order that SQL checks it too:
// names and limits first, then payloads.
func (tx *Tx) call(ctx context.Context, aggregate Ref, events []NewEvent) (Call, error) {
	o := tx.options
	if o.actor == "" {
		o.actor = tx.archive.config.Actor(ctx)
	}
	call := Call{
		Aggregate: aggregate, Events: events, Expect: o.expect, Actor: o.actor, Reason: o.reason,
		Correlation: o.correlation, Key: o.key, Metadata: o.metadata, Correction: o.correction,
	}
	if err := call.normalize(); err != nil {
		return Call{}, err
	}
	return call, nil
}

// normalize checks a call against REA's limits and brings its payloads into jsonb's text form, in place.
func (c *Call) normalize() error {
	if err := c.checkLimits(); err != nil {
		return inAppend(c.Aggregate, err)
	}
	total := 0
	for i := range c.Events {
		payload, err := normalPayload(c.Events[i].Payload)
		if err != nil {
			return inAppend(c.Aggregate, inEvent(err, i, len(c.Events)))
		}
		c.Events[i].Payload = payload
		if total += len(payload); total > MaxCallBytes {
			return inAppend(c.Aggregate, &LimitError{What: "events", Limit: MaxCallBytes, Problem: fmt.Sprintf("of one call have payloads of more than %d bytes together: make several calls", MaxCallBytes)})
		}
	}
	if c.Metadata != nil {
		metadata, err := NormalizeObject(c.Metadata, "metadata", MaxMetadataBytes)
		if err != nil {
			return inAppend(c.Aggregate, err)
		}
		c.Metadata = metadata
	}
	return nil
}

func (c *Call) checkLimits() error {
	if err := checkNames(c.Aggregate, c.Actor, c.Reason, c.Correlation, c.Key); err != nil {
		return err
	}
	if n := len(c.Events); n == 0 || n > MaxCallEvents {
		return &LimitError{What: "events", Limit: MaxCallEvents, Problem: fmt.Sprintf("of one call are 1 to %d, not %d", MaxCallEvents, n)}
	}
	if c.Expect != nil && *c.Expect < 0 {
		return &LimitError{What: "expect", Problem: "is negative: 0 means that the aggregate must not exist"}
	}
	if c.Correction && (c.Actor == "" || c.Reason == "") {
		return &LimitError{What: "correction", Problem: "needs an actor and a reason"}
	}
	for _, e := range c.Events {
		if err := checkEvent(e); err != nil {
			return err
		}
		if BuiltIn(e.Type) {
			return ownName(e.Type)
		}
	}
	return nil
}

func checkNames(aggregate Ref, actor, reason, correlation, key string) error {
	if err := checkName("aggregate_type", aggregate.Type); err != nil {
		return err
	}
	if err := checkName("aggregate_id", aggregate.ID); err != nil {
		return err
	}
	for _, optional := range []struct{ what, value string }{
		{"actor_id", actor}, {"correlation_id", correlation}, {"idempotency_key", key},
	} {
		if optional.value == "" {
			continue
		}
		if err := checkName(optional.what, optional.value); err != nil {
			return err
		}
	}
	return checkReason(reason)
}

func checkEvent(e NewEvent) error {
	if err := checkName("event_type", e.Type); err != nil {
		return err
	}
	if e.Version < 0 || e.Version > 1<<31-1 {
		return &LimitError{What: "event_version", Limit: 1<<31 - 1, Problem: fmt.Sprintf("is %d: it counts from 1", e.Version)}
	}
	return nil
}

func normalPayload(payload json.RawMessage) (json.RawMessage, error) {
	if payload == nil {
		return json.RawMessage("{}"), nil
	}
	return NormalizeObject(payload, "payload", MaxPayloadBytes)
}

// inAppend names the aggregate in an error that was found without knowing it.
func inAppend(aggregate Ref, err error) error {
	switch e := err.(type) {
	case *PayloadError:
		e.Aggregate = aggregate
	case *LimitError:
		e.Aggregate = aggregate
	}
	return err
}

// inEvent says which event of a batch it was.
func inEvent(err error, i, n int) error {
	if n == 1 {
		return err
	}
	switch e := err.(type) {
	case *PayloadError:
		e.Path = fmt.Sprintf("events[%d] %s", i, e.Path)
	case *LimitError:
		e.Path = fmt.Sprintf("events[%d] %s", i, e.Path)
	}
	return err
}
