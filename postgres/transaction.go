package postgres

import (
	"context"
	"fmt"

	"github.com/realtime-event-archive/rea"
)

// transaction implements rea.Transaction over either door.
type transaction struct{ db conn }

func (s *session) Transaction() rea.Transaction {
	if s.alone {
		return nil
	}
	return transaction{s.db}
}

func (t transaction) Exec(ctx context.Context, statement string, args ...any) (rows int64, err error) {
	rows, err = t.db.affect(ctx, statement, args...)
	return rows, statementError(err)
}

func (t transaction) Query(ctx context.Context, dest []any, each func() error, query string, args ...any) (n int64, err error) {
	r, err := t.db.query(ctx, query, args...)
	if err != nil {
		return 0, statementError(err)
	}
	defer func() { _ = r.Close() }() // also after a panic of each
	for r.Next() {
		if err := r.Scan(dest...); err != nil {
			return n, statementError(err)
		}
		if n++; each == nil {
			continue
		}
		if err := each(); err != nil {
			return n, err
		}
	}
	if err := r.Err(); err != nil {
		return n, statementError(err)
	}
	return n, statementError(r.Close())
}

// Savepoint goes back although ctx has ended: the transaction may go on with another one.
func (t transaction) Savepoint(ctx context.Context, fn func() error) (err error) {
	if err := t.db.exec(ctx, "SAVEPOINT rea_inline"); err != nil {
		if sqlState(err) == "25P01" {
			return fmt.Errorf("rea: an append with inline functions needs a transaction: begin one, or use archive.Autocommit: %w", err)
		}
		return mapError("set a savepoint", err)
	}
	whole := false
	defer func() {
		if whole {
			return
		}
		ctx := context.WithoutCancel(ctx)
		back := t.db.exec(ctx, "ROLLBACK TO SAVEPOINT rea_inline")
		if back == nil {
			back = t.db.exec(ctx, "RELEASE SAVEPOINT rea_inline")
		}
		if back != nil && err != nil {
			err = fmt.Errorf("%w (and the transaction cannot go on: %w)", err, back)
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	err = mapError("release a savepoint", t.db.exec(ctx, "RELEASE SAVEPOINT rea_inline"))
	whole = err == nil
	return err
}

// statementError gives the class of an error of a statement of the program's: tables and functions are its own.
func statementError(err error) error {
	switch sqlState(err) {
	case "40001", "40P01":
		return fmt.Errorf("%w (%w)", rea.ErrRetry, err)
	case "25006":
		return fmt.Errorf("%w (%w)", rea.ErrReadOnly, err)
	}
	return err
}

func (c pgxConn) affect(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := c.db.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

func (c sqlConn) affect(ctx context.Context, sql string, args ...any) (int64, error) {
	result, err := c.db.ExecContext(ctx, sql, args...)
	if err != nil {
		return 0, c.explain(err)
	}
	return result.RowsAffected()
}
