package guard_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea/guard"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.Migrated(fingerprint(), migrate)) }

func fingerprint() string {
	archive, err := postgres.New(nil, postgres.Config{})
	if err != nil {
		panic(err)
	}
	return archive.MigrationSQL()
}

func migrate(ctx context.Context, url string) error {
	archive, err := postgres.Open(ctx, url, postgres.Config{})
	if err != nil {
		return err
	}
	defer archive.Close()
	return archive.Migrate(ctx, nil)
}

// world is a database with the archive, and a session in it.
type world struct {
	*pgx.Conn
	t   *testing.T
	url string
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{t: t, url: pgtest.Database(t)}
	return w.session()
}

// session opens another one.
func (w world) session() world {
	w.t.Helper()
	config, err := pgx.ParseConfig(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // statements may change what is prepared
	if w.Conn, err = pgx.ConnectConfig(w.t.Context(), config); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.Conn.Close(context.Background()) })
	return w
}

func (w world) pool(size int32) *pgxpool.Pool {
	w.t.Helper()
	config, err := pgxpool.ParseConfig(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	config.MaxConns = size
	pool, err := pgxpool.NewWithConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	return pool
}

// do runs statements, which must succeed; without arguments there may be several.
func (w world) do(sql string, args ...any) {
	w.t.Helper()
	if err := w.try(sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w world) try(sql string, args ...any) error {
	if len(args) == 0 {
		args = []any{pgx.QueryExecModeSimpleProtocol}
	}
	_, err := w.Exec(w.t.Context(), sql, args...)
	return err
}

// refused runs a statement that must be refused with a SQLSTATE, and gives the error.
func (w world) refused(state, sql string, args ...any) *pgconn.PgError {
	w.t.Helper()
	err := w.try(sql, args...)
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != state {
		w.t.Fatalf("%s: %v, want SQLSTATE %s", sql, err, state)
	}
	return e
}

// one gives the single value of a query as text.
func (w world) one(sql string, args ...any) string {
	w.t.Helper()
	var text *string
	if err := w.QueryRow(w.t.Context(), `SELECT (`+sql+`)::text`, args...).Scan(&text); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	if text == nil {
		return "null"
	}
	return *text
}

// want compares the value of a query.
func (w world) want(want, sql string, args ...any) {
	w.t.Helper()
	if got := w.one(sql, args...); got != want {
		w.t.Errorf("%s\n got %s\nwant %s", sql, got, want)
	}
}

// events compares the events of a type, one a line: id, seq, event, payload and status.
func (w world) events(kind, want string) {
	w.t.Helper()
	w.want(want, `SELECT coalesce(string_agg(aggregate_id || ' ' || seq || ' ' || event_type || ' ' || payload || coalesce(' ' || status, ''), E'\n' ORDER BY aggregate_id, seq), '')
FROM rea.events WHERE aggregate_type = $1`, kind)
}

// add guards a table.
func (w world) add(table string, s guard.Settings) *guard.Guard {
	w.t.Helper()
	g, err := guard.Add(w.t.Context(), w.Conn, table, s, guard.By{})
	if err != nil {
		w.t.Fatalf("guard %s: %v", table, err)
	}
	return g
}

// login makes a role for the test alone, without any rights.
func (w world) login() string {
	w.t.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:10])
	w.do(`CREATE ROLE ` + name + ` LOGIN`)
	admin := pgtest.AdminURL(w.t)
	w.t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), admin)
		if err == nil {
			_, _ = w.Exec(context.Background(), `RESET SESSION AUTHORIZATION`)
			_, err = w.Exec(context.Background(), `DROP OWNED BY `+name)
			if err == nil {
				_, err = conn.Exec(context.Background(), `DROP ROLE `+name)
			}
			_ = conn.Close(context.Background())
		}
		if err != nil {
			w.t.Errorf("drop role: %v", err)
		}
	})
	return name
}

func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
