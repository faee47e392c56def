package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

// login makes a role for t alone, with other roles granted, and becomes it.
func (s console) login(granted string) (name string) {
	s.t.Helper()
	name = "test_" + strings.ToLower(rand.Text()[:10])
	s.do(`CREATE ROLE ` + name + ` LOGIN`)
	s.t.Cleanup(func() {
		url := pgtest.AdminURL(s.t)
		conn, err := pgx.Connect(context.Background(), url)
		if err == nil {
			_, err = conn.Exec(context.Background(), `DROP ROLE `+name)
			_ = conn.Close(context.Background())
		}
		if err != nil {
			s.t.Errorf("drop role: %v", err)
		}
	})
	if granted != "" {
		s.do(`GRANT ` + granted + ` TO ` + name)
	}
	s.do(`SET SESSION AUTHORIZATION ` + name)
	return name
}

// roleConsole gives a session of a login, whose role is dropped after the database.
func roleConsole(t *testing.T, granted string) (console, string) {
	t.Helper()
	pgtest.Database(t) // the first migration of a cluster makes the roles
	admin := connect(t, pgtest.AdminURL(t))
	name := admin.login(granted)
	url := pgtest.Database(t) // after the role, so that it is dropped before it
	s := connect(t, url)
	s.do(`CREATE TABLE public.business (n int); GRANT ALL ON public.business TO ` + name)
	s.do(insert(", idempotency_key", ", 'used'") + `; SET SESSION AUTHORIZATION ` + name)
	return s, name
}

const denied = "42501"

// nobodyMay are statements that no role but the owner may run; a sequence of values is not for drawing ids ahead.
var nobodyMay = []string{
	`UPDATE rea.events SET reason = 'x'`, `DELETE FROM rea.events`, `TRUNCATE rea.events`, upsert,
	`SELECT * FROM rea.events FOR UPDATE`, `SELECT * FROM rea.events FOR SHARE`, `DO $$ BEGIN LOCK TABLE rea.events IN EXCLUSIVE MODE; END $$`,
	insert(", id", ", 7"), insert(", id", ", NULL"), insert(", xid", ", '5'"), insert(", db_user", ", 'root'"), insert(", recorded_at", ", now()"),
	insert(", status", ", 'paid'"), insert(", catalog_version", ", 1"),
	`INSERT INTO rea.feed VALUES (1, 1)`, `UPDATE rea.feed SET position = 1`, `DELETE FROM rea.feed`, `TRUNCATE rea.feed`,
	`INSERT INTO rea.feed_passes SELECT * FROM rea.feed_passes`, `UPDATE rea.feed_passes SET top_id = 0`, `DELETE FROM rea.feed_passes`,
	`INSERT INTO rea.feed_holes VALUES ('5', '{}')`, `DELETE FROM rea.feed_holes`,
	`INSERT INTO rea.schema_migrations VALUES (99, 'x', 'x')`, `DELETE FROM rea.schema_migrations`,
	`INSERT INTO rea.roles VALUES ('reader', 'x', true)`, `UPDATE rea.roles SET made_here = true`,
	`SELECT nextval('rea.events_id_seq')`, `SELECT setval('rea.events_id_seq', 1)`, `ALTER SEQUENCE rea.events_id_seq CACHE 10`,
	`ALTER TABLE rea.events DISABLE TRIGGER ALL`, `DROP TRIGGER refuse_row ON rea.events`, `DROP TABLE rea.events`, `ALTER TABLE rea.events ADD x int`,
	`CREATE TRIGGER x BEFORE INSERT ON rea.events FOR EACH ROW EXECUTE FUNCTION rea.check_insert()`, `CREATE TABLE rea.x (n int)`,
	`CREATE FUNCTION rea.x() RETURNS int LANGUAGE sql RETURN 1`, `SELECT rea.install_roles('rea')`, `SELECT rea.protect('rea.events')`,
	`UPDATE rea.projections SET definition = ''`, `INSERT INTO rea.projections (name) VALUES ('x')`, `DELETE FROM rea.projections`, `CREATE TABLE rea_views.x (n int)`,
	`SET session_replication_role = replica`, `SET ROLE rea_owner`,
}

