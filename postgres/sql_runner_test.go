package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
)

// runnerDatabase gives a database in which somebody has made the tables of counting, and the address of a login that may run them
// alone.
func runnerDatabase(t *testing.T) (admin console, login string) {
	t.Helper()
	s, name := roleConsole(t, "rea_runner")
	url := s.Config().ConnString()
	owner := countingArchive(t, url)
	for _, projection := range []string{"hourly", "orders"} {
		if err := owner.Rebuild(t.Context(), projection, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s, with(t, url, "user", name)
}

func TestARunnersLoginKeepsProjectionsAndTouchesNothingElse(t *testing.T) {
	t.Parallel()
	s, login := runnerDatabase(t)
	a, admin := countingArchive(t, login), open(t, s.Config().ConnString())
	runs(t, a)
	has(t, a, put(t, admin.Autocommit(), order1, "A"))
	s.want("1", `SELECT sum(n)::text FROM rea_views.hourly`)
	s.want("1", `SELECT n::text FROM rea_views.orders WHERE aggregate_id = '1'`)
	if err := errors.Join(a.PauseProjection(t.Context(), "hourly"), a.ResumeProjection(t.Context(), "hourly")); err != nil {
		t.Error(err)
	}
	for _, sql := range append([]string{
		`DROP TABLE rea_views.hourly`, `TRUNCATE rea_views.hourly`, `ALTER TABLE rea_views.hourly ADD x int`, `CREATE INDEX ON rea_views.hourly (n)`,
		insert("", ""), `SELECT * FROM rea.append('order', '1', 'A')`, `SELECT rea.guard_view('rea_views.hourly')`,
	}, nobodyMay...) {
		s.refused(denied, sql)
	}
	s.do(`RESET SESSION AUTHORIZATION; SET ROLE rea_runner`)
	s.refused(denied, `INSERT INTO public.business VALUES (1)`)
	s.do(`RESET ROLE`)
	// what is built beside and switched is the runner's to keep, too
	if err := countingArchive(t, s.Config().ConnString()).Rebuild(t.Context(), "orders", nil); err != nil {
		t.Fatal(err)
	}
	has(t, a, put(t, admin.Autocommit(), order1, "A"))
	s.want("2", `SELECT n::text FROM rea_views.orders WHERE aggregate_id = '1'`)
	s.want("rea_owner", `SELECT string_agg(DISTINCT tableowner::text, ' ') FROM pg_tables WHERE schemaname = 'rea_views'`)
}

func TestARunnersLoginFoldsInlineRowsThatAreBehind(t *testing.T) {
	t.Parallel()
	s, name := roleConsole(t, "rea_runner")
	config := counting(t)
	list := config.Catalog.Projections()
	for i := range list {
		list[i].Inline = list[i].Of != ""
	}
	catalog, err := config.Catalog.WithProjections(list...)
	if err != nil {
		t.Fatal(err)
	}
	config.Catalog = catalog
	opened := func(url string) *postgres.Archive {
		a, err := postgres.Open(t.Context(), url, config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		return a
	}
	owner := opened(s.Config().ConnString())
	if _, err := owner.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := owner.Rebuild(t.Context(), "hourly", nil); err != nil {
		t.Fatal(err)
	}
	s.do(`RESET SESSION AUTHORIZATION; ALTER TABLE rea.events DISABLE TRIGGER "orders (rea catalog apply)"`)
	receipt := put(t, owner.Autocommit(), order1, "A")
	s.do(`ALTER TABLE rea.events ENABLE TRIGGER "orders (rea catalog apply)"`)
	a := opened(with(t, s.Config().ConnString(), "user", name))
	runs(t, a)
	has(t, a, receipt)
	s.want("1", `SELECT n::text FROM rea_views.orders WHERE aggregate_id = '1'`)
	has(t, a, put(t, owner.Autocommit(), order1, "A"))
	s.want("2", `SELECT n::text FROM rea_views.orders WHERE aggregate_id = '1'`)
}

func TestWhatARunnersLoginMayNotMakeIsNamedAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	s, login := runnerDatabase(t)
	config := counting(t)
	catalog, err := config.Catalog.WithProjections(append(config.Catalog.Projections(),
		rea.Projection{Name: "daily", On: []string{"A"}, Every: 24 * time.Hour, Measures: []rea.Measure{{Name: "n", Kind: rea.MeasureCount}}})...)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 100)
	config.Catalog, config.Logger = catalog, slog.New(telling{told: told})
	a, err := postgres.Open(t.Context(), login, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	runs(t, a)
	for line := range told {
		if strings.Contains(line, "daily") && strings.Contains(line, "rea run --once daily") && strings.Contains(line, "rea_owner") {
			break
		}
	}
	admin := open(t, s.Config().ConnString())
	has(t, a, put(t, admin.Autocommit(), order1, "A"))
	var refused *rea.OwnerError
	if err := a.Rebuild(t.Context(), "hourly", nil); !errors.As(err, &refused) || refused.Projection != "hourly" {
		t.Errorf("rebuild by a runner = %v, want an OwnerError about hourly", err)
	}
	config.Logger = nil
	owner, err := postgres.Open(t.Context(), s.Config().ConnString(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Close)
	if err := owner.Rebuild(t.Context(), "daily", nil); err != nil {
		t.Fatal(err)
	}
	if err := a.WaitForEvent(t.Context(), "daily", put(t, admin.Autocommit(), order1, "A").Events[0].ID); err != nil {
		t.Error(err)
	}
}

// telling sends each warning with its attributes.
type telling struct {
	slog.Handler
	told chan<- string
}

func (h telling) Enabled(context.Context, slog.Level) bool { return true }

func (h telling) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.Value.String(); return true })
	h.told <- line
	return nil
}

