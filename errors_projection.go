package rea

import "fmt"

// ProjectionError says that a column of a projection cannot take what an event says. It answers errors.Is for
// ErrProjection. On PostgreSQL it is an error of the server's, and ends the transaction.
type ProjectionError struct {
	Aggregate  Ref
	Projection string
	Table      string // its name in the database; "": a followed one, whose event is stored already
	Column     string
	Type       ColumnType // of the column
	Event      string
	Seq        int64
}

func (e *ProjectionError) Error() string {
	if e.Table == "" {
		return fmt.Sprintf("rea: %s seq %d: the column %s (%s) of the projection %s cannot take what %s says: give the column another type in the catalog",
			e.Aggregate, e.Seq, clip(e.Column), e.Type, clip(e.Projection), clip(e.Event))
	}
	return fmt.Sprintf("rea: %s seq %d: the column %s (%s) of the projection %s cannot take what %s says: give the event another value, or the column another type in the catalog",
		e.Aggregate, e.Seq, clip(e.Column), e.Type, clip(e.Projection), clip(e.Event))
}

// Is reports whether target is ErrProjection.
func (e *ProjectionError) Is(target error) bool { return target == ErrProjection }
