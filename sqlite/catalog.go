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
SELECT coalesce(status, ''), coalesce(catalog_version, 0), event_type
FROM rea_events
WHERE aggregate_type = ?1 AND aggregate_id = ?2 AND (status IS NOT NULL OR event_type IN (SELECT value FROM json_each(?3)))
ORDER BY seq DESC
LIMIT 1`

// present brings a place's status up to the present catalog: carried through what was renamed since, or that to which
// the last event leads that leads to one.
func (s *session) present(ctx context.Context, m *machine, aggregate rea.Ref, at place) (place, error) {
	declared, ok := m.catalog.Type(aggregate.Type)
	if !ok || declared.Status == "" || at.seq == 0 || at.catalog == m.number {
		return at, nil
	}
	if at.status == "" {
		leading := m.catalog.Leading(aggregate.Type)
		names, err := json.Marshal(slices.Collect(maps.Keys(leading)))
		if err != nil {
			return at, err
		}
		var event string
		err = each(ctx, s.db, func() error {
			if at.status == "" {
				at.status, at.catalog = leading[event], m.number
			}
			return nil
		}, []any{&at.status, &at.catalog, &event}, tellingSQL, aggregate.Type, aggregate.ID, string(names))
		if err != nil {
			return at, s.store.mapError("append to "+aggregate.String(), err)
		}
	}
	at.status, at.catalog = rea.Carried(m.applied, aggregate.Type, at.status, at.catalog), m.number
	return at, nil
}

// next takes one step from at, and gives the place after it.
func (m *machine) next(aggregate rea.Ref, at place, e *rea.NewEvent, correction bool) (place, error) {
	taken, err := m.catalog.Take(aggregate, e.Type, at.status, at.seq > 0, correction)
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
// one's end to the first event that tells its status.
const presentSQL = `
WITH RECURSIVE a (id) AS (
    SELECT min(aggregate_id) FROM rea_events WHERE aggregate_type = ?1
    UNION ALL
    SELECT (SELECT min(e.aggregate_id) FROM rea_events e WHERE e.aggregate_type = ?1 AND e.aggregate_id > a.id)
    FROM a WHERE a.id IS NOT NULL
)
SELECT e.status, e.catalog_version, count(*)
FROM a
JOIN rea_events e ON e.aggregate_type = ?1 AND e.aggregate_id = a.id
     AND e.seq = (SELECT max(x.seq) FROM rea_events x
                  WHERE x.aggregate_type = ?1 AND x.aggregate_id = a.id
                    AND (x.status IS NOT NULL OR x.event_type IN (SELECT value FROM json_each(?2))))
WHERE e.status IS NOT NULL
GROUP BY e.status, e.catalog_version`

func (s *session) PresentStatuses(ctx context.Context, aggregateType string, leading map[string]string) ([]rea.PresentStatus, error) {
	names, err := json.Marshal(slices.Collect(maps.Keys(leading)))
	if err != nil {
		return nil, err
	}
	var list []rea.PresentStatus
	p := rea.PresentStatus{Type: aggregateType}
	err = each(ctx, s.db, func() error {
		list = append(list, p)
		return nil
	}, []any{&p.Status, &p.Catalog, &p.Aggregates}, presentSQL, aggregateType, string(names))
	return list, s.store.mapError("read the present statuses", err)
}

// LockCatalog does nothing: this transaction has the file's write lock.
func (s *session) LockCatalog(context.Context) error { return nil }

const (
	saveCatalogSQL = `INSERT INTO rea_catalogs (number, text, renamed) VALUES (?1, ?2, ?3)`

	saveStepSQL = `
INSERT INTO rea_steps (aggregate_type, event_type, from_status, to_status, event_version, ruled, alias_of, strict, ordinal, catalog_version)
VALUES (?1, ?2, ?3, ?4, nullif(?5, 0), ?6, ?7, ?8, ?9, nullif(?10, 0))`

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
		exec(saveStepSQL, d.Type, d.Event, d.From, optional(d.To), int64(d.Version), number(d.Ruled), optional(d.AliasOf), number(d.Strict), int64(i), given)
	}
	exec(`DELETE FROM rea_renames`)
	all := append(applied, catalog)
	for _, a := range applied {
		then, wrong := a.Catalog()
		if wrong != nil {
			return wrong
		}
		for _, t := range then.Types() {
			for _, status := range t.Statuses() {
				if now := rea.Carried(all, t.Name, status, a.Number); now != status {
					exec(saveRenameSQL, t.Name, int64(a.Number), status, now)
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

func (s *ownSession) PresentStatuses(ctx context.Context, aggregateType string, leading map[string]string) (list []rea.PresentStatus, err error) {
	err = s.do(func() error { list, err = s.session.PresentStatuses(ctx, aggregateType, leading); return err })
	return list, err
}

func (s *ownSession) SaveCatalog(ctx context.Context, catalog rea.AppliedCatalog, rows []rea.Declared) error {
	return s.do(func() error { return s.session.SaveCatalog(ctx, catalog, rows) })
}
