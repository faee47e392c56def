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

// grid writes cells in aligned columns, two spaces apart, by the width that terminals give to each character, the last
// one no wider than the terminal.
// The first rows decide on the columns of all, so that memory is bounded.
type grid struct {
	w       io.Writer
	columns []column
	bold    bool // heads
	stream  bool // each row at once, in columns of the given widths
	width   int  // of the terminal; 0: none, or not known

	rows [][]string // of one cell: a line of its own
	laid bool       // columns have their final widths, and the heads are written
}

// gridRows is how many rows are kept before they are written.
const gridRows = 2_000

func (a *app) grid(columns ...column) *grid {
	g := &grid{w: a.env.Stdout, columns: columns}
	if a.env.IsTerminal(a.env.Stdout) {
		g.bold = a.env.Getenv("NO_COLOR") == "" && a.env.Getenv("TERM") != "dumb"
		g.width = a.env.Width(a.env.Stdout)
	}
	return g
}

func (g *grid) add(texts ...string) error {
	g.rows = append(g.rows, texts)
	if g.stream || len(g.rows) >= gridRows {
		return g.flush()
	}
	return nil
}

// note adds a line of its own below the row that was added last.
func (g *grid) note(line string) error { return g.add(line) }

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
		line := g.line(heads)
		if g.bold {
			line = "\x1b[1m" + line + "\x1b[0m"
		}
		_, _ = out.WriteString(line + "\n")
	}
	for _, row := range g.rows {
		_, _ = out.WriteString(g.line(row) + "\n")
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
			if len(row) == 1 {
				continue
			}
			used = used || row[i] != ""
			c.width = max(c.width, cells.StringWidth(row[i]))
		}
		if !used {
			c.width = 0
		}
	}
}

// leastLast is how much of the last column a narrow terminal gets, which then breaks the line.
const leastLast = 12

// line makes a line; cells that are too wide push the rest. On a terminal the last cell ends with the line.
func (g *grid) line(texts []string) string {
	if len(texts) == 1 {
		if g.width > 0 {
			return cells.Truncate(texts[0], max(g.width, leastLast), "…")
		}
		return texts[0]
	}
	var b strings.Builder
	last, at := len(g.columns)-1, 0 // at: where the last cell begins
	for g.columns[last].width == 0 {
		last--
	}
	for i, c := range g.columns[:last+1] {
		if c.width == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("  ")
			at += 2
		}
		text := texts[i]
		if i == last && g.width > 0 {
			text = cells.Truncate(text, max(g.width-at, leastLast), "…")
		}
		width := cells.StringWidth(text)
		space := strings.Repeat(" ", max(0, c.width-width))
		switch {
		case c.right:
			b.WriteString(space + text)
		case i == last:
			b.WriteString(text)
		default:
			b.WriteString(text + space)
		}
		at += max(c.width, width)
	}
	return strings.TrimRight(b.String(), " ")
}
