package catalog

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/realtime-event-archive/rea"
)

// document reads the whole text.
func (r *reader) document(root ast.Node) (types []rea.Type) {
	const what = "a catalog"
	top := mark{1, 1}
	form, known := false, map[string]rea.Type{}
	var projections *entry
	for _, e := range r.mapping(root, top, what) {
		switch e.key {
		case "rea":
			if form = true; r.count(e.value, e.at, "rea") != 1 && len(r.problems) == 0 {
				r.fail(markAt(e.value, e.at), "this program reads the form 1 of catalogs: use a newer REA")
			}
		case "aggregates":
			for _, t := range r.mapping(e.value, e.at, "aggregates") {
				r.places[place{aggregate: t.key}] = t.at
				declared := r.aggregate(t)
				types = append(types, declared)
				known[t.key] = declared
			}
		case "projections":
			projections = &e
		default:
			r.unknown(e, what, "rea", "aggregates", "projections")
		}
	}
	if !form && len(r.problems) == 0 {
		r.fail(top, "begins with rea: 1, the form of the catalog")
	}
	if projections != nil {
		r.projectionsOf(*projections, known)
	}
	return types
}

func (r *reader) aggregate(t entry) rea.Type {
	declared := rea.Type{Name: t.key}
	what := "the aggregate type " + t.key
	var events *entry
	for _, e := range r.optional(t.value, t.at, what) {
		r.places[place{aggregate: t.key, key: e.key}] = e.at
		switch e.key {
		case "status":
			if name, ok := r.field(e.value, e.at, "status"); ok {
				declared.Status = name
			}
		case "strict":
			declared.Strict = r.truth(e.value, e.at, "strict")
		case "renamed":
			declared.Renamed = map[string]string{}
			for _, status := range r.mapping(e.value, e.at, "renamed") {
				declared.Renamed[status.key], _ = r.name(status.value, status.at, "the new name of "+status.key)
			}
		case "snapshot":
			declared.SnapshotEvery = r.snapshot(e)
		case "events":
			events = &e
		default:
			r.unknown(e, what, "status", "strict", "renamed", "snapshot", "events")
		}
	}
	if events == nil {
		return declared
	}
	for _, e := range r.mapping(events.value, events.at, "events") {
		r.places[place{aggregate: t.key, event: e.key}] = e.at
		declared.Events = append(declared.Events, r.event(t.key, declared.Status, e))
	}
	return declared
}

// snapshot reads off, or {every: 100}.
func (r *reader) snapshot(e entry) (every int) {
	if off, ok := e.value.(*ast.StringNode); ok && off.Value == "off" {
		return -1
	}
	for _, s := range r.mapping(e.value, e.at, "snapshot (if not off)") {
		if s.key != "every" {
			r.unknown(s, "snapshot", "every")
			continue
		}
		every = r.count(s.value, s.at, "every, in events,")
	}
	return every
}

// event reads one event; status is the field that the state machine owns.
func (r *reader) event(aggregate, status string, t entry) rea.EventType {
	declared := rea.EventType{Name: t.key}
	what := "the event " + t.key
	var ops []operation
	for _, e := range r.optional(t.value, t.at, what) {
		r.places[place{aggregate, t.key, e.key}] = e.at
		switch e.key {
		case "version":
			declared.Version = r.count(e.value, e.at, "version")
		case "from":
			for _, from := range r.names(e.value, e.at, "from") {
				declared.From = append(declared.From, from.text)
			}
		case "to":
			declared.To, _ = r.name(e.value, e.at, "to")
		case "alias":
			declared.AliasOf, _ = r.name(e.value, e.at, "alias")
		case "retired":
			declared.Retired = r.truth(e.value, e.at, "retired")
		case "upcast":
			if declared.Upcast = r.upcast(e); len(declared.Upcast) > 0 {
				declared.Upcasting = e.value.String()
			}
		case "set", "unset", "add", "count", "append", "remove":
			ops = append(ops, r.operations(e)...)
		default:
			r.unknown(e, what, "version", "from", "to", "alias", "retired", "upcast", "set", "unset", "add", "count", "append", "remove")
		}
	}
	fields := map[string]mark{}
	for _, op := range ops {
		if first, ok := fields[op.Field]; ok {
			r.fail(op.at, "%s is changed twice by %s, first in line %d", op.Field, t.key, first.line)
		}
		fields[op.Field] = op.at
		if status != "" && op.Field == status {
			r.fail(op.at, "%s is the field of the status: only `to` changes it", op.Field)
		}
	}
	for _, op := range ops {
		declared.Operations = append(declared.Operations, op.Operation)
	}
	if len(ops) > 0 {
		declared.Fold = fold(declared.Operations)
	}
	return declared
}

