package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) projectionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "projection",
		Short: "Look at projections, rebuild, stop, mend and check them",
		Long: `A projection is a table that is computed from events: rea_views.NAME on PostgreSQL,
rea_views_NAME on SQLite. The catalog declares it. An inline one is kept in the transaction of
each append once the catalog is applied; a followed one is kept by "rea run".
docs/projections.md tells all of it from the beginning.`,
		Example: `  rea projection list
  rea projection show hourly_sales
  rea projection rebuild hourly_sales
  rea projection check`,
		Args: cobra.ArbitraryArgs,
		RunE: group,
	}
	cmd.AddCommand(a.projectionListCommand(), a.projectionShowCommand(), a.projectionRebuildCommand(), a.projectionPauseCommand(),
		a.projectionResumeCommand(), a.projectionRetryCommand(), a.projectionSkipCommand(), a.projectionCheckCommand(), a.projectionDropCommand())
	return cmd
}

// modeInline and modeFollowed say who keeps a projection: the append's transaction, or a runner.
const (
	modeInline   = "inline"
	modeFollowed = "followed"
)

// projection is one of either kind, with where it stands.
type projection struct {
	rea.ProjectionStatus
	mode     string
	of       string    // the aggregate type of a table of states
	lagSince time.Time // when the oldest event that it lacks was stored; zero: it lacks none, or it is not known
}

// stuck reports whether somebody has to look at it.
func (p projection) stuck() bool {
	switch p.State {
	case rea.StateStalled, rea.StateFailing, rea.StateNeedsRebuild:
		return true
	}
	return false
}

// word is its state, for people and programs: the database knows who has moved it, and not who will, so that "running" would say too
// much.
func (p projection) word() string {
	switch lag, known := p.Lag(); {
	case p.State != rea.StateRunning:
		return p.State
	case p.mode == modeInline:
		return "kept"
	case known && lag > 0:
		return "behind"
	}
	return "caught up"
}

// trouble is why it does not go on, and what to type.
func (p projection) trouble() string {
	return strings.TrimPrefix(p.Trouble, "rea: ")
}

