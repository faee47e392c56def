package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) projectionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "projection",
		Short:   "Look at the followed projections",
		Example: `  rea projection list`,
		Args:    cobra.ArbitraryArgs,
		RunE:    group,
	}
	cmd.AddCommand(a.projectionListCommand())
	return cmd
}

func (a *app) projectionListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the followed projections: how far each has come, and what keeps it",
		Long: `List the followed projections that the database or the catalog has: the position that each
has come to, how many events it lacks, who moved it last and when. For one that does not
go on: the event that it fails on, how often and since when, and what to type.

LAG is empty where the position is not one of this archive's. Exit code 3 where one does not go on.`,
		Example: `  rea projection list
  rea projection list --json`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.projectionList(cmd) },
	}
}

// projectionLine is a followed projection, in JSON.
type projectionLine struct {
	Name           string  `json:"name"`
	Kind           string  `json:"kind"`
	Version        int     `json:"version"`
	State          string  `json:"state"`
	Position       int64   `json:"position"`
	Head           int64   `json:"head"`
	Lag            *int64  `json:"lag"`
	UpdatedAt      *string `json:"updated_at"`
	Runner         *string `json:"runner"`
	FailedPosition *int64  `json:"failed_position"`
	AggregateType  *string `json:"aggregate_type"` // of the event that it fails on
	AggregateID    *string `json:"aggregate_id"`
	Seq            *int64  `json:"seq"`
	EventType      *string `json:"event_type"`
	Attempts       int     `json:"attempts"`
	Error          *string `json:"error"`
	FailingSince   *string `json:"failing_since"`
	NextTryAt      *string `json:"next_try_at"`
	Skipped        int     `json:"skipped"`
	Trouble        *string `json:"trouble"`
}

func (a *app) projectionList(cmd *cobra.Command) error {
	c, err := a.catalog()
	if err != nil {
		return err
	}
	archive, _, err := a.open(cmd.Context(), opening{role: "reader", catalog: c})
	if err != nil {
		return err
	}
	defer archive.Close()
	statuses, err := archive.Projections(cmd.Context())
	if err != nil {
		return err
	}
	if a.table() {
		err = a.projectionTable(statuses)
	} else {
		out := a.list()
		for _, s := range statuses {
			if err := out.add(lineOf(s)); err != nil {
				return err
			}
		}
		err = out.close()
	}
	for _, s := range statuses {
		if err == nil && s.Trouble != "" && s.State != rea.StatePaused && s.State != rea.StateNew {
			return partialError{}
		}
	}
	return err
}

func lineOf(s rea.ProjectionStatus) projectionLine {
	line := projectionLine{Name: s.Name, Kind: s.Kind, Version: s.Version, State: s.State, Position: s.Position, Head: s.Head,
		UpdatedAt: givenTime(s.UpdatedAt), Runner: given(s.Runner), Attempts: s.Failed.Attempts, Error: given(s.Failed.Error),
		FailingSince: givenTime(s.Failed.Since), NextTryAt: givenTime(s.Failed.NextTry), Skipped: len(s.Skipped), Trouble: given(s.Trouble)}
	if lag, known := s.Lag(); known {
		line.Lag = &lag
	}
	if s.Failed.Position > 0 {
		line.FailedPosition = &s.Failed.Position
	}
	if e := s.Failing; e != nil {
		line.AggregateType, line.AggregateID, line.Seq, line.EventType = &e.Aggregate.Type, &e.Aggregate.ID, &e.Seq, &e.Type
	}
	return line
}

func givenTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := rea.FormatTime(t)
	return &text
}

func (a *app) projectionTable(statuses []rea.ProjectionStatus) error {
	g := a.grid(column{head: "NAME"}, column{head: "KIND"}, column{head: "STATE"}, column{head: "POSITION", right: true}, column{head: "LAG", right: true},
		column{head: "UPDATED", optional: true}, column{head: "RUNNER", optional: true})
	for _, s := range statuses {
		lag := ""
		if n, known := s.Lag(); known {
			lag = fmt.Sprint(n)
		}
		updated := ""
		if t := givenTime(s.UpdatedAt); t != nil {
			updated = *t
		}
		if err := g.add(safe(s.Name), s.Kind, s.State, fmt.Sprint(s.Position), lag, updated, fold(s.Runner, 40)); err != nil {
			return err
		}
	}
	if err := g.flush(); err != nil {
		return err
	}
	for _, s := range statuses {
		if err := a.projectionTrouble(s); err != nil {
			return err
		}
	}
	return nil
}

// projectionTrouble says below the table why a projection does not go on.
func (a *app) projectionTrouble(s rea.ProjectionStatus) error {
	if s.Trouble == "" {
		return nil
	}
	text := fmt.Sprintf("\n%s: %s\n", safe(s.Name), safe(s.Trouble))
	if e := s.Failing; e != nil {
		text += fmt.Sprintf("  event     %s seq %d, %s, position %d\n", refText(e.Aggregate), e.Seq, fold(e.Type, 60), e.Position)
	}
	if s.Failed.Attempts > 0 {
		text += fmt.Sprintf("  attempts  %d since %s\n  error     %s\n", s.Failed.Attempts, rea.FormatTime(s.Failed.Since), fold(s.Failed.Error, 500))
	}
	if !s.Failed.NextTry.IsZero() {
		text += fmt.Sprintf("  next try  %s\n", rea.FormatTime(s.Failed.NextTry))
	}
	_, err := fmt.Fprint(a.env.Stdout, text)
	return err
}
