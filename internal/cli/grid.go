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
	width    int  // of a stream; a stream leaves columns of width 0 out
}

// grid writes cells in aligned columns, two spaces apart, by the width that terminals give to each character.
// The first rows decide on the columns of all, so that memory is bounded.
type grid struct {
	w       io.Writer
	columns []column
	bold    bool // heads
	stream  bool // each row at once, in columns of the given widths

	rows [][]string
	laid bool // columns have their final widths, and the heads are written
}

// gridRows is how many rows are kept before they are written.
const gridRows = 2_000

func (a *app) grid(columns ...column) *grid {
	bold := a.env.IsTerminal(a.env.Stdout) && a.env.Getenv("NO_COLOR") == "" && a.env.Getenv("TERM") != "dumb"
	return &grid{w: a.env.Stdout, columns: columns, bold: bold}
}

func (g *grid) add(texts ...string) error {
	g.rows = append(g.rows, texts)
	if g.stream || len(g.rows) >= gridRows {
		return g.flush()
	}
	return nil
}

// flush writes the rows that are kept, under their heads if they are the first ones. No rows, no heads.
func (g *grid) flush() error {
	if len(g.rows) == 0 {
		return nil
	}
	out := bufio.NewWriter(g.w)
	if !g.laid {
		g.lay()
		heads := make([]string, len(g.columns))
		for i, c := range g.columns {
			heads[i] = c.head
		}
		line := align(g.columns, heads)
		if g.bold {
			line = "\x1b[1m" + line + "\x1b[0m"
		}
		_, _ = out.WriteString(line + "\n")
	}
	for _, row := range g.rows {
		_, _ = out.WriteString(align(g.columns, row) + "\n")
	}
	g.rows = g.rows[:0]
	return out.Flush() // gives the first error of the writer
}

// lay decides on the widths; 0 leaves a column out.
func (g *grid) lay() {
	g.laid = true
	if g.stream {
		return
	}
	for i := range g.columns {
		c := &g.columns[i]
		used := !c.optional
		c.width = cells.StringWidth(c.head)
		for _, row := range g.rows {
			used = used || row[i] != ""
			c.width = max(c.width, cells.StringWidth(row[i]))
		}
		if !used {
			c.width = 0
		}
	}
}

// align makes a line; cells that are too wide push the rest.
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