// A program may have set its connections up as it likes: its functions find them so.
func TestAFunctionOfTheProgramsRunsWithWhatItsConnectionHasSet(t *testing.T) {
	t.Parallel()
	s, role := roleConsole(t, "rea_reader")
	url := s.Config().ConnString()
	s.do(`RESET SESSION AUTHORIZATION; CREATE SCHEMA shop; GRANT USAGE ON SCHEMA shop TO ` + role + `; CREATE TABLE shop.seen (n int); GRANT ALL ON shop.seen TO ` + role)
	pool, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	pool.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, `SET search_path = shop, public; SET jit = on; SET lock_timeout = '7s'; SET idle_in_transaction_session_timeout = '70s'; SET enable_seqscan = off; SET ROLE `+role)
		return err
	}
	connected, err := pgxpool.NewWithConfig(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connected.Close)
	var found string
	var once sync.Once
	ran := make(chan struct{})
	apply := func(ctx context.Context, tx rea.SQL, _ []rea.Event) error {
		text := ""
		_, err := tx.Query(ctx, []any{&text}, func() error { return nil }, `
SELECT concat_ws(' ', current_user = $1, current_setting('role') = $1, current_setting('search_path'), current_setting('jit'), current_setting('lock_timeout'),
                 current_setting('idle_in_transaction_session_timeout'), current_setting('enable_seqscan'))`, role)
		if err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO seen VALUES (1)`)
		}
		once.Do(func() { found = text; close(ran) })
		return err
	}
	a, err := postgres.New(connected, postgres.Config{Config: rea.Config{Projections: []rea.GoProjection{{Name: "seen", Apply: apply}}, PollEvery: 10 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	runs(t, a)
	put(t, open(t, url).Autocommit(), order1, "A")
	<-ran
	same(t, "settings", found, "t t shop, public on 7s 70s off")
	if err := a.WaitFor(t.Context(), "seen", 1); err != nil {
		t.Error(err)
	}
	s.want("1", `SELECT count(*)::text FROM shop.seen`)
}
