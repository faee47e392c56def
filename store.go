package rea

import (
	"context"
	"encoding/json"
	"time"
)

// Store is a database with an archive in it. Package postgres and package sqlite implement it;
// programs use it through Archive.
type Store interface {
	// Begin starts a transaction that belongs to REA.
	Begin(ctx context.Context) (OwnSession, error)
	// Snapshot calls fn with a view in which nothing changes, and nothing can be written.
	Snapshot(ctx context.Context, fn func(SnapshotSession) error) error
	// Autocommit gives a session in which every call is a transaction of its own.
	Autocommit() Session
	// Pass gives positions to committed events, at most limit of them, and returns how many.
	// busy: another session is at it. Stores whose ids are positions do nothing.
	Pass(ctx context.Context, limit int) (numbered int64, busy bool, err error)
	// SaveSnapshot stores s in a transaction of its own, in place of what is there, unless that is a later one; over is the
	// digest of one that it replaces even so.
	SaveSnapshot(ctx context.Context, s Snapshot, over string) error
	// Migrations lists what this program knows, with what the database has.
	Migrations(ctx context.Context) ([]Migration, error)
	// Migrate applies what is missing, telling report (may be nil) of each applied migration.
	Migrate(ctx context.Context, report func(Migration)) error
	// MigrationSQL gives the text that Migrate would run on an empty database.
	MigrationSQL() string
	// Uninstall removes everything that is REA's. It refuses where the archive does not hold exactly
	// events events: the number is the confirmation.
	Uninstall(ctx context.Context, events int64) error
	// Close frees what the store itself opened.
	Close()
}

// Session is one transaction's view of a store. Values reach it checked and in normal form.
type Session interface {
	// Ready says whether the schema in the database fits this program: nil, or a *SchemaError. A newer schema may be
	// read: it is an error only where write is true. It asks through the session's own connection.
	Ready(ctx context.Context, write bool) error
	Append(ctx context.Context, call Call) (Receipt, error)
	// Events appends the events of one aggregate that are asked for to page. more: there may be more of them.
	Events(ctx context.Context, asked Stretch, page []Event) (events []Event, more bool, err error)
	// Resume is Events with Folding and After 0. Where the aggregate has a snapshot with this fingerprint, at most at
	// seq upTo, whose event is the one at its seq, the events begin with that one, and found has a State. found is
	// what stands there in any case; nil: there is none.
	Resume(ctx context.Context, asked Stretch, fingerprint string, upTo int64, page []Event) (events []Event, more bool, found *Snapshot, err error)
	// Page looks at the events with a position above after, by position, at most limit and about MaxPageBytes of
	// payload, and gives those that match. last is the position up to which it has looked (after, at the head).
	Page(ctx context.Context, filter Filter, after int64, limit int) (events []Event, last int64, err error)
	// Contexts gives the contexts with these ids, by id.
	Contexts(ctx context.Context, ids []int64) ([]Context, error)
	// Head is the position of the last numbered event; 0: none.
	Head(ctx context.Context) (int64, error)
	// Count is the number of stored events, numbered or not.
	Count(ctx context.Context) (int64, error)
	// ImportProgress gives what is recorded under the hash of a file, zero where nothing is. In a transaction of
	// REA's other imports of that file then wait until it ends.
	ImportProgress(ctx context.Context, source string) (ImportProgress, error)
	// Transaction gives the transaction that the session is in; nil: every call is one of its own.
	Transaction() Transaction
	// Offsets lists what is recorded of projections, by name.
	Offsets(ctx context.Context) ([]ProjectionOffset, error)
	// EventAt is the id of the event at a position; 0: there is none.
	EventAt(ctx context.Context, position int64) (id int64, err error)
	// PositionOf is the position of an event; 0: it has none yet. An event that is not there is ErrNotFound, except on a standby
	// server, where it may come.
	PositionOf(ctx context.Context, eventID int64) (position int64, err error)
}

// Transaction is the transaction of a session.
type Transaction interface {
	SQL
	// Savepoint runs fn. Where fn gives an error or panics, what was written in it is undone, and the transaction goes on.
	// Where the session turns out to be in no transaction, it is an error and fn does not run.
	Savepoint(ctx context.Context, fn func() error) error
}

// Stretch says which events of one aggregate a session reads.
type Stretch struct {
	Aggregate Ref
	After     int64 // seqs above this one, in order
	Limit     int   // at most so many, and about MaxPageBytes of payload
	Folding   bool  // Position, XID, DBUser, ContextID and RecordedAt are left out
}

// OwnSession is a transaction that REA began and therefore ends.
type OwnSession interface {
	Session
	ProjectionSession
	FollowSession
	// Import stores lines in their order and gives one result for each, with the seq of what is stored. It may use savepoints.
	Import(ctx context.Context, lines []Line) ([]LineResult, error)
	// Catalogs lists the catalogs that were applied, by number.
	Catalogs(ctx context.Context) ([]AppliedCatalog, error)
	// PresentStatuses counts the aggregates of a type by the status that is stored for them, as it is stored, and by
	// the catalog that gave it. Where an event of leading comes after the last stored status, that one counts: the
	// aggregate is left out. Where no status is stored, what a built-in event says in field counts.
	PresentStatuses(ctx context.Context, aggregateType, field string, leading map[string]string) ([]PresentStatus, error)
	// LockCatalog waits about a second for transactions that have appended, which is then ErrRetry, and keeps others from
	// appending until this one ends.
	LockCatalog(ctx context.Context) error
	// SaveCatalog adds a catalog, and makes rows the rows of rea.steps.
	SaveCatalog(ctx context.Context, catalog AppliedCatalog, rows []Declared) error
	// SaveImportProgress records p, in this transaction.
	SaveImportProgress(ctx context.Context, p ImportProgress) error
	Commit(ctx context.Context) error
	// Rollback is safe after Commit, and works although ctx has ended.
	Rollback(ctx context.Context) error
}

// Call is one append as a store gets it: one aggregate, all or nothing.
type Call struct {
	Aggregate   Ref
	Events      []NewEvent // at least one; Version 0: not said
	Expect      *int64     // nil: no belief; 0: must not exist; n: the last seq
	Actor       string
	Reason      string
	Correlation string
	Key         string
	Metadata    json.RawMessage // nil: none
	Correction  bool
}

// Migration is one step of the schema.
type Migration struct {
	Version   int
	Name      string
	AppliedAt time.Time // zero: pending
}
