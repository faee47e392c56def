package rea

import (
	"fmt"
	"strings"
)

// Dependent is something that depends on the table of a projection.
type Dependent struct {
	Name   string // such as "view public.sales"
	Again  bool   // a rebuild can make it again
	Reason string // why not, where more is to say than that it is no view
}

func (d Dependent) String() string {
	if d.Reason == "" {
		return d.Name
	}
	return d.Name + " (" + d.Reason + ")"
}

// DependentsError says what depends on the table of a projection, and would keep the old rows or be lost.
type DependentsError struct {
	Projection string
	Dependents []string // such as "view public.sales", some with a reason behind
	Again      bool     // with Config.RecreateViews all of them are made again
	Inline     bool     // applying a catalog was to make the table anew
	Dropping   bool     // it was to be dropped, not made anew
}

func (e *DependentsError) Error() string {
	doing, command := "rebuild "+clip(e.Projection), "rea projection rebuild "+clip(e.Projection)
	if e.Inline {
		doing, command = "make the table of "+clip(e.Projection)+" anew", "rea catalog apply"
	}
	list := strings.Join(e.Dependents, ", ")
	switch {
	case e.Dropping:
		return fmt.Sprintf("rea: drop the projection %s: drop what depends on its table first: %s", clip(e.Projection), list)
	case e.Again:
		return fmt.Sprintf("rea: %s: this depends on it: %s: `%s --recreate-views` drops that and makes it again (in Go: Config.RecreateViews)", doing, list, command)
	}
	return fmt.Sprintf("rea: %s: drop or change what the new table cannot take over: %s", doing, list)
}

// CheckDependents is for stores: it gives a *DependentsError where something keeps a projection's table from being switched.
func CheckDependents(f Followed, list []Dependent, recreate bool) error {
	e := &DependentsError{Projection: f.Name, Inline: f.Inline, Again: true}
	for _, d := range list {
		e.Again = e.Again && d.Again
		if !recreate || !d.Again {
			e.Dependents = append(e.Dependents, d.String())
		}
	}
	if len(e.Dependents) == 0 {
		return nil
	}
	return e
}
