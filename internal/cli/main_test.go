package cli_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/realtime-event-archive/rea/internal/cli"
	"github.com/realtime-event-archive/rea/internal/pgtest"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// childEnv makes this program the command line: a second process for the tests.
const childEnv = "REA_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // as cmd/rea does
		defer stop()
		os.Exit(cli.Run(ctx, os.Args[1:], cli.Env{
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		}))
	}
	pgtest.Main(m)
}

// store is a kind of database to run the tests on. new gives the URL of one that is empty.
type store struct {
	name string
	new  func(t testing.TB) (url string)
}

var stores = []store{
	{"sqlite", func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") }},
	{"postgres", pgtest.Empty},
}

func forEachStore(t *testing.T, test func(t *testing.T, sh *shell)) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			sh := newShell(t, s)
			sh.env["REA_DATABASE_URL"] = s.new(t)
			test(t, sh)
		})
	}
}

// shell runs commands in a folder of their own, with an environment of their own.
type shell struct {
	t     testing.TB
	store store
	dir   string
	env   map[string]string
	typed func(stream any) bool // Env.IsTerminal

	columns int // Env.Width
}

func newShell(t testing.TB, s store) *shell {
	return &shell{t: t, store: s, dir: t.TempDir(), env: map[string]string{}}
}

// result is what a command leaves.
type result struct {
	stdout, stderr string
	code           int
}

func (sh *shell) environment(stdin string, stdout, stderr *bytes.Buffer) cli.Env {
	return cli.Env{
		Stdin: strings.NewReader(stdin), Stdout: stdout, Stderr: stderr, Dir: sh.dir, IsTerminal: sh.typed,
		Getenv: func(name string) string { return sh.env[name] },
		Width:  func(any) int { return sh.columns },
	}
}

// pipe runs a command with a standard input.
func (sh *shell) pipe(stdin string, args ...string) result {
	var stdout, stderr bytes.Buffer
	code := cli.Run(context.Background(), args, sh.environment(stdin, &stdout, &stderr))
	return result{stdout.String(), stderr.String(), code}
}

func (sh *shell) rea(args ...string) result { return sh.pipe("", args...) }

// must runs a command that has to succeed, and gives its data.
func (sh *shell) must(args ...string) string {
	sh.t.Helper()
	r := sh.rea(args...)
	if r.code != 0 {
		sh.t.Fatalf("rea %s ends with %d: %s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

func (sh *shell) write(name, content string) {
	sh.t.Helper()
	if err := os.WriteFile(filepath.Join(sh.dir, name), []byte(content), 0o666); err != nil {
		sh.t.Fatal(err)
	}
}

func (sh *shell) read(name string) string {
	sh.t.Helper()
	text, err := os.ReadFile(filepath.Join(sh.dir, name))
	if err != nil {
		sh.t.Fatal(err)
	}
	return string(text)
}
