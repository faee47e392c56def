package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

// settings are a production server's where they matter to a ratio: every commit reaches the disk. No checkpoint falls
// into a slice by time or by volume, because it would hit one contender and not the other.
var settings = map[string]string{
	"fsync":              "on",
	"synchronous_commit": "on",
	"full_page_writes":   "on",
	"shared_buffers":     "512MB",
	"max_wal_size":       "16GB",
	"checkpoint_timeout": "1h",
	"max_connections":    "250",
	"autovacuum":         "on",
}

// shown are the settings that the machine line tells, as the server has them.
var shown = []string{"fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size", "checkpoint_timeout", "jit"}

// server is the PostgreSQL server that is measured.
type server struct {
	admin   string         // address of its own database
	own     *pgtest.Server // nil: it ran before
	made    []string       // databases to drop
	machine machine
	archive *database // prefilled, made on first need
}

func startServer(ctx context.Context, db string) (*server, error) {
	s := &server{admin: db}
	if db == "" {
		own, err := pgtest.Start(ctx, pgtest.Options{Settings: settings})
		if err != nil {
			return nil, err
		}
		s.own, s.admin = own, own.URL("postgres")
	}
	if err := s.describe(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close may run after ctx has ended, so it takes none.
func (s *server) close() error {
	if s.archive != nil {
		s.archive.close()
	}
	if s.own != nil {
		return s.own.Stop()
	}
	var all error
	for _, name := range s.made {
		all = errors.Join(all, s.exec(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"))
	}
	return all
}

func (s *server) describe(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	m := &s.machine
	m.CPU, m.Cores, m.OS, m.Go = cpuModel(), runtime.NumCPU(), runtime.GOOS+"/"+runtime.GOARCH, runtime.Version()
	m.PostgreSQL = conn.PgConn().ParameterStatus("server_version")
	m.Settings = make(map[string]string)
	for _, name := range shown {
		var value string
		if err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
			return err
		}
		m.Settings[name] = value
	}
	m.Data = "a server that ran before"
	if s.own != nil {
		m.Data = "in " + s.own.Dir
		_, err = cpuOf([]uint32{conn.PgConn().PID()})
	}
	switch {
	case s.own == nil:
		m.NoCPU = "the server is not this program's own"
	case err != nil:
		m.NoCPU = err.Error()
	}
	return nil
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func (s *server) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// create makes a database, as a copy of template where that is not "".
func (s *server) create(ctx context.Context, template string) (name string, err error) {
	name = strings.ToLower("rea_bench_" + rand.Text()[:10])
	if template == "" {
		template = "template0"
	}
	s.made = append(s.made, name)
	return name, s.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template+" ENCODING 'UTF8'")
}

func (s *server) drop(ctx context.Context, name string) error {
	return s.exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
}

func (s *server) url(database string) (string, error) {
	u, err := url.Parse(s.admin)
	if err != nil {
		return "", err
	}
	u.Path = "/" + database
	return u.String(), nil
}

// clients is a pool whose connections are all open, with the processes that serve them.
type clients struct {
	*pgxpool.Pool
	pids    []uint32 // nil: their CPU cannot be read
	archive *postgres.Archive
}

func (s *server) connect(ctx context.Context, name string, n int) (*clients, error) {
	address, err := s.url(name)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.MinConns = int32(n), int32(n)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	c := &clients{Pool: pool}
	if c.archive, err = postgres.New(pool, postgres.Config{}); err != nil {
		return nil, err
	}
	if c.pids, err = s.backends(ctx, pool, n); err != nil {
		return nil, fmt.Errorf("connect %d clients: %w", n, err)
	}
	// The archive asks for the schema's version once, and not while something is measured.
	_, err = c.archive.Autocommit().Head(ctx)
	if errors.Is(err, rea.ErrNoSchema) {
		err = nil // not migrated yet
	}
	return c, err
}

// backends opens all n connections of a pool and tells who serves them; nil where their CPU cannot be read.
func (s *server) backends(ctx context.Context, pool *pgxpool.Pool, n int) (pids []uint32, err error) {
	held := make([]*pgxpool.Conn, 0, n)
	defer func() {
		for _, conn := range held {
			conn.Release()
		}
	}()
	for range n {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		held = append(held, conn)
		if s.machine.NoCPU == "" {
			pids = append(pids, conn.Conn().PgConn().PID())
		}
	}
	return pids, nil
}
