package rea

import (
	"context"
	"slices"
	"strings"
)

// notApplied is the trouble of an inline projection that the database does not have.
const notApplied = "it is not applied yet: `rea catalog apply` (in Go: archive.Apply)"

// InlineStatus says whether appends keep an inline projection as it is declared.
type InlineStatus struct {
	Name    string
	Of      string // the aggregate type
	Version int    // by which the table was filled; where it is not applied: the declared one
	State   string // StateRunning: appends keep it; StateNew: it is not applied; StateNeedsRebuild: another definition is
	Trouble string // why it is not kept as declared, and what to type; "": it is
}

// InlineProjections says of every inline projection that is applied to the database or declared, by name, whether appends keep
// it as it is declared. Without Config.Catalog nothing is declared.
func (a *Archive) InlineProjections(ctx context.Context) (list []InlineStatus, err error) {
	var applied []AppliedProjection
	err = a.store.Snapshot(ctx, func(session SnapshotSession) (err error) {
		applied, err = session.Projections(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	declared := a.config.Catalog.StateTables()
	for _, p := range applied {
		s := InlineStatus{Name: p.Name, Of: p.Of, Version: p.Version, State: StateRunning}
		i := slices.IndexFunc(declared, func(t StateTable) bool { return t.Name == p.Name })
		if i >= 0 {
			if _, mark := declared[i].Definition(); mark != p.Fingerprint {
				s.State = StateNeedsRebuild
				s.Trouble = staleInline(p.Name)
			}
		}
		list = append(list, s)
	}
	for _, t := range declared {
		if !slices.ContainsFunc(applied, func(p AppliedProjection) bool { return p.Name == t.Name }) {
			list = append(list, InlineStatus{Name: t.Name, Of: t.Of, Version: t.Version, State: StateNew, Trouble: notApplied})
		}
	}
	slices.SortFunc(list, func(x, y InlineStatus) int { return strings.Compare(x.Name, y.Name) })
	return list, nil
}
