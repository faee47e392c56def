package cli

import (
	"bufio"
	"io"
	"strings"
)

// column of a grid; its cells are safe text.
type column struct {
	head     string
	right    bool // numbers
	optional bool // left out where all cells are empty
	width    int  // of a grid that is written line by line
}

// grid writes cells in aligned columns, two spaces apart, by the width that terminals give to each character.
type grid struct {
	columns []column
	rows    [][]string
	bold    bool // heads
}

func (g *grid) add(texts ...string) { g.rows = append(g.rows, texts) }

// write writes all rows under their heads.
func (g *grid) write(w io.Writer) error {
	columns := make([]column, len(g.columns))
	for i, c := range g.columns {
		used := !c.optional
		c.width = cells.StringWidth(c.head)
		for _, row := range g.rows {
			used = used || row[i] != ""
			c.width = max(c.width, cells.StringWidth(row[i]))
		}
		if !used {
			c.width = 0
		}
		columns[i] = c
	}
	out := bufio.NewWriter(w)
	writeHeads(out, columns, g.bold)
	for _, row := range g.rows {
		_, _ = out.WriteString(align(columns, row) + "\n")
	}
	return out.Flush()
}

func writeHeads(w io.Writer, columns []column, bold bool) {
	heads := make([]string, len(columns))
	for i, c := range columns {
		heads[i] = c.head
	}
	line := align(columns, heads)
	if bold {
		line = "\x1b[1m" + line + "\x1b[0m"
	}
	_, _ = io.WriteString(w, line+"\n")
}

// align makes a line; columns of width 0 are left out, and cells that are too wide push the rest.
func align(columns []column, texts []string) string {
	var b strings.Builder
	first := true
	for i, c := range columns {
		if c.width == 0 {
			continue
		}
		if !first {
			b.WriteString("  ")
		}
		first = false
		space := strings.Repeat(" ", max(0, c.width-cells.StringWidth(texts[i])))
		if c.right {
			b.WriteString(space + texts[i])
		} else {
			b.WriteString(texts[i] + space)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// bold reports whether heads are bold: on a terminal, unless NO_COLOR is set.
func (a *app) bold() bool {
	return a.env.IsTerminal(a.env.Stdout) && a.env.Getenv("NO_COLOR") == "" && a.env.Getenv("TERM") != "dumb"
}
