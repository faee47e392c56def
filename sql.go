package rea

import "context"

// SQL is a transaction in the hands of the program's own function, for its own statements. They are in the database's words,
// parameters too: $1 in PostgreSQL, ?1 in SQLite. One runs at a time, and none ends the transaction or changes its settings.
type SQL interface {
	// Exec runs a statement and gives the number of rows that it has changed.
	Exec(ctx context.Context, statement string, args ...any) (rows int64, err error)
	// Query runs a query and gives the number of its rows. Each of them is scanned into dest, and then each, where it is
	// not nil, is called, which runs no other statement: rows are collected first. An error of each ends the query.
	Query(ctx context.Context, dest []any, each func() error, query string, args ...any) (rows int64, err error)
}
