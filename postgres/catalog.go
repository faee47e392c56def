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
// event that tells its status; nothing before a whole row, or its end, does.
const presentSQL = `
WITH RECURSIVE a (id) AS (
    (SELECT e.aggregate_id FROM rea.events e WHERE e.aggregate_type = $1 ORDER BY e.aggregate_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.aggregate_id FROM rea.events e
            WHERE e.aggregate_type = $1 AND e.aggregate_id > a.id ORDER BY e.aggregate_id LIMIT 1)
    FROM a WHERE a.id IS NOT NULL
)
SELECT l.status, l.catalog_version, count(*)
FROM a, LATERAL (SELECT coalesce(e.status, rea.said_status(e.event_type, e.payload, e.seq, $3)) AS status, coalesce(e.catalog_version, 0) AS catalog_version
                 FROM rea.events e
                 WHERE e.aggregate_type = $1 AND e.aggregate_id = a.id
                   AND (e.status IS NOT NULL OR e.event_type = ANY ($2::text[]) OR e.event_type IN ('BaselineCreated', 'DirectInsert', 'DirectDelete')
                        OR rea.said_status(e.event_type, e.payload, e.seq, $3) IS NOT NULL)
                 ORDER BY e.seq DESC LIMIT 1) l
WHERE l.status IS NOT NULL
GROUP BY l.status, l.catalog_version`

func (s *ownSession) PresentStatuses(ctx context.Context, aggregateType, field string, leading map[string]string) ([]rea.PresentStatus, error) {
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
	}, []any{&p.Status, &p.Catalog, &p.Aggregates}, presentSQL, aggregateType, names, field)
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

// saveStepsSQL: the rows without an aggregate type are those that stand there always, see 0002_steps.sql.
const saveStepsSQL = `
INSERT INTO rea.steps (aggregate_type, event_type, from_status, to_status, event_version, ruled, alias_of, strict, ordinal, catalog_version, status_field, deletes)
SELECT r ->> 'Type', r ->> 'Event', r ->> 'From', nullif(r ->> 'To', ''), nullif((r ->> 'Version')::int, 0), (r ->> 'Ruled')::boolean,
       nullif(r ->> 'AliasOf', ''), (r ->> 'Strict')::boolean, n, CASE WHEN (r ->> 'Machine')::boolean THEN $2::int END,
       nullif(r ->> 'Status', ''), (r ->> 'Deletes')::boolean
FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY x(r, n)
UNION ALL
SELECT '', o.event_type, o.from_status, NULL, NULL, true, NULL, false, 0, $2::int, NULL, false
FROM rea.own_steps() o`

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
	if err := s.db.exec(ctx, saveStepsSQL, string(steps), catalog.Number); err != nil {
		return mapError(doing, err)
	}
	return mapError(doing, s.db.exec(ctx, `SELECT rea.guards_changed()`))
}
