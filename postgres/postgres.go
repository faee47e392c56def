// Package postgres keeps an archive in a PostgreSQL database (14 to 18), in the schema rea.
//
//	archive, err := postgres.Open(ctx, "postgres://localhost/shop", postgres.Config{})
//	err = archive.Migrate(ctx, nil)
//	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
//		_, err := archive.Tx(tx).Append(ctx, rea.Ref{Type: "order", ID: "10086"}, rea.NewEvent{Type: "OrderPlaced"})
//		return err
//	})
package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea"
)

// Config says how an archive is kept. The zero value works.
type Config struct {
	rea.Config

	// RolePrefix begins the names of the roles that Migrate makes and grants to: PREFIX_owner, PREFIX_writer,
	// PREFIX_importer, PREFIX_operator, PREFIX_reader, PREFIX_runner. Lower-case letters, digits and _. "": the one that the
	// archive has, at first rea.
	RolePrefix string
}

// Archive is an archive in PostgreSQL. It is safe for concurrent use.
type Archive struct {
	*rea.Archive
	store *store
}

// store implements rea.Store.
type store struct {
	pool      *pgxpool.Pool
	owned     bool // the pool is ours to close
	config    Config
	schema    atomic.Pointer[lookedAt]
	isolation atomic.Bool // the server's default isolation is not READ COMMITTED: the pass says it
}

// Pgx is what REA needs of a pgx connection: pgx.Tx, *pgx.Conn and *pgxpool.Pool have it.
type Pgx interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// SQL is what REA needs of a database/sql transaction: *sql.Tx has it, and so have the types of sqlx and gorm.
type SQL interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Open connects to url, a PostgreSQL connection string. The schema need not be there yet.
func Open(ctx context.Context, url string, config Config) (*Archive, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("rea: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("rea: connect: %w", err)
	}
	archive, err := New(pool, config)
	if err != nil {
		pool.Close()
		return nil, err
	}
	archive.store.owned = true
	return archive, nil
}

var rolePrefix = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}$`)

// New uses a pool that the program has already, and that Close leaves open.
func New(pool *pgxpool.Pool, config Config) (*Archive, error) {
	if config.RolePrefix != "" && !rolePrefix.MatchString(config.RolePrefix) {
		return nil, &rea.LimitError{What: "role prefix", Limit: 41, Problem: "is not made of lower-case letters, digits and _"}
	}
	s := &store{pool: pool, config: config}
	archive, err := rea.New(s, config.Config)
	if err != nil {
		return nil, err
	}
	return &Archive{Archive: archive, store: s}, nil
}

// Tx makes the user's own pgx transaction (or connection) into a Tx of this archive. REA never ends it.
func (a *Archive) Tx(tx Pgx) *rea.Tx {
	return a.Join(&session{store: a.store, db: pgxConn{tx}})
}

// SQLTx does the same for anything with the two methods of *sql.Tx, whichever driver is under it.
// A wrapper that formats queries itself and drops the arguments (bun.Tx) is named in the first error:
// pass the *sql.Tx inside it.
func (a *Archive) SQLTx(tx SQL) *rea.Tx {
	return a.Join(&session{store: a.store, db: sqlConn{tx}})
}

func (s *store) Autocommit() rea.Session { return &session{store: s, db: pgxConn{s.pool}, alone: true} }

func (s *store) Begin(ctx context.Context) (rea.OwnSession, error) {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, mapError("begin", err)
	}
	return &ownSession{session: session{store: s, db: pgxConn{tx}}, tx: tx}, nil
}

func (s *store) Close() {
	if s.owned {
		s.pool.Close()
	}
}

// The pass is a statement of its own, in READ COMMITTED.
func (s *store) Pass(ctx context.Context, limit int) (numbered int64, busy bool, err error) {
	const pass = `SELECT rea.feed_pass($1)`
	var n *int64
	if !s.isolation.Load() {
		err = s.pool.QueryRow(ctx, pass, limit).Scan(&n)
		s.isolation.Store(sqlState(err) == "25000")
	}
	if s.isolation.Load() {
		err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, pass, limit).Scan(&n)
		})
	}
	if err != nil {
		return 0, false, mapError("number events", err)
	}
	if n == nil {
		return 0, true, nil
	}
	return *n, false, nil
}

// ownSession is a transaction of REA's.
type ownSession struct {
	session
	tx      pgx.Tx
	owner   bool // it acts as the owner of the archive
	follows bool // it acts as the runner's role or the owner, with the settings of followSQL
	was     lent
}

func (s *ownSession) Commit(ctx context.Context) error { return mapError("commit", s.tx.Commit(ctx)) }

func (s *ownSession) Rollback(ctx context.Context) error {
	if err := s.tx.Rollback(ctx); err != nil && err != pgx.ErrTxClosed {
		return mapError("roll back", err)
	}
	return nil
}
