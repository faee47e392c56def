package sqlite

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/realtime-event-archive/rea"
)

// BusyError says that other writers held the file for the whole wait. Nothing was stored, and a later try may
// succeed. It answers errors.Is for rea.ErrRetry.
type BusyError struct {
	File string
	Wait time.Duration // how long was waited; 0: a transaction of the user's, which waits as its connection says
}

func (e *BusyError) Error() string {
	if e.Wait == 0 {
		return fmt.Sprintf("rea: %s is busy: another transaction writes, or wrote since this one began to read: run it again, and begin it as IMMEDIATE", e.File)
	}
	return fmt.Sprintf("rea: %s is busy: other writers held it for %s: look for a transaction that is left open, or raise Config.Busy", e.File, e.Wait)
}

// Is reports whether target is rea.ErrRetry.
func (e *BusyError) Is(target error) bool { return target == rea.ErrRetry }

// Waited is Wait: who has waited that long need not try again at once.
func (e *BusyError) Waited() time.Duration { return e.Wait }

// resultCode gives SQLite's result code of an error of any driver, without its extension; 0 where there is none.
func resultCode(err error) int {
	var e interface{ Code() int }
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// isBusy: waiting may help. Drivers without Code are known by SQLite's own words.
func isBusy(err error) bool {
	switch resultCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return true
	case 0:
		return err != nil && strings.Contains(err.Error(), "database is locked")
	}
	return false
}

// readOnlyError says that this program may not write the file. It answers errors.Is for rea.ErrReadOnly.
type readOnlyError struct {
	doing, file string
	err         error
}

func (e *readOnlyError) Error() string {
	return fmt.Sprintf("rea: %s: %s is read-only here: writing takes the right to write to the file and to its folder", e.doing, e.file)
}

func (e *readOnlyError) Is(target error) bool { return target == rea.ErrReadOnly }
func (e *readOnlyError) Unwrap() error        { return e.err }

// reason is err without the name of the file, which its caller has said.
func reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// mapError says what was being done and gives the class that callers branch on.
func (s *store) mapError(doing string, err error) error {
	it := s.path
	if strings.HasSuffix(doing, s.path) {
		it = "it"
	}
	var busy *BusyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &busy):
		busy.File = s.path
		return fmt.Errorf("rea: %s: %w", doing, busy)
	case isBusy(err):
		return fmt.Errorf("rea: %s: %w (%w)", doing, &BusyError{File: s.path}, err)
	}
	switch resultCode(err) {
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("rea: %s: %s is no SQLite database (or an encrypted one): %w", doing, it, err)
	case sqlite3.SQLITE_CANTOPEN:
		if _, stat := os.Stat(s.reader.path); errors.Is(stat, os.ErrNotExist) {
			return &rea.SchemaError{Known: len(steps)}
		}
		return fmt.Errorf("rea: %s: %s cannot be opened: reading takes the right to read the file and, while others write, to write to its folder; writing takes both: %w", doing, it, err)
	case sqlite3.SQLITE_READONLY:
		return &readOnlyError{doing, it, err}
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("rea: %s: no space left for %s, nothing was stored: %w", doing, s.path, err)
	}
	switch message := err.Error(); {
	case strings.Contains(message, "no such table: "+viewPrefix):
		return fmt.Errorf("rea: %s: the table of an inline projection is gone: `rea catalog apply` makes it again (in Go: archive.Apply): %w", doing, err)
	case strings.Contains(message, "no such table: rea_"):
		s.found.Store(0)
		return &rea.SchemaError{Known: len(steps)}
	case strings.Contains(message, "readonly database"):
		return &readOnlyError{doing, it, err}
	case strings.Contains(message, "RE007 immutable: UPDATE"):
		return fmt.Errorf("rea: %s: %w", doing, &rea.ImmutableError{Operation: "UPDATE"})
	case strings.Contains(message, "RE007 immutable: DELETE"):
		return fmt.Errorf("rea: %s: %w", doing, &rea.ImmutableError{Operation: "DELETE"})
	}
	return fmt.Errorf("rea: %s: %w", doing, err)
}

// insertError maps the error of an INSERT of ours. The triggers' refusals mean that somebody else appended
// between our look and our INSERT, which only a handle without a transaction allows.
func (s *store) insertError(aggregate rea.Ref, err error) error {
	if limit := refusedCheck(aggregate, err); limit != nil {
		return limit
	}
	if err != nil {
		for _, lost := range []string{"RE001 ", "RE002 ", "RE003 ", "RE006 ", "RE008 ", "UNIQUE constraint failed: rea_events."} {
			if strings.Contains(err.Error(), lost) {
				return fmt.Errorf("rea: append to %s: another append came between: %w (%w)", aggregate, rea.ErrRetry, err)
			}
		}
	}
	return s.mapError("append to "+aggregate.String(), err)
}

// refusedCheck gives the typed error of a value that a CHECK of the table refused, or nil.
func refusedCheck(aggregate rea.Ref, err error) error {
	if err == nil {
		return nil
	}
	_, name, ok := strings.Cut(err.Error(), "CHECK constraint failed: events_")
	if !ok {
		return nil
	}
	name, _, _ = strings.Cut(name, "_check")
	return &rea.LimitError{Aggregate: aggregate, What: name, Problem: "is refused by the table"}
}
