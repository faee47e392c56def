// Package catalog reads rea.yaml: a catalog as data, for programs in every language and for the binary.
//
//	c, err := catalog.Load("rea.yaml")
//	if err != nil {
//		return err // names file, line and column, and shows the line
//	}
//	order, err := rea.Replay(ctx, tx, ref, c.Fold)
//
// Every key and every operation stands in docs/catalog.md. A catalog from a file and declarations in Go mix:
// rea.NewCatalog(append(c.Types(), more...)...).
package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/realtime-event-archive/rea"
)

// MaxBytes is the size of the largest file that is read.
const MaxBytes = 1 << 20

// File is a catalog that was read, with what there is to say about the text.
type File struct {
	Catalog  *rea.Catalog
	Warnings []Problem // legal, and probably not meant, by line
}

// Load reads a file. What is wrong with its text is an *Error.
func Load(path string) (*rea.Catalog, error) {
	f, err := LoadFile(path)
	if err != nil {
		return nil, err
	}
	return f.Catalog, nil
}

// Parse is Load for a text; name stands for the file in errors.
func Parse(name string, text []byte) (*rea.Catalog, error) {
	f, err := ParseFile(name, text)
	if err != nil {
		return nil, err
	}
	return f.Catalog, nil
}

// LoadFile is Load with warnings.
func LoadFile(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("rea: read the catalog: %w", err)
	}
	if info.Size() > MaxBytes {
		return nil, &Error{Problems: []Problem{{File: path, Message: tooLarge}}}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("rea: read the catalog: %w", err)
	}
	return ParseFile(path, text)
}

// ParseFile is Parse with warnings.
func ParseFile(name string, text []byte) (*File, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors on Windows begin a file with it
	r := &reader{file: name, text: text, places: make(map[place]mark), projections: make(map[[2]string]mark)}
	root := r.parse()
	if len(r.problems) > 0 {
		return nil, r.failure()
	}
	types, projections := r.document(root)
	if len(r.problems) > 0 {
		return nil, r.failure()
	}
	c, err := rea.NewCatalog(types...)
	if err == nil {
		c, err = c.WithProjections(projections...)
	}
	var wrong *rea.CatalogError
	if errors.As(err, &wrong) {
		for _, p := range wrong.Problems {
			r.problems = append(r.problems, r.locate(p))
		}
		return nil, r.failure()
	}
	if err != nil {
		return nil, err
	}
	for _, w := range c.Warnings() {
		r.warnings = append(r.warnings, r.locate(w))
	}
	sortProblems(r.warnings)
	return &File{Catalog: c, Warnings: r.warnings}, nil
}
