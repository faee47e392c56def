package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/realtime-event-archive/rea"
)

// sqlState gives the SQLSTATE of an error of any driver; "" where there is none.
func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// mapError says what was being done and gives the class that callers branch on.
func mapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	class := error(nil)
	if viewGone(err) {
		return fmt.Errorf("rea: %s: the table of an inline projection is gone: `rea catalog apply` makes it again (in Go: archive.Apply): %w", doing, err)
	}
	switch sqlState(err) {
	case "40001", "40P01":
		class = rea.ErrRetry
	case "25006": // standby, or default_transaction_read_only
		class = rea.ErrReadOnly
	case "3F000", "42P01", "42883":
		class = rea.ErrNoSchema
	case "RE007":
		class = rea.ErrImmutable
	case "RE011":
		if refused := valueRefused(err); refused != nil {
			return refused
		}
		class = rea.ErrGuarded
	case "RE010":
		if refused := valueRefused(err); refused != nil {
			return refused
		}
		class = rea.ErrProjection
	}
	if class != nil {
		return fmt.Errorf("rea: %s: %w (%w)", doing, class, err)
	}
	return fmt.Errorf("rea: %s: %w", doing, err)
}

// valueRefused gives the typed error of a value that a column of an inline projection cannot take, and of a statement that a
// guard refuses; nil: the driver does not hand DETAIL on.
func valueRefused(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != "RE010" && e.Code != "RE011" {
		return nil
	}
	return refusal([]byte(e.Detail))
}

// explain names a wrapper that formats queries itself: it drops the arguments, and the server misses $1, or pgx
// sees that they are too few.
func (c sqlConn) explain(err error) error {
	if sqlState(err) == "42P02" || err != nil && strings.HasSuffix(err.Error(), " arguments, got 0") {
		return fmt.Errorf("%T formats queries itself and drops their arguments: pass the *sql.Tx inside it (for bun.Tx: tx.Tx): %w", c.db, err)
	}
	return err
}

// detail is the JSON of a refusal, in column detail of rea.try_append and in DETAIL of an error.
type detail struct {
	Code          string   `json:"code"`
	Message       string   `json:"message"`
	AggregateType string   `json:"aggregate_type"`
	AggregateID   string   `json:"aggregate_id"`
	Expected      int64    `json:"expected"`
	Actual        int64    `json:"actual"`
	Key           string   `json:"key"`
	Seq           int64    `json:"seq"`
	Path          string   `json:"path"`
	What          string   `json:"what"`
	Limit         int64    `json:"limit"`
	Operation     string   `json:"operation"`
	EventType     string   `json:"event_type"`
	Status        string   `json:"status"`
	Legal         []string `json:"legal"`
	AliasOf       string   `json:"alias_of"`
	Retired       bool     `json:"retired"`
	Projection    string   `json:"projection"`
	Table         string   `json:"table"`
	Column        string   `json:"column"`
	ColumnType    string   `json:"column_type"`
	Rows          int64    `json:"rows"`
	IDs           []string `json:"ids"`
}

// refusal makes the JSON of a refusal into its typed error.
func refusal(text []byte) error {
	var d detail
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("rea: refused, in a form that this program does not know: %w", err)
	}
	aggregate := rea.Ref{Type: d.AggregateType, ID: d.AggregateID}
	switch d.Code {
	case "conflict":
		return &rea.ConflictError{Aggregate: aggregate, Expected: d.Expected, Actual: d.Actual}
	case "illegal_step":
		return &rea.TransitionError{Aggregate: aggregate, Event: d.EventType, Status: d.Status, Seq: d.Seq, Legal: d.Legal, AliasOf: d.AliasOf, Retired: d.Retired}
	case "unknown_type":
		return &rea.UnknownTypeError{Aggregate: aggregate, Event: d.EventType}
	case "key_reused":
		return &rea.KeyReusedError{Aggregate: aggregate, Key: d.Key, Seq: d.Seq}
	case "bad_payload":
		return &rea.PayloadError{Aggregate: aggregate, Path: d.Path, Problem: d.Message}
	case "limit":
		return &rea.LimitError{Aggregate: aggregate, What: d.What, Limit: d.Limit, Path: d.Path, Problem: d.Message}
	case "hole":
		return &rea.HoleError{Aggregate: aggregate, Seq: d.Seq, Actual: d.Actual}
	case "projection":
		return &rea.ProjectionError{Aggregate: aggregate, Projection: d.Projection, Table: d.Table, Column: d.Column,
			Type: rea.ColumnType(d.ColumnType), Event: d.EventType, Seq: d.Seq}
	case "guarded":
		return &rea.GuardedError{Table: d.Table, Operation: d.Operation, Rows: d.Rows, IDs: d.IDs, Problem: d.Message}
	case "no_baseline":
		return &rea.NoBaselineError{Aggregate: aggregate, Table: d.Table}
	case "immutable":
		return &rea.ImmutableError{Operation: d.Operation}
	}
	return fmt.Errorf("rea: refused: %s", d.Message)
}

// refusedLine gives the typed error of a line that the database refused, or nil where the error is none
// of the line's (a lost connection, a deadlock).
func refusedLine(line rea.Line, err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return nil
	}
	switch e.Code {
	case "RE002", "RE006", "RE008", "RE010", "RE012":
		return refusal([]byte(e.Detail))
	case "23505":
		if e.ConstraintName == "events_aggregate_seq_key" || e.ConstraintName == "events_idempotency_key" {
			return rea.ErrConflict // the caller finds out with what
		}
		return nil // an id in use: the sequence is behind the data; or an index of somebody else's
	case "23514":
		return &rea.LimitError{Aggregate: line.Aggregate, What: e.ConstraintName, Problem: "is not held"}
	case "22P02", "22P05", "22003", "22008":
		return &rea.PayloadError{Aggregate: line.Aggregate, Path: "$", Problem: e.Message}
	}
	return nil
}
