package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// flagError says what is wrong with a flag without the words of the packages that read flags.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		name := unknown.GetSpecifiedName()
		return usagef("unknown flag: --%s: %ssee `%s --help`", name, didYouMean(flagsLike(cmd, name), "--"), cmd.CommandPath())
	case errors.As(err, &missing) && missing.GetFlag() != nil:
		return usagef("--%s needs a value: %s", missing.GetFlag().Name, missing.GetFlag().Usage)
	case errors.As(err, &invalid):
		wanted, short := "another value", clip(invalid.GetValue())
		switch invalid.GetFlag().Value.Type() {
		case "int", "int64":
			wanted = "a whole number"
		case positionType:
			wanted = "a position, which is a whole number, or head"
		case "duration":
			wanted = "a time such as 30s"
		case "lag":
			wanted = "a number of events such as 1000, or a time such as 30s"
		case "bool":
			wanted = "true or false"
		}
		if errors.Is(err, strconv.ErrRange) {
			return usagef("--%s takes a smaller number than %s", invalid.GetFlag().Name, short)
		}
		return usagef("--%s takes %s, not %q", invalid.GetFlag().Name, wanted, short)
	}
	return usagef("%s: see `%s --help`", err, cmd.CommandPath())
}

func clip(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}

// flagsLike finds the flags of a command with similar names, by cobra's measure for commands.
func flagsLike(cmd *cobra.Command, name string) []string {
	names := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: flag.Name, Run: func(*cobra.Command, []string) {}})
	})
	return names.SuggestionsFor(name)
}

// didYouMean is "did you mean `rea log`? " where there is a name like the one that was given.
func didYouMean(names []string, before string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("did you mean `%s%s`? ", before, strings.Join(names, "` or `"+before))
}

// splitRef makes TYPE/ID into TYPE and ID: the two are often copied as one word.
func splitRef(args []string) []string {
	if len(args) == 0 || strings.Count(args[0], "/") != 1 {
		return args
	}
	typ, id, _ := strings.Cut(args[0], "/")
	return append([]string{typ, id}, args[1:]...)
}

// counted is "1 event" or "2 events".
func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// refusedError says that a command does not do what it was asked, for a good reason.
type refusedError struct{ message string }

func (e *refusedError) Error() string { return e.message }

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
