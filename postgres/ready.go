package postgres

import (
	"context"
	"time"

	"github.com/realtime-event-archive/rea"
)

// SchemaVersion is the newest version of the schema that this program knows.
func SchemaVersion() int { return len(steps) }

// lookedAt is the schema's version as it was found, and when.
type lookedAt struct {
	version int
	at      time.Time
}

// lookAgain is how long a version that fits is believed: a program that runs while the database is migrated to a newer
// schema stops writing within this time.
const lookAgain = 30 * time.Second

// Ready asks through the session's own connection, for a pool may have no other one; in a user's transaction none of
// the statements can fail for want of a schema. A version that does not fit is asked for anew each time.
func (s *session) Ready(ctx context.Context, write bool) error {
	found := s.store.schema.Load()
	if found == nil || time.Since(found.at) > lookAgain {
		version, err := s.schemaVersion(ctx)
		if err != nil {
			return err
		}
		found = &lookedAt{version: version, at: time.Now()}
		if version >= len(steps) {
			s.store.schema.Store(found)
		}
	}
	if found.version < len(steps) || (found.version > len(steps) && write) {
		return &rea.SchemaError{Found: found.version, Known: len(steps)}
	}
	return nil
}

// schemaVersion is the newest applied version; 0: no schema.
func (s *session) schemaVersion(ctx context.Context) (int, error) {
	const doing = "read the schema version"
	var there bool
	if err := s.one(ctx, &there, `SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'rea' AND c.relname = 'schema_migrations')`); err != nil || !there {
		return 0, mapError(doing, err)
	}
	var version int
	err := s.one(ctx, &version, `SELECT coalesce(max(m.version), 0) FROM rea.schema_migrations m`)
	return version, mapError(doing, err)
}
