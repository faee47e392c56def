package rea_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layers gives every package a layer: an import must point to a lower one, so there are no
// cycles of ideas either. Packages of one layer do not know each other.
var layers = map[string]int{
	".": 0,

	"internal/migration": 0,
	"internal/pgtest":    1,
	"catalog":            1, // rea.yaml is read without a database

	"internal/pgtest/with": 2,
	"postgres":             2,
	"sqlite":               2,

	"adopt":             3, // reads tables of the application's beside the archive
	"internal/shop":     3,
	"internal/transfer": 3,
	"storetest":         3,

	"guard": 4, // its triggers make of rows what adopt says

	"doctor": 5, // asks the guards too

	"internal/cli": 6,

	"bench":      7,
	"cmd/rea":    7,
	"examples/*": 7,
}

// maxLines is the length at which a file is split.
const maxLines = 450

// pkg is what go list tells of a package, with paths relative to the module.
type pkg struct {
	ImportPath string
	Imports    []string
}

func TestArchitectureImportsPointDown(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, p := range packages(t) {
		layer, entry := layerOf(p.ImportPath)
		if entry == "" {
			t.Errorf("%s has no layer: give it one in arch_test.go", p.ImportPath)
			continue
		}
		used[entry] = true
		for _, name := range p.Imports {
			if lower, known := layerOf(name); known != "" && lower >= layer {
				t.Errorf("%s (layer %d) imports %s (layer %d): imports must point down", p.ImportPath, layer, name, lower)
			}
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(layers)) {
		if !used[entry] {
			t.Errorf("%s has a layer in arch_test.go, and no package", entry)
		}
	}
}

func TestArchitectureStoresStandAlone(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for _, name := range p.Imports {
			first, _, _ := strings.Cut(name, "/")
			_, ours := layerOf(name)
			switch {
			case p.ImportPath == "." && (strings.Contains(first, ".") || ours != ""):
				t.Errorf("the root package imports %s, want the standard library alone", name)
			case within(p.ImportPath, "postgres") && within(name, "sqlite"),
				within(p.ImportPath, "sqlite") && within(name, "postgres"):
				t.Errorf("%s imports %s: stores do not know each other", p.ImportPath, name)
			}
		}
	}
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func TestArchitectureFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, file := range tracked(t) {
		if path.Ext(file) != ".go" {
			continue
		}
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // Deleted, and git has not been told yet.
		}
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text, []byte("\n")); lines > maxLines && !generated.Match(text) {
			t.Errorf("%s has %d lines, want at most %d", file, lines, maxLines)
		}
	}
}

func TestArchitectureDocumentNamesEveryFolder(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range tracked(t) {
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			seen[dir] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(seen)) {
		// Of data for tests and of hidden folders the folder above speaks.
		if strings.HasPrefix(dir, ".") || strings.Contains("/"+dir+"/", "/testdata/") {
			continue
		}
		named := regexp.MustCompile(`(^|[^\w/.-])` + regexp.QuoteMeta(dir) + `($|[^\w-])`)
		if !named.Match(text) {
			t.Errorf("ARCHITECTURE.md does not name the folder %s", dir)
		}
	}
}

// layerOf returns the layer of a package and the entry of the table that gives it, or no entry.
func layerOf(name string) (layer int, entry string) {
	if layer, ok := layers[name]; ok {
		return layer, name
	}
	for pattern, layer := range layers {
		if ok, _ := path.Match(pattern, name); ok {
			return layer, pattern
		}
	}
	return 0, ""
}

func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

func packages(t *testing.T) []pkg {
	t.Helper()
	module := strings.TrimSpace(output(t, "go", "list", "-m"))
	local := func(name string) string {
		if name == module {
			return "."
		}
		return strings.TrimPrefix(name, module+"/")
	}
	var all []pkg
	d := json.NewDecoder(strings.NewReader(output(t, "go", "list", "-json=ImportPath,Imports", "./...")))
	for {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = local(p.ImportPath)
		for i := range p.Imports {
			p.Imports[i] = local(p.Imports[i])
		}
		all = append(all, p)
	}
}

// tracked lists the files that git has or would add. Where git does not tell (it is not installed, this is
// an unpacked archive), that is every file but the hidden ones.
func tracked(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat(".git"); err == nil {
		out, err := exec.Command("git", "-c", "safe.directory=*", "-c", "core.quotePath=false",
			"ls-files", "--cached", "--others", "--exclude-standard").Output()
		if err == nil {
			return strings.Split(strings.TrimSpace(string(out)), "\n")
		}
	}
	var files []string
	walk(t, ".", &files)
	return files
}

func walk(t *testing.T, dir string, files *[]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."), name == "bin":
		case e.IsDir():
			walk(t, name, files)
		default:
			*files = append(*files, name)
		}
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
