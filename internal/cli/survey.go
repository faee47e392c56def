package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/realtime-event-archive/rea"
)

// survey is what a catalog makes of the events of an archive. It keeps a status for each aggregate, and no more.
type survey struct {
	rules    *rea.Catalog
	statuses map[rea.Ref]string
	declared map[string][]string  // aggregate type -> its statuses and the old names of them
	to       map[[2]string]string // aggregate type with a machine, event -> the status that it leads to

	events  int64
	readers map[reading]*tally // what can be read, and what cannot
	steps   map[move]*tally
	stored  map[strayStatus]*tally
}

// reading is a form of events, as they are stored.
type reading struct {
	aggregate, event string
	version          int
	problem          trouble
}

type trouble byte

const (
	fine trouble = iota
	undeclaredAggregate
	undeclaredEvent
	newerVersion
	failingUpcast
)

// move is a step of the state machine that events have taken. from is "" where there was no event before, or none
// with a status.
type move struct {
	aggregate, event, from, to string
	illegal                    bool
}

// strayStatus is a stored status that the catalog does not have.
type strayStatus struct{ aggregate, status string }

// tally counts events.
type tally struct {
	n     int64
	first rea.Event // without its payload
	err   error     // of the first
}

func newSurvey(rules *rea.Catalog) *survey {
	s := &survey{
		rules: rules, statuses: map[rea.Ref]string{}, declared: map[string][]string{}, to: map[[2]string]string{},
		readers: map[reading]*tally{}, steps: map[move]*tally{}, stored: map[strayStatus]*tally{},
	}
	for _, t := range rules.Types() {
		s.declared[t.Name] = t.Statuses()
		for old := range t.Renamed {
			s.declared[t.Name] = append(s.declared[t.Name], old)
		}
		for _, e := range t.Events {
			if t.Status != "" && e.AliasOf == "" && !e.Retired {
				s.to[[2]string{t.Name, e.Name}] = e.To
			}
		}
	}
	return s
}

// barEvents is how many events are read between two movements of the bar.
const barEvents = 5_000

// surveyArchive reads the events of an aggregate type, or all ("").
func (a *app) surveyArchive(ctx context.Context, rules *rea.Catalog, aggregate string) (*survey, error) {
	archive, _, err := a.open(ctx, opening{role: "reader", page: 2_000})
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	if _, err := a.catchUp(ctx, archive); err != nil {
		return nil, err
	}
	tx := archive.Autocommit()
	head, err := tx.Head(ctx)
	if err != nil {
		return nil, err
	}
	s := newSurvey(rules)
	bar := a.newBar("catalog")
	defer bar.close()
	for e, err := range tx.History(ctx, rea.Filter{Type: aggregate}) {
		if err != nil {
			return nil, err
		}
		s.add(e)
		if s.events%barEvents == 0 {
			bar.set(e.Position, head, fmt.Sprintf("position %d", e.Position))
		}
	}
	return s, ctx.Err()
}

// hasDatabase reports whether a database is named, or lies here.
func (a *app) hasDatabase() bool {
	if a.db != "" || a.env.Getenv("REA_DATABASE_URL") != "" || a.env.Getenv("DATABASE_URL") != "" {
		return true
	}
	_, err := os.Stat(a.env.path(localFile))
	return err == nil
}

// add goes by position, which keeps each aggregate's seq order.
func (s *survey) add(e rea.Event) {
	s.events++
	aggregate := e.Aggregate.Type
	current, retired, err := s.rules.Upcast(e)
	_, known := s.declared[aggregate]
	fact := rea.NewEvent{Type: e.Type, Payload: e.Payload}
	e.Payload, e.Metadata = nil, nil
	read := reading{aggregate, e.Type, e.Version, troubleOf(err, known)}
	if !known {
		read.event, read.version = "", 0
	}
	count(s.readers, read, e, err)
	if e.Status != "" && known && !slices.Contains(s.declared[aggregate], e.Status) {
		count(s.stored, strayStatus{aggregate, e.Status}, e, nil)
	}
	if !known {
		return
	}
	status, exists := s.statuses[e.Aggregate]
	after := status
	switch {
	case rea.BuiltIn(e.Type):
		after = s.fact(e, fact, status)
	case err == nil && !retired:
		after = s.step(e, current, status, exists)
	}
	s.statuses[e.Aggregate] = after
}

