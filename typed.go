package rea

import "reflect"

// typed is what On knows of an event type.
type typed struct {
	state   reflect.Type
	payload reflect.Type
	fold    func(state any, e Event) error // state: a pointer to the state's type; nil: the payload does not change it
}

// On gives the event type e a Go type for its payload, E, and a fold of it into a state of type S, which is the same for
// all events of an aggregate type. Then Tx.Append takes an E, and Load gives an S. Both are structs, written and
// read as encoding/json does; the names under which events are stored are those of e and of the fields' tags, never
// Go's names of types.
//
//	rea.On(rea.EventType{Name: "PaymentReceived", From: []string{"placed"}, To: "paid"}, (*Order).paid)
//
// fold gets the payload in the newest version, and the event that it came with (its seq, actor, reason, time). It changes
// state and nothing else. What it holds against an event comes too late: rules that may refuse belong before the
// append. Where e.To names a status, REA sets the state's field for it after fold. A nil fold leaves the state alone.
//
// NewCatalog tells what is wrong with e, S and E.
func On[S, E any](e EventType, fold func(state *S, payload E, at Event)) EventType {
	e.typed = &typed{state: reflect.TypeFor[S](), payload: reflect.TypeFor[E]()}
	if fold == nil {
		return e
	}
	names, decode := namesOf(e.typed.payload), decoderFor(e.typed.payload)
	e.typed.fold = func(state any, at Event) error {
		text, err := names.exactly(at.Payload)
		if err != nil {
			return err
		}
		var payload E
		if err := decode(text, &payload); err != nil {
			return err
		}
		fold(state.(*S), payload, at)
		return nil
	}
	return e
}
