// Package migration reads the numbered SQL files that a store embeds, and compares them with what a database
// says was applied. It runs nothing itself.
//
//	steps, err := migration.Read(files, "migrations")
//	err = migration.Check(steps, applied)
package migration

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Step is one numbered file: 0007_contexts.sql.
type Step struct {
	Version  int
	Name     string // "contexts"
	SQL      string
	Checksum string // sha256 of SQL, hexadecimal
}

// Read gives the steps in folder dir of files, in order. Numbers must be 1, 2, 3... without gaps.
func Read(files fs.FS, dir string) ([]Step, error) {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, err
	}
	var steps []Step
	for _, entry := range entries { // ReadDir sorts by name
		number, name, ok := strings.Cut(strings.TrimSuffix(entry.Name(), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if !ok || err != nil || version != len(steps)+1 {
			return nil, fmt.Errorf("rea: migration %s: want number %d, then an underscore and a name", entry.Name(), len(steps)+1)
		}
		text, err := fs.ReadFile(files, path.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		steps = append(steps, Step{Version: version, Name: name, SQL: string(text), Checksum: hex.EncodeToString(sum[:])})
	}
	return steps, nil
}

// Check compares what a database says was applied (version to checksum) with the steps: a released file
// never changes, so another checksum means that the schema is not what this program takes it for.
// Versions beyond the last step are for the caller to judge.
func Check(steps []Step, applied map[int]string) error {
	for _, step := range steps {
		if sum, ok := applied[step.Version]; ok && sum != step.Checksum {
			return fmt.Errorf("rea: migration %04d_%s in the database has checksum %.12s, this program's has %.12s: the database was migrated by another build; use that one, or restore", step.Version, step.Name, sum, step.Checksum)
		}
	}
	return nil
}
