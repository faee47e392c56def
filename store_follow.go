package rea

import (
	"context"
	"time"
)

// FollowSession is what a transaction of REA's can do with followed projections.
type FollowSession interface {
	// ClaimProjection keeps others from moving a projection until this transaction ends, and gives what is recorded. Where
	// another transaction has it, ok is false, or with wait, it waits about a second, which is then ErrRetry. A
	// projection that is not recorded has no name.
	ClaimProjection(ctx context.Context, name string, wait bool) (p ProjectionOffset, ok bool, err error)
	// RowsBehind: see SnapshotSession.
	RowsBehind(ctx context.Context, t StateTable, from Offset, limit int) (rows []RowPlace, to Offset, err error)
	FollowPager
	// MoveProjection moves the offset from one place to another, and forgets failures. moved is false where it was elsewhere.
	MoveProjection(ctx context.Context, name, runner string, from, to Offset) (moved bool, err error)
	// FailProjection records a try in vain of the event after an offset, unless that has moved. After most tries the
	// projection is stalled.
	FailProjection(ctx context.Context, name string, from Offset, f Failure, most int) (attempts int, err error)
	// SetProjection makes a projection running or paused, and forgets when it was to be tried again.
	SetProjection(ctx context.Context, name, state string) error
	// SkipEvent adds an event to those that the projection leaves out.
	SkipEvent(ctx context.Context, name string, s Skipped) error

	// MakeProjection records a projection at position 0.
	MakeProjection(ctx context.Context, f Followed) error
	// TableThere reports whether a projection's table is there.
	TableThere(ctx context.Context, f Followed) (bool, error)
	// BuildTable makes the table beside the one that is read, unless it is there, and takes away what was built for another
	// definition.
	BuildTable(ctx context.Context, f Followed) error
	// RehearseSwitch finds out, with a table without rows, whether SwitchTable could take over what others have made on the
	// table that is read, and takes it back. What cannot be is a *DependentsError. It waits a moment for readers, which is then
	// ErrRetry.
	RehearseSwitch(ctx context.Context, f Followed, recreate bool) error
	// CopyIndexes makes one of the indexes that others have made on the table that is read on the one that was built, where that
	// spares readers the wait. left is how many there are still to make. It waits a moment for writers, which is then ErrRetry.
	CopyIndexes(ctx context.Context, f Followed) (left int, err error)
	// SwitchTable puts the table that was built in the place of the one that is read, if there is one, with what others have made
	// on that. recreate: what depends on it and can be made again is; else it is a *DependentsError. It waits a moment for
	// readers, which is then ErrRetry.
	SwitchTable(ctx context.Context, f Followed, recreate bool) error
	// ReadStateRows reads the rows of aggregates, in any order; Was and Seq are rea_seq. An aggregate without a row has none.
	ReadStateRows(ctx context.Context, t StateTable, beside bool, ids []string) ([]StateRow, error)
	// AddStatistics adds rows to those with the same bucket and dimensions. They are sorted by these.
	AddStatistics(ctx context.Context, t StatisticsTable, beside bool, rows []StatisticsRow) error

	// Dependents lists what depends on a projection's table.
	Dependents(ctx context.Context, f Followed) ([]Dependent, error)
	// BeginRebuild makes the table beside the one that is read, and records a rebuild at position 0, unless both are there
	// for this definition and anew is false. What another one failed on, and left out, is forgotten.
	BeginRebuild(ctx context.Context, f Followed, anew bool) error
	// ClaimRebuild keeps others from moving a rebuild until this transaction ends. It waits about a second, which is then
	// ErrRetry. there is false where no rebuild of this definition is recorded.
	ClaimRebuild(ctx context.Context, f Followed) (at Offset, there bool, err error)
	// MoveRebuild moves the offset of a rebuild that was claimed.
	MoveRebuild(ctx context.Context, name string, from, to Offset) error
	// FailRebuild records the event that a rebuild fails on; of a Go projection, the rebuild too.
	FailRebuild(ctx context.Context, f Followed, position int64, message string) error
	// SkipInRebuild adds an event to those that a rebuild leaves out.
	SkipInRebuild(ctx context.Context, name string, s Skipped) error
	// FinishRebuild switches the table, records the definition, the offset and what the rebuild has left out, forgets failures and the rebuild. Of a Go
	// projection there is no table. recreate: see SwitchTable.
	FinishRebuild(ctx context.Context, f Followed, at Offset, runner string, recreate bool) error
	// DropProjection forgets a projection and its rebuild, and drops its tables; of a Go projection there are none.
	DropProjection(ctx context.Context, f Followed) error
	// UserSQL gives the transaction to a function of the program's, with the rights and settings that the connection had.
	UserSQL(ctx context.Context) (SQL, error)
}

