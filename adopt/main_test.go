package adopt_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

func TestMain(m *testing.M) {
	if args := os.Getenv(killEnv); args != "" {
		if err := takeUntilKilled(strings.Split(args, "\n")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	pgtest.Main(m, pgtest.Migrated(fingerprint(), migrate))
}

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

// newPool is a pool on a database of the test's own, with an archive, after some statements.
func newPool(t *testing.T, statements ...string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 15
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	run(t, pool, statements...)
	return pool
}

func run(t *testing.T, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := pool.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// query gives the one value of a query.
func query[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (value T) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}
