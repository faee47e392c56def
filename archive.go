package rea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// Config holds what an archive needs to know of the program around it. The zero value works.
type Config struct {
	// Actor tells who acts, for every append that does not say By. Nil: nobody is claimed.
	Actor func(ctx context.Context) string
	// Catalog is what Apply applies, and what Append and Load know Go types by (On). The database is held to what was
	// applied, not to this. Nil: none.
	Catalog *Catalog
	// Inline are functions that keep the program's own tables in the transaction of each append through this archive. Others
	// do not run them: SQL, the command line, programs without them. An append of a type that has one is not one
	// statement any more: it is read back, in a savepoint of the transaction that it is in (a subtransaction, on
	// PostgreSQL), which the goroutines that share it then use one after the other, or else in a transaction
	// of its own. Appends of other types stay as they are.
	Inline []Inline
	// Projections are the followed projections that Run keeps beside those of Catalog.
	Projections []GoProjection
	// Logger takes warnings. Nil: slog.Default().
	Logger *slog.Logger
	// Attempts is how often Do runs its function at most before it gives up. 0: 20.
	Attempts int
	// PageEvents is how many events are read from the database at a time. 0: 500.
	PageEvents int
	// NoSnapshots keeps Load from storing snapshots in passing. Those that are there are used all the same.
	NoSnapshots bool
	// PollEvery is how often Follow looks for new events when there were none, and Run when there were none for a while. 0: 250ms.
	PollEvery time.Duration
	// RetryAfter is the time until Run tries an event again that a projection has failed on. It doubles with every try, up
	// to a minute. 0: 1s.
	RetryAfter time.Duration
	// StallAfter is after how many tries in vain a projection is stalled. 0: 8.
	StallAfter int
	// RecreateViews lets Rebuild and Apply drop the views that depend on a projection's table, and make them again as they were, when
	// a new table takes its place, in the same transaction; on SQLite triggers too. False: they are a *DependentsError.
	RecreateViews bool

	runEvents  int // in a page of Run that a function gets
	bulkEvents int // in one that goes into a table of REA's
}

