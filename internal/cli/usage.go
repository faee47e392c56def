package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitDone    = 0
	exitFailed  = 1 // could not be done or not be told
	exitUsage   = 2
	exitPartial = 3 // a check found something, or part was left out
	exitRefused = 4
)

// usageError says that a command was called in a wrong way.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// asUsage makes an error of cobra's, which are all about arguments and flags, a usageError.
func asUsage(err error) error {
	var usage *usageError
	if errors.As(err, &usage) {
		return err
	}
	return &usageError{err.Error()}
}

// between is a check of the number of arguments that says what they are.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("takes %s, not %d: %s", arguments(least, most), len(args), cmd.UseLine())
		}
		return nil
	}
}

func arguments(least, most int) string {
	switch {
	case most == 0:
		return "no arguments"
	case least == most && most == 1:
		return "1 argument"
	case least == most:
		return fmt.Sprintf("%d arguments", most)
	}
	return fmt.Sprintf("%d to %d arguments", least, most)
}

// partialError ends a command with exitPartial after everything was said.
type partialError struct{}

func (partialError) Error() string { return "part was left out" }
