package rea

import (
	"errors"
	"fmt"
	"strings"
)

// refusal is the class of an error: one word that is the same in Go, SQL (column refused of rea.try_append),
// JSON (field code) and HTTP. Callers branch on it with errors.Is.
type refusal string

func (r refusal) Error() string { return "rea: " + string(r) }

// The classes of errors. Each typed error below answers errors.Is for one of them.
var (
	// ErrConflict: the aggregate is not at the seq that the caller expected (SQLSTATE RE001).
	ErrConflict error = refusal("conflict")
	// ErrIllegalStep: the state machine does not allow the event in the aggregate's status (SQLSTATE RE002).
	ErrIllegalStep error = refusal("illegal_step")
	// ErrUnknownType: an event type or version, or a Go type, that the catalog does not know (SQLSTATE RE006).
	ErrUnknownType error = refusal("unknown_type")
	// ErrUnknownStatus: a catalog to be applied does not know the present status of some aggregate.
	ErrUnknownStatus error = refusal("unknown_status")
	// ErrKeyReused: the idempotency key stands on another content (SQLSTATE RE003).
	ErrKeyReused error = refusal("key_reused")
	// ErrBadPayload: a payload or metadata that jsonb could not hold without loss (SQLSTATE RE004).
	ErrBadPayload error = refusal("bad_payload")
	// ErrLimit: a name, text, number or call outside the documented limits (SQLSTATE RE005).
	ErrLimit error = refusal("limit")
	// ErrImmutable: somebody tried to change or delete an event (SQLSTATE RE007).
	ErrImmutable error = refusal("immutable")
	// ErrHole: a given seq would leave a hole in its aggregate (SQLSTATE RE008).
	ErrHole error = refusal("hole")
	// ErrNewerSchema: the database was migrated by a newer REA; this one may read and not write (SQLSTATE RE009).
	ErrNewerSchema error = refusal("newer_schema")
	// ErrProjection: a projection cannot take what an event says (SQLSTATE RE010).
	ErrProjection error = refusal("projection")
	// ErrGuarded: a guard of a table of the application refuses the statement (SQLSTATE RE011).
	ErrGuarded error = refusal("guarded")
	// ErrNoBaseline: the object is in a guarded table already, and no event says what it was (SQLSTATE RE012).
	ErrNoBaseline error = refusal("no_baseline")
	// ErrNeedsRebuild: a followed projection does not go on from where it is; a rebuild helps.
	ErrNeedsRebuild error = refusal("needs_rebuild")
	// ErrNoSchema: the database has no REA schema, or an older one than this program needs.
	ErrNoSchema error = refusal("no_schema")
	// ErrNotFound: the aggregate has no events, or did not exist at the moment asked for.
	ErrNotFound error = refusal("not_found")
	// ErrNoSuchSeq: a seq or position beyond the last one was asked for.
	ErrNoSuchSeq error = refusal("no_such_seq")
	// ErrRetry: the database asks to run the transaction again (serialization failure, deadlock, busy).
	// Archive.Do does that by itself.
	ErrRetry error = refusal("retry")
	// ErrReadOnly: the server takes no writes at present (standby, or default_transaction_read_only);
	// nothing was stored, and a later try may succeed.
	ErrReadOnly error = refusal("read_only")
	// ErrNotConfirmed: something that cannot be undone was not confirmed.
	ErrNotConfirmed error = refusal("not_confirmed")
)

// Code gives the class of err as one word ("conflict", "limit"...), or "" where err is none of REA's.
func Code(err error) string {
	for _, class := range []error{
		ErrConflict, ErrIllegalStep, ErrUnknownType, ErrUnknownStatus, ErrKeyReused, ErrBadPayload, ErrLimit, ErrImmutable, ErrHole,
		ErrNewerSchema, ErrProjection, ErrGuarded, ErrNoBaseline, ErrNeedsRebuild, ErrNoSchema, ErrNotFound, ErrNoSuchSeq, ErrRetry, ErrReadOnly, ErrNotConfirmed,
	} {
		if errors.Is(err, class) {
			return string(class.(refusal))
		}
	}
	return ""
}

// ConflictError says that the aggregate is not at the expected seq. It answers errors.Is for ErrConflict.
type ConflictError struct {
	Aggregate Ref
	Expected  int64 // the last seq that the caller believed in; 0: the aggregate must not exist
	Actual    int64 // the last seq that is stored; 0: no events
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("rea: append to %s: expected seq %d, the last one is %d: load it again and retry", e.Aggregate, e.Expected, e.Actual)
}

// Is reports whether target is ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// KeyReusedError says that an idempotency key was used before with another content.
// It answers errors.Is for ErrKeyReused.
type KeyReusedError struct {
	Aggregate Ref
	Key       string
	Seq       int64 // the seq of the stored event that carries the key
}

func (e *KeyReusedError) Error() string {
	return fmt.Sprintf("rea: append to %s: key %q stands on seq %d with other content: use a new key for a new request", e.Aggregate, clip(e.Key), e.Seq)
}

// Is reports whether target is ErrKeyReused.
func (e *KeyReusedError) Is(target error) bool { return target == ErrKeyReused }

// PayloadError says which place of a payload (or of metadata) cannot be stored without loss.
// It carries no payload data. It answers errors.Is for ErrBadPayload.
type PayloadError struct {
	Aggregate Ref    // zero where the payload was checked by itself
	Path      string // where: $.items[3].name
	Problem   string // what: "duplicate key", "lone surrogate"...
	Err       error  // of a Go value that could not be written as JSON; it may show data. Mostly nil
}