// FollowPager reads the feed.
type FollowPager interface {
	// FollowPage looks at the next positions after an offset, at most limit of them and about MaxPageBytes of payload. It gives
	// the events that match, by position, and how far it has looked; the same offset, at the head.
	FollowPage(ctx context.Context, filter FollowFilter, from Offset, limit int) (events []Event, to Offset, err error)
}

// FollowFilter is what a projection may need of a page.
type FollowFilter struct {
	Type   string   // aggregate type; "": all
	Events []string // event types; nil: all
	Lean   bool     // of the events, nothing but what Attributes names beside their place, type, version, payload and CreatedAt
	// Attributes, where Lean is true: Actor, Reason, Correlation and Metadata too.
	Attributes bool
	// Needs, where Lean is true: nothing else is needed of the payloads of these events, and of others everything is. A store
	// may give more.
	Needs []Need
}

// Need is what a projection takes from the payloads of some events.
type Need struct {
	Type     string   // of their aggregates
	Events   []string // event types, as they are stored
	Versions []int    // as they are stored
	Keys     []string // of the payload, an object; none: nothing is
}

// SnapshotSession reads the tables of projections.
type SnapshotSession interface {
	Session
	FollowPager
	// Projections, FirstEvents, StateRows: see ProjectionSession. ReadStateRows: see FollowSession.
	Projections(ctx context.Context) ([]AppliedProjection, error)
	FirstEvents(ctx context.Context, aggregateType string, ids []string, limit int, positions bool) ([]Event, error)
	StateRows(ctx context.Context, t StateTable, beside bool, after string, limit int) ([]RowPlace, error)
	ReadStateRows(ctx context.Context, t StateTable, beside bool, ids []string) ([]StateRow, error)
	// RowsBehind looks at the next positions after an offset, at most limit of them, and gives the aggregates, by id, whose row has not
	// all of their events among these (Last is the last of them), and how far it has looked; the same offset, at the head.
	RowsBehind(ctx context.Context, t StateTable, from Offset, limit int) (rows []RowPlace, to Offset, err error)
	// ExtraIDs lists the aggregates after an id that have a row and no events, in the order of ids, at most limit of them.
	ExtraIDs(ctx context.Context, t StateTable, after string, limit int) ([]string, error)
	// Statistics reads a whole table.
	Statistics(ctx context.Context, t StatisticsTable) ([]StatisticsRow, error)
}

// Offset is how far a followed projection has come.
type Offset struct {
	Position int64 // of the last event that is in the table; 0: none
	EventID  int64 // of the event at that position; 0: none
}

// ProjectionOffset is what is recorded of a projection.
type ProjectionOffset struct {
	Name        string
	Inline      bool   // appends keep it: the offset says up to where a runner has looked for rows that are behind
	Of          string // the aggregate type of a table of states
	Kind        string
	Version     int
	Fingerprint string
	Offset
	UpdatedAt time.Time // when the offset moved last
	Runner    string    // who moved it
	State     string    // StateRunning, StatePaused, StateStalled
	Waits     bool      // the next try is not due yet
	Failed    Failure   // on the event after the offset
	Skipped   []Skipped
	Rebuild   *Rebuilding // nil: none was begun and not finished
}

// Rebuilding is a rebuild that is not finished.
type Rebuilding struct {
	Version        int       `json:"version"` // of the definition by which it fills
	Fingerprint    string    `json:"fingerprint"`
	Position       int64     `json:"position"`        // of the last event that is in the new table
	FailedPosition int64     `json:"failed_position"` // of the event that it fails on; 0: it does not fail
	Error          string    `json:"error"`           // why
	Skipped        []Skipped `json:"skipped"`         // what it leaves out, and the projection once it is finished
}

// Failure is why a projection does not go on.
type Failure struct {
	Position int64         // of the event that it fails on; 0: it does not fail
	Error    string        // why
	Attempts int           // in vain so far
	Since    time.Time     // of the first of them
	NextTry  time.Time     // zero: none
	Delay    time.Duration // from now to the next try, to be recorded
}

// Skipped is an event that a projection leaves out.
type Skipped struct {
	Position int64  `json:"position"`
	Error    string `json:"error"` // on which it was skipped
	By       string `json:"by"`
	At       string `json:"at"` // as TimeLayout
}

// The states of a followed projection.
const (
	StateRunning = "running" // whenever somebody runs it
	StatePaused  = "paused"  // until it is resumed
	StateStalled = "stalled" // at an event that it fails on: until a retry or a skip
)

// StatisticsRow is a row of a table of statistics, or what is to be added to one.
type StatisticsRow struct {
	Bucket time.Time
	Local  string    // the bucket in its zone, with the offset from UTC
	By     []string  // the dimensions
	Values []*string // the measures, in the text form of their type; nil: NULL
}
