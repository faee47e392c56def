package rea

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// UnregisteredError says that the catalog does not know a Go type: of a payload that was to be appended, or of a
// state that was to be loaded. Nothing was asked of the database. It answers errors.Is for ErrUnknownType.
type UnregisteredError struct {
	Aggregate Ref      // Type "": a state was to be loaded
	GoType    string   // "shop.PaymentReceived"; "<nil>": nil was to be appended
	For       []string // other aggregate types that a payload of this type is registered for
	NoCatalog bool     // the archive was opened without Config.Catalog
}

func (e *UnregisteredError) Error() string {
	if e.Aggregate.Type == "" {
		if e.NoCatalog {
			return fmt.Sprintf("rea: load %s %s: the archive has no catalog: give Config.Catalog, or fold with Replay", e.GoType, clip(e.Aggregate.ID))
		}
		return fmt.Sprintf("rea: load %s %s: the catalog registers no such state: give the aggregate type's events to On with a fold of *%s",
			e.GoType, clip(e.Aggregate.ID), e.GoType)
	}
	switch {
	case e.GoType == "<nil>":
		return fmt.Sprintf("rea: %snil is no event: give a NewEvent or a registered payload", appendTo(e.Aggregate))
	case e.NoCatalog:
		return fmt.Sprintf("rea: %s%s: the archive has no catalog: give Config.Catalog, or append a NewEvent", appendTo(e.Aggregate), e.GoType)
	case len(e.For) > 0:
		return fmt.Sprintf("rea: %s%s is registered for %s only: register it for %s with On, or append to the other",
			appendTo(e.Aggregate), e.GoType, clip(strings.Join(e.For, ", ")), clip(e.Aggregate.Type))
	case strings.HasPrefix(e.GoType, "[]"):
		return fmt.Sprintf("rea: %s%s is no event: give its elements, as in events...", appendTo(e.Aggregate), e.GoType)
	}
	return fmt.Sprintf("rea: %s%s is no registered payload of %s: register it with On, or append a NewEvent",
		appendTo(e.Aggregate), e.GoType, clip(e.Aggregate.Type))
}

// Is reports whether target is ErrUnknownType.
func (e *UnregisteredError) Is(target error) bool { return target == ErrUnknownType }

// DecodeError says that the payload of a stored event, in its newest version, does not fit the Go type that is registered
// for it. Its text has no payload data; Err, which is encoding/json's or the type's own, may have.
type DecodeError struct {
	Aggregate Ref
	Event     string // as it is stored
	Version   int    // as it is stored
	Seq       int64
	GoType    string // "shop.PaymentReceived"
	Err       error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("rea: %s seq %d: read %s (version %d) as %s: %s: change the type, or raise the version and give an upcaster",
		e.Aggregate, e.Seq, clip(e.Event), e.Version, e.GoType, unfit(e.Err))
}

func (e *DecodeError) Unwrap() error { return e.Err }

// unfit says why a JSON text could not be read, without what stands in it.
func unfit(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return "a value has not the form that its type wants"
	}
	is, _, _ := strings.Cut(wrong.Value, " ") // "number 99.80"
	return fmt.Sprintf("%s does not fit into %s of type %s", is, clip(wrong.Field), wrong.Type)
}
