package rea

import (
	"fmt"
	"strings"
)

// mostLegal is how many events a message lists; Legal has all.
const mostLegal = 10

// TransitionError says that the state machine does not allow an event. It answers errors.Is for ErrIllegalStep.
type TransitionError struct {
	Aggregate Ref
	Event     string
	Status    string   // the present one; "": none, which is usual before the first event
	Seq       int64    // of the event that Status is the status after; 0: none, or it is not known of which aggregate
	Legal     []string // the events that are legal now
	AliasOf   string   // Event is an old name of this one
	Retired   bool     // Event is retired
}

func (e *TransitionError) Error() string {
	switch {
	case e.AliasOf != "":
		return fmt.Sprintf("rea: %s%s is an old name: append %s", transitionOf(e.Aggregate), clip(e.Event), clip(e.AliasOf))
	case e.Retired:
		return fmt.Sprintf("rea: %s%s is retired: it is not appended any more", transitionOf(e.Aggregate), clip(e.Event))
	}
	status, legal := "without a status", "nothing"
	if e.Status != "" {
		status = "in status " + clip(e.Status)
	}
	if e.Seq > 0 {
		status += fmt.Sprintf(" at seq %d", e.Seq)
	} else if e.Aggregate.ID != "" && e.Status == "" {
		status = "as the first event"
	}
	if n := len(e.Legal); n > mostLegal {
		legal = fmt.Sprintf("%s and %d more", strings.Join(e.Legal[:mostLegal], ", "), n-mostLegal)
	} else if n > 0 {
		legal = strings.Join(e.Legal, ", ")
	}
	return fmt.Sprintf("rea: %s%s is illegal %s: legal now: %s", transitionOf(e.Aggregate), clip(e.Event), status, legal)
}

// transitionOf is appendTo for an aggregate of which only the type may be known.
func transitionOf(r Ref) string {
	if r.ID == "" && r.Type != "" {
		return clip(r.Type) + ": "
	}
	return appendTo(r)
}

// Is reports whether target is ErrIllegalStep.
func (e *TransitionError) Is(target error) bool { return target == ErrIllegalStep }

// UnknownStatusError says that aggregates are in statuses that a catalog to be applied does not know. Nothing was
// applied. It answers errors.Is for ErrUnknownStatus.
type UnknownStatusError struct{ Statuses []PresentStatus }

func (e *UnknownStatusError) Error() string {
	texts := make([]string, len(e.Statuses))
	for i, s := range e.Statuses {
		texts[i] = fmt.Sprintf("%s %s (%d)", clip(s.Type), clip(s.Status), s.Aggregates)
	}
	return "rea: apply the catalog: it does not know the present status of some aggregates: " + strings.Join(texts, ", ") +
		": keep the status, or say under renamed what it is called now"
}

// Is reports whether target is ErrUnknownStatus.
func (e *UnknownStatusError) Is(target error) bool { return target == ErrUnknownStatus }

// CatalogError lists what is wrong with a catalog.
type CatalogError struct{ Problems []CatalogProblem }

func (e *CatalogError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return "rea: catalog: " + strings.Join(texts, "; ")
}

// CatalogProblem is one thing that is wrong with a declaration, or probably not meant.
type CatalogProblem struct {
	Type  string // aggregate type
	Event string // "": the aggregate type itself
	Key   string // what of it, as rea.yaml calls it: "from", "upcast"...; "": the whole
	Text  string

	Projection string // the projection that it is about, in place of Type; Key may be a column of it
}

// String gives "order.OrderPlaced: no upcaster from version 1 to 2".
func (p CatalogProblem) String() string {
	if p.Projection != "" {
		return "the projection " + clip(p.Projection) + ": " + p.Text
	}
	at := clip(p.Type)
	if p.Event != "" {
		at += "." + clip(p.Event)
	}
	return at + ": " + p.Text
}

// UpcastError says that a stored event could not be brought to the newest version of its form.
type UpcastError struct {
	Aggregate Ref
	Event     string
	Version   int // stored
	Seq       int64
	From      int // the step that failed is From to From + 1
	Err       error
}

func (e *UpcastError) Error() string {
	return fmt.Sprintf("rea: %s seq %d: upcast %s (version %d) from version %d to %d: %s",
		e.Aggregate, e.Seq, clip(e.Event), e.Version, e.From, e.From+1, strings.TrimPrefix(e.Err.Error(), "rea: "))
}

func (e *UpcastError) Unwrap() error { return e.Err }

// UnknownTypeError names an event that the catalog cannot read. It answers errors.Is for ErrUnknownType.
type UnknownTypeError struct {
	Aggregate Ref
	Event     string
	Version   int
	Seq       int64 // 0: the event is not stored
	Newest    int   // the newest known version; 0: the event type is not declared
}

func (e *UnknownTypeError) Error() string {
	at := e.Aggregate.String()
	if e.Aggregate.ID == "" {
		at = clip(e.Aggregate.Type)
	}
	if e.Seq > 0 {
		at = fmt.Sprintf("%s seq %d", at, e.Seq)
	}
	if e.Newest > 0 {
		return fmt.Sprintf("rea: %s: %s has version %d, the catalog knows up to %d", at, clip(e.Event), e.Version, e.Newest)
	}
	if e.Seq == 0 {
		return fmt.Sprintf("rea: %sthe catalog does not know %s: declare it, and apply the catalog", transitionOf(e.Aggregate), clip(e.Event))
	}
	return fmt.Sprintf("rea: %s: the catalog does not know %s (version %d): declare it, or declare it retired", at, clip(e.Event), e.Version)
}

// Is reports whether target is ErrUnknownType.
func (e *UnknownTypeError) Is(target error) bool { return target == ErrUnknownType }
