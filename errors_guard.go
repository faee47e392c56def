package rea

import (
	"fmt"
	"strings"
)

// GuardedError says that a guard of a table refuses a statement that no event stands for. It ends the transaction. It answers
// errors.Is for ErrGuarded.
type GuardedError struct {
	Table     string // schema.table
	Operation string // INSERT, UPDATE, DELETE, TRUNCATE
	Rows      int64  // that the guard refuses
	IDs       []string
	Problem   string // the database's message; "": what follows from the other fields
}

func (e *GuardedError) Error() string {
	if e.Problem != "" {
		return e.Problem
	}
	ids := make([]string, len(e.IDs))
	for i, id := range e.IDs {
		ids[i] = clip(id)
	}
	return fmt.Sprintf("rea: %s of %s refused: no event stands for %d rows: %s", e.Operation, clip(e.Table), e.Rows, strings.Join(ids, ", "))
}

// Is reports whether target is ErrGuarded.
func (e *GuardedError) Is(target error) bool { return target == ErrGuarded }

// NoBaselineError says that an event would be the first of an object whose row is in a guarded table already: the first one has to
// say what the row was. It answers errors.Is for ErrNoBaseline.
type NoBaselineError struct {
	Aggregate Ref
	Table     string // schema.table
}

func (e *NoBaselineError) Error() string {
	return fmt.Sprintf("rea: %sits row is in %s already, and no event says what it was: rea baseline %[2]s --type %s", appendTo(e.Aggregate), clip(e.Table), clip(e.Aggregate.Type))
}

// Is reports whether target is ErrNoBaseline.
func (e *NoBaselineError) Is(target error) bool { return target == ErrNoBaseline }
