package rea

import (
	"errors"
	"fmt"
)

// ProjectionError says that a projection cannot take what an event says: a function of Config.Inline gave Err, or a column cannot
// hold it. It answers errors.Is for ErrProjection; where the database asks to run the transaction again,
// for ErrRetry instead. After a function's nothing of the append is stored, and the transaction goes on. A column's is on
// PostgreSQL an error of the server's, and ends the transaction.
type ProjectionError struct {
	Aggregate  Ref
	Projection string
	Table      string     // its name in the database; "": a function's, which has tables of its own, or a followed one's, whose event is stored already
	Column     string     // "": a function's
	Type       ColumnType // of the column
	Event      string
	Seq        int64
	Err        error // the function's, or that of a statement that failed in it; it may show data
}

func (e *ProjectionError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("rea: append to %s: the inline function %s refuses seq %d (%s): %s", e.Aggregate, clip(e.Projection), e.Seq, clip(e.Event), e.Err)
	}
	if e.Table == "" {
		return fmt.Sprintf("rea: %s seq %d: the column %s (%s) of the projection %s cannot take what %s says: declare it otherwise in the catalog",
			e.Aggregate, e.Seq, clip(e.Column), e.Type, clip(e.Projection), clip(e.Event))
	}
	return fmt.Sprintf("rea: %s seq %d: the column %s (%s) of the projection %s cannot take what %s says: give the event another value, or the column another type in the catalog",
		e.Aggregate, e.Seq, clip(e.Column), e.Type, clip(e.Projection), clip(e.Event))
}

// Is reports whether target is ErrProjection.
func (e *ProjectionError) Is(target error) bool {
	return target == ErrProjection && !errors.Is(e.Err, ErrRetry)
}

func (e *ProjectionError) Unwrap() error { return e.Err }
