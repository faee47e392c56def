package sqlite

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/realtime-event-archive/rea"
)

// machine is what was applied last: every append steps by it.
type machine struct {
	number  int    // of the catalog; 0: none was applied
	at      string // when
	catalog *rea.Catalog
	applied []rea.AppliedCatalog
	views   string                      // what tells the inline projections from others
	tables  map[string][]rea.StateTable // by aggregate type
}

// machine gives that of the file, read anew when another one was applied since.
func (s *session) machine(ctx context.Context, h head) (*machine, error) {
	if m := s.store.machine.Load(); m != nil && m.number == h.number && m.at == h.applied && m.views == h.views {
		return m, nil
	}
	m := &machine{number: h.number, at: h.applied, views: h.views, tables: map[string][]rea.StateTable{}}
	if h.number > 0 {
		var err error
		if m.applied, err = s.Catalogs(ctx); err != nil {
			return nil, err
		}
		if m.catalog, err = m.applied[len(m.applied)-1].Catalog(); err != nil {
			return nil, err
		}
	}
	if h.views != "" {
		projections, err := s.Projections(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range projections {
			t, err := rea.ReadStateTable(p.Definition)
			if err != nil {
				return nil, err
			}
			m.tables[t.Of] = append(m.tables[t.Of], t)
		}
	}
	s.store.machine.Store(m)
	return m, nil
}

// place is where an aggregate stands.
type place struct {
	seq     int64
	status  string // that is stored
	catalog int    // that gave it
}

const tellingSQL = `
SELECT coalesce(status, '')
FROM rea_telling
WHERE aggregate_type = ?1 AND aggregate_id = ?2
ORDER BY seq DESC
LIMIT 1`

// present brings a place's status up to the present catalog: carried through what was renamed since, or what the last
// event tells that tells one.
func (s *session) present(ctx context.Context, m *machine, aggregate rea.Ref, at place) (place, error) {
	declared, ok := m.catalog.Type(aggregate.Type)
	if !ok || declared.Status == "" || at.seq == 0 || at.catalog == m.number {
		return at, nil
	}
	if at.status == "" {
		at.catalog = m.number
		err := each(ctx, s.db, func() error { return nil }, []any{&at.status}, tellingSQL, aggregate.Type, aggregate.ID)
		return at, s.store.mapError("append to "+aggregate.String(), err)
	}
	at.status, at.catalog = rea.Carried(m.applied, aggregate.Type, at.status, at.catalog), m.number
	return at, nil
}

// next takes one step from at, and gives the place after it.
func (m *machine) next(aggregate rea.Ref, at place, e *rea.NewEvent, correction bool) (place, error) {
	taken, err := m.catalog.Take(aggregate, *e, at.status, at.seq, correction)
	if err != nil {
		if illegal, ok := err.(*rea.TransitionError); ok {
			illegal.Seq = at.seq
		}
		return at, err
	}
	if e.Version == 0 {
		e.Version = max(taken.Version, 1)
	}
	at = place{seq: at.seq + 1, status: taken.Status}
	if taken.Machine {
		at.catalog = m.number
	}
	return at, nil
}

// stepped is an event with what it is stored with.
type stepped struct {
	rea.NewEvent
	place
}

func (s *session) step(ctx context.Context, m *machine, call rea.Call, at place) ([]stepped, error) {
	at, err := s.present(ctx, m, call.Aggregate, at)
	if err != nil {
		return nil, err
	}
	list := make([]stepped, len(call.Events))
	for i, e := range call.Events {
		if at, err = m.next(call.Aggregate, at, &e, call.Correction); err != nil {
			return nil, err
		}
		list[i] = stepped{e, at}
	}
	return list, nil
}

const catalogsSQL = `SELECT number, text, renamed FROM rea_catalogs ORDER BY number`

func (s *session) Catalogs(ctx context.Context) ([]rea.AppliedCatalog, error) {
	var list []rea.AppliedCatalog
	var a rea.AppliedCatalog
	var renamed string
	err := each(ctx, s.db, func() error {
		a.Renamed = nil
		err := json.Unmarshal([]byte(renamed), &a.Renamed)
		list = append(list, a)
		return err
	}, []any{&a.Number, &a.Text, &renamed}, catalogsSQL)
	return list, s.store.mapError("read the applied catalogs", err)
}

// presentSQL goes from aggregate to aggregate through the index of (aggregate_type, aggregate_id, seq), and from each
// one's end to the first event that tells its status; nothing before a whole row, or its end, does.
const presentSQL = `
WITH RECURSIVE a (id) AS (
    SELECT min(aggregate_id) FROM rea_events WHERE aggregate_type = ?1
    UNION ALL
    SELECT (SELECT min(e.aggregate_id) FROM rea_events e WHERE e.aggregate_type = ?1 AND e.aggregate_id > a.id)
    FROM a WHERE a.id IS NOT NULL
)
SELECT coalesce(e.status, (SELECT s.status FROM rea_said s WHERE s.id = e.id AND s.field = ?3)) AS told, coalesce(e.catalog_version, 0), count(*)
FROM a
JOIN rea_events e ON e.aggregate_type = ?1 AND e.aggregate_id = a.id
     AND e.seq = (SELECT max(x.seq) FROM rea_events x
                  WHERE x.aggregate_type = ?1 AND x.aggregate_id = a.id
                    AND (x.status IS NOT NULL OR x.event_type IN (SELECT value FROM json_each(?2))
                         OR x.event_type IN ('BaselineCreated', 'DirectInsert', 'DirectDelete')
                         OR EXISTS (SELECT 1 FROM rea_said s WHERE s.id = x.id AND s.field = ?3)))
WHERE told IS NOT NULL
GROUP BY 1, 2`

func (s *session) PresentStatuses(ctx context.Context, aggregateType, field string, leading map[string]string) ([]rea.PresentStatus, error) {
	names, err := json.Marshal(slices.Collect(maps.Keys(leading)))
	if err != nil {
		return nil, err
	}
	var list []rea.PresentStatus
	p := rea.PresentStatus{Type: aggregateType}
	err = each(ctx, s.db, func() error {
		list = append(list, p)
		return nil
	}, []any{&p.Status, &p.Catalog, &p.Aggregates}, presentSQL, aggregateType, string(names), field)
	return list, s.store.mapError("read the present statuses", err)
}

// LockCatalog does nothing: this transaction has the file's write lock.
func (s *session) LockCatalog(context.Context) error { return nil }

const (
	saveCatalogSQL = `INSERT INTO rea_catalogs (number, text, renamed) VALUES (?1, ?2, ?3)`

	saveStepSQL = `
INSERT INTO rea_steps (aggregate_type, event_type, from_status, to_status, event_version, ruled, alias_of, strict, ordinal, catalog_version, status_field, deletes)
VALUES (?1, ?2, ?3, ?4, nullif(?5, 0), ?6, ?7, ?8, ?9, nullif(?10, 0), ?11, ?12)`

	saveRenameSQL = `INSERT INTO rea_renames (aggregate_type, catalog_version, status, now) VALUES (?1, ?2, ?3, ?4)`
)

func (s *session) SaveCatalog(ctx context.Context, catalog rea.AppliedCatalog, rows []rea.Declared) error {
	applied, err := s.Catalogs(ctx)
	if err != nil {
		return err
	}
	renamed, err := json.Marshal(catalog.Renamed)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	exec := func(query string, args ...any) {
		if err == nil {
			_, err = s.db.ExecContext(ctx, query, args...)
		}
	}
	exec(saveCatalogSQL, int64(catalog.Number), catalog.Text, string(renamed))
	exec(`DELETE FROM rea_steps`)
	for i, d := range rows {
		given := int64(0)
		if d.Machine {
			given = int64(catalog.Number)
		}
		exec(saveStepSQL, d.Type, d.Event, d.From, optional(d.To), int64(d.Version), number(d.Ruled), optional(d.AliasOf), number(d.Strict), int64(i), given,
			optional(d.Status), number(d.Deletes))
	}
	exec(`DELETE FROM rea_renames`)
	all := append(applied, catalog)
	renames := map[string]map[string]bool{} // by type: what any catalog has renamed, be it a row's status
	for _, a := range all {
		for kind, old := range a.Renamed {
			if renames[kind] == nil {
				renames[kind] = map[string]bool{}
			}
			for status := range old {
				renames[kind][status] = true
			}
		}
	}
	for version := range len(all) {
		for kind, statuses := range renames {
			for status := range statuses {
				if now := rea.Carried(all, kind, status, version); now != status {
					exec(saveRenameSQL, kind, int64(version), status, now)
				}
			}
		}
	}
	return s.store.mapError("apply the catalog", err)
}

func (s *ownSession) Catalogs(ctx context.Context) (list []rea.AppliedCatalog, err error) {
	err = s.do(func() error { list, err = s.session.Catalogs(ctx); return err })
	return list, err
}

func (s *ownSession) PresentStatuses(ctx context.Context, aggregateType, field string, leading map[string]string) (list []rea.PresentStatus, err error) {
	err = s.do(func() error { list, err = s.session.PresentStatuses(ctx, aggregateType, field, leading); return err })
	return list, err
}

func (s *ownSession) SaveCatalog(ctx context.Context, catalog rea.AppliedCatalog, rows []rea.Declared) error {
	return s.do(func() error { return s.session.SaveCatalog(ctx, catalog, rows) })
}
