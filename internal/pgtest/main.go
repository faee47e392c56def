package pgtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// EnvURL names the variable that holds the address of a server where tests may create databases.
const EnvURL = "REA_TEST_DATABASE_URL"

// Template is a database that is built once for each server and then copied for each test.
// Migrated makes one.
type Template struct {
	name  string
	build func(ctx context.Context, url string) error
}

// run is what the tests of this process share.
var run struct {
	template Template

	once   sync.Once
	admin  string
	server *Server
	err    error

	built    sync.Once
	builtErr error
}

// Main runs the tests, stops the server if one was started for them, and exits. Use it as the
// body of TestMain. With a template, Database gives copies of it; only the first one counts.
func Main(m *testing.M, template ...Template) {
	if len(template) > 0 {
		run.template = template[0]
	}
	code := m.Run()
	if run.server != nil {
		if err := run.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// AdminURL returns the address of the server's own database, for what belongs to the
// whole server: roles, settings, other databases. It fails t where there is no server.
func AdminURL(t testing.TB) string {
	t.Helper()
	run.once.Do(func() { run.admin, run.server, run.err = find() })
	if run.err != nil {
		t.Fatal(run.err)
	}
	return run.admin
}

func find() (string, *Server, error) {
	if url := os.Getenv(EnvURL); url != "" {
		return url, nil, nil
	}
	// Not a test's context: the server outlives the test that needed it first.
	s, err := Start(context.Background(), Options{})
	if err != nil {
		return "", nil, err
	}
	return s.URL("postgres"), s, nil
}
