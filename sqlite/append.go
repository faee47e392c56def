package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"strconv"
	"time"

	"github.com/realtime-event-archive/rea"
)

// head is what an append must know of the file and the aggregate.
type head struct {
	version   int    // of the schema
	at        place  // of the last event; seq 0: no events
	keySeq    int64  // of the event that carries the key; 0: none
	keyEvents int64  // of the call that stored it
	id        int64  // the highest one of all
	number    int    // of the newest catalog; 0: none
	applied   string // when it was applied
	views     string // fingerprints of the inline projections
}

// headOfSQL reads through events_aggregate_seq_key and rea_events_idempotency_key.
const headOfSQL = `
SELECT coalesce((SELECT max(version) FROM rea_schema_migrations), 0),
       coalesce(l.seq, 0), coalesce(l.status, ''), coalesce(l.catalog_version, 0),
       coalesce((SELECT seq FROM rea_events WHERE aggregate_type = ?1 AND aggregate_id = ?2 AND idempotency_key = ?3), 0),
       coalesce((SELECT key_events FROM rea_events WHERE aggregate_type = ?1 AND aggregate_id = ?2 AND idempotency_key = ?3), 0),
       coalesce((SELECT max(id) FROM rea_events), 0),
       coalesce((SELECT max(number) FROM rea_catalogs), 0),
       coalesce((SELECT applied_at FROM rea_catalogs ORDER BY number DESC LIMIT 1), ''),
       coalesce((SELECT group_concat(fingerprint) FROM rea_projections WHERE mode = 'inline'), '')
FROM (SELECT 1) LEFT JOIN (SELECT seq, status, catalog_version FROM rea_events
                           WHERE aggregate_type = ?1 AND aggregate_id = ?2 ORDER BY seq DESC LIMIT 1) l`

func (s *session) head(ctx context.Context, aggregate rea.Ref, key string) (h head, err error) {
	err = one(ctx, s.db, []any{&h.version, &h.at.seq, &h.at.status, &h.at.catalog, &h.keySeq, &h.keyEvents, &h.id, &h.number, &h.applied, &h.views},
		headOfSQL, aggregate.Type, aggregate.ID, optional(key))
	if err == nil && h.version != len(steps) {
		s.store.found.Store(0)
		return h, &rea.SchemaError{Found: h.version, Known: len(steps)}
	}
	return h, s.store.mapError("append to "+aggregate.String(), err)
}