func TestWhatEachRoleMayDo(t *testing.T) {
	t.Parallel()
	created, corrected := insert(", created_at", ", '2020-01-01Z'"), insert(", correction, actor_id, reason", ", true, '42', 'why'")
	writes := []string{
		insert("", ""), insert(", seq, payload, event_version, actor_id, reason, correlation_id, idempotency_key, metadata, key_events", `, 2, '{"a": 1}', 2, 'a', 'r', 'c', 'k', '{}', 1`),
		insert(", idempotency_key", ", 'used'") + ` ON CONFLICT DO NOTHING`, `SELECT * FROM rea.append('order', '1', 'X', key => 'k')`,
		`SELECT * FROM rea.append_batch('order', 1, '[{"event_type": "A"}, {"event_type": "B"}]')`, `SELECT * FROM rea.try_append('order', '1', '[{"event_type": "X"}]', 77)`,
		`SELECT rea.set_context('42', 'why', NULL)`,
	}
	reads := []string{
		`SELECT * FROM rea.events`, `SELECT * FROM rea.feed`, `SELECT * FROM rea.history`, `SELECT * FROM rea.imports`, `SELECT * FROM rea.snapshots`, `SELECT * FROM rea.schema_migrations`, `SELECT rea.feed_pass()`,
	}
	snapshots := []string{`INSERT INTO rea.snapshots (aggregate_type, aggregate_id, seq, event_id, fingerprint, digest, state) VALUES ('order', '9', 1, 1, 'f', 'd', '{}')
		ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE SET seq = 1`, `UPDATE rea.snapshots SET seq = 1`, `DELETE FROM rea.snapshots`}
	writes = append(writes, snapshots...)
	imports := []string{`INSERT INTO rea.imports (source, name, lines, stored, duplicates, rejected, done) VALUES ('h', 'n', 1, 1, 0, 0, false)
		ON CONFLICT (source) DO UPDATE SET lines = 2`}
	moves := []string{`UPDATE rea.projections SET position = 1, event_id = 1, updated_at = now(), runner = 'x', state = 'paused', attempts = 1, failed_position = 1, error = 'x',
		failing_since = now(), next_try_at = now(), skipped = '[]'`, `SELECT * FROM rea.projections FOR UPDATE`, `UPDATE rea.rebuilds SET position = 1, event_id = 1, failed_position = 1, error = '', skipped = '[]', updated_at = now()`}
	correcting := []string{corrected, `SELECT * FROM rea.append('order', '1', 'X', actor => 'a', reason => 'r', correction => true)`}
	for role, c := range map[string]struct{ may, mayNot [][]string }{
		"":             {nil, [][]string{writes[:6], reads[:7], snapshots, imports, correcting, moves, {created}}},
		"rea_reader":   {[][]string{reads}, [][]string{writes[:5], snapshots, imports, correcting, moves, {created}}},
		"rea_writer":   {[][]string{reads, writes}, [][]string{imports, correcting, moves, {created}}},
		"rea_importer": {[][]string{reads, writes, imports, {created}}, [][]string{correcting}},
		"rea_operator": {[][]string{reads, writes, correcting}, [][]string{imports, moves, {created}}},
		"rea_runner":   {[][]string{reads, snapshots, moves}, [][]string{writes[:5], imports, correcting, {created}}},
	} {
		t.Run("as "+role, func(t *testing.T) {
			t.Parallel()
			s, _ := roleConsole(t, role)
			for _, list := range c.may {
				for _, sql := range list {
					// the pass needs a transaction of its own
					if strings.Contains(sql, "feed_pass()") {
						s.do(sql)
						continue
					}
					s.do(`BEGIN`)
					s.do(sql)
					s.do(`ROLLBACK`)
				}
			}
			for _, list := range append(c.mayNot, nobodyMay) {
				for _, sql := range list {
					s.refused(denied, sql)
				}
			}
		})
	}
}

