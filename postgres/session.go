package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/realtime-event-archive/rea"
)

// session implements rea.Session over either door.
type session struct {
	store *store
	db    conn
	alone bool // every statement is a transaction of its own
}

// appendSQL is an append, in any transaction. The aggregate's last seq and the key are found through
// events_aggregate_seq_key and events_idempotency_key.
const appendSQL = `
SELECT coalesce(a.id, 0), coalesce(a.seq, 0), coalesce(a.status, ''), coalesce(a.duplicate, false), a.refused IS NOT NULL, a.detail::text
FROM rea.try_append($1::text, $2::text, $3::jsonb, $4::bigint, $5::text, $6::text, $7::text, $8::text, $9::jsonb, $10::boolean) a`

// insertOneSQL stores one event for two thirds of what rea.try_append costs: the insert trigger makes the same checks. Where the
// seq is taken it gives no row; a null version is the newest.
const insertOneSQL = `
INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type, event_version, payload,
    actor_id, reason, correlation_id, idempotency_key, metadata)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (aggregate_type, aggregate_id, seq) DO NOTHING
RETURNING id, seq, coalesce(status, '')`

// Append is one statement. Where an INSERT in a transaction of its own stores nothing, rea.try_append finds out why: what it
// left behind is gone, and only rea.try_append knows an answer that was given before.
func (s *session) Append(ctx context.Context, call rea.Call) (rea.Receipt, error) {
	if s.alone && plain(call) {
		stored, ok, err := s.insert(ctx, call)
		if err != nil {
			return rea.Receipt{}, mapError("append to "+call.Aggregate.String(), err)
		}
		if ok {
			return rea.Receipt{Aggregate: call.Aggregate, Events: []rea.Stored{stored}}, nil
		}
	}
	return s.tryAppend(ctx, call)
}

// plain: a race or an illegal step is all that may be in the way of an INSERT. A key that comes again without an expectation is not
// rare enough, and after the largest seq there is none to insert.
func plain(call rea.Call) bool {
	return len(call.Events) == 1 && !call.Correction && (call.Key == "" || call.Expect != nil) &&
		(call.Expect == nil || *call.Expect < math.MaxInt64)
}

// insert stores the one event of a call. Where the database has refused it, nothing is stored and ok is false.
func (s *session) insert(ctx context.Context, call rea.Call) (stored rea.Stored, ok bool, err error) {
	e := call.Events[0]
	var seq *int64 // the trigger's to say
	if call.Expect != nil {
		next := *call.Expect + 1
		seq = &next
	}
	var version *int
	if e.Version != 0 {
		version = &e.Version
	}
	err = each(ctx, s.db, func() error {
		ok = true
		return nil
	}, []any{&stored.ID, &stored.Seq, &stored.Status}, insertOneSQL,
		call.Aggregate.Type, call.Aggregate.ID, seq, e.Type, version, string(e.Payload),
		optional(call.Actor), optional(call.Reason), optional(call.Correlation), optional(call.Key), optional(string(call.Metadata)))
	switch e := new(pgconn.PgError); {
	case !errors.As(err, &e):
		return stored, ok, err
	case e.ConstraintName == "events_pkey":
		return stored, false, &pgconn.PgError{Severity: "ERROR", Code: "55000", Hint: "SELECT rea.mend_sequence()",
			Message: "rea: the sequence rea.events_id_seq is behind the events: a new id is in use already"}
	case strings.HasPrefix(e.Code, "RE"), e.ConstraintName == "events_idempotency_key":
		return stored, false, nil
	}
	return stored, false, err
}

func (s *session) tryAppend(ctx context.Context, call rea.Call) (rea.Receipt, error) {
	receipt := rea.Receipt{Aggregate: call.Aggregate, Events: make([]rea.Stored, 0, len(call.Events))}
	var (
		stored  rea.Stored
		refused bool
		detail  []byte
	)
	err := each(ctx, s.db, func() error {
		receipt.Events = append(receipt.Events, stored)
		return nil
	}, []any{&stored.ID, &stored.Seq, &stored.Status, &receipt.Duplicate, &refused, &detail},
		appendSQL, call.Aggregate.Type, call.Aggregate.ID, eventsJSON(call.Events), call.Expect,
		optional(call.Actor), optional(call.Reason), optional(call.Correlation), optional(call.Key),
		optional(string(call.Metadata)), call.Correction)
	if err != nil {
		return rea.Receipt{}, mapError("append to "+call.Aggregate.String(), err)
	}
	if refused {
		return rea.Receipt{}, refusal(detail)
	}
	return receipt, nil
}

// eventsJSON gives [{"event_type","event_version","payload"}] as one text parameter.
func eventsJSON(events []rea.NewEvent) string {
	size := 2
	for _, e := range events {
		size += len(e.Type) + len(e.Payload) + 64
	}
	b := append(make([]byte, 0, size), '[')
	for i, e := range events {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(e.Type) // a string always has a form
		b = append(append(b, `{"event_type":`...), name...)
		if e.Version != 0 {
			b = strconv.AppendInt(append(b, `,"event_version":`...), int64(e.Version), 10)
		}
		b = append(append(append(b, `,"payload":`...), e.Payload...), '}')
	}
	return string(append(b, ']'))
}

// optional makes "" into NULL.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
