package rea

import (
	"fmt"
	"strings"
)

// TransitionError says that the state machine does not allow an event. It answers errors.Is for ErrIllegalStep.
type TransitionError struct {
	Aggregate Ref
	Event     string
	Status    string   // the present one; "": no event yet
	Legal     []string // the events that are legal now
}

func (e *TransitionError) Error() string {
	status, legal := "without an event yet", "nothing"
	if e.Status != "" {
		status = "in status " + clip(e.Status)
	}
	if len(e.Legal) > 0 {
		legal = strings.Join(e.Legal, ", ")
	}
	return fmt.Sprintf("rea: %s%s is illegal %s: legal now: %s", appendTo(e.Aggregate), clip(e.Event), status, legal)
}

// Is reports whether target is ErrIllegalStep.
func (e *TransitionError) Is(target error) bool { return target == ErrIllegalStep }

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
	if e.Seq > 0 {
		at = fmt.Sprintf("%s seq %d", at, e.Seq)
	}
	if e.Newest > 0 {
		return fmt.Sprintf("rea: %s: %s has version %d, the catalog knows up to %d", at, clip(e.Event), e.Version, e.Newest)
	}
	return fmt.Sprintf("rea: %s: the catalog does not know %s (version %d): declare it, or declare it retired", at, clip(e.Event), e.Version)
}

// Is reports whether target is ErrUnknownType.
func (e *UnknownTypeError) Is(target error) bool { return target == ErrUnknownType }
