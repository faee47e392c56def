package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/catalog"
)

// The levels of findings. A note says how things are, and is nothing to act on.
const (
	levelProblem = "problem"
	levelWarning = "warning"
	levelNote    = "note"
)

// finding is one line of `rea catalog check`.
type finding struct {
	Level     string  `json:"level"`
	File      *string `json:"file"`
	Line      *int    `json:"line"`
	Column    *int    `json:"column"`
	Aggregate *string `json:"aggregate_type"`
	Event     *string `json:"event_type"`
	Version   *int    `json:"event_version"`
	Events    *int64  `json:"events"`   // of the archive that it is about
	FirstID   *string `json:"first_id"` // aggregate id and seq of the first of them
	FirstSeq  *int64  `json:"first_seq"`
	Message   string  `json:"message"`

	detail string // for people, with the line of the file
}

func (a *app) catalogCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the catalog, by itself and against the stored events",
		Long: `Check the file: its form, names, chains of upcasters without holes, steps that lead nowhere.
Where a database is named or ./rea.db exists, check every stored event too: event types and
versions that the catalog does not know, payloads that cannot be upcast, steps and statuses
that it does not declare, each with the number of events and the first of them. It says
too where the database holds its writers to another catalog, or to none.

Exit code 3 where there are problems or warnings. Notes are how things are: the statuses
that nothing leaves, aggregate types without a declaration.`,
		Example: `  rea catalog check
  rea catalog check --catalog shop/rea.yaml --db sqlite:shop.db
  rea catalog check --json`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.catalogCheck(cmd) },
	}
}

func (a *app) catalogCheck(cmd *cobra.Command) error {
	f, err := a.mustCatalog()
	var wrong *catalog.Error
	if errors.As(err, &wrong) {
		var list []finding
		for _, p := range wrong.Problems {
			list = append(list, fileFinding(levelProblem, p))
		}
		return a.printFindings(list, "")
	}
	if err != nil {
		return err
	}
	var list []finding
	for _, p := range f.Warnings {
		list = append(list, fileFinding(levelWarning, p))
	}
	for _, t := range f.Catalog.Types() {
		if final := t.Final(); len(final) > 0 {
			list = append(list, finding{Level: levelNote, Aggregate: &t.Name, Message: "nothing leaves " + fold(strings.Join(final, ", "), 200)})
		}
	}
	if !a.hasDatabase() {
		return a.printFindings(list, "no database is named: the file alone was checked")
	}
	s, err := a.surveyArchive(cmd.Context(), f.Catalog, "")
	if err != nil {
		return err
	}
	err = a.printFindings(append(list, s.findings()...), numbered(int(s.events), "stored event")+" checked")
	a.sayApplied(cmd.Context(), f.Catalog)
	return err
}

// sayApplied says where the database holds writers to another catalog than the checked one. A database that tells
// nothing of it to this reader (a file that may not be written, a standby) is passed over.
func (a *app) sayApplied(ctx context.Context, rules *rea.Catalog) {
	archive, _, err := a.open(ctx, opening{role: "reader", catalog: rules})
	if err != nil {
		return
	}
	defer archive.Close()
	switch plan, err := archive.PlanApply(ctx); {
	case err != nil || !plan.New:
	case plan.Number == 1:
		a.say("no catalog is applied to the database, which holds nobody to these steps: see rea catalog apply")
	default:
		a.say(fmt.Sprintf("catalog %d, the one that the database holds writers to, is another: see rea catalog apply", plan.Number-1))
	}
}

func fileFinding(level string, p catalog.Problem) finding {
	f := finding{Level: level, File: &p.File, Message: p.Message}
	if p.Line > 0 {
		f.Line, f.Column = &p.Line, &p.Column
	}
	p.Message = level + ": " + p.Message
	f.detail = safeLines(p.Detail())
	return f
}

func archiveFinding(level, aggregate, event string, version int, t *tally) finding {
	f := finding{Level: level, Aggregate: &aggregate, Event: given(event), Events: &t.n, FirstID: &t.first.Aggregate.ID, FirstSeq: &t.first.Seq}
	if version > 0 {
		f.Version = &version
	}
	return f
}

// text is the finding in one line.
func (f *finding) text() string {
	if f.detail != "" {
		return f.detail
	}
	at := fold(*f.Aggregate, 60)
	if f.Event != nil {
		at += "." + fold(*f.Event, 60)
	}
	if f.Version != nil {
		at += fmt.Sprintf(" version %d", *f.Version)
	}
	if f.Events == nil {
		return fmt.Sprintf("%s: %s: %s\n", at, f.Level, f.Message)
	}
	first := rea.Ref{Type: *f.Aggregate, ID: *f.FirstID}
	return fmt.Sprintf("%s: %s: %s (%s, first %s seq %d)\n", at, f.Level, safe(f.Message), numbered(int(*f.Events), "event"), refText(first), *f.FirstSeq)
}

// printFindings ends with exit code 3 where there is something to act on.
func (a *app) printFindings(list []finding, said string) error {
	found := 0
	out := a.list()
	for _, f := range list {
		if f.Level != levelNote {
			found++
		}
		if a.table() {
			if _, err := fmt.Fprint(a.env.Stdout, f.text()); err != nil {
				return err
			}
		} else if err := out.add(f); err != nil {
			return err
		}
	}
	if !a.table() {
		if err := out.close(); err != nil {
			return err
		}
	}
	if said != "" {
		a.say(said)
	}
	if found > 0 {
		a.say(numbered(found, "finding"))
		return partialError{}
	}
	a.say("nothing is wrong")
	return nil
}
