package adopt

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// DefaultBatch is how many rows a chunk of a baseline has where nobody says another number.
const DefaultBatch = 5_000

// BaselineOptions say what a baseline takes.
type BaselineOptions struct {
	Type    string   // of the aggregates
	Status  string   // the column that is the status; "": what the catalog calls the status, or none
	Columns []string // those that an event keeps; none: all
	Where   string   // an SQL condition on the table's columns; "": all rows
	Batch   int      // rows a transaction; 0: DefaultBatch
	Version string   // of the program, for the events' metadata
	Rejects string   // file for the rows that cannot be taken; "": none is kept

	Progress func(BaselineProgress) // after each chunk; nil: nobody asks
}

func (o BaselineOptions) batch() int { return cmp.Or(o.Batch, DefaultBatch) }

// BaselineProgress is how far a baseline has come, this run and those before it together.
type BaselineProgress struct {
	Taken   int64 // events stored
	Skipped int64 // rows whose aggregate had events already
	Refused int64 // rows that cannot be taken
	Done    bool
}

// Rows is the number of rows that were looked at.
func (p BaselineProgress) Rows() int64 { return p.Taken + p.Skipped + p.Refused }

// BaselinePlan is what a baseline would do.
type BaselinePlan struct {
	Rows    int64            // that the condition chooses
	Known   int64            // of them, whose aggregates have events
	Before  BaselineProgress // of an earlier run that was stopped, where this one goes on
	Resumed bool
	Guard   *Guarded // nil: none
}

// BaselineResult is what a baseline has done.
type BaselineResult struct {
	BaselineProgress
	New   int64    // events of this run
	First []Reject // of the rows that this run could not take, the first ones
}

// firstRejects is how many rejects are kept for people.
const firstRejects = 5

// ErrOtherBaseline: a baseline of the table that asked for something else is half done.
var ErrOtherBaseline = errors.New("rea: another baseline of the table is half done")

// half says what the half-done baseline was asked for.
func half(table, aggregateType string, columns []string, condition *string) error {
	asked := "--type " + aggregateType
	if len(columns) > 0 {
		asked += " --columns " + strings.Join(columns, ",")
	}
	if condition != nil {
		asked += " --where '" + *condition + "'"
	}
	return fmt.Errorf("%w: %s was begun with %s: finish that one first", ErrOtherBaseline, table, asked)
}
