package rea_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cases are the ids of all hard situations, in the order of their list.
var cases = strings.Fields(`
ORD-1 ORD-2 ORD-3 ORD-4 ORD-5 CON-1 CON-2 CON-3 CON-4 IDEM-1 IDEM-2 IDEM-3
JSON-1 JSON-2 JSON-3 JSON-4 JSON-5 TIME-1 TIME-2 TIME-3 TIME-4 VER-1 VER-2 VER-3
VER-4 BAD-1 BAD-2 REB-1 REB-2 REB-3 REB-4 DUP-1 DUP-2 DUP-3 SNAP-1 SNAP-2
SNAP-3 WEB-1 WEB-2 WEB-3 NAME-1 NAME-2 NAME-3 FSM-1 FSM-2 BASE-1 BASE-2 BASE-3
CAP-1 CAP-2 CAP-3 DB-1 DB-2 DB-3 DB-4 DB-5 DB-6 MIG-1 MIG-2 MIG-3
LITE-1 ERA-1 REST-1 REST-2 TAMP-1 UNDO-1 TX-1`)

// caseList is where the cases are written; a clone may lack it.
const caseList = "../shared/CASES.md"

var (
	caseID    = regexp.MustCompile(`^\*\*([A-Z]+-[0-9]+)\*\* \S`)
	caseRef   = regexp.MustCompile("^`([^`]+)`$")
	caseLater = regexp.MustCompile(`^(issue [0-9]+|later issue)$`)
)

// caseRow is one row of docs/cases.md.
type caseRow struct{ id, surface, tests string }

func TestCasesAreListedOnce(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, row := range caseRows(t) {
		if row.id != "" {
			listed = append(listed, row.id)
		}
	}
	if !slices.Equal(listed, cases) {
		t.Errorf("cases in docs/cases.md = %v, want %v", listed, cases)
	}
	text, err := os.ReadFile(caseList)
	if errors.Is(err, fs.ErrNotExist) {
		return // a clone by itself: the list above stands for it
	} else if err != nil {
		t.Fatal(err)
	}
	var written []string
	for _, m := range regexp.MustCompile(`(?m)^### ([A-Z]+-[0-9]+) `).FindAllStringSubmatch(string(text), -1) {
		written = append(written, m[1])
	}
	if !slices.Equal(cases, written) {
		t.Errorf("cases in this test = %v, want those of %s: %v", cases, caseList, written)
	}
}

func TestCasesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	there := testNames(t)
	seen := map[[2]string]bool{}
	id := ""
	for _, row := range caseRows(t) {
		if row.id != "" {
			id = row.id
		}
		if place := [2]string{id, row.surface}; row.surface == "" || seen[place] {
			t.Errorf("surface of %s = %q, want a new one", id, row.surface)
		} else {
			seen[place] = true
		}
		for test := range strings.SplitSeq(row.tests, "<br>") {
			name := caseRef.FindStringSubmatch(test)
			switch {
			case caseLater.MatchString(test):
			case name == nil:
				t.Errorf("%s, %s: test = %q, want a name in backquotes, or the issue", id, row.surface, test)
			case strings.Contains(name[1], "/testdata/"):
				if _, err := os.Stat(name[1]); err != nil {
					t.Errorf("%s, %s: %v", id, row.surface, err)
				}
			case !there[name[1]]:
				t.Errorf("%s, %s: there is no test %q", id, row.surface, name[1])
			}
		}
	}
}

func caseRows(t *testing.T) (rows []caseRow) {
	t.Helper()
	text, err := os.ReadFile("docs/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 2 || strings.HasPrefix(line, "| case |") || strings.HasPrefix(line, "| --- |") {
			continue
		}
		if len(cells) != 5 {
			t.Fatalf("row %q has %d cells, want 3", line, len(cells)-2)
		}
		row := caseRow{surface: strings.TrimSpace(cells[2]), tests: strings.TrimSpace(cells[3])}
		if first := strings.TrimSpace(cells[1]); first != "" {
			m := caseID.FindStringSubmatch(first)
			if m == nil {
				t.Fatalf("case %q, want **ID-1** and a title", first)
			}
			row.id = m[1]
		}
		rows = append(rows, row)
	}
	return rows
}

// testNames gives the names of all test functions, and the titles of storetest's clauses.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	clause := regexp.MustCompile(`(?m)^\t\{"(P[0-9]+ [^"]+)", func\(t \*testing\.T, d \*Door\)`)
	there := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		var pattern *regexp.Regexp
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			pattern = function
		case filepath.Dir(name) == "storetest" && strings.HasSuffix(name, ".go"):
			pattern = clause
		default:
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
			there[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}
