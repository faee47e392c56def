package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/realtime-event-archive/rea"
)

func (s *ownSession) Catalogs(ctx context.Context) ([]rea.AppliedCatalog, error) {
	var list []rea.AppliedCatalog
	var a rea.AppliedCatalog
	var renamed []byte
	err := each(ctx, s.db, func() error {
		a.Renamed = nil
		err := json.Unmarshal(renamed, &a.Renamed)
		list = append(list, a)
		return err
	}, []any{&a.Number, &a.Text, &renamed}, `
SELECT c.number, c.text, c.renamed::text
FROM rea.catalogs c
ORDER BY c.number`)
	return list, mapError("read the applied catalogs", err)
}

// presentSQL goes from aggregate to aggregate through events_aggregate_seq_key, and from each one's end to the first
// event that tells its status.
const presentSQL = `
WITH RECURSIVE a (id) AS (
    (SELECT e.aggregate_id FROM rea.events e WHERE e.aggregate_type = $1 ORDER BY e.aggregate_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.aggregate_id FROM rea.events e
            WHERE e.aggregate_type = $1 AND e.aggregate_id > a.id ORDER BY e.aggregate_id LIMIT 1)
    FROM a WHERE a.id IS NOT NULL
)
SELECT l.status, l.catalog_version, count(*)
FROM a, LATERAL (SELECT e.status, e.catalog_version FROM rea.events e
                 WHERE e.aggregate_type = $1 AND e.aggregate_id = a.id AND (e.status IS NOT NULL OR e.event_type = ANY ($2::text[]))
                 ORDER BY e.seq DESC LIMIT 1) l
WHERE l.status IS NOT NULL
GROUP BY l.status, l.catalog_version`

func (s *ownSession) PresentStatuses(ctx context.Context, aggregateType string, leading map[string]string) ([]rea.PresentStatus, error) {
	// A table without statistics would be scanned for every aggregate.
	if err := s.db.exec(ctx, `SET LOCAL enable_seqscan = off`); err != nil {
		return nil, mapError("read the present statuses", err)
	}
	names := make([]string, 0, len(leading))
	for name := range leading {
		names = append(names, name)
	}
	slices.Sort(names)
	var list []rea.PresentStatus
	p := rea.PresentStatus{Type: aggregateType}
	err := each(ctx, s.db, func() error {
		list = append(list, p)
		return nil
	}, []any{&p.Status, &p.Catalog, &p.Aggregates}, presentSQL, aggregateType, names)
	return list, mapError("read the present statuses", err)
}

// LockCatalog: every append has read rea.steps, and holds ACCESS SHARE on it until its transaction ends.
func (s *ownSession) LockCatalog(ctx context.Context) error {
	const doing = "wait for open appends"
	if err := s.db.exec(ctx, `SET LOCAL lock_timeout = '1s'`); err != nil {
		return mapError(doing, err)
	}
	err := s.db.exec(ctx, `LOCK TABLE rea.steps IN ACCESS EXCLUSIVE MODE`)
	if sqlState(err) == "55P03" {
		return fmt.Errorf("rea: %s: %w (%w)", doing, rea.ErrRetry, err)
	}
	return mapError(doing, err)
}

// saveStepsSQL: the row without names is the one that every transaction must see, see 0002_steps.sql.
const saveStepsSQL = `
INSERT INTO rea.steps (aggregate_type, event_type, from_status, to_status, event_version, ruled, alias_of, strict, ordinal, catalog_version)
SELECT r ->> 'Type', r ->> 'Event', r ->> 'From', nullif(r ->> 'To', ''), nullif((r ->> 'Version')::int, 0), (r ->> 'Ruled')::boolean,
       nullif(r ->> 'AliasOf', ''), (r ->> 'Strict')::boolean, n, CASE WHEN (r ->> 'Machine')::boolean THEN $2::int END
FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY x(r, n)
UNION ALL
SELECT '', '', '', NULL, NULL, true, NULL, false, 0, $2::int`

func (s *ownSession) SaveCatalog(ctx context.Context, catalog rea.AppliedCatalog, rows []rea.Declared) error {
	const doing = "apply the catalog"
	renamed, err := json.Marshal(catalog.Renamed)
	if err != nil {
		return err
	}
	steps, err := json.Marshal(slices.Concat([]rea.Declared{}, rows))
	if err != nil {
		return err
	}
	err = s.db.exec(ctx, `INSERT INTO rea.catalogs (number, text, renamed) VALUES ($1, $2, $3::jsonb)`, catalog.Number, catalog.Text, string(renamed))
	if err != nil {
		return mapError(doing, err)
	}
	// TRUNCATE, so that an older snapshot sees no row at all, and never an older machine.
	if err := s.db.exec(ctx, `TRUNCATE rea.steps`); err != nil {
		return mapError(doing, err)
	}
	return mapError(doing, s.db.exec(ctx, saveStepsSQL, string(steps), catalog.Number))
}
