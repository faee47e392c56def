package postgres

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/realtime-event-archive/rea"
)

// session implements rea.Session over either door.
type session struct {
	store *store
	db    conn
}

// appendSQL is the one statement of an append. The aggregate's last seq and the key are found through
// events_aggregate_seq_key and events_idempotency_key.
const appendSQL = `
SELECT coalesce(a.id, 0), coalesce(a.seq, 0), coalesce(a.status, ''), coalesce(a.duplicate, false), a.refused IS NOT NULL, a.detail::text
FROM rea.try_append($1::text, $2::text, $3::jsonb, $4::bigint, $5::text, $6::text, $7::text, $8::text, $9::jsonb, $10::boolean) a`

func (s *session) Append(ctx context.Context, call rea.Call) (rea.Receipt, error) {
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
