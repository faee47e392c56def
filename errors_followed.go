package rea

import "fmt"

// StaleError says that a projection was filled by another definition than the one that is declared. It answers
// errors.Is for ErrNeedsRebuild.
type StaleError struct {
	Projection string
	Inline     bool
	Applied    int // the version by which it was filled
	Declared   int
}

func (e *StaleError) Error() string {
	if e.Inline {
		return "rea: " + staleInline(e.Projection)
	}
	how := "another definition"
	switch {
	case e.Applied > e.Declared:
		return fmt.Sprintf("rea: the projection %s was filled by version %d, and version %d is declared: start this program with the newer catalog; `rea projection rebuild %[1]s` (in Go: archive.Rebuild) goes back to the older one",
			clip(e.Projection), e.Applied, e.Declared)
	case e.Applied < e.Declared:
		how = fmt.Sprintf("version %d, and version %d is declared", e.Applied, e.Declared)
	}
	return fmt.Sprintf("rea: the projection %s was filled by %s: `rea projection rebuild %[1]s` (in Go: archive.Rebuild)", clip(e.Projection), how)
}

func staleInline(name string) string {
	return fmt.Sprintf("appends keep it by another definition than the declared one: `rea catalog apply` builds %s anew (in Go: archive.Apply)", clip(name))
}

// Is reports whether target is ErrNeedsRebuild.
func (e *StaleError) Is(target error) bool { return target == ErrNeedsRebuild }

// OwnerError says that a login may not make the table of a projection, or switch it, which is for the owner of the archive. A login
// with the right of a runner alone keeps what is made.
type OwnerError struct {
	Projection string
	Err        error // the database's
}

func (e *OwnerError) Error() string {
	return fmt.Sprintf("rea: to make the table of the projection %s takes a login that may act as the owner of the archive: `rea run --once %[1]s` or `rea projection rebuild %[1]s` by such a one (in Go: archive.Rebuild); a runner keeps it from then on: %v",
		clip(e.Projection), e.Err)
}

// Unwrap gives the database's error.
func (e *OwnerError) Unwrap() error { return e.Err }

// OffsetError says that the offset of a projection is none of this archive's, as after a restore of the events
// alone. It answers errors.Is for ErrNeedsRebuild.
type OffsetError struct {
	Projection string
	Inline     bool
	Offset     Offset
	Head       int64 // the last position
	EventID    int64 // of the event at the offset's position; 0: there is none
}

func (e *OffsetError) Error() string {
	what := fmt.Sprintf("has come to position %d, and the last one is %d", e.Offset.Position, e.Head)
	if e.EventID != 0 {
		what = fmt.Sprintf("has come to position %d as event %d, and there it is event %d", e.Offset.Position, e.Offset.EventID, e.EventID)
	}
	how := fmt.Sprintf("`rea projection rebuild %s` (in Go: archive.Rebuild)", clip(e.Projection))
	if e.Inline {
		how = "`rea catalog apply` (in Go: archive.Apply)"
	}
	return fmt.Sprintf("rea: the projection %s %s: the events are not those that it was filled from: %s", clip(e.Projection), what, how)
}

// Is reports whether target is ErrNeedsRebuild.
func (e *OffsetError) Is(target error) bool { return target == ErrNeedsRebuild }
