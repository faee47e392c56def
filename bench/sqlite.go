package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	_ "modernc.org/sqlite" // the same driver as package sqlite's

	"github.com/realtime-event-archive/rea/sqlite"
)

// sqlite measures one append a call through Go, by n callers in a closed loop. The limit is a raw INSERT into the
// article's table in another file, one transaction each, through database/sql and the same driver, WAL and
// synchronous=FULL, behind a mutex: SQLite lets one writer in at a time, and waiting in the program is kinder to the
// limit than its busy handler.
func (b *bench) sqlite(ctx context.Context, n int) (err error) {
	dir, err := os.MkdirTemp("", "rea-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	archive, err := sqlite.Open(ctx, filepath.Join(dir, "rea.db"), sqlite.Config{})
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := archive.Migrate(ctx, nil); err != nil {
		return err
	}
	db, err := openRaw(ctx, filepath.Join(dir, "raw.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	insert, err := db.PrepareContext(ctx, `
INSERT INTO events (aggregate_type, aggregate_id, event_type, seq, payload, actor_id)
VALUES (?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	var one sync.Mutex
	raw, own := newFlows(new(atomic.Int64), n), newFlows(new(atomic.Int64), n)
	limit := closedLoop("raw INSERT", n, nil, func(ctx context.Context, worker int) (int, error) {
		e := raw[worker].next()
		one.Lock()
		defer one.Unlock()
		_, err := insert.ExecContext(ctx, orderType, e.aggregate, e.kind, e.seq, e.payload, actor)
		return 1, err
	})
	path := closedLoop("SQLite append", n, nil, func(ctx context.Context, worker int) (int, error) {
		return 1, appendGo(ctx, archive.Autocommit(), own[worker].next())
	})
	duels, err := interleave(ctx, b.rounds(), b.slice(), limit, path)
	if err == nil {
		b.out.addDuel("SQLite append, "+many(n, "caller"), limit.name, duels[0], target{}, target{})
	}
	return err
}

func openRaw(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `
CREATE TABLE events ( id INTEGER PRIMARY KEY, aggregate_type TEXT NOT NULL, aggregate_id BIGINT NOT NULL, event_type TEXT NOT NULL, seq BIGINT NOT NULL, payload TEXT NOT NULL DEFAULT '{}', actor_id BIGINT NULL, created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE (aggregate_type, aggregate_id, seq) );
CREATE INDEX idx_events_created_at ON events (created_at);
CREATE INDEX idx_events_aggregate_lookup ON events (aggregate_type, aggregate_id, seq);`)
	return db, err
}
