package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// writer is the one connection of this process that writes. Whoever has the turn has the connection.
type writer struct {
	db   *sql.DB
	wait time.Duration
	turn chan struct{} // holds one element while somebody has the turn

	mu     sync.Mutex
	conn   *sql.Conn // nil: none open
	stmt   map[string]*sql.Stmt
	closed bool
}

func newWriter(path, mode string, wait time.Duration) (*writer, error) {
	// No busy_timeout: SQLite's own wait sleeps up to 100 ms between two looks, and starves among busy
	// processes; ours is in patient.
	db, err := openFile(path, mode, "_synchronous=FULL")
	if err != nil {
		return nil, err
	}
	return &writer{db: db, wait: wait, turn: make(chan struct{}, 1)}, nil
}

// begin waits for the turn in this process and then for the file's write lock, both together no longer
// than wait, and begins a transaction. end ends it.
func (w *writer) begin(ctx context.Context) error {
	deadline := time.Now().Add(w.wait)
	timer := time.NewTimer(w.wait)
	defer timer.Stop()
	select {
	case w.turn <- struct{}{}:
		return w.beginInTurn(ctx, deadline)
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return &BusyError{Wait: w.wait}
	}
}

// beginInTurn gives the turn back where it fails.
func (w *writer) beginInTurn(ctx context.Context, deadline time.Time) error {
	err := w.patient(ctx, deadline, func() error {
		if err := w.open(ctx); err != nil {
			return err
		}
		_, err := w.ExecContext(ctx, "BEGIN IMMEDIATE")
		return err
	})
	if err != nil {
		w.drop()
		w.release()
	}
	return err
}

// commit ends the transaction and gives the turn back. Once COMMIT has begun it is not interrupted, so that the
// answer is certain; where it fails, everything is rolled back.
func (w *writer) commit(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		err = w.patient(ctx, time.Now().Add(w.wait), func() error {
			_, err := w.ExecContext(context.WithoutCancel(ctx), "COMMIT")
			return err
		})
	}
	if err != nil {
		w.rollback(ctx)
		return err
	}
	w.release()
	return nil
}

// rollback ends the transaction and gives the turn back. Where ROLLBACK fails, SQLite has rolled back
// already, or closing the connection does.
func (w *writer) rollback(ctx context.Context) {
	if _, err := w.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); err != nil {
		w.drop()
	}
	w.release()
}

// inTransaction reports whether the transaction that began is still open: a trigger of the user's that ends in RAISE(ROLLBACK)
// ends it. Where it is not, an empty one is begun, so that nothing commits by itself before rollback.
func (w *writer) inTransaction(ctx context.Context) bool {
	_, err := w.ExecContext(context.WithoutCancel(ctx), "BEGIN")
	return err != nil && strings.Contains(err.Error(), "within a transaction")
}

// patient calls fn until it gives something else than busy, the deadline has passed, or ctx has ended.
func (w *writer) patient(ctx context.Context, deadline time.Time, fn func() error) error {
	for {
		err := fn()
		if !isBusy(err) {
			return err
		}
		if time.Now().After(deadline) {
			return errors.Join(&BusyError{Wait: w.wait}, err)
		}
		timer := time.NewTimer(time.Millisecond/2 + rand.N(4*time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

func (w *writer) open(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errors.New("the archive is closed")
	}
	if w.conn != nil {
		return nil
	}
	conn, err := w.db.Conn(ctx)
	if err == nil {
		w.conn, w.stmt = conn, map[string]*sql.Stmt{}
	}
	return err
}

// drop closes the connection, so that the next transaction starts on a fresh one.
func (w *writer) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil {
		return
	}
	for _, stmt := range w.stmt {
		_ = stmt.Close()
	}
	_ = w.conn.Raw(func(any) error { return sqldriver.ErrBadConn }) // not back to the pool
	_ = w.conn.Close()
	w.conn, w.stmt = nil, nil
}

func (w *writer) release() {
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		w.drop()
	}
	<-w.turn
}

// close closes the connection now, or when the transaction on it ends.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	select {
	case w.turn <- struct{}{}:
		w.release()
	default:
	}
	_ = w.db.Close()
}

// maxPrepared bounds the statements that are kept: inline functions may make texts of their own.
const maxPrepared = 200

func (w *writer) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil {
		return nil, sql.ErrConnDone
	}
	if stmt := w.stmt[query]; stmt != nil {
		return stmt, nil
	}
	if len(w.stmt) >= maxPrepared {
		for _, stmt := range w.stmt {
			_ = stmt.Close()
		}
		clear(w.stmt)
	}
	stmt, err := w.conn.PrepareContext(ctx, query)
	if err == nil {
		w.stmt[query] = stmt
	}
	return stmt, err
}

// ExecContext prepares each text once.
func (w *writer) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := w.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}

// QueryContext prepares each text once.
func (w *writer) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := w.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}
