package postgres

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/realtime-event-archive/rea"
)

// foldColumns are what folding takes, of rea.events e. Columns that may be null come as they are: on a page of
// thousands, coalesce would take the server a third more time.
const foldColumns = `
       e.id, e.seq, e.event_type, e.event_version, e.payload, e.created_at, e.status, e.catalog_version, e.correction,
       e.actor_id, e.reason, e.correlation_id, e.idempotency_key, e.key_events, e.metadata`

// eventColumns are all of an event, of rea.events e and rea.feed f.
const eventColumns = foldColumns + `, e.aggregate_type, e.aggregate_id, f.position, e.xid::text, e.db_user, e.recorded_at, e.context_id`

// event scans rows of eventColumns, or of foldColumns, one after the other.
type event struct {
	rea.Event
	payload, metadata                       []byte
	status, actor, reason, correlation, key *string
	position, context                       *int64
	catalog, keyEvents                      *int
	recorded                                *time.Time

	tag, state *string // of resumeSQL
	found      *rea.Snapshot

	usual *bool             // the driver gives the columns in the formats that read reads; nil: not looked at
	names map[string]string // that occur again and again
	chunk []byte            // memory of payloads
}

func (e *event) foldDest() []any {
	return []any{
		&e.ID, &e.Seq, &e.Type, &e.Version, &e.payload, &e.CreatedAt, &e.status, &e.catalog, &e.Correction,
		&e.actor, &e.reason, &e.correlation, &e.key, &e.keyEvents, &e.metadata,
	}
}

func (e *event) dest() []any {
	return append(e.foldDest(), &e.Aggregate.Type, &e.Aggregate.ID, &e.position, &e.XID, &e.DBUser, &e.recorded, &e.context)
}

// scan puts the event of the present row into v. Through pgx it is read without reflection, which halves the time.
func (e *event) scan(r rows, dest []any, v *rea.Event) error {
	if p, ok := r.(pgxRows); ok {
		if e.usual == nil {
			usual := formats(p.FieldDescriptions(), columnTypes)
			e.usual = &usual
		}
		if *e.usual && e.read(p.RawValues(), v) {
			return nil
		}
	}
	if err := r.Scan(dest...); err != nil {
		return err
	}
	*v = e.value()
	return nil
}

// value gives the event that was scanned. The next row is scanned into memory of its own.
func (e *event) value() rea.Event {
	v := e.Event
	v.Payload, v.Metadata = e.payload, e.metadata
	v.Status, v.Actor, v.Reason, v.Correlation, v.Key = given(e.status), given(e.actor), given(e.reason), given(e.correlation), given(e.key)
	v.CatalogVersion, v.KeyEvents, v.Position = given(e.catalog), given(e.keyEvents), given(e.position)
	v.ContextID = given(e.context)
	v.CreatedAt, v.RecordedAt = v.CreatedAt.UTC(), given(e.recorded).UTC()
	e.payload, e.metadata = nil, nil
	return v
}

// given is what NULL is not.
func given[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}

// foldWidth is the number of foldColumns.
const foldWidth = 15

// columnTypes are the types of eventColumns. Those of resumeSQL are a part of it.
var columnTypes = []uint32{
	pgtype.Int8OID, pgtype.Int8OID, pgtype.TextOID, pgtype.Int4OID, pgtype.JSONBOID, pgtype.TimestamptzOID, pgtype.TextOID, pgtype.Int4OID, pgtype.BoolOID,
	pgtype.TextOID, pgtype.TextOID, pgtype.TextOID, pgtype.TextOID, pgtype.Int4OID, pgtype.JSONBOID,
	pgtype.TextOID, pgtype.TextOID, pgtype.Int8OID, pgtype.TextOID, pgtype.TextOID, pgtype.TimestamptzOID, pgtype.Int8OID,
}

// formats reports whether columns of these types come as read reads them: texts as text, everything else in binary. It is so unless
// the program has chosen the simple protocol, or codecs of its own.
func formats(columns []pgconn.FieldDescription, types []uint32) bool {
	if len(columns) > len(types) {
		return false
	}
	for i, c := range columns {
		format := int16(pgtype.BinaryFormatCode)
		if c.DataTypeOID == pgtype.TextOID || c.DataTypeOID == pgtype.JSONBOID {
			format = pgtype.TextFormatCode
		}
		if c.DataTypeOID != types[i] || c.Format != format {
			return false
		}
	}
	return true
}

// read reads a row in the formats of formats into v, a zero Event. It reports false for a time that is none.
func (e *event) read(raw [][]byte, v *rea.Event) bool {
	v.ID, v.Aggregate, v.Seq = e.int8(raw[0]), e.Aggregate, e.int8(raw[1])
	v.Type, v.Version, v.Payload = e.name(raw[2]), e.int4(raw[3]), e.bytes(raw[4])
	v.Status, v.CatalogVersion, v.Correction = e.name(raw[6]), e.int4(raw[7]), raw[8][0] != 0
	v.Actor, v.Reason, v.Correlation = e.name(raw[9]), string(raw[10]), string(raw[11])
	v.Key, v.KeyEvents, v.Metadata = string(raw[12]), e.int4(raw[13]), e.bytes(raw[14])
	ok := e.time(&v.CreatedAt, raw[5])
	switch len(raw) {
	case len(columnTypes):
		v.Aggregate = rea.Ref{Type: e.name(raw[15]), ID: string(raw[16])}
		v.Position, v.XID, v.DBUser = e.int8(raw[17]), string(raw[18]), e.name(raw[19])
		ok = ok && (raw[20] == nil || e.time(&v.RecordedAt, raw[20]))
		v.ContextID = e.int8(raw[21])
	case foldWidth + 2:
		e.tag, e.state = text(raw[15]), text(raw[16])
	}
	return ok
}

func text(raw []byte) *string {
	if raw == nil {
		return nil
	}
	s := string(raw)
	return &s
}

func (*event) int8(raw []byte) int64 {
	if raw == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(raw))
}

func (*event) int4(raw []byte) int {
	if raw == nil {
		return 0
	}
	return int(int32(binary.BigEndian.Uint32(raw)))
}

// epoch is 2000-01-01, from which PostgreSQL counts microseconds.
const epoch = 946_684_800_000_000

func (*event) time(t *time.Time, raw []byte) bool {
	micros := int64(binary.BigEndian.Uint64(raw))
	*t = time.UnixMicro(micros + epoch).UTC()
	return micros != math.MaxInt64 && micros != math.MinInt64 // infinity
}

// name is string for what occurs again and again.
func (e *event) name(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	if name, ok := e.names[string(raw)]; ok {
		return name
	}
	if e.names == nil || len(e.names) > 100 {
		e.names = make(map[string]string)
	}
	name := string(raw)
	e.names[name] = name
	return name
}

// bytes copies what is the driver's. Payloads share memory by the chunk, small enough for who keeps one of them.
func (e *event) bytes(raw []byte) []byte {
	const most = 4 << 10
	if raw == nil {
		return nil
	}
	if len(raw) > cap(e.chunk)-len(e.chunk) {
		e.chunk = make([]byte, 0, max(len(raw), min(2*cap(e.chunk), most)))
	}
	from := len(e.chunk)
	e.chunk = append(e.chunk, raw...)
	return e.chunk[from:len(e.chunk):len(e.chunk)]
}