// fact goes where one of REA's own events says, which no machine judges. A status that it tells and that is not stored, from
// before there was a machine, is looked at like a stored one.
func (s *survey) fact(e rea.Event, fact rea.NewEvent, status string) (after string) {
	taken, err := s.rules.Take(e.Aggregate, fact, status, e.Seq-1, false)
	if err != nil || !taken.Machine {
		return ""
	}
	if e.Status != "" {
		return e.Status
	}
	if after = taken.Status; after != "" && after != status && !slices.Contains(s.declared[e.Aggregate.Type], after) {
		count(s.stored, strayStatus{e.Aggregate.Type, after}, e, nil)
	}
	return after
}

// step counts a step, and goes where the event leads, be it legal or not: as folding does.
func (s *survey) step(e, current rea.Event, status string, exists bool) (after string) {
	aggregate := e.Aggregate.Type
	to, machine := s.to[[2]string{aggregate, current.Type}]
	if !machine {
		return ""
	}
	after, err := s.rules.Step(aggregate, current.Type, status, exists)
	if err != nil && to != "" {
		after = to
	}
	count(s.steps, move{aggregate, current.Type, status, after, err != nil}, e, nil)
	return after
}

func troubleOf(err error, known bool) trouble {
	if !known {
		return undeclaredAggregate
	}
	if err == nil {
		return fine
	}
	if unknown, ok := err.(*rea.UnknownTypeError); ok {
		if unknown.Newest > 0 {
			return newerVersion
		}
		return undeclaredEvent
	}
	return failingUpcast
}

func count[K comparable](tallies map[K]*tally, key K, e rea.Event, err error) {
	t := tallies[key]
	if t == nil {
		t = &tally{first: e, err: err}
		tallies[key] = t
	}
	t.n++
}

// findings lists what is wrong with the archive in the eyes of the catalog.
func (s *survey) findings() (list []finding) {
	for r, t := range s.readers {
		f := archiveFinding(levelProblem, r.aggregate, r.event, r.version, t)
		switch r.problem {
		case fine:
			continue
		case undeclaredAggregate:
			f.Level, f.Message = levelNote, "the aggregate type is not declared: payloads are laid over one another"
		case undeclaredEvent:
			f.Message = "the event is not declared: declare it, or declare it retired"
		case newerVersion:
			f.Message = fmt.Sprintf("the catalog knows up to version %d", t.err.(*rea.UnknownTypeError).Newest)
		case failingUpcast:
			f.Message = strings.TrimPrefix(t.err.Error(), "rea: ")
			if upcast := new(rea.UpcastError); errors.As(t.err, &upcast) {
				f.Message = fmt.Sprintf("the payload cannot be upcast from version %d to %d: %s", upcast.From, upcast.From+1, strings.TrimPrefix(upcast.Err.Error(), "rea: "))
			}
		}
		list = append(list, f)
	}
	for m, t := range s.steps {
		if m.illegal {
			f := archiveFinding(levelProblem, m.aggregate, m.event, 0, t)
			f.Message = "the step from " + orNone(m.from) + " is not declared"
			list = append(list, f)
		}
	}
	for stray, t := range s.stored {
		f := archiveFinding(levelProblem, stray.aggregate, "", 0, t)
		f.Message = "the stored status " + fold(stray.status, 60) + " is not declared"
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b finding) int { return strings.Compare(a.text(), b.text()) })
	return list
}

func orNone(status string) string {
	if status == "" {
		return rea.FromNone
	}
	return fold(status, 60)
}
