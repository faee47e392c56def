package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	sqlite3 "modernc.org/sqlite/lib"
)

// freeze opens the file again where SQLite may not make its -shm beside it, in a folder that is read-only for this
// program: then nobody's locks are seen, which is safe only while nobody has the file open. A -wal tells that
// somebody has, or has died with it: what it holds is newer than the file, and cannot be read here.
func (r *reader) freeze(ctx context.Context) error {
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Stat(r.path + suffix); err == nil {
			return fmt.Errorf("%s is there, so another program has the file open or has died with it, and its folder is read-only here: copy both to a folder of your own and read them there", r.path+suffix)
		}
	}
	info, err := os.Stat(r.path)
	if err != nil {
		return err
	}
	db, err := openFile(r.path, "ro", "immutable=1&_query_only=1")
	if err != nil {
		return err
	}
	if err := db.PingContext(ctx); err != nil {
		return errors.Join(err, db.Close())
	}
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(readers)
	_ = r.db.Close()
	r.db, r.frozen, r.stmt = db, info, map[string]*sql.Stmt{}
	return nil
}

// still is an error where somebody has opened or written the file since freeze. It is asked before and after each
// query, so that no page of a file in motion is given for a true one.
func (r *reader) still() error {
	if r.frozen == nil {
		return nil
	}
	info, err := os.Stat(r.path)
	if err != nil {
		return err
	}
	_, wal := os.Stat(r.path + "-wal")
	if wal == nil || info.Size() != r.frozen.Size() || !info.ModTime().Equal(r.frozen.ModTime()) || !os.SameFile(info, r.frozen) {
		return errors.New("another program has begun to write the file, whose folder is read-only here: read it again when that has ended")
	}
	return nil
}

// lacksFolder reports whether err may come from a folder in which SQLite can make no file.
func lacksFolder(err error) bool {
	code := resultCode(err)
	return code == sqlite3.SQLITE_READONLY || code == sqlite3.SQLITE_CANTOPEN
}