// projections lists all of them by name, after numbering what has committed.
func (a *app) projections(ctx context.Context, archive *rea.Archive) (list []projection, err error) {
	if _, err := a.catchUp(ctx, archive); err != nil {
		return nil, err
	}
	statuses, err := archive.Projections(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range statuses {
		p := projection{ProjectionStatus: s, mode: modeFollowed, of: s.Of}
		if s.Inline {
			p.mode = modeInline
		}
		if lag, known := s.Lag(); known && lag > 0 && !s.Inline {
			for e, err := range archive.Autocommit().History(ctx, rea.Filter{After: s.Position, Limit: 1}) {
				if err != nil {
					return nil, err
				}
				if p.lagSince = e.CreatedAt; !e.RecordedAt.IsZero() {
					p.lagSince = e.RecordedAt
				}
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// projection finds one by its name.
func (a *app) projection(ctx context.Context, archive *rea.Archive, name string) (projection, error) {
	list, err := a.projections(ctx, archive)
	if err != nil {
		return projection{}, err
	}
	names := []string{}
	for _, p := range list {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return projection{}, noProjection("the database and the catalog have", name, names)
}

// declared refuses names that the catalog does not have.
func (a *app) declared(c *rea.Catalog, names []string) error {
	known := []string{}
	for _, p := range c.Projections() {
		known = append(known, p.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return noProjection("the catalog has", name, known)
		}
	}
	return nil
}

// noProjection says which names there are.
func noProjection(where, name string, known []string) error {
	has := "none"
	if len(known) > 0 {
		slices.Sort(known)
		has = safe(strings.Join(known, ", "))
	}
	return notThere(fmt.Sprintf("there is no projection %s: %s %s", fold(name, 60), where, has))
}

// notThere says that there is nothing of a name.
type notThere string

func (e notThere) Error() string        { return string(e) }
func (e notThere) Is(target error) bool { return target == rea.ErrNotFound }

// table is the name of its table in the database.
func (p projection) table(d database) string {
	switch {
	case p.Kind == rea.KindGo:
		return ""
	case d.postgres != "":
		return "rea_views." + p.Name
	}
	return "rea_views_" + p.Name
}

// projectionLine is a projection, in JSON.
type projectionLine struct {
	Name           string       `json:"name"`
	Mode           string       `json:"mode"`
	Kind           string       `json:"kind"`
	Of             *string      `json:"of"`
	Version        int          `json:"version"`
	Table          *string      `json:"table"`
	State          string       `json:"state"`
	Position       *int64       `json:"position"` // null: an inline one where no runner has looked
	Head           int64        `json:"head"`
	Lag            *int64       `json:"lag"`       // in events; null: not known, or inline
	LagSince       *string      `json:"lag_since"` // when the oldest event that it lacks was stored
	LagSeconds     *float64     `json:"lag_seconds"`
	UpdatedAt      *string      `json:"updated_at"`
	Runner         *string      `json:"runner"`
	FailedPosition *int64       `json:"failed_position"`
	AggregateType  *string      `json:"aggregate_type"` // of the event that it fails on
	AggregateID    *string      `json:"aggregate_id"`
	Seq            *int64       `json:"seq"`
	EventType      *string      `json:"event_type"`
	Attempts       int          `json:"attempts"`
	Error          *string      `json:"error"`
	FailingSince   *string      `json:"failing_since"`
	NextTryAt      *string      `json:"next_try_at"`
	Skipped        int          `json:"skipped"`
	Rebuild        *rebuildLine `json:"rebuild"` // that is not finished
	Trouble        *string      `json:"trouble"`
}

// rebuildLine is a rebuild that is not finished, in JSON.
type rebuildLine struct {
	Position       int64   `json:"position"`
	FailedPosition *int64  `json:"failed_position"`
	Error          *string `json:"error"`
	Skipped        int     `json:"skipped"`
}

func (p projection) line(d database) projectionLine {
	line := projectionLine{Name: p.Name, Mode: p.mode, Kind: p.Kind, Of: given(p.of), Version: p.Version, Table: given(p.table(d)), State: p.word(), Head: p.Head,
		UpdatedAt: givenTime(p.UpdatedAt), Runner: given(p.Runner), Attempts: p.Failed.Attempts, Error: given(p.Failed.Error),
		FailingSince: givenTime(p.Failed.Since), NextTryAt: givenTime(p.Failed.NextTry), Skipped: len(p.Skipped), Trouble: given(p.trouble())}
	if p.mode == modeInline && p.Position == 0 && p.Failed.Position == 0 { // nobody has looked for rows that are behind
		return line
	}
	line.Position = &p.Position
	if lag, known := p.Lag(); known && p.State != rea.StateNeedsRebuild && p.mode != modeInline {
		seconds := 0.0
		line.Lag, line.LagSeconds = &lag, &seconds
		if line.LagSince = givenTime(p.lagSince); !p.lagSince.IsZero() {
			seconds = max(time.Since(p.lagSince), 0).Round(time.Millisecond).Seconds()
		}
	}
	if p.Failed.Position > 0 {
		line.FailedPosition = &p.Failed.Position
	}
	if r := p.Rebuild; r != nil {
		line.Rebuild = &rebuildLine{Position: r.Position, Error: given(r.Error), Skipped: len(r.Skipped)}
		if r.FailedPosition > 0 {
			line.Rebuild.FailedPosition = &r.FailedPosition
		}
	}
	if e := p.Failing; e != nil {
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

// projectionNames completes the names of projections.
func (a *app) projectionNames(followed, inline, several bool) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		c, err := a.catalog()
		if err != nil || len(args) > 0 && !several {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, p := range c.Projections() {
			if (p.Inline && inline || !p.Inline && followed) && !slices.Contains(args, p.Name) {
				names = append(names, p.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// withProjections opens the archive with the catalog.
func (a *app) withProjections(ctx context.Context, role string, do func(*rea.Archive, *rea.Catalog, database) error) error {
	c, err := a.catalog()
	if err != nil {
		return err
	}
	archive, d, err := a.open(ctx, opening{role: role, catalog: c})
	if err != nil {
		return err
	}
	defer archive.Close()
	return do(archive, c, d)
}