func (c Config) withDefaults() Config {
	if c.Actor == nil {
		c.Actor = func(context.Context) string { return "" }
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Attempts <= 0 {
		c.Attempts = 20
	}
	c.runEvents, c.bulkEvents = c.PageEvents, c.PageEvents
	if c.PageEvents <= 0 {
		c.PageEvents, c.runEvents, c.bulkEvents = 500, 2_000, 20_000
	}
	if c.PollEvery <= 0 {
		c.PollEvery = 250 * time.Millisecond
	}
	if c.RetryAfter <= 0 {
		c.RetryAfter = time.Second
	}
	if c.StallAfter <= 0 {
		c.StallAfter = 8
	}
	return c
}

// Archive is the history of business objects in one database. It is safe for concurrent use.
// Package postgres and package sqlite open one.
type Archive struct {
	store  Store
	config Config
	quiet  atomic.Int64 // until then, in nanoseconds, no snapshot is stored in passing
}

// New makes an archive of a store. Programs call postgres.Open or sqlite.Open instead.
func New(store Store, config Config) (*Archive, error) {
	config.Inline = slices.Clone(config.Inline)
	if err := checkInline(config.Inline); err != nil {
		return nil, err
	}
	return &Archive{store: store, config: config.withDefaults()}, nil
}

// Join makes a session of a store into a Tx of this archive. Programs call Tx or SQLTx of the store's
// own Archive instead.
func (a *Archive) Join(s Session) *Tx {
	tx := &Tx{archive: a, session: s}
	if len(a.config.Inline) > 0 && s.Transaction() != nil {
		tx.turn = make(chan struct{}, 1)
	}
	return tx
}

// Autocommit gives a Tx in which every call is a transaction of its own: one append, one round trip.
func (a *Archive) Autocommit() *Tx {
	tx := a.Join(a.store.Autocommit())
	if !a.config.NoSnapshots {
		tx.keep = a.keep
	}
	return tx
}

// Do runs fn in a transaction of REA's and commits it. Where the transaction ends in a conflict, a
// serialization failure or a deadlock, it is rolled back and fn runs again from the start, after a short
// random pause, at most Config.Attempts times; so fn must not keep results of an earlier run, and whatever
// it believes of an aggregate it must load inside. A conflict that comes back with the same expectation
// is returned at once: fn did not load what it expects. Any other error of fn rolls back and is returned.
func (a *Archive) Do(ctx context.Context, fn func(tx *Tx) error) error {
	var before *ConflictError
	for attempt := 1; ; attempt++ {
		began, err := a.once(ctx, fn)
		var waited interface{ Waited() time.Duration }
		if errors.As(err, &waited) && waited.Waited() > 0 {
			return err // the store has waited as long as it was told to
		}
		if err == nil || !began || !(errors.Is(err, ErrConflict) || errors.Is(err, ErrRetry)) || attempt >= a.config.Attempts {
			return err
		}
		var conflict *ConflictError
		if errors.As(err, &conflict) {
			if before != nil && before.Aggregate == conflict.Aggregate && before.Expected == conflict.Expected {
				return err
			}
			before = conflict
		}
		if !pause(ctx, time.Duration(rand.Int64N(int64(min(attempt*attempt, 100))*int64(time.Millisecond)))) {
			return err
		}
	}
}

// once reports whether the transaction began: a store that waited in vain for its turn has waited enough.
func (a *Archive) once(ctx context.Context, fn func(tx *Tx) error) (began bool, err error) {
	if err := a.outside(ctx, "begin"); err != nil {
		return false, err
	}
	session, err := a.store.Begin(ctx)
	if err != nil {
		return false, err
	}
	// Also after a panic of fn; after Commit it does nothing.
	defer func() { _ = session.Rollback(context.WithoutCancel(ctx)) }()
	tx := a.Join(session)
	var kept keeper
	if !a.config.NoSnapshots {
		tx.keep = func(ctx context.Context, k keeping) {
			// what an inline function's append has stored may be taken back, and another event get its seq and, on SQLite, its id
			if !a.hasInline(k.snapshot.Aggregate.Type) {
				kept.keep(ctx, k)
			}
		}
	}
	if err := fn(tx); err != nil {
		return true, err
	}
	if err := session.Commit(ctx); err != nil {
		return true, err
	}
	for _, k := range kept.take() {
		a.keep(ctx, k)
	}
	return true, nil
}

// pause waits for d and reports false where ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// passEvents is how many events one pass numbers at most.
const passEvents = 10_000

// Number gives positions to events that have committed since the last time, at most 10,000, and
// says how many. busy: another process is at it. Followers call it; without followers there is no need to.
func (a *Archive) Number(ctx context.Context) (numbered int64, busy bool, err error) {
	if err := a.store.Autocommit().Ready(ctx, true); err != nil {
		return 0, false, err
	}
	return a.store.Pass(ctx, passEvents)
}

// holdLimit is how long CatchUp waits for one other session that numbers. A pass takes milliseconds; who holds the
// numbering for longer has left a transaction open.
const holdLimit = 10 * time.Second

// CatchUp numbers until everything that had committed when it was called has a position, and returns the last
// position. It waits while another process is numbering, at most 10 s for one that does not end. Where it may not
// number (ErrReadOnly, ErrNewerSchema) it returns the last position that there is together with that error.
func (a *Archive) CatchUp(ctx context.Context) (int64, error) {
	var busySince time.Time
	for {
		n, busy, err := a.Number(ctx)
		switch {
		case errors.Is(err, ErrReadOnly), errors.Is(err, ErrNewerSchema):
			head, headErr := a.Autocommit().Head(ctx)
			return head, cmp.Or(headErr, err)
		case err != nil:
			return 0, err
		case busy:
			if busySince.IsZero() {
				busySince = time.Now()
			}
			if time.Since(busySince) > holdLimit {
				return 0, fmt.Errorf("rea: catch up: %w: another session has held the numbering for %s: look for its open transaction in pg_locks (locktype advisory, classid 7497057, objid 1)", ErrRetry, holdLimit)
			}
			if !pause(ctx, 5*time.Millisecond) {
				return 0, ctx.Err()
			}
			continue
		case n < passEvents: // a pass that was not full has taken all that had committed when it looked
			return a.Autocommit().Head(ctx)
		}
		busySince = time.Time{}
	}
}

// Migrations lists the schema's steps with what the database has.
func (a *Archive) Migrations(ctx context.Context) ([]Migration, error) {
	return a.store.Migrations(ctx)
}

// Migrate brings the database's schema to this program's version, telling report (may be nil) of each step.
// Several processes may call it at once. A newer schema is a *SchemaError.
func (a *Archive) Migrate(ctx context.Context, report func(Migration)) error {
	return a.store.Migrate(ctx, report)
}

// MigrationSQL gives the text of all migrations, for teams with a tool of their own.
func (a *Archive) MigrationSQL() string { return a.store.MigrationSQL() }

// Uninstall removes everything that is REA's from the database, events included. events must be the exact
// number of stored events.
func (a *Archive) Uninstall(ctx context.Context, events int64) error {
	return a.store.Uninstall(ctx, events)
}

// Close frees the connections that opening the archive made. It leaves a pool that was handed over alone.
func (a *Archive) Close() { a.store.Close() }
