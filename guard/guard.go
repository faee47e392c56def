// Package guard captures or refuses what is written to an application's tables, in PostgreSQL, by triggers.
package guard

import "github.com/realtime-event-archive/rea/adopt"

// Guard is a table that is watched.
type Guard struct {
	Table *adopt.Table
	Type  string // of the aggregates that its rows are
}
