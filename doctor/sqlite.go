package doctor

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/realtime-event-archive/rea"
)

// SQLite looks at the archive in the file at path.
func SQLite(ctx context.Context, path string, archive *rea.Archive) ([]Finding, error) {
	events, err := archive.Autocommit().Count(ctx)
	if err != nil {
		return nil, err
	}
	schema, err := steps(ctx, archive)
	if err != nil {
		return nil, err
	}
	level := L1
	list := []Finding{
		schema,
		fine("events", "%d", events),
		{Check: "protection", OK: true, Level: &level, Text: "triggers refuse every change, and whoever may write the file can take them away. L2 takes PostgreSQL"},
	}
	for _, look := range []func(string) (Finding, error){file, folder, journal} {
		found, err := look(path)
		if err != nil {
			return nil, fmt.Errorf("rea: look at the file: %w", err)
		}
		list = append(list, found)
	}
	found, err := projections(ctx, archive)
	return append(list, found...), err
}

// steps tells the version of the schema; the archive refuses one that is not this program's.
func steps(ctx context.Context, archive *rea.Archive) (Finding, error) {
	list, err := archive.Migrations(ctx)
	version := 0
	for _, m := range list {
		version = max(version, m.Version)
	}
	return fine("schema", "version %d", version), err
}

const othersWrite fs.FileMode = 0o022

func file(path string) (Finding, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Finding{}, err
	}
	if mode := info.Mode().Perm(); mode&othersWrite != 0 {
		return wrong("file", "chmod go-w the file", "its mode is %#o: others than its owner may write it", mode), nil
	}
	return fine("file", "its mode is %#o: its owner alone may write it", info.Mode().Perm()), nil
}

// folder tells who may put another file in the archive's place. In a sticky folder the file's owner alone may.
func folder(path string) (Finding, error) {
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return Finding{}, err
	}
	if mode := info.Mode(); mode&othersWrite != 0 && mode&fs.ModeSticky == 0 {
		return wrong("folder", "chmod go-w the folder", "its mode is %#o: others than its owner may put another file in the archive's place", mode.Perm()), nil
	}
	return fine("folder", "its mode is %#o: nobody else may put another file in the archive's place", info.Mode().Perm()), nil
}

// journal tells the journal mode that the file keeps: bytes 18 and 19 of its header are 2 for WAL. No session has to be opened for it.
func journal(path string) (Finding, error) {
	f, err := os.Open(path)
	if err != nil {
		return Finding{}, err
	}
	defer func() { _ = f.Close() }()
	header := make([]byte, 20)
	if _, err := io.ReadFull(f, header); err != nil {
		return Finding{}, err
	}
	if header[18] != 2 || header[19] != 2 {
		return wrong("journal", "sqlite3 FILE 'PRAGMA journal_mode = WAL', while nobody has the file open", "the file is not in journal mode WAL: readers and writers wait for each other"), nil
	}
	return fine("journal", "mode WAL"), nil
}
