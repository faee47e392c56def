package rea

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// applyPage brings a projection's table forward by a page of the feed. Events of skipped are left out.
func (a *Archive) applyPage(ctx context.Context, session OwnSession, f Followed, beside bool, skipped map[int64]bool, page []Event) error {
	switch f.Kind {
	case KindState:
		return a.applyStates(ctx, session, *f.State, beside, skipped, page)
	case KindStatistics:
		rows, err := a.statistics(f.Statistics, skipped, page)
		if err != nil || len(rows) == 0 {
			return err
		}
		return session.AddStatistics(ctx, *f.Statistics, beside, rows)
	}
	if len(skipped) > 0 {
		page = slices.DeleteFunc(slices.Clone(page), func(e Event) bool { return skipped[e.Position] })
	}
	if len(page) == 0 {
		return nil
	}
	tx, err := session.UserSQL(ctx)
	if err != nil {
		return err
	}
	return programs(f.apply.Apply(ctx, tx, page))
}

// programError is an error of the program's function, or of the data: not of the database.
type programError struct {
	error
	lost bool // the database was gone
}

func (e *programError) Unwrap() error { return e.error }

func programs(err error) error {
	if err == nil {
		return nil
	}
	return &programError{error: err}
}

// applyStates moves the rows of the aggregates of a page. They are written in the order of their ids.
func (a *Archive) applyStates(ctx context.Context, session OwnSession, t StateTable, beside bool, skipped map[int64]bool, page []Event) error {
	rows := map[string]*StateRow{}
	for i := range page {
		if e := &page[i]; e.Aggregate.Type == t.Of && rows[e.Aggregate.ID] == nil {
			rows[e.Aggregate.ID] = &StateRow{ID: e.Aggregate.ID, Values: make([]*string, len(t.Columns))}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(rows))
	list, err := session.ReadStateRows(ctx, t, beside, ids)
	if err != nil {
		return err
	}
	for i := range list {
		rows[list[i].ID] = &list[i]
	}
	for _, e := range page {
		if e.Aggregate.Type != t.Of {
			continue
		}
		if err := a.stepTo(ctx, session, t, rows[e.Aggregate.ID], e, skipped); err != nil {
			return err
		}
	}
	var changed []StateRow
	for _, id := range ids {
		if row := rows[id]; row.Seq != row.Was {
			changed = append(changed, *row)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	saved, err := session.SaveStateRows(ctx, t, beside, changed)
	if err == nil && saved != len(changed) {
		err = programs(fmt.Errorf("rea: the projection %s: somebody else has changed its rows", clip(t.Name)))
	}
	return err
}

// stepTo brings a row to the seq of e, with what is missing in between.
func (a *Archive) stepTo(ctx context.Context, session OwnSession, t StateTable, row *StateRow, e Event, skipped map[int64]bool) error {
	for e.Seq > row.Seq+1 {
		missing, _, err := session.Events(ctx, Stretch{Aggregate: e.Aggregate, After: row.Seq, Limit: fillPage}, nil)
		if err != nil {
			return err
		}
		if len(missing) == 0 || missing[0].Seq != row.Seq+1 {
			return programs(fmt.Errorf("rea: %s: seq %d is not there any more", e.Aggregate, row.Seq+1))
		}
		for _, m := range missing {
			if m.Seq < e.Seq {
				if err := a.stepRow(t, row, m, skipped); err != nil {
					return err
				}
			}
		}
	}
	if e.Seq <= row.Seq {
		return nil
	}
	return a.stepRow(t, row, e, skipped)
}

// stepRow brings a row to the next seq, that of e.
func (a *Archive) stepRow(t StateTable, row *StateRow, e Event, skipped map[int64]bool) error {
	current, ignore, err := a.upcastKnown(e)
	if skipped[e.Position] {
		ignore, err = true, nil
	}
	if err != nil {
		return programs(err)
	}
	if ignore {
		row.Seq, row.Updated = e.Seq, e.CreatedAt
		return nil
	}
	newest, err := t.Step(row, current)
	if err == nil && !newest {
		err = unknown(e, 0)
	}
	return programs(err)
}

// upcastKnown is Upcast, but ignores what nothing is said of.
func (a *Archive) upcastKnown(e Event) (current Event, ignore bool, err error) {
	current, ignore, err = a.config.Catalog.Upcast(e)
	if undeclared(err) {
		return e, true, nil
	}
	return current, ignore, err
}

// statistics sums up what a page adds to a table, by bucket and dimensions.
func (a *Archive) statistics(t *StatisticsTable, skipped map[int64]bool, page []Event) ([]StatisticsRow, error) {
	sums := map[string]*StatisticsRow{}
	for _, e := range page {
		if !t.events[e.Type] || skipped[e.Position] {
			continue
		}
		current, ignore, err := a.upcastKnown(e)
		if err != nil {
			return nil, programs(err)
		}
		if ignore || !slices.Contains(t.On, current.Type) {
			continue
		}
		row, err := t.row(current)
		if err != nil {
			return nil, programs(err)
		}
		key := row.key()
		sum := sums[key]
		if sum == nil {
			row.Local = row.Bucket.Format("2006-01-02T15:04:05-07:00")
			sums[key] = &row
			continue
		}
		for i, m := range t.Measures {
			if sum.Values[i], err = m.Combine(sum.Values[i], row.Values[i]); err != nil {
				return nil, programs(fmt.Errorf("rea: %s seq %d: the measure %s: %w", e.Aggregate, e.Seq, clip(m.Name), err))
			}
		}
	}
	var rows []StatisticsRow
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		rows = append(rows, *sums[key])
	}
	return rows, nil
}