// Append looks first, so that a refusal writes nothing, and then stores all in one INSERT, which SQLite takes back
// as a whole where it fails.
func (s *session) Append(ctx context.Context, call rea.Call) (rea.Receipt, error) {
	h, err := s.head(ctx, call.Aggregate, call.Key)
	if err != nil {
		return rea.Receipt{}, err
	}
	if h.keySeq > 0 {
		return s.known(ctx, call, h)
	}
	if call.Expect != nil && *call.Expect != h.at.seq {
		return rea.Receipt{}, &rea.ConflictError{Aggregate: call.Aggregate, Expected: *call.Expect, Actual: h.at.seq}
	}
	m, err := s.machine(ctx, h)
	if err != nil {
		return rea.Receipt{}, err
	}
	events, err := s.step(ctx, m, call, h.at)
	if err != nil {
		return rea.Receipt{}, err
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	var kept []keptRow
	if len(m.tables[call.Aggregate.Type]) > 0 {
		if kept, err = s.keep(ctx, m, call.Aggregate, asStored(call, events, now)); err != nil {
			return rea.Receipt{}, err
		}
	}
	xid := s.transaction(ctx, h.id)
	if err := ctx.Err(); err != nil {
		return rea.Receipt{}, s.store.mapError("append to "+call.Aggregate.String(), err)
	}
	// Not interrupted: SQLite would roll back the whole transaction, and what came after in it would
	// commit statement by statement.
	ctx = context.WithoutCancel(ctx)
	var last int64
	err = s.together(ctx, kept, func() error {
		result, err := s.insert(ctx, call, events, xid, rea.FormatTime(now))
		if err == nil {
			last, err = result.LastInsertId()
		}
		return err
	})
	if err != nil {
		return rea.Receipt{}, s.store.insertError(call.Aggregate, err)
	}
	receipt := rea.Receipt{Aggregate: call.Aggregate, Events: make([]rea.Stored, len(call.Events))}
	for i := range receipt.Events {
		receipt.Events[i] = rea.Stored{ID: last - int64(len(call.Events)-1-i), Seq: events[i].seq, Status: events[i].status}
	}
	return receipt, nil
}

const insertSQL = `
INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, event_version, payload, correction,
                        actor_id, reason, correlation_id, idempotency_key, key_events, metadata, xid, status, catalog_version,
                        created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, nullif(?16, 0), ?17)`

// insertBatchSQL takes the events as [["type",version,"payload","status",catalog],...]: a payload is a JSON string in it, so that
// SQLite's JSON functions give it back byte by byte.
const insertBatchSQL = `
INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, event_version, payload, correction,
                        actor_id, reason, correlation_id, idempotency_key, key_events, metadata, xid, status, catalog_version,
                        created_at)
SELECT ?1, ?2, ?3 + key, json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), ?5,
       ?6, ?7, ?8, iif(key = 0, ?9, NULL), iif(key = 0, ?10, NULL), ?11, ?12,
       nullif(json_extract(value, '$[3]'), ''), nullif(json_extract(value, '$[4]'), 0), ?13
FROM json_each(?4)
ORDER BY key`

func (s *session) insert(ctx context.Context, call rea.Call, events []stepped, xid, now string) (sql.Result, error) {
	var keyEvents any
	if call.Key != "" {
		keyEvents = int64(len(call.Events))
	}
	a := call.Aggregate
	if len(call.Events) > 1 {
		return s.db.ExecContext(ctx, insertBatchSQL, a.Type, a.ID, events[0].seq, eventsJSON(events), number(call.Correction),
			optional(call.Actor), optional(call.Reason), optional(call.Correlation), optional(call.Key), keyEvents, optional(string(call.Metadata)), xid, now)
	}
	e := events[0]
	return s.db.ExecContext(ctx, insertSQL, a.Type, a.ID, e.seq, e.Type, int64(e.Version), string(e.Payload), number(call.Correction),
		optional(call.Actor), optional(call.Reason), optional(call.Correlation), optional(call.Key), keyEvents, optional(string(call.Metadata)), xid,
		optional(e.status), int64(e.catalog), now)
}

func eventsJSON(events []stepped) string {
	b := []byte{'['}
	for i, e := range events {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(e.Type) // a string always has a form
		payload, _ := json.Marshal(string(e.Payload))
		b = append(append(append(b, '['), name...), ',')
		b = append(strconv.AppendInt(b, int64(e.Version), 10), ',')
		status, _ := json.Marshal(e.status)
		b = append(append(append(append(b, payload...), ','), status...), ',')
		b = append(strconv.AppendInt(b, int64(e.catalog), 10), ']')
	}
	return string(append(b, ']'))
}

const knownSQL = `
SELECT id, seq, coalesce(status, ''), event_type, event_version, payload
FROM rea_events
WHERE aggregate_type = ?1 AND aggregate_id = ?2 AND seq >= ?3
ORDER BY seq
LIMIT ?4`

// known answers a call whose key stands on an event: with the first result, or *rea.KeyReusedError.
func (s *session) known(ctx context.Context, call rea.Call, h head) (rea.Receipt, error) {
	receipt := rea.Receipt{Aggregate: call.Aggregate, Duplicate: true}
	same := int(h.keyEvents) == len(call.Events)
	var (
		stored rea.Stored
		event  rea.NewEvent
	)
	err := each(ctx, s.db, func() error {
		if i := len(receipt.Events); same {
			same = sameEvent(call.Events[i], event, event.Version)
		}
		receipt.Events = append(receipt.Events, stored)
		return nil
	}, []any{&stored.ID, &stored.Seq, &stored.Status, &event.Type, &event.Version, (*[]byte)(&event.Payload)},
		knownSQL, call.Aggregate.Type, call.Aggregate.ID, h.keySeq, h.keyEvents)
	if err != nil {
		return rea.Receipt{}, s.store.mapError("append to "+call.Aggregate.String(), err)
	}
	if !same || len(receipt.Events) != len(call.Events) {
		return rea.Receipt{}, &rea.KeyReusedError{Aggregate: call.Aggregate, Key: call.Key, Seq: h.keySeq}
	}
	return receipt, nil
}

// sameEvent compares a given event with a stored one. unsaid is the version that a given 0 stands for.
func sameEvent(given, stored rea.NewEvent, unsaid int) bool {
	version := given.Version
	if version == 0 {
		version = unsaid
	}
	return given.Type == stored.Type && version == stored.Version && rea.EqualJSON(given.Payload, stored.Payload)
}

// optional makes "" into NULL.
func optional(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
