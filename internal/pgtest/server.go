// Package pgtest gives tests a real PostgreSQL server and databases of their own.
//
//	func TestMain(m *testing.M) {
//		pgtest.Main(m, pgtest.Migrated(fingerprint, migrate))
//	}
//
//	url := pgtest.Database(t) // a migrated database for this test alone, dropped when it ends
//
// The server is the one of REA_TEST_DATABASE_URL, or a throw-away cluster started on first need.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options of Start. The zero value is right for most tests.
type Options struct {
	// Bin is the folder that holds initdb and postgres. Default: see Binaries.
	Bin string
	// Settings go to postgresql.conf over the defaults, as "work_mem": "8MB".
	Settings map[string]string
}

// Server is a throw-away PostgreSQL cluster that lives in a temporary folder.
// Its methods are not for use by several goroutines at once.
type Server struct {
	// Dir holds the data folder, the unix socket and server.log. Stop removes it.
	Dir string
	// Port is the port on 127.0.0.1. It stays the same over a Restart.
	Port int

	bin     string
	lock    *os.File
	process *process
}

// startLimit bounds initdb and each start, for machines that are busy with other tests.
const startLimit = time.Minute

// NewServer starts a server that belongs to t alone, for tests that crash it or change its settings.
func NewServer(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Start makes a new cluster and returns once it takes connections. The error is
// ErrNoServer where PostgreSQL is not installed.
func Start(ctx context.Context, o Options) (*Server, error) {
	bin, err := Binaries(o.Bin)
	if err != nil {
		return nil, err
	}
	sweep()
	dir, lock, err := makeDir()
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, bin: bin, lock: lock}
	if err := s.create(ctx, o.Settings); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) create(ctx context.Context, settings map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	initdb := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", "postgres",
		"-A", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = s.Dir, attributes()
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: initdb: %w: %s", err, out)
	}
	if err := s.configure(settings); err != nil {
		return err
	}
	for range 5 {
		s.Port = freePort()
		err := s.Restart(ctx)
		// Another process may take the port between our look and the server's.
		if err == nil || !strings.Contains(err.Error(), "could not bind") {
			return err
		}
	}
	return errors.New("pgtest: no free port on 127.0.0.1")
}

// defaults trade durability against power loss for speed. What a crash of the server
// alone can lose stays as in production: synchronous_commit is on.
var defaults = map[string]string{
	"fsync":                     "off",
	"full_page_writes":          "off",
	"max_connections":           "250",
	"max_prepared_transactions": "64",
	"wal_level":                 "replica",
	"shared_buffers":            "128MB",
	"max_wal_size":              "256MB",
	"checkpoint_timeout":        "15min",
	"autovacuum":                "on",
	"logging_collector":         "off",
	"log_line_prefix":           "%m [%p] %d ",
	"timezone":                  "UTC",
	"log_timezone":              "UTC",
}

func (s *Server) configure(settings map[string]string) error {
	var conf strings.Builder
	for _, set := range []map[string]string{defaults, settings} {
		for name, value := range set {
			fmt.Fprintf(&conf, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''"))
		}
	}
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(conf.String())
	return errors.Join(err, f.Close())
}

// Restart starts the server on the same data and port, after a fast stop if it still runs.
// It returns once recovery is over and connections are taken.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.signal(syscall.SIGINT); err != nil {
		return err
	}
	log, err := os.OpenFile(s.logFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data(), "-p", strconv.Itoa(s.Port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+s.socketDir())
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.Dir, log, log, attributes()
	if s.process, err = launch(cmd); err != nil {
		return fmt.Errorf("pgtest: start postgres: %w", err)
	}
	return s.waitReady(ctx)
}

func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.process.done:
			return fmt.Errorf("pgtest: postgres stopped while starting: %s", s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("pgtest: postgres takes no connections: %w: %s", err, s.logTail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// URL returns the address of a database on this server, for the superuser postgres.
func (s *Server) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database,
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)), RawQuery: "sslmode=disable"}
	return u.String()
}

// Stop ends all connections, stops the server and removes its folder.
func (s *Server) Stop() error {
	err := s.signal(syscall.SIGINT)
	removed := os.RemoveAll(s.Dir)
	return errors.Join(err, removed, s.lock.Close())
}

// StopImmediate stops the server as a crash would: without a checkpoint, so that the next
// Restart recovers from the write-ahead log.
func (s *Server) StopImmediate() error { return s.signal(syscall.SIGQUIT) }

// signal asks the server to stop and waits until it has. A server that is down already is fine.
func (s *Server) signal(sig syscall.Signal) error {
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	for _, sig := range []syscall.Signal{sig, syscall.SIGQUIT, syscall.SIGKILL} {
		// Fails only when the process is gone, which done tells.
		_ = p.cmd.Process.Signal(sig)
		select {
		case <-p.done:
			return nil
		case <-time.After(startLimit / 2):
		}
	}
	return fmt.Errorf("pgtest: postgres (pid %d) does not stop: %s", p.cmd.Process.Pid, s.logTail())
}

func (s *Server) data() string    { return filepath.Join(s.Dir, "data") }
func (s *Server) logFile() string { return filepath.Join(s.Dir, "server.log") }

// socketDir is empty, for no socket, where the path would pass the system's limit of 103 bytes.
func (s *Server) socketDir() string {
	if len(s.Dir)+len("/.s.PGSQL.65535") > 103 || runtime.GOOS == "windows" {
		return ""
	}
	return s.Dir
}

func (s *Server) logTail() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	lines := slices.Collect(strings.Lines(string(text)))
	return strings.Join(lines[max(0, len(lines)-20):], "")
}

// freePort looks below the range that systems give to outgoing connections, so that
// the port is still free when a crash test starts its server again.
func freePort() int {
	for {
		port := 15000 + rand.IntN(15000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		l.Close()
		return port
	}
}
