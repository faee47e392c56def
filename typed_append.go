package rea

import (
	"fmt"
	"reflect"
)

// newEvents makes NewEvents of what Append was given, and copies.
func (c *Catalog) newEvents(aggregate Ref, events []any) ([]NewEvent, error) {
	list := make([]NewEvent, 0, len(events))
	for _, given := range events {
		switch given := given.(type) {
		case NewEvent:
			list = append(list, given)
		case []NewEvent:
			list = append(list, given...)
		default:
			e, err := c.newEvent(aggregate, given)
			if err != nil {
				return nil, inAppend(aggregate, inEvent(err, len(list), len(events)))
			}
			list = append(list, e)
		}
	}
	return list, nil
}

// newEvent gives the event whose payload is of a registered Go type, in the newest version.
func (c *Catalog) newEvent(aggregate Ref, payload any) (NewEvent, error) {
	v := reflect.ValueOf(payload)
	e, err := c.registered(aggregate, payload)
	switch {
	case err != nil:
		return NewEvent{}, err
	case v.Kind() == reflect.Pointer && v.IsNil():
		return NewEvent{}, &PayloadError{Path: "$", Problem: fmt.Sprintf("is a nil %T", payload)}
	case v.Kind() != reflect.Pointer: // methods of the pointer write it too
		at := reflect.New(v.Type())
		at.Elem().Set(v)
		v = at
	}
	text, err := encode(v)
	if err != nil {
		return NewEvent{}, err
	}
	return NewEvent{Type: e.Name, Version: e.Version, Payload: text}, nil
}

func (c *Catalog) registered(aggregate Ref, payload any) (*EventType, error) {
	wrong := &UnregisteredError{Aggregate: aggregate, GoType: fmt.Sprintf("%T", payload), NoCatalog: c == nil}
	if c == nil || payload == nil {
		return nil, wrong
	}
	t := reflect.TypeOf(payload)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if a := c.types[aggregate.Type]; a != nil && a.payloads[t] != nil {
		return a.payloads[t], nil
	}
	for _, declared := range c.Types() {
		if c.types[declared.Name].payloads[t] != nil {
			wrong.For = append(wrong.For, declared.Name)
		}
	}
	return nil, wrong
}
