package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/realtime-event-archive/rea"
)

// confirm asks a person whether to do what was shown; elsewhere --yes has to say so. do is "apply it", and nothing is done
// then, which done says: "applied".
func (a *app) confirm(ctx context.Context, yes bool, do, done string) error {
	if yes {
		return nil
	}
	if !a.env.IsTerminal(a.env.Stdin) || !a.env.IsTerminal(a.env.Stderr) {
		return notConfirmed("not confirmed: to " + do + ", add --yes")
	}
	fmt.Fprint(a.env.Stderr, do+"? [y/N] ")
	answer, _ := bufio.NewReader(a.stdin(ctx)).ReadString('\n')
	if ctx.Err() != nil {
		a.say("") // the cursor stands behind the question
		return ctx.Err()
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return notConfirmed("not confirmed: nothing is " + done)
	}
	return nil
}

// notConfirmed says that nobody was there to confirm, or did not.
type notConfirmed string

func (e notConfirmed) Error() string        { return string(e) }
func (e notConfirmed) Is(target error) bool { return target == rea.ErrNotConfirmed }