func TestTheLoginIsRecordedWhateverRoleItTakes(t *testing.T) {
	t.Parallel()
	s, name := roleConsole(t, "rea_writer")
	s.do(`SELECT rea.append('order', '2', 'X')`)
	s.do(`SET ROLE rea_writer; SELECT rea.append('order', '2', 'X'); RESET ROLE`)
	s.want(name+", "+name, `SELECT db_user FROM rea.events WHERE aggregate_id = '2' ORDER BY seq`)
}

// poolOf gives a pool whose sessions are those of a login.
func poolOf(t *testing.T, url, login string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, `SET SESSION AUTHORIZATION `+login)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestAppendThroughGoAsEachRole(t *testing.T) {
	t.Parallel()
	s, name := roleConsole(t, "rea_writer")
	pool := poolOf(t, s.Config().ConnString(), name)
	a, err := postgres.New(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, a.Autocommit().With(rea.By("42"), rea.Once("k")), order1, "A", "B")
	same(t, "history", positions(t, a.Archive), "order/1#1 order/1#2 order/1#3")
	_, err = a.Autocommit().With(rea.Correction(), rea.By("42"), rea.Because("why")).Append(t.Context(), order1, rea.NewEvent{Type: "X"})
	same(t, "SQLSTATE of a correction by a writer", stateOf(err), denied)
}

func TestALoadAsAReaderIsSilentAboutSnapshotsThatItMayNotStore(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"rea_reader", "rea_writer"} {
		s, name := roleConsole(t, role)
		s.do(`RESET SESSION AUTHORIZATION; SELECT rea.append('order', '7', 'X', jsonb_build_object('n', n)) FROM generate_series(1, 5) n`)
		catalog, err := rea.NewCatalog(rea.Type{Name: "order", SnapshotEvery: 2, FoldVersion: 1, Events: []rea.EventType{{Name: "X", Fold: rea.Merge}}})
		if err != nil {
			t.Fatal(err)
		}
		var warned []string
		a, err := postgres.New(poolOf(t, s.Config().ConnString(), name), postgres.Config{Config: rea.Config{Catalog: catalog, Logger: slog.New(notes{lines: &warned})}})
		if err != nil {
			t.Fatal(err)
		}
		order := rea.Ref{Type: "order", ID: "7"}
		for range 2 {
			loaded, err := a.Autocommit().Load(t.Context(), order)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "state as "+role, string(loaded.State["n"]), "5")
		}
		_, err = a.Snapshot(t.Context(), order)
		if role == "rea_reader" {
			same(t, "SQLSTATE of Snapshot as a reader", stateOf(err), denied)
			s.want("0", `SELECT count(*) FROM rea.snapshots`)
		} else {
			same(t, "Snapshot as a writer", err, nil)
			s.want("1", `SELECT count(*) FROM rea.snapshots`)
		}
		for _, line := range warned {
			if !strings.Contains(line, "is not stored") { // for debugging
				t.Errorf("as %s: logged %q", role, line)
			}
		}
	}
}

// notes collects warnings.
type notes struct {
	slog.Handler
	lines *[]string
}

func (n notes) Enabled(context.Context, slog.Level) bool { return true }

func (n notes) Handle(_ context.Context, r slog.Record) error {
	*n.lines = append(*n.lines, r.Message)
	return nil
}

