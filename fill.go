package rea

import (
	"context"
	"errors"
	"fmt"
)

const (
	fillAggregates = 500   // in one look at a table
	fillPage       = 1_000 // events in one look at an aggregate
)

// fillBeside fills a table in two looks: the second is short, and what comes after it is little.
func (a *Archive) fillBeside(ctx context.Context, t StateTable) (filled int64, err error) {
	for range 2 {
		err = a.own(ctx, func(session OwnSession) (err error) {
			filled, err = session.LastID(ctx)
			return err
		})
		if err == nil {
			_, _, err = a.fill(ctx, t, true)
		}
		if err != nil {
			return 0, err
		}
	}
	return filled, nil
}

// fillRecent folds what came after filling, before anybody sees the table, while no append is open: so that readers do
// not see older rows than before. Where that would take long it is left to catchUpAll.
func (a *Archive) fillRecent(ctx context.Context, session OwnSession, t StateTable, filled int64) error {
	const mostRows, mostEvents = 1_000, 10_000
	places, err := session.RecentRows(ctx, t, filled, mostRows)
	if err != nil {
		return err
	}
	var late []RowPlace
	var events int64
	for _, p := range places {
		if p.Seq == p.Last {
			continue
		}
		if events += p.Last; events <= mostEvents {
			late = append(late, p)
		}
	}
	_, _, err = a.foldRows(ctx, session, t, false, late)
	return err
}

// catchUpAll folds into every table what its rows lack, until nothing is behind that can be folded.
func (a *Archive) catchUpAll(ctx context.Context) (behind []RowsBehind, err error) {
	// The second look finds what an append left behind that was open in the first, and so on; without events of old
	// versions the third finds nothing. Their writers may leave rows behind as fast as they are caught up.
	const most = 8
	for _, t := range a.config.Catalog.StateTables() {
		var left RowsBehind
		var head Offset
		moved := 1
		for look := 0; moved > 0 && look < most; look++ {
			if head, err = a.headOffset(ctx); err != nil {
				return behind, err
			}
			if moved, left, err = a.fill(ctx, t, false); err != nil {
				return behind, err
			}
		}
		switch {
		case left.Rows > 0:
			behind = append(behind, left)
		case moved == 0:
			if err := a.passed(ctx, t.Name, head); err != nil {
				return behind, err
			}
		}
	}
	return behind, nil
}

// fill brings the rows of a table up to their aggregates' last events, and gives the number of those that it moved.
// The table that was built is filled many rows a transaction; in the one that appends keep each row has its own, so that no
// append waits for two.
func (a *Archive) fill(ctx context.Context, t StateTable, beside bool) (moved int, behind RowsBehind, err error) {
	behind.Projection = t.Name
	for after := ""; ; {
		var places, late []RowPlace
		err := a.own(ctx, func(session OwnSession) (err error) {
			places, err = session.StateRows(ctx, t, beside, after, fillAggregates)
			late = nil
			for _, p := range places {
				if p.Seq != p.Last {
					late = append(late, p)
				}
			}
			return err
		})
		if err != nil || len(places) == 0 {
			return moved, behind, err
		}
		after = places[len(places)-1].ID
		size := 1
		if beside {
			size = max(len(late), 1)
		}
		for ; len(late) > 0; late = late[min(size, len(late)):] {
			n, stuck, err := a.fillRows(ctx, t, beside, late[:min(size, len(late))])
			if err != nil {
				return moved, behind, err
			}
			if moved += n; behind.Rows == 0 {
				behind.First, behind.Err = stuck.First, stuck.Err
			}
			behind.Rows += stuck.Rows
		}
	}
}

func (a *Archive) fillRows(ctx context.Context, t StateTable, beside bool, late []RowPlace) (moved int, behind RowsBehind, err error) {
	err = a.own(ctx, func(session OwnSession) error {
		moved, behind, err = a.foldRows(ctx, session, t, beside, late)
		return err
	})
	return moved, behind, err
}

func (a *Archive) foldRows(ctx context.Context, session OwnSession, t StateTable, beside bool, late []RowPlace) (moved int, behind RowsBehind, err error) {
	var rows []StateRow
	var have map[string][]Event
	for i, p := range late {
		if have[p.ID] == nil {
			if have, err = firstEvents(ctx, session, t.Of, late[i:], false); err != nil {
				return 0, behind, err
			}
		}
		row, why, err := a.foldRow(ctx, session, t, p, have[p.ID])
		if errors.Is(err, ErrProjection) && !beside {
			why, err = err, nil // it came while the row was behind
		}
		if err != nil {
			return 0, behind, err
		}
		if why != nil {
			if behind.Rows++; behind.Rows == 1 {
				behind.First, behind.Err = Ref{t.Of, p.ID}, why
			}
		}
		if row.Seq > p.Seq || 0 < row.Seq && p.Seq > p.Last {
			rows = append(rows, row)
		}
	}
	moved, err = session.SaveStateRows(ctx, t, beside, rows)
	return moved, behind, err
}

// firstEvents reads ahead for the first of some aggregates, as many as have fillPage events together.
func firstEvents(ctx context.Context, session interface {
	FirstEvents(ctx context.Context, aggregateType string, ids []string, limit int, positions bool) ([]Event, error)
}, aggregateType string, places []RowPlace, positions bool) (map[string][]Event, error) {
	var ids []string
	events := int64(0)
	for _, p := range places {
		if events += p.Last; events > fillPage && len(ids) > 0 {
			break
		}
		ids = append(ids, p.ID)
	}
	list, err := session.FirstEvents(ctx, aggregateType, ids, fillPage, positions)
	have := make(map[string][]Event, len(ids))
	for _, e := range list {
		have[e.Aggregate.ID] = append(have[e.Aggregate.ID], e)
	}
	return have, err
}

// foldRow folds an aggregate from its first event to the last one that place knows of. why says what no catalog of
// this program's can fold: the row then stands before it. events are its first ones, as far as they were read.
func (a *Archive) foldRow(ctx context.Context, session OwnSession, t StateTable, place RowPlace, events []Event) (row StateRow, why, err error) {
	aggregate := Ref{t.Of, place.ID}
	row = StateRow{ID: place.ID, Was: place.Seq, Values: make([]*string, len(t.Columns))}
	for ; row.Seq < place.Last; events = nil {
		if len(events) == 0 {
			if events, _, err = session.Events(ctx, Stretch{Aggregate: aggregate, After: row.Seq, Limit: fillPage, Folding: true}, nil); err != nil {
				return row, nil, err
			}
		}
		if len(events) == 0 {
			return row, nil, fmt.Errorf("rea: %s: seq %d is not there any more", aggregate, row.Seq+1)
		}
		for _, e := range events {
			if e.Seq > place.Last {
				break
			}
			current, ignore, err := a.config.Catalog.Upcast(e)
			if undeclared(err) {
				ignore, err = true, nil // nothing is said of it: rea_seq alone moves
			}
			if err != nil {
				return row, err, nil
			}
			if ignore {
				row.Seq, row.Updated = e.Seq, e.CreatedAt
				continue
			}
			if _, err := t.Step(&row, current); err != nil {
				return row, nil, err
			}
		}
	}
	return row, nil, nil
}
