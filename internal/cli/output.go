package cli

import (
	"bufio"
	"io"
	"slices"

	"github.com/spf13/cobra"
)

const (
	formatTable = "table"
	formatJSON  = "json"
	formatJSONL = "jsonl"
)

var formats = []string{formatTable, formatJSON, formatJSONL}

func (a *app) chooseFormat(cmd *cobra.Command) error {
	given := cmd.Flags().Changed("output")
	if !slices.Contains(formats, a.format) {
		return usagef("--output is table, json or jsonl, not %q", a.format)
	}
	if a.json {
		if given && a.format != formatJSON {
			return usagef("--json is -o json, and -o says %s: choose one", a.format)
		}
		a.format = formatJSON
	}
	return nil
}

func (a *app) table() bool { return a.format == formatTable }

// list writes values as -o json (an array, one element a line) or -o jsonl (without the brackets).
type list struct {
	w     *bufio.Writer
	jsonl bool
	n     int
}

func (a *app) list() *list {
	return &list{w: bufio.NewWriterSize(a.env.Stdout, 1<<16), jsonl: a.format == formatJSONL}
}

func (l *list) add(v any) error {
	if !l.jsonl {
		if l.n == 0 {
			_, _ = l.w.WriteString("[\n")
		} else {
			_, _ = l.w.WriteString(",\n")
		}
	}
	l.n++
	_, err := l.w.Write(jsonSafe(marshal(v))) // a bufio.Writer keeps its first error
	if l.jsonl {
		err = l.w.WriteByte('\n')
	}
	return err
}

func (l *list) close() error {
	if !l.jsonl {
		end := "\n]\n"
		if l.n == 0 {
			end = "[]\n"
		}
		_, _ = l.w.WriteString(end)
	}
	return l.w.Flush()
}

// object writes one value as a line of JSON.
func (a *app) object(v any) error {
	_, err := a.env.Stdout.Write(append(jsonSafe(marshal(v)), '\n'))
	return err
}

// say writes a line of talk.
func (a *app) say(line string) {
	_, _ = io.WriteString(a.env.Stderr, line+"\n")
}
