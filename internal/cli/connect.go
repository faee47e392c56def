package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	connectTimeout  = 10 * time.Second // for each host, where nobody says another one
	connectPatience = time.Second      // after it, the command says what it waits for
)

// connect opens a pool, whose connections are closed when the command has ended.
func (a *app) connect(ctx context.Context, d database) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(d.postgres)
	if err != nil {
		return nil, err
	}
	conn := config.ConnConfig
	if conn.ConnectTimeout == 0 && !a.saysTimeout(d.postgres) {
		conn.ConnectTimeout = connectTimeout
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	a.pool = pool
	reached := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-reached:
		case <-time.After(connectPatience):
			a.say("connecting to " + safe(hosts(&conn.Config)) + "...")
		}
	})
	err = pool.Ping(ctx)
	close(reached)
	waiting.Wait()
	return pool, err
}

// saysTimeout: connect_timeout=0 means to wait for ever, which ConnectTimeout cannot tell from nothing.
func (a *app) saysTimeout(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Query().Has("connect_timeout") || a.env.Getenv("PGCONNECT_TIMEOUT") != ""
}

// hosts names where a configuration connects to.
func hosts(config *pgconn.Config) string {
	names := []string{address(config.Host, config.Port)}
	for _, other := range config.Fallbacks {
		if name := address(other.Host, other.Port); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func address(host string, port uint16) string {
	if filepath.IsAbs(host) {
		return fmt.Sprintf("%s/.s.PGSQL.%d", host, port)
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// connectText says why a server was not reached: the last try alone, for the one before it is mostly the same with
// TLS. "": err is about something else.
func connectText(err error) string {
	var failed *pgconn.ConnectError
	if !errors.As(err, &failed) {
		return ""
	}
	config := failed.Config
	return fmt.Sprintf("cannot connect to %s as %s: %s", hosts(config), config.User, connectReason(last(failed.Unwrap()), config))
}

// last is the last of errors that were joined.
func last(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		if list := joined.Unwrap(); len(list) > 0 {
			return last(list[len(list)-1])
		}
	}
	return err
}

func connectReason(err error, config *pgconn.Config) string {
	var refused *pgconn.PgError
	var lookup *net.DNSError
	var network interface{ Timeout() bool }
	switch {
	case errors.As(err, &refused):
		switch refused.Code {
		case "3D000":
			return fmt.Sprintf("the database %q does not exist: make it with createdb, or mend the name", config.Database)
		case "28P01":
			return refused.Message + ": check user and password, which may stand in the URL, in PGPASSWORD or in ~/.pgpass"
		}
		return refused.Message
	case errors.As(err, &lookup):
		return fmt.Sprintf("the host name %s is not known", lookup.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: does the server run there?"
	case errors.Is(err, syscall.ENOENT):
		return "there is no such socket: does the server run here?"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return fmt.Sprintf("no answer within %s", config.ConnectTimeout)
	}
	return err.Error()
}
