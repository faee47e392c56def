package postgres_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

// namesakes are other people's tables with the names of the projections.
const namesakes = `
CREATE TABLE public.orders (aggregate_id int); CREATE TABLE public.hourly (n text);
CREATE TABLE hostile.orders (aggregate_id int); CREATE TABLE hostile.hourly (n text); CREATE TABLE hostile.projections (name int); CREATE TABLE hostile.rebuilds (name int)`

// followAll runs the projections until they have everything, makes each anew, and compares them with the events.
func followAll(t *testing.T, url string) {
	t.Helper()
	a := countingArchive(t, url)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- a.Run(ctx) }()
	has(t, a, put(t, a.Autocommit(), order1, "A"))
	for _, name := range []string{"hourly", "orders"} {
		if err := a.Rebuild(t.Context(), name, nil); err != nil {
			t.Errorf("rebuild %s: %v", name, err)
		}
	}
	has(t, a, put(t, a.Autocommit(), order1, "A"))
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, name := range []string{"hourly", "orders"} {
		if err := a.CheckProjection(t.Context(), name, func(d rea.Drift) { t.Errorf("drift of %s: %+v", name, d) }); err != nil {
			t.Errorf("check %s: %v", name, err)
		}
	}
}

func TestProjectionsAreNotMistakenForOtherPeoplesTables(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"an empty path": ``, "public first": `public, pg_catalog`, "a hostile schema": `hostile, public`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			s := connect(t, url)
			s.do(strangers)
			s.do(namesakes)
			followAll(t, with(t, url, "search_path", path))
			s.want("2 2", `SELECT o.n, h.n FROM rea_views.orders o, (SELECT sum(n)::bigint AS n FROM rea_views.hourly) h`)
			s.want("0 0 0 0", `SELECT (SELECT count(*) FROM public.orders), (SELECT count(*) FROM public.hourly), (SELECT count(*) FROM hostile.orders), (SELECT count(*) FROM hostile.projections)`)
			a, err := postgres.Open(t.Context(), url, postgres.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if err := a.Uninstall(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			s.want("0 2", `SELECT (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'rea%'), (SELECT count(*) FROM pg_class WHERE relname = 'orders')`)
		})
	}
}

func TestProjectionsGoOnAfterADumpIsRestored(t *testing.T) {
	t.Parallel()
	bin, err := pgtest.Binaries("")
	if err != nil {
		t.Fatal(err)
	}
	url := pgtest.Database(t)
	connect(t, url).do(strangers)
	followAll(t, url)
	file, target := filepath.Join(t.TempDir(), "dump"), pgtest.Empty(t)
	run(t, filepath.Join(bin, "pg_dump"), "--format", "custom", "--file", file, url)
	run(t, filepath.Join(bin, "pg_restore"), "--exit-on-error", "--dbname", target, file)
	s := connect(t, target)
	s.want("2 2", `SELECT o.n, h.n FROM rea_views.orders o, (SELECT sum(n)::bigint AS n FROM rea_views.hourly) h`)
	followAll(t, target)
	s.want("4 4", `SELECT o.n, h.n FROM rea_views.orders o, (SELECT sum(n)::bigint AS n FROM rea_views.hourly) h`)
}
