package main

import (
	"context"
	"database/sql"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
	"github.com/realtime-event-archive/rea/sqlite"
)

// shop is a program's own database, with the archive of its orders in it.
type shop struct {
	db      *sql.DB
	archive *rea.Archive
	join    func(*sql.Tx) *rea.Tx // REA in a transaction of the program's
}

// open opens a PostgreSQL database by its URL, or a SQLite file by its path.
func open(ctx context.Context, database string) (*shop, error) {
	orders, err := catalog()
	if err != nil {
		return nil, err
	}
	config, s := rea.Config{Catalog: orders}, &shop{}
	if strings.HasPrefix(database, "postgres") {
		archive, err := postgres.Open(ctx, database, postgres.Config{Config: config})
		if err != nil {
			return nil, err
		}
		s.archive, s.join = archive.Archive, func(tx *sql.Tx) *rea.Tx { return archive.SQLTx(tx) }
		s.db, err = sql.Open("pgx", database)
		if err != nil {
			s.close()
			return nil, err
		}
	} else {
		archive, err := sqlite.Open(ctx, database, sqlite.Config{Config: config})
		if err != nil {
			return nil, err
		}
		s.archive, s.join = archive.Archive, func(tx *sql.Tx) *rea.Tx { return archive.SQLTx(tx) }
		s.db, err = sql.Open("sqlite", "file:"+database+"?_txlock=immediate&_pragma=busy_timeout(5000)")
		if err != nil {
			s.close()
			return nil, err
		}
	}
	if err := s.prepare(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// prepare makes the archive's tables, gives the database the catalog's steps, and makes the program's own table.
func (s *shop) prepare(ctx context.Context) error {
	if err := s.archive.Migrate(ctx, nil); err != nil {
		return err
	}
	if _, err := s.archive.Apply(ctx); err != nil {
		return err
	}
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS stock (item int PRIMARY KEY, reserved int NOT NULL)",
		"INSERT INTO stock (item, reserved) VALUES (517, 0), (23, 0) ON CONFLICT DO NOTHING",
	} {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// inTx runs fn in a transaction of the program's and commits it.
func (s *shop) inTx(ctx context.Context, fn func(tx *sql.Tx, orders *rea.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	if err := fn(tx, s.join(tx)); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *shop) close() {
	if s.db != nil {
		s.db.Close()
	}
	s.archive.Close()
}
