package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/realtime-event-archive/rea"
)

// transaction implements rea.Transaction.
type transaction struct {
	*session
	run func(func() error) error // runs one call
}

// Transaction is the user's.
func (s *session) Transaction() rea.Transaction {
	return transaction{s, func(call func() error) error { return call() }}
}

func (s *ownSession) Transaction() rea.Transaction { return transaction{&s.session, s.do} }

func (a *autocommit) Transaction() rea.Transaction { return nil }

// Exec is not interrupted once it has begun: SQLite would roll back the whole transaction.
func (t transaction) Exec(ctx context.Context, statement string, args ...any) (rows int64, err error) {
	err = t.run(func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		result, err := t.db.ExecContext(context.WithoutCancel(ctx), statement, args...)
		if err == nil {
			rows, err = result.RowsAffected()
		}
		return err
	})
	return rows, t.statementError(err)
}

// Query is interrupted between two rows at most: it may write, by RETURNING.
func (t transaction) Query(ctx context.Context, dest []any, each func() error, query string, args ...any) (n int64, err error) {
	var stopped error
	err = t.run(func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, err := t.db.QueryContext(context.WithoutCancel(ctx), query, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // also after a panic of each
		for rows.Next() {
			if err := errors.Join(ctx.Err(), rows.Scan(dest...)); err != nil {
				return err
			}
			if n++; each == nil {
				continue
			}
			if stopped = each(); stopped != nil {
				return nil
			}
		}
		return errors.Join(rows.Err(), rows.Close())
	})
	if stopped != nil {
		return n, stopped
	}
	return n, t.statementError(err)
}

// Savepoint goes back although ctx has ended: the transaction may go on with another one.
func (t transaction) Savepoint(ctx context.Context, fn func() error) (err error) {
	if err := ctx.Err(); err != nil {
		return t.store.mapError("set a savepoint", err)
	}
	exec := func(statement string) error {
		return t.run(func() error {
			_, err := t.db.ExecContext(context.WithoutCancel(ctx), statement)
			return err
		})
	}
	if err := t.begun(ctx); err != nil {
		return err
	}
	if err := exec("SAVEPOINT rea_inline"); err != nil {
		return t.store.mapError("set a savepoint", err)
	}
	whole := false
	defer func() {
		if whole {
			return
		}
		back := exec("ROLLBACK TO SAVEPOINT rea_inline")
		if back == nil {
			back = exec("RELEASE SAVEPOINT rea_inline")
		}
		if back != nil && err != nil && !errors.Is(back, err) {
			err = fmt.Errorf("%w (and the transaction cannot go on: %w)", err, back)
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	err = t.store.mapError("release a savepoint", exec("RELEASE SAVEPOINT rea_inline"))
	whole = err == nil
	return err
}

// begun refuses a handle of the user's that is in no transaction: a savepoint would begin one there, and leave it open on
// a connection that others use.
func (t transaction) begun(ctx context.Context) error {
	if !t.foreign {
		return nil
	}
	needs := errors.New("rea: an append with inline functions needs a transaction: begin one, or use archive.Autocommit")
	switch t.db.(foreign).db.(type) {
	case *sql.Tx:
		return nil
	case interface {
		Conn(context.Context) (*sql.Conn, error)
	}: // *sql.DB, and what is made of it
		return needs
	}
	ctx = context.WithoutCancel(ctx)
	_, err := t.db.ExecContext(ctx, "BEGIN")
	switch {
	case err == nil:
		_, err = t.db.ExecContext(ctx, "ROLLBACK")
		return errors.Join(needs, err)
	case strings.Contains(err.Error(), "within a transaction"):
		return nil
	}
	return t.store.mapError("set a savepoint", err)
}

// statementError gives the class of an error of a statement of the program's: tables are its own.
func (t transaction) statementError(err error) error {
	switch {
	case err == nil:
		return nil
	case isBusy(err):
		return fmt.Errorf("%w (%w)", &BusyError{File: t.store.path}, err)
	case resultCode(err) == sqlite3.SQLITE_READONLY:
		return fmt.Errorf("%w (%w)", rea.ErrReadOnly, err)
	}
	return err
}
