package catalog_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/catalog"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// TestRefusals reads the catalogs of testdata/refused.txt, which are parted by lines of ~~~, and compares what is
// said of each: under "=>", the problems with their lines and carets.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const file = "testdata/refused.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i, part := range strings.Split(string(text), "\n~~~\n") {
		source, _, _ := strings.Cut(part, "\n=>")
		said := "nothing is wrong\n"
		_, err := catalog.Parse("rea.yaml", []byte(strings.ReplaceAll(source, `\t`, "\t")+"\n"))
		var wrong *catalog.Error
		if errors.As(err, &wrong) {
			said = wrong.Detail()
		}
		if i > 0 {
			out.WriteString("\n~~~\n")
		}
		out.WriteString(source + "\n=>\n" + strings.TrimRight(said, "\n"))
	}
	got := strings.TrimRight(out.String(), "\n") + "\n"
	if got == string(text) {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, have := strings.Split(string(text), "\n"), strings.Split(got, "\n")
	for i := range min(len(want), len(have)) {
		if want[i] != have[i] {
			t.Fatalf("%s:%d: %q, want %q", file, i+1, have[i], want[i])
		}
	}
	t.Fatalf("%s has %d lines, want %d", file, len(have), len(want))
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := catalog.Load(filepath.Join(dir, "gone.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there gives %v, want ErrNotExist", err)
	}
	for name, text := range map[string]string{
		"large": strings.Repeat("# \n", 1<<19), "line": "rea: 1 #" + strings.Repeat("x", 20_000), "deep": "rea: " + strings.Repeat("[", 5_000),
		"bytes": "rea: \"\xff\"", "nothing": "", "binary": "\x00\x01\x02",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := catalog.Load(path)
		var wrong *catalog.Error
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Detail(), path) || len(wrong.Detail()) > 1_000 {
			t.Errorf("%s gives %.200v, want an *Error that names the file", name, err)
		}
	}
}

func TestFilesOfWindowsAreRead(t *testing.T) {
	t.Parallel()
	windows := "\ufeff" + strings.ReplaceAll(orderYAML, "\n", "\r\n")
	if c := parse(t, windows); len(c.Types()) != 1 || len(c.Types()[0].Events) != 7 {
		t.Errorf("types = %v, want those of the file", c.Types())
	}
	_, err := catalog.Parse("rea.yaml", []byte("\ufeffrea: 1\r\nthings: {}\r\n"))
	const want = "rea: catalog: rea.yaml:2:1: a catalog has no key things: there are rea, aggregates, projections"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestWarningsNameTheirLines(t *testing.T) {
	t.Parallel()
	f, err := catalog.ParseFile("rea.yaml", []byte(orderYAML+"  # end\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Warnings) != 0 {
		t.Errorf("warnings = %v, want none", f.Warnings)
	}
	f, err = catalog.ParseFile("rea.yaml", []byte(`rea: 1
aggregates:
  t:
    status: s
    events:
      A: {from: [none], to: a}
      B: {from: [b], to: b}
`))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, w := range f.Warnings {
		said = append(said, w.String())
	}
	const want = "rea.yaml:4:5: t: nothing reaches the status b; rea.yaml:7:11: t.B: is never legal"
	if got := strings.Join(said, "; "); got != want {
		t.Errorf("warnings = %s, want %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(orderYAML))
	text, err := os.ReadFile("testdata/refused.txt")
	if err != nil {
		f.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), "\n~~~\n") {
		source, _, _ := strings.Cut(part, "\n=>")
		f.Add([]byte(source))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := catalog.Parse("rea.yaml", text)
		var wrong *catalog.Error
		switch {
		case err == nil && c == nil:
			t.Error("neither a catalog nor an error")
		case err != nil && !errors.As(err, &wrong):
			t.Errorf("the error is a %T: %v", err, err)
		case err != nil && (len(wrong.Problems) == 0 || wrong.Error() == "" || wrong.Detail() == ""):
			t.Error("the error says nothing")
		}
	})
}
