// Package storetest holds what every store promises, as named clauses that run against every store and every way
// into it. A clause's name begins with the promise of the specification that it belongs to.
//
//	func TestConformance(t *testing.T) {
//		t.Run("pgx", func(t *testing.T) {
//			storetest.Run(t, &storetest.Door{Tables: "rea.", Open: open, ...})
//		})
//	}
package storetest

import (
	"context"
	"slices"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// Door is one way into one store. Everything but Changes is needed.
type Door struct {
	// Tables is what the names of REA's tables begin with: "rea." or "rea_".
	Tables string
	// Concurrent says that several transactions may have written at the same time.
	Concurrent bool
	// Migrated makes a database with REA's schema and nothing else, Empty one without; both are gone when t ends.
	Migrated, Empty func(t *testing.T) (address string)
	// Open opens the archive at address, as a program that starts does; it is closed when t ends.
	Open func(t *testing.T, address string, config rea.Config) *Base
	// Changes are statements that would change the event with seq 1 of order/1, in this store's own words.
	Changes []string
}

// Base is an open archive with its user's own way to transactions.
type Base struct {
	*rea.Archive
	// Begin begins a transaction of the user's own.
	Begin func(ctx context.Context) (*Transaction, error)
	// Waiting returns when a session waits for another one's lock. Only a concurrent store has it.
	Waiting func(ctx context.Context) error
}

// Transaction is a user's own, joined by REA.
type Transaction struct {
	*rea.Tx
	Exec func(ctx context.Context, statement string) error
	// Text gives the one value of a query.
	Text             func(ctx context.Context, query string) (string, error)
	Commit, Rollback func(ctx context.Context) error
	// Cut ends the connection without a word to the server. Only a concurrent store has it: the others have no
	// server, and what is lost is the program, for which there are clauses too.
	Cut func()
}

type clause struct {
	name string
	run  func(t *testing.T, d *Door)
}

// Run checks every promise through one door.
func Run(t *testing.T, d *Door) {
	clauses := slices.Concat(immutable, sequence, transactions, refusals, retries, keys, order, following, times,
		numbers, texts, sizes, names, imports, progress, moments, contexts, snapshots, snapshotRuns, answers, migrations, crashes, model, machines, machineModels, versions,
		functions, functionsLent, functionSnapshots, followed, followedFailing, followedRebuilds, followedSwitches, rebuildsFailing, followedDrops, followedShapes, followedPages, builtIns, builtInModels,
		inline, inlineChanges, inlineStatuses, inlineBehind, inlineRaces, inlineModels)
	if d.Concurrent {
		clauses = slices.Concat(clauses, sequenceRaces, orderRaces, followedRaces, followedPageRaces, functionRaces)
	}
	for _, c := range clauses {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, d)
		})
	}
}
