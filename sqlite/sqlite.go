// Package sqlite keeps an archive in a SQLite file, in tables that begin with rea_.
//
//	archive, err := sqlite.Open(ctx, "shop.db", sqlite.Config{})
//	err = archive.Migrate(ctx, nil)
//	err = archive.Do(ctx, func(tx *rea.Tx) error {
//		_, err := tx.Append(ctx, rea.Ref{Type: "order", ID: "10086"}, rea.NewEvent{Type: "OrderPlaced"})
//		return err
//	})
//
// SQLite lets one transaction write at a time, in all processes together: a writer waits for the others, at most
// Config.Busy, and readers wait for nobody. An event's position is its id. What the tables refuse, they refuse
// in any program that opens the file; nothing can stop DROP TABLE or PRAGMA writable_schema there.
//
// A program that writes rows without REA must give payload and metadata as JSON on one line, with characters beyond
// U+FFFF as themselves. What SQLite cannot see is stored as it came, and an import of its export rejects it: a key
// that an object has twice, a text that is no UTF-8. A number keeps its spelling (1e2), where PostgreSQL writes 100.
// A trigger of the user's that ends in RAISE(ROLLBACK) ends the whole transaction, the user's own as well.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/realtime-event-archive/rea"
)

// Config says how an archive is kept. The zero value works.
type Config struct {
	rea.Config

	// Busy is how long one try to write waits for other writers, of this process and of others, before it is
	// a *BusyError. The wait ends with ctx, too. A transaction handed to SQLTx waits as its own connection says.
	// 0: 10s.
	Busy time.Duration
}

// Archive is an archive in a SQLite file. It is safe for concurrent use.
type Archive struct {
	*rea.Archive
	store *store
}

// SQL is what REA needs of a database/sql transaction: *sql.Tx has it, and so have the types of sqlx and gorm.
type SQL interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// store implements rea.Store.
type store struct {
	path    string
	busy    time.Duration
	reader  *reader
	writer  *writer
	group   group
	machine atomic.Pointer[machine] // as it was found last; nil: never
	found   atomic.Int64            // schema version in the file where it is known; 0: look again
}

// Open opens the file at path. Neither the file nor the schema need be there yet: Migrate makes both. A file that
// is no SQLite database, or one that is not in UTF-8, is an error. One in a folder that is read-only for this
// program can be read while nobody else has it open.
func Open(ctx context.Context, path string, config Config) (*Archive, error) {
	if path == "" || path == ":memory:" {
		return nil, fmt.Errorf("rea: open %q: an archive needs a file: for a passing one, use a file in a temporary folder", path)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("rea: open %s: %w", path, err)
	}
	if config.Busy <= 0 {
		config.Busy = 10 * time.Second
	}
	s := &store{path: path, busy: config.Busy}
	if s.reader, err = newReader(absolute, config.Busy); err != nil {
		return nil, fmt.Errorf("rea: open %s: %w", path, err)
	}
	if s.writer, err = newWriter(absolute, "rw", config.Busy); err != nil {
		return nil, fmt.Errorf("rea: open %s: %w", path, err)
	}
	if err := s.look(ctx); err != nil {
		s.Close()
		return nil, err
	}
	archive, err := rea.New(s, config.Config)
	if err != nil {
		s.Close()
		return nil, err
	}
	return &Archive{Archive: archive, store: s}, nil
}

// look reads the head of the file, through SQLite: closing a descriptor of our own would end the locks of
// every connection of this process.
func (s *store) look(ctx context.Context) error {
	info, err := os.Stat(s.reader.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("rea: open %s: %w", s.path, reason(err))
	case info.IsDir():
		return fmt.Errorf("rea: open %s: it is a folder", s.path)
	}
	const tablesSQL = "SELECT count(*) FROM sqlite_master"
	var tables int
	err = one(ctx, s.reader, []any{&tables}, tablesSQL)
	if lacksFolder(err) {
		if frozen := s.reader.freeze(ctx); frozen == nil {
			err = one(ctx, s.reader, []any{&tables}, tablesSQL)
		} else if resultCode(frozen) == 0 {
			return fmt.Errorf("rea: open %s: %w", s.path, frozen)
		}
	}
	if err != nil {
		return s.mapError("open "+s.path, err)
	}
	var encoding string
	if err := one(ctx, s.reader, []any{&encoding}, "PRAGMA encoding"); err != nil {
		return s.mapError("open "+s.path, err)
	}
	if encoding != "UTF-8" {
		return fmt.Errorf("rea: open %s: the database is in %s: an archive needs UTF-8, which is chosen when a database is made", s.path, encoding)
	}
	return nil
}

// SQLTx makes the user's own transaction on the archive's file, by whichever driver, into a Tx of this archive. REA
// never ends it. Begin it as IMMEDIATE (modernc.org/sqlite: _txlock=immediate in the name): a transaction
// that has read before another one wrote cannot write any more, which is ErrRetry here. A wrapper that formats
// queries itself and drops the arguments (bun.Tx) is named in the first error: pass the *sql.Tx inside it.
func (a *Archive) SQLTx(tx SQL) *rea.Tx {
	return a.Join(&session{store: a.store, db: foreign{tx}, foreign: true})
}

func (s *store) Autocommit() rea.Session { return &autocommit{store: s} }

func (s *store) Begin(ctx context.Context) (rea.OwnSession, error) {
	if err := s.writer.begin(ctx); err != nil {
		return nil, s.mapError("begin", err)
	}
	return &ownSession{session: session{store: s, db: s.writer}}, nil
}

// ready compares the schema's version once; a file that has what this program needs is not asked again, but
// every append looks at the version in its own transaction.
func (s *store) ready(ctx context.Context, write bool) error {
	found := int(s.found.Load())
	if found == 0 {
		var err error
		if found, err = s.schemaVersion(ctx); err != nil {
			return err
		}
		if found == len(steps) {
			s.found.Store(int64(found))
		}
	}
	if found < len(steps) || (found > len(steps) && write) {
		return &rea.SchemaError{Found: found, Known: len(steps)}
	}
	return nil
}

// Pass does nothing: an event's position is its id.
func (s *store) Pass(context.Context, int) (numbered int64, busy bool, err error) {
	return 0, false, nil
}

func (s *store) Close() {
	s.reader.close()
	s.writer.close()
}
