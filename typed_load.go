package rea

import (
	"context"
	"reflect"
)

// Load gives an aggregate as a state of type S, which Config.Catalog has registered with On: by its type the aggregate's
// is known, so that the id is enough. Errors: *UnregisteredError (before any SQL), *NotFoundError where there are no events,
// *UnknownTypeError, *UpcastError and *DecodeError where a stored event cannot be read.
func Load[S any](ctx context.Context, tx *Tx, id string) (*Loaded[S], error) {
	return LoadAt[S](ctx, tx, id, At{})
}

// LoadAt is Load as it was at a moment. A moment before the first event is a *NotFoundError, a seq or position
// beyond the last one a *NoSuchSeqError.
func LoadAt[S any](ctx context.Context, tx *Tx, id string, at At) (*Loaded[S], error) {
	c := tx.archive.config.Catalog
	a := c.loads(reflect.TypeFor[S]())
	if a == nil {
		return nil, &UnregisteredError{Aggregate: Ref{ID: id}, GoType: reflect.TypeFor[S]().String(), NoCatalog: c == nil}
	}
	loaded := &Loaded[S]{Aggregate: Ref{Type: a.Name, ID: id}, tx: tx}
	last, err := tx.load(ctx, loaded.Aggregate, at, c.folding(a, &loaded.State))
	if err != nil {
		return nil, err
	}
	loaded.Seq, loaded.Last = last.Seq, last
	return loaded, nil
}

// loads gives the aggregate type whose state is of a Go type, nil where there is none.
func (c *Catalog) loads(state reflect.Type) *aggregateType {
	if c == nil {
		return nil
	}
	return c.states[state]
}
