package adopt

import (
	"encoding/json"
	"maps"

	"github.com/realtime-event-archive/rea"
)

// fold gives the state after an event: REA's own say what they do to the row (docs/design/guard.md), the application's are folded
// by the catalog.
func fold(c *rea.Catalog, state rea.Object, e rea.Event) (rea.Object, error) {
	parts := map[string][2]string{ // what is laid over the state, what leaves it
		"BaselineCreated": {"row"}, "DirectInsert": {"new"}, "DirectUpdate": {"new", "gone"}, "DirectDelete": {}, "Reverted": {"set", "unset"},
	}
	part, own := parts[e.Type]
	if !own {
		return c.Fold(state, e)
	}
	payload, err := rea.ParseObject(e.Payload)
	if err != nil {
		return nil, err
	}
	next := rea.Object{}
	if e.Type == "DirectUpdate" || e.Type == "Reverted" {
		maps.Copy(next, state)
	}
	from := []string{part[0]}
	if e.Type == "DirectUpdate" && e.Seq == 1 { // there was no baseline: old is the whole row
		from = []string{"old", "new"}
	}
	for _, name := range from {
		if payload[name] == nil {
			continue
		}
		fields, err := rea.ParseObject(payload[name])
		if err != nil {
			return nil, err
		}
		maps.Copy(next, fields)
	}
	var gone []string
	if text := payload[part[1]]; text != nil {
		if err := json.Unmarshal(text, &gone); err != nil {
			return nil, err
		}
	}
	for _, name := range gone {
		delete(next, name)
	}
	return next, nil
}
