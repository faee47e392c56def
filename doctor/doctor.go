// Package doctor looks at an archive and says how well it is protected, and what is wrong with it. It writes nothing.
//
//	findings, err := doctor.Postgres(ctx, pool, archive.Archive)
//	for _, f := range findings { fmt.Println(f.Check, f.OK, f.Text, f.Next) }
package doctor

import (
	"context"
	"fmt"

	"github.com/realtime-event-archive/rea"
)

// Finding is what one look has given.
type Finding struct {
	Check string  `json:"check"` // what was looked at: schema, protection, triggers...
	OK    bool    `json:"ok"`    // there is nothing to do
	Level *string `json:"level"` // of protection: L0 to L3; null: the look is about something else
	Text  string  `json:"text"`  // what is there
	Next  *string `json:"next"`  // what to type, or to have done; null: nothing
}

// Levels of protection (SECURITY.md). L3 takes a checkpoint that is kept elsewhere, which this version does not make.
const (
	L0 = "L0" // nothing keeps events from being changed
	L1 = "L1" // triggers do; who owns the table can switch them off
	L2 = "L2" // and nobody logs in as the owner
)

func fine(check, text string, args ...any) Finding {
	return Finding{Check: check, OK: true, Text: fmt.Sprintf(text, args...)}
}

func wrong(check, next, text string, args ...any) Finding {
	return Finding{Check: check, Text: fmt.Sprintf(text, args...), Next: &next}
}

// projections tells of those that do not go on.
func projections(ctx context.Context, archive *rea.Archive) ([]Finding, error) {
	list, err := archive.Projections(ctx)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, p := range list {
		switch {
		case p.Position > p.Head:
			findings = append(findings, wrong("projections", "rea projection rebuild "+p.Name, "%s is at position %d, and the events end at %d", p.Name, p.Position, p.Head))
		case p.State == rea.StateStalled, p.State == rea.StateFailing, p.State == rea.StateNeedsRebuild:
			findings = append(findings, wrong("projections", "rea projection show "+p.Name, "%s is %s: %s", p.Name, p.State, p.Trouble))
		}
	}
	if len(findings) == 0 {
		findings = append(findings, fine("projections", "%d, none of which has stopped", len(list)))
	}
	return findings, nil
}
