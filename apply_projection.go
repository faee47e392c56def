package rea

import (
	"context"
	"errors"
	"fmt"
)

// ProjectionChange says what applying a catalog does, or has done, to one inline projection.
type ProjectionChange struct {
	Name   string
	Action string // ActionMake, ActionRebuild, ActionMend, ActionRemove

	table StateTable
}

// What applying a catalog does to a projection.
const (
	ActionMake    = "make"    // the table is made and filled
	ActionRebuild = "rebuild" // another one is filled beside it, and takes its place
	ActionMend    = "mend"    // appends keep it again, and it is caught up
	ActionRemove  = "remove"  // appends leave it alone; the table stays
)

// RowsBehind says that rows of a projection could not be caught up.
type RowsBehind struct {
	Projection string
	Rows       int
	First      Ref
	Err        error // why, of the first
}

func (c ProjectionChange) builds() bool { return c.Action == ActionMake || c.Action == ActionRebuild }

// projectionChanges compares what is declared with what is there.
func (a *Archive) projectionChanges(ctx context.Context, session OwnSession) ([]ProjectionChange, error) {
	applied, err := session.Projections(ctx)
	if err != nil {
		return nil, err
	}
	recorded := make(map[string]AppliedProjection, len(applied))
	for _, p := range applied {
		recorded[p.Name] = p
	}
	var changes []ProjectionChange
	for _, t := range a.config.Catalog.StateTables() {
		change := ProjectionChange{Name: t.Name, table: t}
		was, known := recorded[t.Name]
		delete(recorded, t.Name)
		if _, fingerprint := t.Definition(); known && was.Fingerprint != fingerprint {
			change.Action = ActionRebuild
			changes = append(changes, change)
			continue
		}
		check, err := session.CheckStateTable(ctx, t)
		switch {
		case err != nil:
			return nil, err
		case check == TableUnplaced:
			return nil, fmt.Errorf("rea: apply the catalog: the table of the projection %s is there already, and none that REA keeps: drop or rename it", clip(t.Name))
		case check == TableMissing:
			change.Action = ActionMake
		case check == TableUnkept:
			change.Action = ActionMend
		default:
			continue
		}
		changes = append(changes, change)
	}
	for _, p := range applied {
		if _, left := recorded[p.Name]; left {
			changes = append(changes, ProjectionChange{Name: p.Name, Action: ActionRemove})
		}
	}
	return changes, nil
}

// own runs fn in a transaction of REA's, again where the database asks for it.
func (a *Archive) own(ctx context.Context, fn func(OwnSession) error) error {
	return a.Do(ctx, func(tx *Tx) error {
		session, err := tx.own(ctx)
		if err != nil {
			return err
		}
		return fn(session)
	})
}

// buildAll fills new tables beside those that are read, while appends go on.
func (a *Archive) buildAll(ctx context.Context, changes []ProjectionChange) error {
	for _, planned := range changes {
		if !planned.builds() {
			continue
		}
		builds := false
		err := a.still(ctx, planned, func(session OwnSession, change ProjectionChange) error {
			if builds = change.builds(); !builds {
				return nil
			}
			return session.BuildStateTable(ctx, change.table)
		})
		switch {
		case err != nil:
			return err
		case !builds:
			continue
		}
		if _, _, err := a.fill(ctx, planned.table, true); err != nil {
			// another process may have switched the table meanwhile that both fill
			builds = false
			look := a.still(ctx, planned, func(_ OwnSession, change ProjectionChange) error { builds = change.builds(); return nil })
			if look != nil || builds {
				return err
			}
		}
	}
	return nil
}

// installAll makes appends keep the tables. Where another process was faster, there is nothing left to do.
func (a *Archive) installAll(ctx context.Context, changes []ProjectionChange) error {
	for _, planned := range changes {
		err := a.still(ctx, planned, func(session OwnSession, change ProjectionChange) error {
			if change.Action == ActionRemove {
				return session.RemoveProjection(ctx, change.Name)
			}
			return session.InstallStateTable(ctx, change.table, change.builds())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// still calls fn for a planned change that is still to be made, while nobody else can make it.
func (a *Archive) still(ctx context.Context, planned ProjectionChange, fn func(OwnSession, ProjectionChange) error) error {
	return a.own(ctx, func(session OwnSession) error {
		if err := session.LockProjections(ctx); err != nil {
			return err
		}
		changes, err := a.projectionChanges(ctx, session)
		if err != nil {
			return err
		}
		for _, change := range changes {
			if change.Name == planned.Name {
				return fn(session, change)
			}
		}
		return nil
	})
}

// catchUpAll folds into every table what its rows lack, until nothing is behind that can be folded.
func (a *Archive) catchUpAll(ctx context.Context) (behind []RowsBehind, err error) {
	const most = 100 // writers of old versions may leave rows behind as fast as they are caught up
	for _, t := range a.config.Catalog.StateTables() {
		for range most {
			moved, left, err := a.fill(ctx, t, false)
			if err != nil {
				return behind, err
			}
			if moved > 0 {
				continue
			}
			if left.Rows > 0 {
				behind = append(behind, left)
			}
			break
		}
	}
	return behind, nil
}

const (
	fillAggregates = 500   // in one look at a table
	fillPage       = 1_000 // events in one look at an aggregate
)

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
		behind = RowsBehind{}
		var rows []StateRow
		for _, p := range late {
			row, why, err := a.foldRow(ctx, session, t, p)
			if errors.Is(err, ErrProjection) && !beside {
				why, err = err, nil // it came while the row was behind
			}
			if err != nil {
				return err
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
		return err
	})
	return moved, behind, err
}

// foldRow folds an aggregate from its first event to the last one that place knows of. why says what no catalog of
// this program's can fold: the row then stands before it.
func (a *Archive) foldRow(ctx context.Context, session OwnSession, t StateTable, place RowPlace) (row StateRow, why, err error) {
	aggregate := Ref{t.Of, place.ID}
	row = StateRow{ID: place.ID, Was: place.Seq, Values: make([]*string, len(t.Columns))}
	for row.Seq < place.Last {
		events, _, err := session.Events(ctx, Stretch{Aggregate: aggregate, After: row.Seq, Limit: fillPage}, nil)
		if err != nil {
			return row, nil, err
		}
		if len(events) == 0 {
			return row, nil, fmt.Errorf("rea: %s: seq %d is not there any more", aggregate, row.Seq+1)
		}
		for _, e := range events {
			if e.Seq > place.Last {
				break
			}
			current, ignore, err := a.config.Catalog.Upcast(e)
			var unknown *UnknownTypeError
			if errors.As(err, &unknown) && unknown.Newest == 0 {
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
