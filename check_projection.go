package rea

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Drift is one row of a projection's table that is not what the events say.
type Drift struct {
	Kind   string   // DriftMissing, DriftExtra, DriftDifferent
	Key    []string // the aggregate's id, or the bucket (as TimeLayout) and the dimensions
	Column string   // of DriftDifferent: the first one that differs
	Stored *string  // its value in the table; nil: NULL
	Want   *string  // what the events say
}

// The kinds of drift.
const (
	DriftMissing   = "missing"   // there should be a row
	DriftExtra     = "extra"     // there should be none
	DriftDifferent = "different" // it has another value
)

// CheckProjection folds the events anew, up to where the projection has come, and compares its table with that, in one snapshot
// of the database. It tells report of every row that differs: somebody has written to the table by another way. It checks inline
// projections too. A table of statistics is held in memory. Go projections cannot be checked.
func (a *Archive) CheckProjection(ctx context.Context, name string, report func(Drift)) error {
	if err := a.store.Autocommit().Ready(ctx, false); err != nil {
		return err
	}
	for _, t := range a.config.Catalog.StateTables() {
		if t.Name == name {
			return a.store.Snapshot(ctx, func(session SnapshotSession) error {
				applied, err := session.Projections(ctx)
				if err != nil {
					return err
				}
				_, mark := t.Definition()
				if !slices.ContainsFunc(applied, func(p AppliedProjection) bool { return p.Name == name && p.Fingerprint == mark }) {
					return fmt.Errorf("rea: the projection %s is not applied as it is declared: `rea catalog apply` (in Go: archive.Apply)", clip(name))
				}
				list, err := session.Offsets(ctx)
				if err != nil {
					return err
				}
				c := checking{table: t, report: report}
				if i := slices.IndexFunc(list, func(p ProjectionOffset) bool { return p.Name == name }); i >= 0 {
					c.skipped = list[i].skips()
				}
				return a.checkStates(ctx, session, c)
			})
		}
	}
	f, err := a.named(name)
	if err != nil {
		return err
	}
	if f.Kind == KindGo {
		return fmt.Errorf("rea: %s is a Go projection: what its tables should hold is not known", clip(name))
	}
	return a.store.Snapshot(ctx, func(session SnapshotSession) error {
		list, err := session.Offsets(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(p ProjectionOffset) bool { return p.Name == name })
		switch {
		case i < 0:
			return fmt.Errorf("%w: the database has no followed projection %s", ErrNotFound, clip(name))
		case list[i].Fingerprint != f.Fingerprint:
			return &StaleError{Projection: name, Applied: list[i].Version, Declared: f.Version}
		}
		if err := checkOffset(ctx, session, name, list[i].Offset); err != nil {
			return err
		}
		if f.Kind == KindState {
			return a.checkStates(ctx, session, checking{table: *f.State, followed: true, last: list[i].Position, skipped: list[i].skips(), report: report})
		}
		return a.checkSums(ctx, session, f.Statistics, list[i], report)
	})
}

// checking is the check of a table of states.
type checking struct {
	table    StateTable
	followed bool
	last     int64 // position up to which a followed one has come
	skipped  map[int64]bool
	report   func(Drift)
}

func (a *Archive) checkStates(ctx context.Context, session SnapshotSession, c checking) error {
	for after := ""; ; {
		places, err := session.StateRows(ctx, c.table, false, after, fillAggregates)
		if err != nil || len(places) == 0 {
			if err == nil {
				err = c.extra(ctx, session)
			}
			return err
		}
		var ids []string
		for _, p := range places {
			ids = append(ids, p.ID)
		}
		after = ids[len(ids)-1]
		list, err := session.ReadStateRows(ctx, c.table, false, ids)
		if err != nil {
			return err
		}
		stored := make(map[string]StateRow, len(list))
		for _, row := range list {
			stored[row.ID] = row
		}
		var have map[string][]Event
		for i, place := range places {
			if have[place.ID] == nil {
				if have, err = firstEvents(ctx, session, c.table.Of, places[i:], c.followed || len(c.skipped) > 0); err != nil {
					return err
				}
			}
			want, err := a.foldTo(ctx, session, c, place, have[place.ID])
			if err != nil {
				return err
			}
			c.compare(stored[place.ID], want)
		}
	}
}

