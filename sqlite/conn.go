package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	driver "modernc.org/sqlite"
)

// openFile opens the file at an absolute path. mode: rw, or rwc to make it where there is none.
func openFile(path, mode, settings string) (*sql.DB, error) {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/shop.db
	}
	connector, err := driver.NewConnector("file://" + (&url.URL{Path: path}).EscapedPath() + "?mode=" + mode + "&" + settings)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// readers is how many connections read at a time.
const readers = 8

// reader reads what is committed. It waits for writers only where the file is not in WAL mode.
type reader struct {
	path   string // absolute
	db     *sql.DB
	frozen os.FileInfo // the file at freeze; nil: read with SQLite's locks, as always where that is possible
	mu     sync.Mutex
	stmt   map[string]*sql.Stmt
}

func newReader(path string, busy time.Duration) (*reader, error) {
	db, err := openFile(path, "rw", fmt.Sprintf("_query_only=1&_busy_timeout=%d", busy.Milliseconds()))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(readers)
	return &reader{path: path, db: db, stmt: map[string]*sql.Stmt{}}, nil
}

func (r *reader) close() { _ = r.db.Close() }

// QueryContext prepares each text once on each connection.
func (r *reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := r.still(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	stmt := r.stmt[query]
	r.mu.Unlock()
	if stmt == nil {
		var err error
		if stmt, err = r.db.PrepareContext(ctx, query); err != nil {
			return nil, err
		}
		r.mu.Lock()
		if won := r.stmt[query]; won != nil {
			_ = stmt.Close()
			stmt = won
		} else {
			r.stmt[query] = stmt
		}
		r.mu.Unlock()
	}
	return stmt.QueryContext(ctx, args...)
}

// ExecContext is never called: it makes reader an SQL.
func (r *reader) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, errors.New("rea: a reader does not write")
}

// foreign is the user's own transaction.
type foreign struct{ db SQL }

var probed sync.Map // reflect.Type -> error or nil: of the types that were handed over

// probe asks for its own arguments back, once per type: a wrapper that formats queries itself would otherwise
// run ours with other values, or none.
func (f foreign) probe(ctx context.Context) error {
	kind := reflect.TypeOf(f.db)
	if _, good := probed.Load(kind); good {
		return nil
	}
	const a, b = "rea ?", "?1"
	var got [2]string
	err := one(ctx, f.db, []any{&got[0], &got[1]}, "SELECT ?1, ?2", a, b)
	if err == nil && got == [2]string{a, b} {
		probed.Store(kind, nil)
		return nil
	}
	if ctx.Err() != nil || errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone) || isBusy(err) {
		return err
	}
	return errors.Join(fmt.Errorf("%T formats queries itself and drops their arguments: pass the *sql.Tx inside it (for bun.Tx: tx.Tx)", f.db), err)
}

func (f foreign) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := f.probe(ctx); err != nil {
		return nil, err
	}
	return f.db.QueryContext(ctx, query, args...)
}

func (f foreign) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := f.probe(ctx); err != nil {
		return nil, err
	}
	return f.db.ExecContext(ctx, query, args...)
}

// one scans the first row of a query into dest; none is sql.ErrNoRows.
func one(ctx context.Context, db SQL, dest []any, query string, args ...any) error {
	found := false
	err := each(ctx, db, func() error { found = true; return nil }, dest, query, args...)
	if err == nil && !found {
		return sql.ErrNoRows
	}
	return err
}

// each runs a query, scans every row into dest, and calls fn for it. The rows are closed when it returns.
func each(ctx context.Context, db SQL, fn func() error, dest []any, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			_ = rows.Close()
			return err
		}
		if err := fn(); err != nil {
			_ = rows.Close()
			return err
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	if r, ok := db.(*reader); ok {
		return r.still()
	}
	return nil
}
