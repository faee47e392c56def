package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/realtime-event-archive/rea"
)

// session is one transaction's view. The methods that read and write events are in append.go, read.go and import.go.
type session struct {
	store   *store
	db      SQL
	foreign bool  // the transaction is the user's
	first   int64 // id of the first event of this transaction, in one of ours; 0: not known yet
	lost    bool  // a trigger of the user's has ended the transaction, one of ours
}

// Ready asks through a connection of its own.
func (s *session) Ready(ctx context.Context, write bool) error { return s.store.ready(ctx, write) }

// headWait bounds the look at what is committed, which waits only where the file is not in WAL mode.
const headWait = 100 * time.Millisecond

// transaction gives the xid of what is written now: the id of the first event of the transaction. last is the
// highest id that the transaction sees. In the user's transaction we do not know what was written before; but
// since one transaction writes at a time, its events are those above what other connections see.
func (s *session) transaction(ctx context.Context, last int64) string {
	first := last + 1
	switch {
	case s.first != 0:
		first = s.first
	case !s.foreign:
		s.first = first
	default:
		ctx, cancel := context.WithTimeout(ctx, headWait)
		defer cancel()
		var committed int64
		if err := one(ctx, s.store.reader, []any{&committed}, headSQL); err == nil {
			first = min(first, committed+1)
		}
	}
	return strconv.FormatInt(first, 10)
}

// rolledBack looks, after an error, whether a transaction of ours is gone.
func (s *session) rolledBack(ctx context.Context) bool {
	s.lost = s.lost || !s.foreign && !s.store.writer.inTransaction(ctx)
	return s.lost
}

// ownSession is a transaction of REA's. It is safe for concurrent use, as *sql.Tx is.
type ownSession struct {
	mu sync.Mutex
	session
	failed error // SQLite may have rolled back by itself: nothing more may run, and nothing is committed
	ended  bool
}

// do runs one call of the transaction.
func (s *ownSession) do(fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return sql.ErrTxDone
	}
	if s.failed != nil {
		return s.failed
	}
	err := fn()
	switch resultCode(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_CORRUPT:
		s.failed = err
	}
	if err != nil && s.failed == nil && s.rolledBack(context.Background()) {
		s.failed = fmt.Errorf("%w (which has rolled the whole transaction back)", err)
	}
	return err
}

func (s *ownSession) Append(ctx context.Context, call rea.Call) (receipt rea.Receipt, err error) {
	err = s.do(func() error { receipt, err = s.session.Append(ctx, call); return err })
	return receipt, err
}

func (s *ownSession) Events(ctx context.Context, asked rea.Stretch, page []rea.Event) (events []rea.Event, more bool, err error) {
	err = s.do(func() error { events, more, err = s.session.Events(ctx, asked, page); return err })
	return events, more, err
}

func (s *ownSession) Resume(ctx context.Context, asked rea.Stretch, fingerprint string, upTo int64, page []rea.Event) (events []rea.Event, more bool, found *rea.Snapshot, err error) {
	err = s.do(func() error {
		events, more, found, err = s.session.Resume(ctx, asked, fingerprint, upTo, page)
		return err
	})
	return events, more, found, err
}

func (s *ownSession) Page(ctx context.Context, filter rea.Filter, after int64, limit int) (events []rea.Event, last int64, err error) {
	err = s.do(func() error { events, last, err = s.session.Page(ctx, filter, after, limit); return err })
	return events, last, err
}

func (s *ownSession) Head(ctx context.Context) (head int64, err error) {
	err = s.do(func() error { head, err = s.session.Head(ctx); return err })
	return head, err
}

func (s *ownSession) Count(ctx context.Context) (count int64, err error) {
	err = s.do(func() error { count, err = s.session.Count(ctx); return err })
	return count, err
}

func (s *ownSession) Import(ctx context.Context, lines []rea.Line) (results []rea.LineResult, err error) {
	err = s.do(func() error { results, err = s.session.Import(ctx, lines); return err })
	return results, err
}

func (s *ownSession) ImportProgress(ctx context.Context, source string) (p rea.ImportProgress, err error) {
	err = s.do(func() error { p, err = s.session.ImportProgress(ctx, source); return err })
	return p, err
}

func (s *ownSession) SaveImportProgress(ctx context.Context, p rea.ImportProgress) error {
	return s.do(func() error { return s.session.SaveImportProgress(ctx, p) })
}

func (s *ownSession) Commit(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return sql.ErrTxDone
	}
	s.ended = true
	if s.failed != nil {
		s.store.writer.rollback(ctx)
		return s.failed
	}
	return s.store.mapError("commit", s.store.writer.commit(ctx))
}

func (s *ownSession) Rollback(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		s.store.writer.rollback(ctx)
	}
	return nil
}

// autocommit reads what is committed, and makes every write a transaction of its own.
type autocommit struct{ store *store }

func (a *autocommit) reading() *session { return &session{store: a.store, db: a.store.reader} }

func (a *autocommit) Append(ctx context.Context, call rea.Call) (rea.Receipt, error) {
	return a.store.group.append(ctx, a.store, call)
}

func (a *autocommit) Events(ctx context.Context, asked rea.Stretch, page []rea.Event) ([]rea.Event, bool, error) {
	return a.reading().Events(ctx, asked, page)
}

func (a *autocommit) Resume(ctx context.Context, asked rea.Stretch, fingerprint string, upTo int64, page []rea.Event) ([]rea.Event, bool, *rea.Snapshot, error) {
	return a.reading().Resume(ctx, asked, fingerprint, upTo, page)
}

func (a *autocommit) Page(ctx context.Context, filter rea.Filter, after int64, limit int) ([]rea.Event, int64, error) {
	return a.reading().Page(ctx, filter, after, limit)
}

func (a *autocommit) Head(ctx context.Context) (int64, error) { return a.reading().Head(ctx) }

func (a *autocommit) Count(ctx context.Context) (int64, error) { return a.reading().Count(ctx) }

func (a *autocommit) Ready(ctx context.Context, write bool) error { return a.store.ready(ctx, write) }

func (a *autocommit) ImportProgress(ctx context.Context, source string) (rea.ImportProgress, error) {
	return a.reading().ImportProgress(ctx, source)
}
