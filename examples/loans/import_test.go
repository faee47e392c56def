package loans

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/cli"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
	"github.com/realtime-event-archive/rea/sqlite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// shell runs commands on a database, with rea.yaml as the catalog.
type shell struct {
	t   *testing.T
	dir string
	env map[string]string
}

func (sh shell) run(args ...string) (stdout, stderr string, code int) {
	var out, talk bytes.Buffer
	code = cli.Run(sh.t.Context(), args, cli.Env{Stdout: &out, Stderr: &talk, Dir: sh.dir, Getenv: func(name string) string { return sh.env[name] }})
	return out.String(), talk.String(), code
}

func (sh shell) must(args ...string) string {
	sh.t.Helper()
	stdout, stderr, code := sh.run(args...)
	if code != 0 {
		sh.t.Fatalf("rea %v ends with %d: %s", args, code, stderr)
	}
	return stdout
}

// The catalog is applied first, so that the database itself holds each line to the machine.
func TestTheWholeFileGoesThroughTheMachine(t *testing.T) {
	t.Parallel()
	lines := read(t)
	file, err := filepath.Abs(data(t))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("rea.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := lag(t, lines)
	for _, store := range []struct {
		name, url string
		open      func(t *testing.T, url string) (*rea.Archive, error)
	}{
		{"sqlite", filepath.Join(t.TempDir(), "loans.db"), func(t *testing.T, url string) (*rea.Archive, error) {
			archive, err := sqlite.Open(t.Context(), url, sqlite.Config{})
			return archive.Archive, err
		}},
		{"postgres", pgtest.Empty(t), func(t *testing.T, url string) (*rea.Archive, error) {
			archive, err := postgres.Open(t.Context(), url, postgres.Config{})
			return archive.Archive, err
		}},
	} {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			url := store.url
			if store.name == "sqlite" {
				url = "sqlite:" + url
			}
			sh := shell{t, t.TempDir(), map[string]string{"REA_DATABASE_URL": url, "REA_CATALOG": rules}}
			sh.must("migrate", "up")
			sh.must("catalog", "apply", "--yes")
			stdout, stderr, code := sh.run("import", file, "--rejects", "rejects.ndjson", "--json")
			rejected := sh.rejects(lines)
			if wantCode := 3 * min(rejected, 1); code != wantCode {
				t.Fatalf("the import ends with %d, want %d: %s", code, wantCode, stderr)
			}
			if told := fmt.Sprintf(`"lines":262200,"new":%d,"already_stored":0,"rejected":%d,`, 262_200-rejected, rejected); !strings.Contains(stdout, told) {
				t.Errorf("the import says %s, want %s", stdout, told)
			}
			if rejected*1_000 > 60_849 {
				t.Errorf("%d lines are rejected, want at most 0.1 %% of 60849", rejected)
			}
			sh.must("catalog", "check")
			sh.diagram(want)
			sh.projections()

			archive, err := store.open(t, store.url)
			if err != nil {
				t.Fatal(err)
			}
			defer archive.Close()
			refold(t, archive, int64(262_200-rejected))
		})
	}
}

// rejects counts the lines that were refused, each with its place, event, status and legal events.
func (sh shell) rejects(lines []line) (n int) {
	file, err := os.Open(filepath.Join(sh.dir, "rejects.ndjson"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		sh.t.Fatal(err)
	}
	defer file.Close()
	for in := bufio.NewScanner(file); in.Scan(); n++ {
		var r struct {
			Line   int
			Code   string
			ID     string `json:"aggregate_id"`
			Event  string `json:"event_type"`
			Status *string
			Legal  []string
		}
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			sh.t.Fatal(err)
		}
		sh.t.Logf("outside the machine: %s", in.Bytes())
		if l := lines[r.Line-1]; r.Code != "illegal_step" || r.ID != l.ID || r.Event != l.Event || r.Status == nil || len(r.Legal) == 0 {
			sh.t.Errorf("the reject of line %d is %+v, want the step of %s of %s", r.Line, r, l.Event, l.ID)
		}
	}
	return n
}

// diagram compares what is drawn with what was published, and with SQL's word on the data.
func (sh shell) diagram(want map[string]int) {
	sh.t.Helper()
	diagram := sh.must("catalog", "diagram", "loan")
	for _, count := range []string{"13,087 A_SUBMITTED", "2,246 A_APPROVED", "2,246 A_REGISTERED", "2,246 A_ACTIVATED", "7,635 A_DECLINED", "2,807 A_CANCELLED"} {
		if !strings.Contains(diagram, count) {
			sh.t.Errorf("the diagram has no %s", count)
		}
	}
	if strings.Contains(diagram, "not declared") {
		sh.t.Error("the diagram has steps that are not declared")
	}
	var steps []struct {
		Event    string  `json:"event_type"`
		From, To *string `json:",omitempty"`
		Events   int
	}
	if err := json.Unmarshal([]byte(sh.must("catalog", "diagram", "loan", "--json")), &steps); err != nil {
		sh.t.Fatal(err)
	}
	leads, got := map[string]string{}, map[string]int{}
	for _, s := range steps {
		if s.To != nil && strings.HasPrefix(s.Event, "A_") {
			leads[*s.To] = s.Event
		}
	}
	for _, s := range steps {
		if !strings.HasPrefix(s.Event, "A_") {
			continue
		}
		from := "none"
		if s.From != nil {
			from = leads[*s.From]
		}
		got[from+" "+s.Event] = s.Events
	}
	if !maps.Equal(got, want) {
		sh.t.Errorf("pairs = %v, want those of lag(): %v", got, want)
	}
}

// refold reads every event and compares the status that the database stored with that of the fold.
func refold(t *testing.T, archive *rea.Archive, events int64) {
	t.Helper()
	c := load(t)
	states := map[rea.Ref]rea.Object{}
	wrong, n := 0, int64(0)
	for e, err := range archive.Autocommit().History(t.Context(), rea.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if states[e.Aggregate], err = c.Fold(states[e.Aggregate], e); err != nil {
			t.Fatalf("%s seq %d: %v", e.Aggregate, e.Seq, err)
		}
		if folded := c.Status("loan", states[e.Aggregate]); folded != e.Status || e.CatalogVersion != 1 {
			if wrong++; wrong < 10 {
				t.Errorf("%s seq %d: the stored status is %s by catalog %d, the folded one %s", e.Aggregate, e.Seq, e.Status, e.CatalogVersion, folded)
			}
		}
	}
	if n != events || len(states) != 13_087 || wrong > 0 {
		t.Errorf("%d events of %d loans, %d with a wrong status; want %d of 13087, 0", n, len(states), wrong, events)
	}
}
