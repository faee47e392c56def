package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) showCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "show TYPE ID",
		Short: "Show the state of an aggregate, now or at an earlier moment",
		Long: `Show the state that the events of an aggregate make, up to now or up to --at. TYPE/ID as
one word is the same as TYPE ID.

  seq:N        right after the event with this seq
  position:N   right after the event with this position in the archive
  TIME         the longest beginning of its events that are all not after this time,
               such as 2024-06-01T12:00:00Z, or 2024-06-01 for its first instant (UTC)

With a catalog, the state is what its folds make, from events in their newest versions. An
event that the catalog does not know ends the command with 1; 'rea log' shows it all the same.`,
		Example: `  rea show order 10086
  rea show order 10086 --at seq:2 --json
  rea show order 10086 --at 2024-06-01T12:00:00Z`,
		Args: func(cmd *cobra.Command, args []string) error { return between(2, 2)(cmd, splitRef(args)) },
		RunE: func(cmd *cobra.Command, args []string) error {
			args = splitRef(args)
			moment := rea.At{}
			if cmd.Flags().Changed("at") {
				var err error
				if moment, err = parseAt(at); err != nil {
					return err
				}
			}
			return a.show(cmd, rea.Ref{Type: args[0], ID: args[1]}, moment, strings.HasPrefix(at, "position:"))
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "moment: seq:N, position:N or a time")
	return cmd
}

func parseAt(text string) (rea.At, error) {
	for _, kind := range []struct {
		prefix string
		at     func(int64) rea.At
	}{{"seq:", rea.AtSeq}, {"position:", rea.AtPosition}} {
		number, ok := strings.CutPrefix(text, kind.prefix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 0 {
			return rea.At{}, usagef("--at %s takes a number, not %q", kind.prefix, number)
		}
		return kind.at(n), nil
	}
	if text == "" {
		return rea.At{}, usagef("--at is empty: want seq:N, position:N or a time")
	}
	t, err := parseMoment("--at", text)
	if err != nil {
		return rea.At{}, usagef("--at is seq:N, position:N or a time such as 2024-06-01T12:00:00Z, not %q", text)
	}
	return rea.AtTime(t), nil
}

func (a *app) show(cmd *cobra.Command, aggregate rea.Ref, at rea.At, position bool) error {
	ctx := cmd.Context()
	rules, err := a.catalog()
	if err != nil {
		return err
	}
	archive, _, err := a.open(ctx, opening{role: "reader", catalog: rules})
	if err != nil {
		return err
	}
	defer archive.Close()
	if position {
		if _, err := a.catchUp(ctx, archive); err != nil {
			return err
		}
	}
	loaded, err := archive.Autocommit().LoadAt(ctx, aggregate, at)
	if err != nil {
		return err
	}
	head := fmt.Sprintf("%s at %s: seq %d", refText(aggregate), at, loaded.Seq)
	switch {
	case at.IsZero():
		head = fmt.Sprintf("%s at seq %d, the latest", refText(aggregate), loaded.Seq)
	case at == rea.AtSeq(loaded.Seq):
		head = fmt.Sprintf("%s at seq %d", refText(aggregate), loaded.Seq)
	}
	status := loaded.Last.Status
	if status == "" {
		status = rules.Status(aggregate.Type, loaded.State)
	}
	last, observed, err := lastObserved(ctx, archive.Autocommit(), aggregate, loaded.Seq)
	if err != nil {
		return err
	}
	if a.table() {
		return a.printState(head, loaded, status, last, observed)
	}
	a.say(head)
	var number *int // of the catalog that the last event was accepted by
	if n := loaded.Last.CatalogVersion; n > 0 {
		number = &n
	}
	var observedID *int64
	if last.ContextID != 0 {
		observedID = &last.ContextID
	}
	return a.object(struct {
		Type      string       `json:"aggregate_type"`
		ID        string       `json:"aggregate_id"`
		Seq       int64        `json:"seq"`
		Status    *string      `json:"status"`
		State     rea.Object   `json:"state"`
		CreatedAt string       `json:"created_at"`
		Catalog   *int         `json:"catalog"`
		LastEvent string       `json:"last_event_type"`
		Actor     *string      `json:"actor_id"`
		Reason    *string      `json:"reason"`
		DBUser    *string      `json:"db_user"`
		ContextID *int64       `json:"context_id"`
		Context   *rea.Context `json:"context"`
	}{
		Type: aggregate.Type, ID: aggregate.ID, Seq: loaded.Seq, Status: given(status), State: loaded.State,
		CreatedAt: rea.FormatTime(loaded.Last.CreatedAt), Catalog: number, LastEvent: loaded.Last.Type,
		Actor: given(last.Actor), Reason: given(last.Reason), DBUser: given(last.DBUser), ContextID: observedID, Context: observed,
	})
}

// lastObserved reads the event at seq as it is stored, with its context.
func lastObserved(ctx context.Context, tx *rea.Tx, aggregate rea.Ref, seq int64) (last *rea.Event, observed *rea.Context, err error) {
	last = &rea.Event{}
	for e, err := range tx.Events(ctx, aggregate, seq-1) {
		if err != nil {
			return nil, nil, err
		}
		last = &e
		break
	}
	if last.ContextID == 0 {
		return last, nil, nil
	}
	list, err := tx.Contexts(ctx, last.ContextID)
	if len(list) == 1 {
		observed = &list[0]
	}
	return last, observed, err
}

const stateWidth = 100

// printState is for people: the last event, then a field a line, long values folded.
func (a *app) printState(head string, l *rea.Loaded[rea.Object], status string, last *rea.Event, observed *rea.Context) error {
	if _, err := fmt.Fprintf(a.env.Stdout, "%s\nlast event  %s at %s\nclaimed     %s\n",
		head, eventName(last), rea.FormatTime(last.CreatedAt), claimedText(last)); err != nil {
		return err
	}
	if text := observedText(last, observed); text != "" {
		fmt.Fprintf(a.env.Stdout, "observed    %s\n", text)
	}
	if status != "" {
		fmt.Fprintf(a.env.Stdout, "status      %s\n", fold(status, 60))
	}
	fmt.Fprintln(a.env.Stdout)
	if last.Type == "DirectDelete" {
		_, err := fmt.Fprintln(a.env.Stdout, "removed: its row was deleted, and it has no fields any more")
		return err
	}
	if len(l.State) == 0 {
		_, err := fmt.Fprintln(a.env.Stdout, "no fields")
		return err
	}
	g := a.grid(column{head: "FIELD"}, column{head: "VALUE"})
	for _, name := range slices.Sorted(maps.Keys(l.State)) {
		if err := g.add(fold(name, 40), fold(string(l.State[name]), stateWidth)); err != nil {
			return err
		}
	}
	return g.flush()
}
