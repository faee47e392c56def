package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// conn is one of the two doors: pgx or database/sql. The same SQL goes through both.
type conn interface {
	query(ctx context.Context, sql string, args ...any) (rows, error)
	exec(ctx context.Context, sql string, args ...any) error
	affect(ctx context.Context, sql string, args ...any) (rows int64, err error)
}

type rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

type pgxConn struct{ db Pgx }

func (c pgxConn) query(ctx context.Context, sql string, args ...any) (rows, error) {
	r, err := c.db.Query(ctx, sql, args...)
	return pgxRows{r}, err
}

func (c pgxConn) exec(ctx context.Context, sql string, args ...any) error {
	_, err := c.db.Exec(ctx, sql, args...)
	return err
}

type pgxRows struct{ pgx.Rows }

func (r pgxRows) Close() error {
	r.Rows.Close()
	return r.Err()
}

type sqlConn struct{ db SQL }

func (c sqlConn) query(ctx context.Context, sql string, args ...any) (rows, error) {
	r, err := c.db.QueryContext(ctx, sql, args...)
	if err != nil {
		return nil, c.explain(err)
	}
	return r, nil
}

func (c sqlConn) exec(ctx context.Context, sql string, args ...any) error {
	_, err := c.db.ExecContext(ctx, sql, args...)
	return c.explain(err)
}

// each runs a query, scans every row into dest, and calls fn for it. The rows are closed when it returns.
func each(ctx context.Context, db conn, fn func() error, dest []any, sql string, args ...any) error {
	return eachRow(ctx, db, func(r rows) error {
		if err := r.Scan(dest...); err != nil {
			return err
		}
		return fn()
	}, sql, args...)
}

// eachRow runs a query and calls fn for every row. The rows are closed when it returns.
func eachRow(ctx context.Context, db conn, fn func(r rows) error, sql string, args ...any) error {
	r, err := db.query(ctx, sql, args...)
	if err != nil {
		return err
	}
	for r.Next() {
		if err := fn(r); err != nil {
			_ = r.Close()
			return err
		}
	}
	if err := r.Err(); err != nil {
		_ = r.Close()
		return err
	}
	return r.Close()
}
