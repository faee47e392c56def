package catalog

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/realtime-event-archive/rea"
)

// projectionsOf gives the inline projections, and checks the form of what later versions build, so that a slip is
// found now.
func (r *reader) projectionsOf(section entry, types map[string]rea.Type) (inline []rea.Projection) {
	for _, p := range r.mapping(section.value, section.at, "projections") {
		if declared := r.projection(p, types); declared.Inline {
			inline = append(inline, declared)
		} else {
			r.notes = append(r.notes, r.at(p.at, "the projection "+p.key+" is checked for its form, and not built by this version of REA: inline ones are"))
		}
	}
	return inline
}

func (r *reader) projection(p entry, types map[string]rea.Type) rea.Projection {
	declared := rea.Projection{Name: p.key}
	r.projections[[2]string{p.key, ""}] = p.at
	what := "the projection " + p.key
	keys := map[string]entry{}
	for _, e := range r.mapping(p.value, p.at, what) {
		keys[e.key] = e
		r.projections[[2]string{p.key, e.key}] = e.at
		switch e.key {
		case "of":
			name, ok := r.name(e.value, e.at, "of")
			if declared.Of = name; ok && types[name].Name == "" {
				r.fail(markAt(e.value, e.at), "the aggregate type %s is not declared", name)
			}
		case "on":
			for _, event := range r.names(e.value, e.at, "on") {
				if !declares(types, event.text) {
					r.fail(event.at, "the event %s is not declared, or an old name", event.text)
				}
			}
		case "mode":
			name, ok := r.name(e.value, e.at, "mode")
			if declared.Inline = name == "inline"; ok && !declared.Inline && name != "followed" {
				r.fail(markAt(e.value, e.at), "mode is inline or followed, not %s", name)
			}
		case "columns":
			for _, c := range r.mapping(e.value, e.at, "columns") {
				kind, _ := r.name(c.value, c.at, "the type of "+c.key)
				declared.Columns = append(declared.Columns, rea.Column{Name: c.key, Type: rea.ColumnType(kind)})
				r.projections[[2]string{p.key, c.key}] = markAt(c.value, c.at)
			}
		case "version":
			declared.Version = r.count(e.value, e.at, "version")
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
	for _, key := range []string{"on", "every", "tz", "by", "measures"} {
		if e, ok := keys[key]; ok && declared.Inline {
			r.fail(e.at, "%s is inline, and has no key %s: statistics are followed", what, key)
		}
	}
	return declared
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
