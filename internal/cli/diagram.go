package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) catalogDiagramCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diagram TYPE",
		Short: "Draw the state machine of an aggregate type, with counts from the archive",
		Long: `Draw the state machine of an aggregate type as a Mermaid stateDiagram-v2, which GitHub,
GitLab and https://mermaid.live show. Where a database is named or ./rea.db exists, each
step has the number of events that took it, and each status the events that led there.
Steps that events have taken and the catalog does not declare stand in a comment.`,
		Example: `  rea catalog diagram order
  rea catalog diagram order --db sqlite:shop.db > order.mmd
  rea catalog diagram order --json`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := a.mustCatalog()
			if err != nil {
				return err
			}
			t, err := declaredType(f.Catalog, args[0])
			if err != nil {
				return err
			}
			if t.Status == "" {
				return fmt.Errorf("the aggregate type %s has no status, so there is nothing to draw", fold(t.Name, 60))
			}
			var s *survey
			if a.hasDatabase() {
				if s, err = a.surveyArchive(cmd.Context(), f.Catalog, t.Name); err != nil {
					return err
				}
			}
			steps := stepsOf(t, s)
			if a.table() {
				_, err := fmt.Fprint(a.env.Stdout, mermaid(t, steps, s != nil))
				return err
			}
			out := a.list()
			for _, step := range steps {
				if err := out.add(step); err != nil {
					return err
				}
			}
			return out.close()
		},
	}
}

// drawn is a step of a diagram.
type drawn struct {
	Event    string  `json:"event_type"`
	From     *string `json:"from"` // null: no event yet
	To       *string `json:"to"`   // null: no status yet
	Declared bool    `json:"declared"`
	Events   *int64  `json:"events"` // that took it; null: no database
}

// stepsOf lists the declared steps, one for each from and to, in the order of the declaration, then the others
// that events have taken.
func stepsOf(t rea.Type, s *survey) (steps []drawn) {
	drawnYet := map[move]bool{}
	add := func(m move, declared bool) {
		if drawnYet[m] {
			return
		}
		drawnYet[m] = true
		d := drawn{Event: m.event, From: given(m.from), To: given(m.to), Declared: declared}
		if s != nil {
			d.Events = new(int64)
			m.illegal = !declared
			if tally := s.steps[m]; tally != nil {
				*d.Events = tally.n
			}
		}
		steps = append(steps, d)
	}
	for _, e := range t.Events {
		if e.AliasOf != "" || e.Retired {
			continue
		}
		from := e.From
		switch {
		case len(from) == 0:
			from = append([]string{""}, t.Statuses()...)
		case slices.Contains(from, rea.FromAny):
			from = t.Statuses()
			if slices.Contains(e.From, rea.FromNone) {
				from = append([]string{""}, from...)
			}
		}
		for _, status := range from {
			if status == rea.FromNone {
				status = ""
			}
			to := e.To
			if to == "" {
				to = status
			}
			add(move{aggregate: t.Name, event: e.Name, from: status, to: to}, true)
		}
	}
	if s == nil {
		return steps
	}
	var others []move
	for m := range s.steps {
		illegal := m.illegal
		m.illegal = false
		if illegal || !drawnYet[m] {
			others = append(others, m)
		}
	}
	slices.SortFunc(others, func(a, b move) int {
		return strings.Compare(a.event+"\x00"+a.from+"\x00"+a.to, b.event+"\x00"+b.from+"\x00"+b.to)
	})
	for _, m := range others {
		add(m, false)
	}
	return steps
}

// mermaid draws what moves the status; what leaves it in every status stands in a comment.
func mermaid(t rea.Type, steps []drawn, counted bool) string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	arrived := map[string][]string{} // status -> "2,246 A_APPROVED"
	for _, e := range t.Events {
		if counted && e.To != "" {
			total := int64(0)
			for _, s := range steps {
				if s.Event == e.Name {
					total += *s.Events
				}
			}
			arrived[e.To] = append(arrived[e.To], thousands(total)+" "+label(e.Name))
		}
	}
	names := map[string]string{}
	for i, status := range t.Statuses() {
		names[status] = stateName(status, i)
		if text := strings.Join(append([]string{label(status)}, arrived[status]...), "<br/>"); text != names[status] {
			fmt.Fprintf(&b, "    state \"%s\" as %s\n", text, names[status])
		}
	}
	staying := map[string]int64{}
	var stay []string
	for _, s := range steps {
		count := ""
		if counted {
			count = " (" + thousands(*s.Events) + ")"
		}
		if s.Declared && everywhere(t, s.Event) {
			if _, ok := staying[s.Event]; !ok {
				stay = append(stay, s.Event)
			}
			staying[s.Event] += valueOr(s.Events)
			continue
		}
		from, to := place(names, s.From), place(names, s.To)
		if !s.Declared || s.To == nil {
			what := "leads to no status"
			if !s.Declared {
				what = "is not declared"
			}
			fmt.Fprintf(&b, "    %%%% %s --> %s : %s%s %s\n", from, to, label(s.Event), count, what)
			continue
		}
		fmt.Fprintf(&b, "    %s --> %s : %s%s\n", from, to, label(s.Event), count)
	}
	for _, status := range t.Final() {
		fmt.Fprintf(&b, "    %s --> [*]\n", names[status])
	}
	for _, event := range stay {
		count := ""
		if counted {
			count = " (" + thousands(staying[event]) + ")"
		}
		fmt.Fprintf(&b, "    %%%% in any status: %s%s\n", label(event), count)
	}
	return b.String()
}

// everywhere reports whether an event is legal in any status and leaves it.
func everywhere(t rea.Type, event string) bool {
	return slices.ContainsFunc(t.Events, func(e rea.EventType) bool {
		return e.Name == event && e.To == "" && (len(e.From) == 0 || slices.Contains(e.From, rea.FromAny))
	})
}

func valueOr(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func place(names map[string]string, status *string) string {
	if status == nil {
		return "[*]"
	}
	if name := names[*status]; name != "" {
		return name
	}
	return label(*status)
}

var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// stateName is the status itself where Mermaid takes it as a name.
func stateName(status string, i int) string {
	reserved := []string{"state", "end", "note", "direction", "class", "classdef", "style", "click", "href", "default", "as", "hide", "scale", "acctitle", "accdescr"}
	if plainName.MatchString(status) && !slices.Contains(reserved, strings.ToLower(status)) {
		return status
	}
	return fmt.Sprintf("status%d", i+1)
}

var mermaidEscapes = strings.NewReplacer(`"`, "#quot;", "#", "#35;", ";", "#59;", "<", "#lt;", ">", "#gt;", ":", "#58;", "%%", "%#37;")

func label(s string) string { return mermaidEscapes.Replace(safe(s)) }
