package catalog

import (
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/realtime-event-archive/rea"
)

// projectionsOf reads the projections.
func (r *reader) projectionsOf(section entry, types map[string]rea.Type) (list []rea.Projection) {
	for _, p := range r.mapping(section.value, section.at, "projections") {
		list = append(list, r.projection(p, types))
	}
	return list
}

func (r *reader) projection(p entry, types map[string]rea.Type) rea.Projection {
	declared := rea.Projection{Name: p.key}
	r.projections[[2]string{p.key, ""}] = p.at
	what := "the projection " + p.key
	if plain := strings.ReplaceAll(p.key, "-", "_"); plain != p.key {
		r.fail(p.at, "%s: its name is a table's, and would have to be quoted in every query: %s", what, plain)
	}
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
				declared.On = append(declared.On, event.text)
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
				d, err := time.ParseDuration(text)
				if err != nil || d <= 0 {
					r.fail(markAt(e.value, e.at), "every is a time such as 1h or 15m, not %s", text)
				}
				declared.Every = d
			}
		case "tz":
			declared.Zone, _ = r.name(e.value, e.at, "tz")
		case "by":
			declared.By = r.dimensions(e)
		case "measures":
			declared.Measures = r.measures(e)
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

// dimensions reads [region, $.customer.country, @actor_id] or {country: $.customer.country}.
func (r *reader) dimensions(e entry) (list []rea.Dimension) {
	if _, ok := e.value.(*ast.MappingNode); ok {
		for _, d := range r.mapping(e.value, e.at, "by") {
			if v, ok := r.value(d.value, d.at, false); ok {
				list = append(list, rea.Dimension{Name: d.key, Operand: v})
			}
		}
		return list
	}
	for _, d := range r.names(e.value, e.at, "by") {
		switch {
		case strings.HasPrefix(d.text, "@"):
			list = append(list, rea.Dimension{Name: d.text[1:], Operand: rea.Operand{Attribute: d.text}})
		case strings.HasPrefix(d.text, "$"):
			if v, ok := r.path(d.text, d.at); ok {
				list = append(list, rea.Dimension{Name: d.text[strings.LastIndexAny(d.text, ".$")+1:], Operand: v})
			}
		default:
			list = append(list, rea.Dimension{Name: d.text, Operand: rea.Operand{Path: []string{d.text}}})
		}
	}
	return list
}

// measures reads {orders: count, amount: {sum: $.amount}}.
func (r *reader) measures(e entry) (list []rea.Measure) {
	for _, m := range r.mapping(e.value, e.at, "measures") {
		if s, ok := m.value.(*ast.StringNode); ok {
			if s.Value != "count" {
				r.fail(markAt(m.value, m.at), "a measure is count, or {sum: $.path} with sum, min or max")
			}
			list = append(list, rea.Measure{Name: m.key, Kind: rea.MeasureCount})
			continue
		}
		kinds := r.mapping(m.value, m.at, "a measure (if not count)")
		if len(kinds) > 1 {
			r.fail(kinds[1].at, "a measure is one of sum, min and max: give the other a name of its own")
		}
		for _, f := range kinds {
			switch f.key {
			case "sum", "min", "max":
				v, ok := r.value(f.value, f.at, payloadAlone)
				if ok && v.Path == nil {
					r.fail(markAt(f.value, f.at), "%s takes a path such as $.amount", f.key)
				}
				list = append(list, rea.Measure{Name: m.key, Kind: f.key, Operand: v})
			default:
				r.unknown(f, "a measure", "sum", "min", "max")
			}
		}
	}
	return list
}
