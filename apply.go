package rea

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// Change says what applying a catalog does, or has done.
type Change struct {
	Number  int        // of the catalog in the database afterwards; 0: none
	New     bool       // false: the database has exactly this catalog
	Added   []Declared // rows of rea.steps
	Removed []Declared
	Unknown []PresentStatus // statuses that the new state machine does not know: they refuse it

	Projections []ProjectionChange // inline ones that are made, rebuilt, mended, removed
	Behind      []RowsBehind       // rows that could not be caught up; of Apply alone
}

// Nothing reports whether the database has all that the catalog declares.
func (c Change) Nothing() bool { return !c.New && len(c.Projections) == 0 }

// PresentStatus counts the aggregates of a type that are in a status.
type PresentStatus struct {
	Type       string
	Status     string
	Catalog    int // that gave it
	Aggregates int64
}

// Apply makes Config.Catalog the state machine of the database: from then on every writer in every language is held to it.
// Where the database has exactly these declarations it does nothing; several processes may apply at once. It waits
// for open transactions that have appended, a second at a time, so that none sees two machines; Config.Attempts bounds that
// (ErrRetry). Statuses of aggregates that the new machine does not know are an *UnknownStatusError: map them
// with Renamed. It needs the right of the tables' owner.
//
// Inline projections are made and filled before Apply returns, while appends go on: a new or changed one in a table
// beside the one that is read, which it replaces at once. Rows that are behind are caught up every time. Killed, it goes
// on where it was. A stored value that a column cannot take is a *ProjectionError, before anything is applied.
func (a *Archive) Apply(ctx context.Context) (Change, error) {
	plan, err := a.PlanApply(ctx)
	switch {
	case err != nil:
		return plan, err
	case len(plan.Unknown) > 0:
		return plan, &UnknownStatusError{Statuses: plan.Unknown}
	}
	if err := a.buildAll(ctx, plan.Projections); err != nil {
		return plan, err
	}
	change := plan
	if plan.New {
		if change, err = a.applyCatalog(ctx); err != nil {
			return change, err
		}
		change.Projections = plan.Projections
	}
	if err := a.installAll(ctx, plan.Projections); err != nil {
		return change, err
	}
	change.Behind, err = a.catchUpAll(ctx)
	return change, err
}

func (a *Archive) applyCatalog(ctx context.Context) (change Change, err error) {
	err = a.own(ctx, func(session OwnSession) error {
		if err := session.LockCatalog(ctx); err != nil {
			return err
		}
		change, err = a.change(ctx, session, false)
		switch {
		case err != nil || !change.New:
			return err
		case len(change.Unknown) > 0:
			return &UnknownStatusError{Statuses: change.Unknown}
		}
		text, err := a.config.Catalog.text()
		if err != nil {
			return err
		}
		next := AppliedCatalog{Number: change.Number, Text: text, Renamed: a.config.Catalog.renamed()}
		return session.SaveCatalog(ctx, next, a.config.Catalog.Declared())
	})
	return change, err
}

// PlanApply says what Apply would do, and does nothing.
func (a *Archive) PlanApply(ctx context.Context) (Change, error) {
	if a.config.Catalog == nil {
		return Change{}, errNoCatalog
	}
	session, err := a.store.Begin(ctx)
	if err != nil {
		return Change{}, err
	}
	defer func() { _ = session.Rollback(context.WithoutCancel(ctx)) }()
	if err := session.Ready(ctx, false); err != nil {
		return Change{}, err
	}
	change, err := a.change(ctx, session, true)
	if err != nil {
		return change, err
	}
	change.Projections, err = a.projectionChanges(ctx, session)
	return change, err
}

var errNoCatalog = errors.New("rea: apply: no catalog: give Config.Catalog")

// change compares. facts: a type that gets a machine is looked through for what built-in events say: where appends wait, it
// is not done again.
func (a *Archive) change(ctx context.Context, session OwnSession, facts bool) (Change, error) {
	catalog := a.config.Catalog
	applied, err := session.Catalogs(ctx)
	if err != nil {
		return Change{}, err
	}
	var last AppliedCatalog
	var before *Catalog
	if len(applied) > 0 {
		last = applied[len(applied)-1]
		if before, err = last.Catalog(); err != nil {
			return Change{}, err
		}
	}
	text, err := catalog.text()
	if err != nil || text == last.Text {
		return Change{Number: last.Number}, err
	}
	was, is := before.Declared(), catalog.Declared()
	change := Change{Number: last.Number + 1, New: true, Added: lacks(is, was), Removed: lacks(was, is)}
	next := append(slices.Clone(applied), AppliedCatalog{Number: last.Number + 1, Renamed: catalog.renamed()})
	for _, t := range catalog.Types() {
		if t.Status == "" || !loses(before, catalog, t, facts || len(applied) > 0) {
			continue
		}
		present, err := session.PresentStatuses(ctx, t.Name, t.Status, catalog.Leading(t.Name))
		if err != nil {
			return Change{}, err
		}
		for _, p := range present {
			if !slices.Contains(t.Statuses(), Carried(next, t.Name, p.Status, p.Catalog)) {
				change.Unknown = append(change.Unknown, p)
			}
		}
	}
	slices.SortFunc(change.Unknown, func(x, y PresentStatus) int {
		return cmp.Or(cmp.Compare(x.Type, y.Type), cmp.Compare(x.Status, y.Status), cmp.Compare(x.Catalog, y.Catalog))
	})
	return change, nil
}

// loses: an aggregate may be in a status that catalog does not know, so that all have to be looked at. The machine
// before knew the status of each. Where the type had none, an earlier one may have left some; and where an event leads
// to a status no more, what is stored before it tells the status again.
func loses(before, catalog *Catalog, t Type, earlier bool) bool {
	was, declared := before.Type(t.Name)
	if !declared || was.Status == "" {
		return earlier
	}
	leading := catalog.Leading(t.Name)
	for event := range before.Leading(t.Name) {
		if leading[event] == "" {
			return true
		}
	}
	return slices.ContainsFunc(was.Statuses(), func(status string) bool {
		return !slices.Contains(t.Statuses(), cmp.Or(t.Renamed[status], status))
	})
}