func (e *PayloadError) Error() string {
	return fmt.Sprintf("rea: %spayload at %s: %s", appendTo(e.Aggregate), clip(e.Path), e.Problem)
}

// Is reports whether target is ErrBadPayload.
func (e *PayloadError) Is(target error) bool { return target == ErrBadPayload }

func (e *PayloadError) Unwrap() error { return e.Err }

// LimitError says which name, text or call is outside REA's limits. It answers errors.Is for ErrLimit.
type LimitError struct {
	Aggregate Ref    // zero where the value was checked by itself
	What      string // the field or measure: "aggregate_type", "payload", "events"...
	Limit     int64  // the limit in the unit of Problem; 0 where the rule is none of size
	Path      string // for a payload: where
	Problem   string // "is 3000 bytes long, the limit is 200", "has a trailing space"...
}

func (e *LimitError) Error() string {
	at := ""
	if e.Path != "" {
		at = " at " + clip(e.Path)
	}
	return fmt.Sprintf("rea: %s%s%s %s", appendTo(e.Aggregate), e.What, at, e.Problem)
}

// Is reports whether target is ErrLimit.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// ImmutableError says that an event was to be changed or deleted. It answers errors.Is for ErrImmutable.
type ImmutableError struct {
	Operation string // UPDATE, DELETE, TRUNCATE
}

func (e *ImmutableError) Error() string {
	return fmt.Sprintf("rea: %s refused: events are only ever inserted", e.Operation)
}

// Is reports whether target is ErrImmutable.
func (e *ImmutableError) Is(target error) bool { return target == ErrImmutable }

// HoleError says that a given seq does not follow the last one. It answers errors.Is for ErrHole.
type HoleError struct {
	Aggregate Ref
	Seq       int64 // the seq that was given
	Actual    int64 // the last seq that is stored
}

func (e *HoleError) Error() string {
	return fmt.Sprintf("rea: append to %s: seq %d would leave a hole, the next one is %d", e.Aggregate, e.Seq, e.Actual+1)
}

// Is reports whether target is ErrHole.
func (e *HoleError) Is(target error) bool { return target == ErrHole }

// SchemaError says that the database's schema and this program do not fit.
// It answers errors.Is for ErrNewerSchema where Found > Known, for ErrNoSchema otherwise.
type SchemaError struct {
	Found int // version in the database; 0: none
	Known int // newest version that this program knows
}

func (e *SchemaError) Error() string {
	switch {
	case e.Found > e.Known:
		return fmt.Sprintf("rea: the database has schema version %d, this program knows %d: upgrade the program, or restore the database to version %d; reading is allowed, writing is not", e.Found, e.Known, e.Known)
	case e.Found == 0:
		return "rea: the database has no REA schema: run `rea migrate up` (in Go: archive.Migrate)"
	default:
		return fmt.Sprintf("rea: the database has schema version %d, this program needs %d: run `rea migrate up` (in Go: archive.Migrate)", e.Found, e.Known)
	}
}

// Is reports whether target is ErrNewerSchema or ErrNoSchema, whichever the versions mean.
func (e *SchemaError) Is(target error) bool {
	if e.Found > e.Known {
		return target == ErrNewerSchema
	}
	return target == ErrNoSchema
}

// NotFoundError says that an aggregate did not exist (yet) at the moment asked for.
// It answers errors.Is for ErrNotFound.
type NotFoundError struct {
	Aggregate Ref
	At        At // the zero At: no events at all
}

func (e *NotFoundError) Error() string {
	if e.At.IsZero() {
		return fmt.Sprintf("rea: %s does not exist: it has no events", e.Aggregate)
	}
	return fmt.Sprintf("rea: %s did not exist at %s", e.Aggregate, e.At)
}

// Is reports whether target is ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// NoSuchSeqError says that a moment beyond the last event was asked for by number.
// It answers errors.Is for ErrNoSuchSeq.
type NoSuchSeqError struct {
	Aggregate Ref
	At        At
	Last      int64 // the last seq of the aggregate, or the last position of the archive
}

func (e *NoSuchSeqError) Error() string {
	return fmt.Sprintf("rea: %s: no such %s, the last is %d", e.Aggregate, e.At, e.Last)
}

// Is reports whether target is ErrNoSuchSeq.
func (e *NoSuchSeqError) Is(target error) bool { return target == ErrNoSuchSeq }

// NotConfirmedError says that uninstalling was not confirmed with the number of stored events.
// It answers errors.Is for ErrNotConfirmed.
type NotConfirmedError struct {
	Events int64 // stored
	Given  int64 // confirmed
}

func (e *NotConfirmedError) Error() string {
	return fmt.Sprintf("rea: uninstall: the archive holds %d events, %d were confirmed: confirm with the exact number", e.Events, e.Given)
}

// Is reports whether target is ErrNotConfirmed.
func (e *NotConfirmedError) Is(target error) bool { return target == ErrNotConfirmed }

func appendTo(r Ref) string {
	if r == (Ref{}) {
		return ""
	}
	return "append to " + r.String() + ": "
}

// clip shortens a value for a message; names may be hostile and 100,000 characters long.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return strings.ToValidUTF8(s, "?")
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
