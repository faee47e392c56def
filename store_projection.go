package rea

import "context"

// ProjectionSession is what a transaction of REA's can do with inline projections.
type ProjectionSession interface {
	// LockProjections lets one transaction at a time look at projections and change them; it waits about a second for
	// another one, which is then ErrRetry. Appends do not wait.
	LockProjections(ctx context.Context) error
	// Projections lists what is recorded, by name.
	Projections(ctx context.Context) ([]AppliedProjection, error)
	// CheckStateTable says what of a recorded table is there. Columns that are not as declared are an error.
	CheckStateTable(ctx context.Context, t StateTable) (TableCheck, error)
	// BuildStateTable makes the table beside the one that is read, unless it is there, and takes away what was built
	// for another definition.
	BuildStateTable(ctx context.Context, t StateTable) error
	// StateRows looks at the next aggregates after an id, in the order of ids, at most limit of them, and says where
	// each of their rows stands. beside: in the table that was built.
	StateRows(ctx context.Context, t StateTable, beside bool, after string, limit int) ([]RowPlace, error)
	// FirstEvents gives the events of several aggregates of a type from their first on, each one's by seq, at most limit of
	// them together and about MaxPageBytes of payload. It may give fewer than there are. Their positions only where asked for.
	FirstEvents(ctx context.Context, aggregateType string, ids []string, limit int, positions bool) ([]Event, error)
	// LastID is the highest id of a stored event that is seen; 0: none.
	LastID(ctx context.Context) (int64, error)
	// RecentRows is StateRows, of the table that is read, for aggregates that have events with ids above after.
	RecentRows(ctx context.Context, t StateTable, after int64, limit int) ([]RowPlace, error)
	// SaveStateRows writes rows whose rea_seq is still Was, and gives their number.
	SaveStateRows(ctx context.Context, t StateTable, beside bool, rows []StateRow) (int, error)
	// InstallStateTable makes appends keep the table and records it. built: the table that was built takes the place of
	// the one that is read. recreate: see SwitchTable. It waits about a second for others, which is then ErrRetry.
	InstallStateTable(ctx context.Context, t StateTable, built, recreate bool) error
	// RemoveProjection makes appends leave the table alone, and forgets it. The table stays.
	RemoveProjection(ctx context.Context, name string) error
}

// AppliedProjection is a row of rea.projections.
type AppliedProjection struct {
	Name        string
	Of          string
	Version     int
	Definition  string // see StateTable.Definition
	Fingerprint string
}

// TableCheck is what is there of a table of states that should be.
type TableCheck int

// The answers of CheckStateTable.
const (
	TableWhole    TableCheck = iota
	TableUnkept              // appends do not keep it: its trigger or function is not as it was made
	TableMissing             // there is none
	TableUnplaced            // there is one of this name, and it is not recorded
)

// RowPlace says how far an aggregate's row has come.
type RowPlace struct {
	ID   string
	Seq  int64 // rea_seq; 0: no row
	Last int64 // of the aggregate's events
}