// foldTo folds an aggregate as far as the projection has come. events are its first ones, as far as they were read.
func (a *Archive) foldTo(ctx context.Context, session SnapshotSession, c checking, place RowPlace, events []Event) (row StateRow, err error) {
	row = StateRow{ID: place.ID, Values: make([]*string, len(c.table.Columns))}
	for ; row.Seq < place.Last; events = nil {
		if len(events) == 0 {
			if events, _, err = session.Events(ctx, Stretch{Aggregate: Ref{c.table.Of, place.ID}, After: row.Seq, Limit: fillPage}, nil); err != nil {
				return row, err
			}
		}
		if len(events) == 0 {
			return row, fmt.Errorf("rea: %s: seq %d is not there any more", Ref{c.table.Of, place.ID}, row.Seq+1)
		}
		for _, e := range events {
			if c.followed && (e.Position == 0 || e.Position > c.last) {
				return row, nil
			}
			err := a.stepRow(c.table, &row, e, c.skipped)
			var program *programError
			if errors.As(err, &program) && !c.followed {
				return row, nil // the row stands before what cannot be folded
			}
			if err != nil {
				return row, err
			}
		}
	}
	return row, nil
}

func (c checking) compare(stored, want StateRow) {
	switch {
	case stored.Seq == 0 && want.Seq == 0:
		return
	case stored.Seq == 0:
		c.report(Drift{Kind: DriftMissing, Key: []string{want.ID}})
		return
	case want.Seq == 0:
		c.report(Drift{Kind: DriftExtra, Key: []string{stored.ID}})
		return
	}
	names, was, is := []string{"rea_seq", "rea_updated_at"}, []string{fmt.Sprint(stored.Seq), FormatTime(stored.Updated)}, []string{fmt.Sprint(want.Seq), FormatTime(want.Updated)}
	for i := range names {
		if was[i] != is[i] {
			c.report(Drift{Kind: DriftDifferent, Key: []string{want.ID}, Column: names[i], Stored: &was[i], Want: &is[i]})
			return
		}
	}
	for i, column := range c.table.Columns {
		if !sameText(stored.Values[i], want.Values[i]) {
			c.report(Drift{Kind: DriftDifferent, Key: []string{want.ID}, Column: column.Name, Stored: stored.Values[i], Want: want.Values[i]})
			return
		}
	}
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// extra looks for rows of aggregates without events.
func (c checking) extra(ctx context.Context, session SnapshotSession) error {
	for after := ""; ; {
		ids, err := session.ExtraIDs(ctx, c.table, after, fillAggregates)
		if err != nil || len(ids) == 0 {
			return err
		}
		after = ids[len(ids)-1]
		for _, id := range ids {
			c.report(Drift{Kind: DriftExtra, Key: []string{id}})
		}
	}
}

func (a *Archive) checkSums(ctx context.Context, session SnapshotSession, t *StatisticsTable, at ProjectionOffset, report func(Drift)) error {
	want := map[string]StatisticsRow{}
	for position := int64(0); position < at.Position; {
		page, last, err := session.Page(ctx, Filter{}, position, int(min(at.Position-position, scanEvents)))
		if err != nil {
			return err
		}
		if last == position {
			break
		}
		position = last
		rows, err := a.statistics(t, at.skips(), page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			sum, known := want[row.key()]
			if known {
				for i, m := range t.Measures {
					if row.Values[i], err = m.Combine(sum.Values[i], row.Values[i]); err != nil {
						return err
					}
				}
			}
			want[row.key()] = row
		}
	}
	stored, err := session.Statistics(ctx, *t)
	if err != nil {
		return err
	}
	for _, row := range stored {
		sum, known := want[row.key()]
		delete(want, row.key())
		if !known {
			report(Drift{Kind: DriftExtra, Key: row.names()})
			continue
		}
		for i, m := range t.Measures {
			if !m.same(row.Values[i], sum.Values[i]) {
				report(Drift{Kind: DriftDifferent, Key: row.names(), Column: m.Name, Stored: row.Values[i], Want: sum.Values[i]})
				break
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		row := want[key]
		report(Drift{Kind: DriftMissing, Key: row.names()})
	}
	return nil
}

// key sorts rows by bucket and dimensions.
func (r StatisticsRow) key() string {
	return r.Bucket.UTC().Format(time.RFC3339) + "\x00" + strings.Join(r.By, "\x00")
}

func (r StatisticsRow) names() []string { return append([]string{FormatTime(r.Bucket)}, r.By...) }

// same compares values; of equal ones with more and with fewer digits, least and greatest may be either.
func (m Measure) same(a, b *string) bool {
	if sameText(a, b) || a == nil || b == nil {
		return sameText(a, b)
	}
	order, err := compareNumbers(*a, *b)
	return err == nil && order == 0 && (m.Kind == MeasureMin || m.Kind == MeasureMax)
}
