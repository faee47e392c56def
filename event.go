package rea

import (
	"encoding/json"
	"fmt"
	"time"
)

// Ref names one aggregate: a business object by its type and id.
type Ref struct {
	Type string // "order"; 1..200 bytes, see the package comment on names
	ID   string // "10086"; always text, compared byte by byte
}

// String gives type/id, shortened where it is long; for people, not for parsing.
func (r Ref) String() string { return clip(r.Type) + "/" + clip(r.ID) }

// NewEvent is a fact that is about to be appended.
type NewEvent struct {
	Type    string          // "PaymentReceived"
	Version int             // of the payload's form; 0: the newest that the applied catalog declares, else 1
	Payload json.RawMessage // a JSON object; nil: {}
}

// Event is a stored fact. Text fields that were not given are "".
type Event struct {
	ID             int64 // storage id; never an order for followers
	Position       int64 // number in the whole archive; 0: not numbered yet
	Aggregate      Ref
	Seq            int64 // number within the aggregate: 1, 2, 3...
	Type           string
	Version        int
	Payload        json.RawMessage // in jsonb's text form, digit for digit
	Status         string          // of the aggregate after this event; "": no state machine
	CatalogVersion int             // 0: no state machine
	Correction     bool
	Actor          string // claimed
	Reason         string // claimed
	Correlation    string
	Key            string // idempotency key, on the first event of its call
	KeyEvents      int    // number of events of that call
	Metadata       json.RawMessage
	XID            string    // transaction that wrote it; a label
	DBUser         string    // observed login; "" on SQLite
	ContextID      int64     // what was observed about the statement that a guard or a baseline recorded (Tx.Contexts); 0: nothing more
	CreatedAt      time.Time // UTC, microseconds; for people, never an order
	RecordedAt     time.Time // zero: CreatedAt is the recording time
}

// TimeLayout is the form of every time that REA prints: RFC 3339, UTC, six digits.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// FormatTime prints t as TimeLayout in UTC, whatever its zone.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeLayout) }

// ParseTime reads an RFC 3339 time with up to six digits after the second and year 1 to 9999.
func ParseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is no RFC 3339 time such as 2024-06-01T12:00:00Z", clip(s))
	}
	if err := checkTime("time", t); err != nil {
		return time.Time{}, err
	}
	return t.UTC(), nil
}

// checkTime refuses what a store could not give back unchanged: parts of a microsecond, and years
// that RFC 3339 cannot write.
func checkTime(what string, t time.Time) error {
	if t.Nanosecond()%1000 != 0 {
		return &LimitError{What: what, Problem: "has parts of a microsecond, at most six digits are kept"}
	}
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		return &LimitError{What: what, Problem: "is outside the years 1 to 9999"}
	}
	return nil
}

// Receipt is the answer to an append: what is stored, once.
type Receipt struct {
	Aggregate Ref
	Events    []Stored // one per event of the call, in order
	Duplicate bool     // the key was known: these are the events of the first call, nothing new is stored
}

// Stored names one event that an append has stored.
type Stored struct {
	ID     int64
	Seq    int64
	Status string // "": no state machine
}

// Seq is the seq of the last event of the call.
func (r Receipt) Seq() int64 { return r.last().Seq }

// Status is the aggregate's status after the last event of the call; "": no state machine.
func (r Receipt) Status() string { return r.last().Status }

func (r Receipt) last() Stored {
	if len(r.Events) == 0 {
		return Stored{}
	}
	return r.Events[len(r.Events)-1]
}

// eventJSON fixes names and order of an event's JSON: the column names, numbers as numbers,
// ids of people's systems as strings, null for what was not given.
type eventJSON struct {
	Position       *int64          `json:"position"`
	ID             int64           `json:"id"`
	AggregateType  string          `json:"aggregate_type"`
	AggregateID    string          `json:"aggregate_id"`
	Seq            int64           `json:"seq"`
	EventType      string          `json:"event_type"`
	EventVersion   int             `json:"event_version"`
	Payload        json.RawMessage `json:"payload"`
	Status         *string         `json:"status"`
	CatalogVersion *int            `json:"catalog_version"`
	Correction     bool            `json:"correction"`
	ActorID        *string         `json:"actor_id"`
	Reason         *string         `json:"reason"`
	CorrelationID  *string         `json:"correlation_id"`
	IdempotencyKey *string         `json:"idempotency_key"`
	KeyEvents      *int            `json:"key_events"`
	Metadata       json.RawMessage `json:"metadata"`
	XID            *string         `json:"xid"`
	DBUser         *string         `json:"db_user"`
	CreatedAt      string          `json:"created_at"`
	RecordedAt     *string         `json:"recorded_at"`
	ContextID      *int64          `json:"context_id"`
}

// MarshalJSON writes e with the names of the table's columns (the contract of `rea log --json` and /api).
func (e Event) MarshalJSON() ([]byte, error) {
	j := eventJSON{
		Position: optional(e.Position), ID: e.ID,
		AggregateType: e.Aggregate.Type, AggregateID: e.Aggregate.ID, Seq: e.Seq,
		EventType: e.Type, EventVersion: e.Version, Payload: e.Payload,
		Status: optional(e.Status), CatalogVersion: optional(e.CatalogVersion), Correction: e.Correction,
		ActorID: optional(e.Actor), Reason: optional(e.Reason), CorrelationID: optional(e.Correlation),
		IdempotencyKey: optional(e.Key), KeyEvents: optional(e.KeyEvents), Metadata: e.Metadata,
		XID: optional(e.XID), DBUser: optional(e.DBUser), CreatedAt: FormatTime(e.CreatedAt),
		ContextID: optional(e.ContextID),
	}
	if !e.RecordedAt.IsZero() {
		j.RecordedAt = optional(FormatTime(e.RecordedAt))
	}
	return marshal(j)
}

func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
