package rea

import (
	"context"
	"fmt"
)

// ProjectionChange says what applying a catalog does, or has done, to one inline projection.
type ProjectionChange struct {
	Name   string
	Action string // ActionMake, ActionRebuild, ActionMend, ActionRemove

	table  StateTable
	filled int64 // ids up to this one were seen before the last look of filling
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

func (c ProjectionChange) followed() Followed {
	f := Followed{Name: c.Name, Inline: true, Kind: KindState, Of: c.table.Of, Version: c.table.Version, State: &c.table}
	f.Definition, f.Fingerprint = c.table.Definition()
	return f
}

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
			return nil, fmt.Errorf("rea: apply the catalog: the table of the projection %s is there already, and none that REA keeps: drop or rename rea_views.%[1]s (SQLite: rea_views_%[1]s)", clip(t.Name))
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
	for i, planned := range changes {
		if !planned.builds() {
			continue
		}
		builds := false
		err := a.patiently(ctx, func() error {
			return a.still(ctx, planned, func(session OwnSession, change ProjectionChange) error {
				if builds = change.builds(); !builds {
					return nil
				}
				if err := session.BuildStateTable(ctx, change.table); err != nil {
					return err
				}
				return session.RehearseSwitch(ctx, change.followed(), a.config.RecreateViews)
			})
		})
		switch {
		case err != nil:
			return err
		case !builds:
			continue
		}
		if changes[i].filled, err = a.fillBeside(ctx, planned.table); err == nil {
			err = a.patiently(ctx, func() error {
				return a.copyIndexes(ctx, planned.followed(), func(OwnSession) (bool, error) { return true, nil })
			})
		}
		if err != nil {
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
			if err := session.InstallStateTable(ctx, change.table, change.builds(), a.config.RecreateViews); err != nil || !change.builds() {
				return err
			}
			return a.fillRecent(ctx, session, change.table, planned.filled)
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
