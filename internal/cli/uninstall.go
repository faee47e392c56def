package cli

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) uninstallCommand() *cobra.Command {
	var events int64
	var yes bool
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove everything that is REA's from the database, events included",
		Long: `Remove everything that is REA's from the database: all events, and the roles that
installing made. There is no way back but a backup or an export.

The number of stored events is the confirmation: it is asked for on a terminal; elsewhere
--events N --yes gives it. With another number nothing is removed (exit code 4).`,
		Example: `  rea export backup.ndjson.gz
  rea migrate uninstall
  rea migrate uninstall --events 262200 --yes`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			a.sayWhich()
			archive, d, err := a.open(ctx, opening{role: "owner"})
			if err != nil {
				return err
			}
			defer archive.Close()
			stored, err := archive.Autocommit().Count(ctx)
			if err != nil {
				return err
			}
			given := cmd.Flags().Changed("events")
			a.say(fmt.Sprintf("to be removed: REA and %[2]s from %[1]s", safe(d.String()), counted(stored, "event")))
			switch {
			case given && yes:
			case a.env.IsTerminal(a.env.Stdin) && a.env.IsTerminal(a.env.Stderr):
				if events, err = a.askEvents(ctx, stored); err != nil {
					return err
				}
			default:
				return &unconfirmedError{stored, fmt.Sprintf("not confirmed: to remove them, add --events %d --yes", stored)}
			}
			if err := archive.Uninstall(ctx, events); err != nil {
				return err
			}
			if !a.table() {
				return a.object(map[string]int64{"removed_events": events})
			}
			fmt.Fprintf(a.env.Stdout, "removed REA and %s from %s\n", counted(events, "event"), safe(d.String()))
			return nil
		},
	}
	cmd.Flags().Int64Var(&events, "events", 0, "number of stored events, as a confirmation")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// unconfirmedError says that nobody was there to confirm, or that the answer was no number.
type unconfirmedError struct {
	events  int64 // stored
	message string
}

func (e *unconfirmedError) Error() string        { return e.message }
func (e *unconfirmedError) Is(target error) bool { return target == rea.ErrNotConfirmed }

// askEvents asks a person for the number of events.
func (a *app) askEvents(ctx context.Context, stored int64) (int64, error) {
	fmt.Fprint(a.env.Stderr, "type the number of events to remove them for ever: ")
	answer, _ := bufio.NewReader(a.stdin(ctx)).ReadString('\n')
	if ctx.Err() != nil {
		a.say("") // the cursor stands behind the question
		return 0, ctx.Err()
	}
	n, err := strconv.ParseInt(strings.TrimSpace(answer), 10, 64)
	if err != nil {
		return 0, &unconfirmedError{stored, "not confirmed: nothing is removed"}
	}
	if n != stored {
		return 0, &rea.NotConfirmedError{Events: stored, Given: n}
	}
	return n, nil
}
