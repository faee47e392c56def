package loans

import (
	"bufio"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/catalog"
)

type line struct {
	ID      string          `json:"aggregate_id"`
	Event   string          `json:"event_type"`
	Payload json.RawMessage `json:"payload"`

	text []byte
}

// data is no part of the project: where it is not there, the test says so and is skipped.
func data(t *testing.T) (path string) {
	t.Helper()
	path = filepath.FromSlash("../../../shared/data/loan_applications.ndjson.gz")
	if _, err := os.Stat(path); err != nil {
		fmt.Fprintf(os.Stderr, "%s: SKIPPED: %s is not there, nothing was compared\n", t.Name(), path)
		t.SkipNow()
	}
	return path
}

// read gives the events of the data, in its order.
func read(t *testing.T) []line {
	t.Helper()
	file, err := os.Open(data(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []line
	scanner := bufio.NewScanner(unzipped)
	for scanner.Scan() {
		l := line{text: slices.Clone(scanner.Bytes())}
		if err := json.Unmarshal(l.text, &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func load(t *testing.T) *rea.Catalog {
	t.Helper()
	f, err := catalog.LoadFile("rea.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Warnings) > 0 {
		t.Errorf("warnings = %v, want none", f.Warnings)
	}
	return f.Catalog
}

func TestOnlyOffersAndWorkAreLegalInAnyStatus(t *testing.T) {
	t.Parallel()
	loan, _ := load(t).Type("loan")
	for _, e := range loan.Events {
		own := strings.HasPrefix(e.Name, "A_")
		if anywhere := slices.Contains(e.From, rea.FromAny); anywhere == own || (e.To != "") != own || len(e.From) == 0 {
			t.Errorf("%s: from %v to %q, want statuses for A_ and any for others", e.Name, e.From, e.To)
		}
	}
}

// lag is SQL's word on the data: the pairs of A_ events that follow one another.
func lag(t *testing.T, lines []line) map[string]int {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "lag.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`CREATE TABLE log (n INTEGER PRIMARY KEY, loan TEXT, event TEXT)`); err != nil {
		t.Fatal(err)
	}
	insert, err := tx.Prepare(`INSERT INTO log (loan, event) VALUES (?, ?)`)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if strings.HasPrefix(l.Event, "A_") {
			if _, err := insert.Exec(l.ID, l.Event); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(`
SELECT coalesce(before, 'none') || ' ' || event, count(*)
FROM (SELECT event, lag(event) OVER (PARTITION BY loan ORDER BY n) AS before FROM log)
GROUP BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	pairs := map[string]int{}
	for rows.Next() {
		var pair string
		var n int
		if err := rows.Scan(&pair, &n); err != nil {
			t.Fatal(err)
		}
		pairs[pair] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return pairs
}

func TestTheMachineSaysWhatTheLoansDid(t *testing.T) {
	t.Parallel()
	lines, c := read(t), load(t)
	loan, _ := c.Type("loan")
	leads := map[string]string{rea.FromNone: rea.FromNone} // status -> the event that leads there
	declared := map[string]bool{}
	for _, e := range loan.Events {
		if e.To != "" {
			leads[e.To] = e.Name
		}
	}
	for _, e := range loan.Events {
		for _, from := range e.From {
			if from != rea.FromAny {
				declared[leads[from]+" "+e.Name] = true
			}
		}
	}
	status, states, taken := map[string]string{}, map[string]rea.Object{}, map[string]int{}
	own, outside := 0, 0
	for i, l := range lines {
		before, exists := status[l.ID]
		after, err := c.Step("loan", l.Event, before, exists)
		if strings.HasPrefix(l.Event, "A_") {
			own++
			if err != nil {
				outside++
				t.Logf("outside the machine: %v", err)
			}
			from := rea.FromNone
			if exists {
				from = before
			}
			taken[leads[from]+" "+l.Event]++
		} else if err != nil {
			t.Errorf("line %d: %v, want offers and work legal", i+1, err)
		}
		status[l.ID] = after
		e := rea.Event{Aggregate: rea.Ref{Type: "loan", ID: l.ID}, Seq: int64(i + 1), Type: l.Event, Version: 1, Payload: l.Payload}
		if states[l.ID], err = c.Fold(states[l.ID], e); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if got := c.Status("loan", states[l.ID]); got != after {
			t.Fatalf("line %d: the fold has the status %s, the machine %s", i+1, got, after)
		}
	}
	if own != 60_849 || outside*1_000 > own {
		t.Errorf("%d of %d A_ events are outside the machine, want at most 0.1 %% of 60849", outside, own)
	}
	if outside != 0 {
		t.Errorf("%d A_ events are outside the machine; rea.yaml says none", outside)
	}
	want := lag(t, lines)
	if !maps.Equal(taken, want) {
		t.Errorf("pairs = %v, want those of lag(): %v", taken, want)
	}
	for pair := range declared {
		if want[pair] == 0 {
			t.Errorf("the step %s is declared and never taken", pair)
		}
	}
	for _, field := range []string{"offers_created", "offers_cancelled", "complete_application_finished"} {
		if total := sum(t, states, field); total != map[string]int{"offers_created": 7_030, "offers_cancelled": 3_655, "complete_application_finished": 23_967}[field] {
			t.Errorf("the counters %s add up to %d", field, total)
		}
	}
}

func sum(t *testing.T, states map[string]rea.Object, field string) (total int) {
	t.Helper()
	for _, state := range states {
		if n := 0; state[field] != nil {
			if err := json.Unmarshal(state[field], &n); err != nil {
				t.Fatal(err)
			}
			total += n
		}
	}
	return total
}