// projectionsOf checks the form of what later versions build, so that a slip is found now.
func (r *reader) projectionsOf(section entry, types map[string]rea.Type) {
	list := r.mapping(section.value, section.at, "projections")
	for _, p := range list {
		r.projection(p, types)
	}
	if len(list) > 0 {
		r.notes = append(r.notes, r.at(section.at, "projections are checked for their form, and not built by this version of REA"))
	}
}

func (r *reader) projection(p entry, types map[string]rea.Type) {
	what := "the projection " + p.key
	keys := map[string]entry{}
	for _, e := range r.mapping(p.value, p.at, what) {
		keys[e.key] = e
		switch e.key {
		case "of":
			if name, ok := r.name(e.value, e.at, "of"); ok && types[name].Name == "" {
				r.fail(markAt(e.value, e.at), "the aggregate type %s is not declared", name)
			}
		case "on":
			for _, event := range r.names(e.value, e.at, "on") {
				if !declares(types, event.text) {
					r.fail(event.at, "the event %s is not declared, or an old name", event.text)
				}
			}
		case "mode":
			if name, ok := r.name(e.value, e.at, "mode"); ok && name != "inline" && name != "followed" {
				r.fail(markAt(e.value, e.at), "mode is inline or followed, not %s", name)
			}
		case "columns":
			for _, c := range r.mapping(e.value, e.at, "columns") {
				r.name(c.value, c.at, "the type of "+c.key)
			}
		case "version":
			r.count(e.value, e.at, "version")
		case "every":
			if text, ok := r.name(e.value, e.at, "every"); ok {
				if d, err := time.ParseDuration(text); err != nil || d <= 0 {
					r.fail(markAt(e.value, e.at), "every is a time such as 1h or 15m, not %s", text)
				}
			}
		case "tz":
			r.name(e.value, e.at, "tz")
		case "by":
			r.names(e.value, e.at, "by")
		case "measures":
			r.measures(e)
		default:
			r.unknown(e, what, "of", "on", "mode", "columns", "version", "every", "tz", "by", "measures")
		}
	}
	_, of := keys["of"]
	_, on := keys["on"]
	if of == on {
		r.fail(p.at, "%s has either `of` (a table of states) or `on` (a table of statistics)", what)
	}
}

func declares(types map[string]rea.Type, event string) bool {
	for _, t := range types {
		for _, e := range t.Events {
			if e.Name == event && e.AliasOf == "" && !e.Retired {
				return true
			}
		}
	}
	return false
}

// measures reads {orders: count, amount: {sum: $.amount}}.
func (r *reader) measures(e entry) {
	for _, m := range r.mapping(e.value, e.at, "measures") {
		if s, ok := m.value.(*ast.StringNode); ok {
			if s.Value != "count" {
				r.fail(markAt(m.value, m.at), "a measure is count, or {sum: $.path} with sum, min or max")
			}
			continue
		}
		for _, f := range r.mapping(m.value, m.at, "a measure (if not count)") {
			switch f.key {
			case "sum", "min", "max":
				if v, ok := r.value(f.value, f.at, payloadAlone); ok && v.Path == nil {
					r.fail(markAt(f.value, f.at), "%s takes a path such as $.amount", f.key)
				}
			default:
				r.unknown(f, "a measure", "sum", "min", "max")
			}
		}
	}
}
