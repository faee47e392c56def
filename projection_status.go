package rea

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// ProjectionStatus says where a projection stands.
type ProjectionStatus struct {
	ProjectionOffset
	Head           int64  // the last position
	Failing        *Event // on which it fails
	RebuildFailing *Event // on which its rebuild fails
	Trouble        string // why it does not go on, and what to type; "": it does
}

// The states that a projection has in a ProjectionStatus beside those that are recorded.
const (
	StateNew          = "new"           // declared, and not made yet
	StateNeedsRebuild = "needs rebuild" // another definition, or an offset of other events
	StateFailing      = "failing"       // is tried again
)

// Lag is the number of events that are not in the table yet; known is false where the offset is beyond the last position.
func (s ProjectionStatus) Lag() (events int64, known bool) {
	return max(s.Head-s.Position, 0), s.Head >= s.Position
}

// Projections says of every projection that is recorded in the database or declared, by name, where it stands. Events that have
// committed and have no position yet are not counted. An inline one has each event when its append commits, but for those that
// only a runner can fold: its position says up to where one has looked for these.
func (a *Archive) Projections(ctx context.Context) ([]ProjectionStatus, error) {
	declared, err := a.followed()
	if err != nil {
		return nil, err
	}
	tx := a.Autocommit()
	head, err := tx.Head(ctx)
	if err != nil {
		return nil, err
	}
	recorded, err := tx.session.Offsets(ctx)
	if err != nil {
		return nil, err
	}
	var list []ProjectionStatus
	for _, p := range recorded {
		s := ProjectionStatus{ProjectionOffset: p, Head: head}
		i := slices.IndexFunc(declared, func(f Followed) bool { return f.Name == p.Name })
		var f *Followed
		if i >= 0 {
			f = &declared[i]
		}
		if err := a.judge(ctx, tx, f, &s); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	for _, f := range declared {
		if !slices.ContainsFunc(recorded, func(p ProjectionOffset) bool { return p.Name == f.Name }) {
			trouble := "nobody has run it yet: `rea run`"
			if f.Inline {
				trouble = notApplied
			}
			list = append(list, ProjectionStatus{ProjectionOffset: ProjectionOffset{Name: f.Name, Inline: f.Inline, Of: f.Of, Kind: f.Kind, Version: f.Version, State: StateNew}, Head: head,
				Trouble: trouble})
		}
	}
	slices.SortFunc(list, func(x, y ProjectionStatus) int { return strings.Compare(x.Name, y.Name) })
	return list, nil
}

// judge says why a projection does not go on.
func (a *Archive) judge(ctx context.Context, tx *Tx, f *Followed, s *ProjectionStatus) (err error) {
	if r := s.Rebuild; r != nil && s.skips()[r.FailedPosition] {
		r.FailedPosition, r.Error = 0, ""
	}
	if r := s.Rebuild; r != nil && r.FailedPosition > 0 {
		if s.RebuildFailing, err = eventAt(ctx, tx, r.FailedPosition); err != nil {
			return err
		}
	}
	if s.Position > 0 {
		id, err := tx.session.EventAt(ctx, s.Position)
		if err != nil {
			return err
		}
		if id != s.EventID {
			s.State = StateNeedsRebuild
			s.Trouble = (&OffsetError{Projection: s.Name, Inline: s.Inline, Offset: s.Offset, Head: s.Head, EventID: id}).Error()
			return nil
		}
	}
	if f != nil && f.Fingerprint != s.Fingerprint {
		s.State = StateNeedsRebuild
		s.Trouble = (&StaleError{Projection: s.Name, Inline: s.Inline || f.Inline, Applied: s.Version, Declared: f.Version}).Error()
		return nil
	}
	if s.Failed.Position > 0 {
		if s.Failing, err = eventAt(ctx, tx, s.Failed.Position); err != nil {
			return err
		}
	}
	switch undeclared := f == nil && a.config.Catalog != nil && s.Kind != KindGo && !s.Inline; {
	case undeclared:
		s.Trouble = fmt.Sprintf("the catalog does not declare it: nobody who goes by this catalog keeps it: declare it, or `rea projection drop %s`", clip(s.Name))
		if s.State == StateRunning && s.Failed.Attempts > 0 {
			s.State = StateFailing
		}
	case s.State == StateStalled:
		s.Trouble = fmt.Sprintf("it fails on position %d: mend what the error says, then `rea projection retry %s`; to leave the event out for good, `rea projection skip %s --position %[1]d`",
			s.Failed.Position, clip(s.Name), clip(s.Name))
	case s.State == StatePaused:
		s.Trouble = fmt.Sprintf("somebody has paused it: `rea projection resume %s`", clip(s.Name))
	case s.Failed.Attempts > 0:
		s.State = StateFailing
		s.Trouble = fmt.Sprintf("it fails on position %d and is tried again: `rea projection retry %s` does so at once; to leave the event out for good, `rea projection skip %[2]s --position %[1]d`",
			s.Failed.Position, clip(s.Name))
	}
	return nil
}

// eventAt reads the event at a position; nil: there is none.
func eventAt(ctx context.Context, tx *Tx, position int64) (*Event, error) {
	page, _, err := tx.session.Page(ctx, Filter{}, position-1, 1)
	if err != nil || len(page) == 0 || page[0].Position != position {
		return nil, err
	}
	return &page[0], nil
}

// RetryProjection lets a projection that is stalled, or fails, try its event again at once.
func (a *Archive) RetryProjection(ctx context.Context, name string) error {
	return a.setProjection(ctx, name, StateRunning)
}

// PauseProjection lets nobody move a projection until ResumeProjection. It waits for who moves it at the moment, about a
// second at a time.
func (a *Archive) PauseProjection(ctx context.Context, name string) error {
	return a.setProjection(ctx, name, StatePaused)
}

// ResumeProjection undoes PauseProjection.
func (a *Archive) ResumeProjection(ctx context.Context, name string) error {
	return a.setProjection(ctx, name, StateRunning)
}

func (a *Archive) setProjection(ctx context.Context, name, state string) error {
	return a.claimed(ctx, name, func(session OwnSession, _ ProjectionOffset) error {
		return session.SetProjection(ctx, name, state)
	})
}

// SkipEvent makes a projection that fails on the event at a position leave it out, for good: rebuilds and checks leave it
// out too. by says who decided so. A row of a table of states then has the seq of the event, and what was before. An event
// that a rebuild fails on is left out by that, and by the projection once it is finished.
func (a *Archive) SkipEvent(ctx context.Context, name string, position int64, by string) error {
	return a.claimed(ctx, name, func(session OwnSession, at ProjectionOffset) error {
		switch r := at.Rebuild; {
		case position == 0:
		case at.Failed.Position == position:
			return session.SkipEvent(ctx, name, Skipped{Position: position, Error: at.Failed.Error, By: by})
		case r != nil && r.FailedPosition == position:
			return session.SkipInRebuild(ctx, name, Skipped{Position: position, Error: r.Error, By: by})
		}
		return fmt.Errorf("%w: neither the projection %s nor a rebuild of it fails on position %d", ErrNotFound, clip(name), position)
	})
}

// claimed calls fn while nobody else can move a projection.
func (a *Archive) claimed(ctx context.Context, name string, fn func(OwnSession, ProjectionOffset) error) error {
	return a.own(ctx, func(session OwnSession) error {
		if err := session.Ready(ctx, true); err != nil {
			return err
		}
		at, _, err := session.ClaimProjection(ctx, name, true)
		if err != nil {
			return err
		}
		if at.Name == "" {
			return fmt.Errorf("%w: the database has no followed projection %s", ErrNotFound, clip(name))
		}
		return fn(session, at)
	})
}
