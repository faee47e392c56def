package rea

import (
	"context"
	"fmt"
)

// DropProjection forgets a followed projection that this program does not declare: its offset, what it has left out, and its tables. Those
// of a function of a program's (KindGo) stay. Who still declares it makes it again, and fills it from the first event
// on. What depends on the table is a *DependentsError. A projection that is declared is refused.
func (a *Archive) DropProjection(ctx context.Context, name string) error {
	declared, err := a.followed()
	if err != nil {
		return err
	}
	for _, f := range declared {
		if f.Name == name {
			return fmt.Errorf("rea: the projection %s is declared: take it out of the catalog first", clip(name))
		}
	}
	return a.claimed(ctx, name, func(session OwnSession, at ProjectionOffset) error {
		if at.Inline {
			return fmt.Errorf("rea: the projection %s is inline: applying a catalog without it makes appends leave its table alone, which is then yours to drop", clip(name))
		}
		f := Followed{Name: name, Kind: at.Kind}
		if f.Kind != KindGo {
			dependents, err := session.Dependents(ctx, f)
			if err != nil {
				return err
			}
			refusal := &DependentsError{Projection: name, Dropping: true}
			for _, d := range dependents {
				refusal.Dependents = append(refusal.Dependents, d.Name)
			}
			if len(dependents) > 0 {
				return refusal
			}
		}
		return session.DropProjection(ctx, f)
	})
}
