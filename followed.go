package rea

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// The kinds of followed projections.
const (
	KindState      = "state"      // one row per aggregate
	KindStatistics = "statistics" // buckets of time and dimensions
	KindGo         = "go"         // tables of the program's, kept by a function
)

// Followed is a followed projection as a store keeps it; or an inline one, of which a runner folds the rows that are behind.
type Followed struct {
	Name        string
	Inline      bool   // appends keep it; KindState
	Kind        string // KindState, KindStatistics, KindGo
	Of          string // the aggregate type of a table of states
	Version     int
	Definition  string // JSON: what is computed, the same for the same declarations
	Fingerprint string // of Definition

	State      *StateTable      // of KindState
	Statistics *StatisticsTable // of KindStatistics

	apply *GoProjection
}

// GoProjection is a followed projection that a function of the program's keeps, in tables of the program's.
type GoProjection struct {
	// Name is unique among projections: at most MaxProjectionBytes bytes.
	Name string
	// Version is raised where the function changes so that its tables have to be made anew; 0: 1.
	Version int
	// Apply brings the tables forward by events, which come by position, at least one. It writes through tx alone, which is the
	// transaction in which the offset moves: after an error, or a commit that fails, nothing of it has happened, and Apply
	// is called again, not always with the same events. So it keeps nothing from one call to the next: what it has
	// to remember stands in its tables.
	Apply func(ctx context.Context, tx SQL, events []Event) error
	// Reset empties the tables, for a rebuild: with DELETE, so that readers see the old rows until the new ones are
	// there. Nil: the projection cannot be rebuilt.
	Reset func(ctx context.Context, tx SQL) error
}

// followed lists what a runner looks after: the projections of the catalog and of the program, by name.
func (a *Archive) followed() ([]Followed, error) {
	list := a.config.Catalog.Followed()
	for _, t := range a.config.Catalog.StateTables() {
		f := Followed{Name: t.Name, Inline: true, Kind: KindState, Of: t.Of, Version: t.Version, State: &t}
		f.Definition, f.Fingerprint = t.Definition()
		list = append(list, f)
	}
	for i := range a.config.Projections {
		p := &a.config.Projections[i]
		if err := checkIdentifier("the name of a projection", p.Name, MaxProjectionBytes); err != nil {
			return nil, fmt.Errorf("rea: %w", err)
		}
		if p.Apply == nil {
			return nil, fmt.Errorf("rea: the projection %s has no function Apply", clip(p.Name))
		}
		version := max(p.Version, 1)
		f := Followed{Name: p.Name, Kind: KindGo, Version: version, apply: p}
		f.Definition = fmt.Sprintf(`{"name":%s,"version":%d}`, jsonText(p.Name), version)
		f.Fingerprint = fingerprint(f.Definition)
		list = append(list, f)
	}
	slices.SortStableFunc(list, func(x, y Followed) int { return cmp.Compare(x.Name, y.Name) })
	for i := 1; i < len(list); i++ {
		if asciiLower(list[i].Name) == asciiLower(list[i-1].Name) {
			return nil, fmt.Errorf("rea: there are two projections named %s", clip(list[i].Name))
		}
	}
	return list, nil
}

// Followed gives the declared followed projections as a store keeps them, by name.
func (c *Catalog) Followed() (list []Followed) {
	for _, p := range c.Projections() {
		switch {
		case p.Inline:
		case p.Of != "":
			t := c.stateTable(p)
			t.Mode = "followed"
			f := Followed{Name: p.Name, Kind: KindState, Of: p.Of, Version: p.Version, State: &t}
			f.Definition, f.Fingerprint = t.Definition()
			list = append(list, f)
		default:
			t := c.statisticsTable(p)
			f := Followed{Name: p.Name, Kind: KindStatistics, Version: p.Version, Statistics: &t}
			f.Definition, f.Fingerprint = t.Definition()
			list = append(list, f)
		}
	}
	return list
}

// named gives the projection of this name.
func (a *Archive) named(name string) (Followed, error) {
	list, err := a.followed()
	if err != nil {
		return Followed{}, err
	}
	for _, f := range list {
		if f.Name == name {
			return f, nil
		}
	}
	return Followed{}, fmt.Errorf("%w: no projection %s is declared", ErrNotFound, clip(name))
}

func fingerprint(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
