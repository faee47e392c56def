package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// machine says where the figures come from.
type machine struct {
	CPU        string            `json:"cpu"`
	Cores      int               `json:"cores"`
	OS         string            `json:"os"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Settings   map[string]string `json:"settings"`
	Data       string            `json:"data"`
	NoCPU      string            `json:"no_cpu,omitempty"` // why there are no CPU figures
}

// target is what the specification asks of a figure; the zero target asks nothing.
type target struct {
	bound   float64
	atLeast bool
}

func atMost(bound float64) target  { return target{bound: bound} }
func atLeast(bound float64) target { return target{bound: bound, atLeast: true} }

func (t target) String() string {
	switch {
	case t.bound == 0:
		return "-"
	case t.atLeast:
		return fmt.Sprintf(">= %.2f", t.bound)
	}
	return fmt.Sprintf("<= %.2f", t.bound)
}

// verdict is ok, missed, info (no target), or noise: missed by less than the limit differs from itself.
func (t target) verdict(figure float64, band [2]float64) string {
	switch {
	case t.bound == 0:
		return "info"
	case t.atLeast && figure >= t.bound, !t.atLeast && figure <= t.bound:
		return "ok"
	case t.atLeast && band[0] > 0 && figure >= t.bound*min(band[0], 1),
		!t.atLeast && band[1] > 0 && figure <= t.bound*max(band[1], 1):
		return "noise"
	}
	return "missed"
}

// row is one line of the table.
type row struct {
	Group   string      `json:"group"`
	Row     string      `json:"row"`
	Limit   string      `json:"limit"`  // what it is compared with, and what that took
	Path    string      `json:"path"`   // what REA took
	Figure  float64     `json:"figure"` // the ratio, or the value where the limit is none
	Target  string      `json:"target"`
	Band    *[2]float64 `json:"band,omitempty"` // of the limit against itself
	Verdict string      `json:"verdict"`
}

// report prints rows: JSON at once, the table at the end.
type report struct {
	json  bool
	start time.Time
	group string
	rows  []row
}

func (r *report) machine(m machine) {
	if r.json {
		r.line(m)
		return
	}
	var set []string
	for _, name := range slices.Sorted(maps.Keys(m.Settings)) {
		set = append(set, name+"="+m.Settings[name])
	}
	fmt.Printf("%d x %s, %s, %s, PostgreSQL %s, data %s\n%s\n", m.Cores, m.CPU, m.OS, m.Go, m.PostgreSQL, m.Data, strings.Join(set, " "))
	if m.NoCPU != "" {
		fmt.Printf("No CPU figures, throughput alone: %s\n", m.NoCPU)
	}
}

func (r *report) line(v any) {
	lines := json.NewEncoder(os.Stdout)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(v); err != nil {
		fmt.Fprintln(os.Stderr, err) // a NaN: a row without events
	}
}

// progress tells a person at a terminal which group runs.
func (r *report) progress() {
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, "\r%4.0f s  %-12s", time.Since(r.start).Seconds(), r.group)
	}
}

// add records a figure. band of zeros: none.
func (r *report) add(name, limit, path string, figure float64, t target, band [2]float64) {
	row := row{Group: r.group, Row: name, Limit: limit, Path: path, Figure: figure, Target: t.String(), Verdict: t.verdict(figure, band)}
	if band != [2]float64{} {
		row.Band = &band
	}
	r.rows = append(r.rows, row)
	if r.json {
		r.line(row)
	}
}

// addDuel records the throughput of a path over its limit's, and where the backends' CPU is known, that per event.
func (r *report) addDuel(name, limit string, d duel, throughput, cpu target) {
	ratio, band := d.ratio(sample.rate)
	r.add(name+": throughput", fmt.Sprintf("%s %s", limit, perSecond(mediansOf(d.first, sample.rate))),
		perSecond(mediansOf(d.path, sample.rate)), ratio, throughput, band)
	if d.path[0].cpu == 0 {
		return
	}
	ratio, band = d.ratio(sample.cpuPerEvent)
	r.add(name+": CPU per event", fmt.Sprintf("%s %s", limit, micros(mediansOf(d.first, sample.cpuPerEvent))),
		micros(mediansOf(d.path, sample.cpuPerEvent)), ratio, cpu, band)
}

func (r *report) end() {
	if r.json {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nrow\tlimit\tREA\tratio\ttarget\tA/A band\tverdict\n")
	for _, row := range r.rows {
		band := "-"
		if row.Band != nil {
			band = fmt.Sprintf("%.2f-%.2f", row.Band[0], row.Band[1])
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%s\t%s\t%s\n", row.Row, row.Limit, row.Path, row.Figure, row.Target, band, row.Verdict)
	}
	w.Flush()
	fmt.Printf("\n%.0f s\n", time.Since(r.start).Seconds())
}

// many says how many clients or callers there are.
func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func perSecond(rate float64) string { return fmt.Sprintf("%.0f/s", rate) }
func micros(us float64) string      { return fmt.Sprintf("%.1f us", us) }
func millis(ms float64) string      { return fmt.Sprintf("%.1f ms", ms) }
