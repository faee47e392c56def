package rea

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
)

// foldForm counts the ways in which REA itself has folded: raise it where Catalog.Fold, an operation, an upcaster's
// operation or the text of a snapshot changes its meaning.
const foldForm = 2

// folds is what a state depends on, of a declaration.
type folds struct {
	Form        int
	Type        string
	Status      string
	FoldVersion int
	State       string // shape of the Go type
	Events      []foldsEvent
}

type foldsEvent struct {
	Event, To, AliasOf string
	Version            int
	Retired            bool
	Operations         []Operation
	Upcasting, Payload string
	Fold               string
}

// keepSnapshots settles whether the type has snapshots, and the fingerprint of its fold. Functions of the program's cannot
// be told apart: with them, the type has snapshots only where FoldVersion speaks for them.
func (a *aggregateType) keepSnapshots() {
	a.every = a.SnapshotEvery
	if a.every == 0 {
		a.every = snapshotEvery
	}
	f := folds{Form: foldForm, Type: a.Name, Status: a.Status, FoldVersion: a.FoldVersion}
	if a.state != nil {
		f.State = goShape(a.state, nil)
	}
	for _, e := range a.Type.Events {
		on := foldsEvent{
			Event: e.Name, To: e.To, AliasOf: e.AliasOf, Version: e.Version, Retired: e.Retired, Operations: e.Operations, Upcasting: e.Upcasting,
		}
		opaque := len(e.Upcast) > 0 && e.Upcasting == ""
		switch {
		case e.typed != nil && e.typed.fold != nil:
			on.Fold, on.Payload, opaque = "typed", goShape(e.typed.payload, nil), true
		case e.Fold != nil && len(e.Operations) == 0:
			on.Fold, opaque = "function", true
		}
		if opaque && a.FoldVersion == 0 {
			a.every = 0
		}
		f.Events = append(f.Events, on)
	}
	text, err := marshal(f)
	if err != nil { // texts, numbers, and JSON that was read
		a.every = 0
	}
	sum := sha256.Sum256(text)
	a.fingerprint = hex.EncodeToString(sum[:16])
}

// goShape writes what JSON makes of a Go type depends on: fields with their names, tags and types, all the way down. A
// type with methods of its own for JSON stands under its name.
func goShape(t reflect.Type, within []reflect.Type) string {
	for _, outer := range within {
		if outer == t {
			return t.String() // it holds itself
		}
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return t.Kind().String() + " " + goShape(t.Elem(), within)
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), goShape(t.Elem(), within))
	case reflect.Map:
		return "map[" + goShape(t.Key(), within) + "]" + goShape(t.Elem(), within)
	case reflect.Struct:
		if t.PkgPath() == "time" {
			return t.String()
		}
		var b strings.Builder
		b.WriteString("struct{")
		for i := range t.NumField() {
			field := t.Field(i)
			fmt.Fprintf(&b, "%s %t %s %q;", field.Name, field.Anonymous, goShape(field.Type, within), field.Tag.Get("json"))
		}
		b.WriteString("}")
		for i := range reflect.PointerTo(t).NumMethod() {
			if name := reflect.PointerTo(t).Method(i).Name; strings.HasSuffix(name, "JSON") || strings.HasSuffix(name, "Text") {
				b.WriteString(" " + t.String() + "." + name)
			}
		}
		return b.String()
	}
	return t.String()
}