func TestInstallingWorksWithoutTheRightToMakeRolesWhichMayComeLater(t *testing.T) {
	t.Parallel()
	admin := connect(t, pgtest.AdminURL(t))
	name := admin.login("")
	url := pgtest.Empty(t)
	s := connect(t, url)
	s.do(`GRANT CREATE ON DATABASE ` + pgx.Identifier{s.Config().Database}.Sanitize() + ` TO ` + name)
	pool := poolOf(t, url, name)
	var warned []string
	prefix := "r" + strings.ToLower(rand.Text()[:8])
	a, err := postgres.New(pool, postgres.Config{RolePrefix: prefix, Config: rea.Config{Logger: slog.New(notes{lines: &warned})}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"owner", "writer", "importer", "operator", "reader", "runner"} {
		if !strings.Contains(strings.Join(warned, "\n"), fmt.Sprintf("may not create the role %s_%s", prefix, role)) {
			t.Errorf("warnings = %q, want one that names %s_%s", warned, prefix, role)
		}
	}
	put(t, a.Autocommit(), order1, "A")
	same(t, "history", positions(t, a.Archive), "order/1#1")
	warned = nil
	if err := a.Migrate(t.Context(), nil); err != nil || len(warned) > 0 {
		t.Errorf("Migrate again = %v, warnings %q, want none", err, warned)
	}
	// Somebody who may make roles does so later, by migrating once more.
	able, err := postgres.Open(t.Context(), url, postgres.Config{RolePrefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer able.Close()
	if err := able.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.want("6", `SELECT count(*) FROM rea.roles WHERE made_here`)
	s.want(prefix+"_owner", `SELECT tableowner FROM pg_tables WHERE schemaname = 'rea' AND tablename = 'events'`)
	if err := able.Uninstall(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Autocommit().Append(t.Context(), order1, rea.NewEvent{Type: "X"}); !errors.Is(err, rea.ErrNoSchema) {
		t.Errorf("append after Uninstall = %v, want ErrNoSchema", err)
	}
}

func TestWhoeverInstalledWithoutOtherRolesMayUninstall(t *testing.T) {
	t.Parallel()
	admin := connect(t, pgtest.AdminURL(t))
	name := admin.login("")
	url := pgtest.Empty(t)
	s := connect(t, url)
	s.do(`GRANT CREATE ON DATABASE ` + pgx.Identifier{s.Config().Database}.Sanitize() + ` TO ` + name)
	pool := poolOf(t, url, name)
	a, err := postgres.New(pool, postgres.Config{RolePrefix: "r" + strings.ToLower(rand.Text()[:8]), Config: rea.Config{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	put(t, a.Autocommit(), order1, "A")
	s.do(`SET SESSION AUTHORIZATION ` + name)
	s.refused("RE007", `DELETE FROM rea.events`)
	if err := a.Uninstall(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.want("0", `SELECT count(*) FROM pg_namespace WHERE nspname = 'rea'`)
}

func TestALoginThatMayMakeRolesHandsTheTablesOver(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	s := connect(t, url)
	name := s.text(`SELECT current_database()`) // roles belong to the cluster: other tests have their own
	s.do(`CREATE ROLE ` + name + ` LOGIN CREATEROLE; GRANT CREATE ON DATABASE ` + name + ` TO ` + name)
	pool := poolOf(t, url, name)
	prefix := "p" + name[len(name)-12:]
	a, err := postgres.New(pool, postgres.Config{RolePrefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.want(prefix+"_owner", `SELECT tableowner FROM pg_tables WHERE schemaname = 'rea' AND tablename = 'events'`)
	s.want("", `SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'rea'::regnamespace AND p.proowner::regrole::text <> $1`, prefix+"_owner")
	put(t, a.Autocommit(), order1, "OrderPlaced")

	other, err := postgres.New(pool, postgres.Config{RolePrefix: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Migrate(t.Context(), nil); err == nil {
		t.Errorf("migrate with another prefix: error = nil, want a refusal that names %s_", prefix)
	}
	pool.Close()
	s.do(`DROP SCHEMA rea_views CASCADE; DROP SCHEMA rea CASCADE; REVOKE ALL ON DATABASE ` + name + ` FROM ` + name)
	for _, kind := range []string{"owner", "writer", "importer", "operator", "reader", "runner"} {
		s.do(`DROP ROLE ` + prefix + `_` + kind)
	}
	s.do(`DROP ROLE ` + name)
}
