// Command bench measures REA against what the same database does without it: each path against its limit, the
// plainest statement that does the same work, in slices of one run that alternate between the two.
//
//	go run ./bench                  # everything, some ten minutes
//	go run ./bench -short           # the same with short slices, less than a minute, and unsteady
//	go run ./bench -only 'append'   # groups whose name matches
//	go run ./bench -json            # one JSON object a line: the machine first, then each row
//
// It starts a PostgreSQL server of its own with the settings that it prints, so that it may read from the system how
// much CPU the backends took. With -db it uses a server that runs already and prints throughput alone.
//
// How to read a row. The ratio is the median over the rounds of (path / limit), where the limit is measured before
// and after in every round. The A/A band is the middle half of the ratios of these two slices of the limit: what the
// machine's noise alone looks like. A throughput below its target by less than that noise is "noise", not "missed".
// CPU is that of the backends of the measured connections (user and system) per event; it is much steadier.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// bench is one run.
type bench struct {
	server *server
	out    *report
	short  bool
}

type group struct {
	name string
	run  func(context.Context) error
}

// groups are what -only chooses from, in the order in which they run: copies of databases, which make the server
// write a checkpoint, last.
func (b *bench) groups() []group {
	with := func(run func(context.Context, int) error, n int) func(context.Context) error {
		return func(ctx context.Context) error { return run(ctx, n) }
	}
	return []group{
		{"append/1", with(b.appends, 1)},
		{"append/8", with(b.appends, 8)},
		{"append/32", with(b.appends, 32)},
		{"machine/1", with(b.machines, 1)},
		{"machine/8", with(b.machines, 8)},
		{"functions/1", with(b.functions, 1)},
		{"functions/8", with(b.functions, 8)},
		{"inline/1", with(b.inline, 1)},
		{"inline/32", with(b.inline, 32)},
		{"batch", b.batch},
		{"import", b.imports},
		{"feed/8", with(b.feed, 8)},
		{"feed/32", with(b.feed, 32)},
		{"project/8", with(b.projected, 8)},
		{"project/32", with(b.projected, 32)},
		{"page", b.page},
		{"load/10", with(b.load, 10)},
		{"load/1000", with(b.load, 1_000)},
		{"load/10000", with(b.load, 10_000)},
		{"sqlite/1", with(b.sqlite, 1)},
		{"sqlite/32", with(b.sqlite, 32)},
		{"apply/postgres", b.applyPostgres},
		{"apply/sqlite", b.applySQLite},
		{"backlog", b.backlog},
		{"baseline", b.baseline},
		{"guard", b.guarded},
		{"project", b.project},
	}
}

func main() {
	only := flag.String("only", "", "run the groups whose name matches this `regexp`, such as append/8 or feed")
	short := flag.Bool("short", false, "short slices: less than a minute, for a first look")
	asJSON := flag.Bool("json", false, "print one JSON object a line")
	db := flag.String("db", "", "`URL` of a running server where databases may be created; no CPU figures then")
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: bench [-only regexp] [-short] [-json] [-db URL]", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, chosen, *short, *asJSON, *db); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, chosen *regexp.Regexp, short, asJSON bool, db string) (err error) {
	// A server's usual place is a disk; pgtest would prefer memory.
	if os.Getenv("TMPDIR") == "" {
		os.Setenv("TMPDIR", os.TempDir())
	}
	s, err := startServer(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b := &bench{server: s, short: short, out: &report{json: asJSON, start: time.Now()}}
	b.out.machine(s.machine)
	for _, g := range b.groups() {
		if !chosen.MatchString(g.name) {
			continue
		}
		b.out.group = g.name
		b.out.progress()
		if err := g.run(ctx); err != nil {
			return fmt.Errorf("bench %s: %w", g.name, err)
		}
	}
	b.out.end()
	return nil
}

// slice is how long one contender runs at a stretch.
func (b *bench) slice() time.Duration {
	if b.short {
		return 120 * time.Millisecond
	}
	return 700 * time.Millisecond
}

// rounds is how often each contender gets a slice.
func (b *bench) rounds() int {
	if b.short {
		return 3
	}
	return 5
}

// prefilled is how many events the tables hold before appends and reads are measured.
func (b *bench) prefilled() int {
	if b.short {
		return 20_000
	}
	return 200_000
}
