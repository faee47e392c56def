package rea

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// folding is the typed state of one aggregate on its way through its events.
type folding struct {
	catalog *Catalog
	of      *aggregateType
	state   any           // a pointer to a value of the state's type
	status  reflect.Value // the field of it that holds the status; not valid where there is no machine
}

// folding begins with what state points to. It is a pointer to a value of a's Go type.
func (c *Catalog) folding(a *aggregateType, state any) *folding {
	f := &folding{catalog: c, of: a, state: state}
	if a.status != nil {
		f.status = reflect.ValueOf(state).Elem().FieldByIndex(a.status)
	}
	return f
}

// read makes a JSON text the state, in place of what it was.
func (f *folding) read(text json.RawMessage) error {
	reflect.ValueOf(f.state).Elem().SetZero()
	if err := decodeInto(text, f.state); err != nil {
		reflect.ValueOf(f.state).Elem().SetZero()
		return fmt.Errorf("read a state of %s as %s: %s", clip(f.of.Name), f.of.state, unfit(err))
	}
	return nil
}

// apply folds one event in. After an error the state is not to be used.
func (f *folding) apply(stored Event) error {
	e, ignore, err := f.catalog.Upcast(stored)
	if err != nil || ignore {
		return err
	}
	if BuiltIn(e.Type) {
		return f.applyRow(e)
	}
	declared := f.of.events[e.Type]
	if declared.typed != nil && declared.typed.fold != nil {
		if err := declared.typed.fold(f.state, e); err != nil {
			return &DecodeError{
				Aggregate: e.Aggregate, Event: stored.Type, Version: stored.Version, Seq: e.Seq,
				GoType: declared.typed.payload.String(), Err: err,
			}
		}
	}
	if declared.To != "" {
		f.status.SetString(declared.To)
	}
	return nil
}

// applyRow folds one of REA's own events in. It takes the state through JSON and back, so that fields of the row become those
// with their JSON names, whole, and what the state does not keep in JSON is lost.
func (f *folding) applyRow(e Event) error {
	state, err := f.object()
	if err != nil {
		return err
	}
	if state, err = foldRow(state, e); err != nil {
		return err
	}
	text, err := marshal(state)
	if err != nil {
		return err
	}
	reflect.ValueOf(f.state).Elem().SetZero()
	if err := decodeInto(text, f.state); err != nil {
		return &DecodeError{Aggregate: e.Aggregate, Event: e.Type, Version: e.Version, Seq: e.Seq, GoType: f.of.state.String(), Err: err}
	}
	return nil
}

// object is the state as JSON, in normal form.
func (f *folding) object() (Object, error) {
	text, err := marshal(f.state)
	if err != nil {
		return nil, fmt.Errorf("write a state of %s: %w", clip(f.of.Name), err)
	}
	var fields Object
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("write a state of %s: %w", clip(f.of.Name), err)
	}
	for name, v := range fields { // each by itself: a state may be larger than a payload
		if fields[name], err = NormalizeJSON(v, "state", 0); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// foldTyped is Fold where the state has a Go type.
func (c *Catalog) foldTyped(state Object, e Event) (Object, error) {
	a := c.types[e.Aggregate.Type]
	f := c.folding(a, reflect.New(a.state).Interface())
	if len(state) > 0 {
		text, err := marshal(state)
		if err != nil {
			return nil, err
		}
		if err := f.read(text); err != nil {
			return nil, err
		}
	}
	if err := f.apply(e); err != nil {
		return nil, err
	}
	return f.object()
}
