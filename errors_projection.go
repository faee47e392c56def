package rea

import (
	"errors"
	"fmt"
)

// ProjectionError says that an inline projection has refused an event: a function of Config.Inline gave Err. Nothing of
// the append is stored, and the transaction goes on. It answers errors.Is for ErrProjection; where the database asks
// to run the transaction again, for ErrRetry instead.
type ProjectionError struct {
	Aggregate  Ref
	Projection string
	Table      string // "": a function's, which has tables of its own
	Column     string // "": a function's
	Event      string
	Seq        int64
	Err        error // the function's, or that of a statement that failed in it; it may show data
}

func (e *ProjectionError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("rea: append to %s: the inline function %s refuses seq %d (%s): %s", e.Aggregate, clip(e.Projection), e.Seq, clip(e.Event), e.Err)
	}
	return fmt.Sprintf("rea: append to %s: the column %s of %s cannot take what %s says at seq %d", e.Aggregate, clip(e.Column), clip(e.Table), clip(e.Event), e.Seq)
}

// Is reports whether target is ErrProjection.
func (e *ProjectionError) Is(target error) bool {
	return target == ErrProjection && !errors.Is(e.Err, ErrRetry)
}

func (e *ProjectionError) Unwrap() error { return e.Err }
