package postgres_test

import (
	"crypto/rand"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

// strangers are other people's objects, with the names of REA's in other schemas. Whoever reads or calls one of
// them by mistake fails or gets nonsense.
const strangers = `
CREATE TABLE public.events (id int, seq text);
CREATE TABLE public.snapshots (n int);
CREATE TABLE public.feed (position text, event_id text);
CREATE VIEW public.history AS SELECT 'not yours'::text AS position;
INSERT INTO public.events VALUES (1, 'x');
CREATE SCHEMA hostile;
CREATE TABLE hostile.events (id int);
CREATE TABLE hostile.feed (n int);
CREATE SEQUENCE hostile.events_id_seq;
CREATE FUNCTION hostile.trap() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hostile function called'; END $$;
CREATE FUNCTION hostile.append(text, text, text, jsonb) RETURNS int LANGUAGE sql AS 'SELECT hostile.trap()';
CREATE FUNCTION hostile.try_append(text, text, jsonb, bigint, text, text, text, text, jsonb, boolean) RETURNS int LANGUAGE sql AS 'SELECT hostile.trap()';
CREATE FUNCTION hostile.name_ok(text) RETURNS boolean LANGUAGE sql AS 'SELECT hostile.trap() = 1';
CREATE FUNCTION hostile.object_ok(jsonb, int) RETURNS boolean LANGUAGE sql AS 'SELECT hostile.trap() = 1';
CREATE FUNCTION hostile.check_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hostile trigger called'; END $$;
CREATE FUNCTION hostile.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
CREATE FUNCTION hostile.feed_pass(int) RETURNS bigint LANGUAGE sql AS 'SELECT hostile.trap()::bigint';
CREATE FUNCTION hostile.feed_state() RETURNS bigint LANGUAGE sql AS 'SELECT hostile.trap()::bigint'`

// shadows stand before PostgreSQL's own names where a search_path names pg_catalog after them.
const shadows = `
CREATE FUNCTION hostile.octet_length(text) RETURNS int LANGUAGE sql AS 'SELECT hostile.trap()';
CREATE FUNCTION hostile.jsonb_typeof(jsonb) RETURNS text LANGUAGE sql AS 'SELECT hostile.trap()::text';
CREATE FUNCTION hostile.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$;
CREATE FUNCTION hostile.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT hostile.trap()::bigint';
CREATE FUNCTION hostile.pg_current_xact_id() RETURNS xid8 LANGUAGE sql AS $$ SELECT '3'::xid8 $$;
CREATE FUNCTION hostile.wrong(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT hostile.trap() = 1';
CREATE OPERATOR hostile.= (FUNCTION = hostile.wrong, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR hostile.<> (FUNCTION = hostile.wrong, LEFTARG = text, RIGHTARG = text);
CREATE FUNCTION hostile.nonsense(int, int) RETURNS int LANGUAGE sql AS 'SELECT 7';
CREATE OPERATOR hostile.+ (FUNCTION = hostile.nonsense, LEFTARG = int, RIGHTARG = int)`

// objects lists what is in the database, and REA's roles, but not what PostgreSQL brings.
const objects = `
SELECT string_agg(o, E'\n' ORDER BY o) FROM (
  SELECT 'schema ' || n.nspname AS o FROM pg_namespace n WHERE n.nspname !~ '^(pg_|information_schema)'
  UNION ALL SELECT 'relation ' || c.oid::regclass::text || c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname !~ '^(pg_|information_schema)'
  UNION ALL SELECT 'function ' || p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname !~ '^(pg_|information_schema)'
  UNION ALL SELECT 'operator ' || p.oid::regoperator::text FROM pg_operator p JOIN pg_namespace n ON n.oid = p.oprnamespace WHERE n.nspname !~ '^(pg_|information_schema)'
  UNION ALL SELECT 'trigger ' || t.tgname FROM pg_trigger t
  UNION ALL SELECT 'event trigger ' || t.evtname FROM pg_event_trigger t
  UNION ALL SELECT 'large ' || l.oid::text FROM pg_largeobject_metadata l
  UNION ALL SELECT 'extension ' || x.extname FROM pg_extension x
  UNION ALL SELECT 'setting ' || s::text FROM pg_db_role_setting s WHERE s.setdatabase = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
  UNION ALL SELECT 'role ' || r.rolname FROM pg_roles r WHERE r.rolname LIKE $1 || '%') x`

func TestNoNameOfOtherPeopleIsMistakenForREAs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, more string }{
		"an empty path":         {``, ""},
		"public first":          {`public, pg_catalog`, ""},
		"a hostile schema":      {`hostile, public`, ""},
		"hostile before it all": {`hostile, pg_catalog, public`, shadows},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Empty(t)
			s := connect(t, url)
			s.do(strangers)
			if c.more != "" {
				s.do(c.more)
			}
			prefix := "r" + strings.ToLower(rand.Text()[:8])
			before := s.text(objects, prefix)
			a, err := postgres.Open(t.Context(), with(t, url, "search_path", c.path), postgres.Config{RolePrefix: prefix})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if err := a.Migrate(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			appendAll(t, a.Archive)
			if c.more == "" { // the library's own queries trust the operators that its user's path names before pg_catalog
				readAll(t, a.Archive)
			}
			s.do(`SELECT set_config('search_path', $1, false)`, c.path)
			same(t, "search_path of the archive's sessions", connect(t, with(t, url, "search_path", c.path)).text(`SHOW search_path`), c.path)
			sayAll(s)
			s.do(`RESET search_path`)
			s.want("x", `SELECT seq FROM public.events`)
			s.want("0 0 0", `SELECT (SELECT count(*) FROM public.feed), (SELECT count(*) FROM hostile.events), (SELECT count(*) FROM hostile.feed)`)
			count, err := a.Autocommit().Count(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Uninstall(t.Context(), count); err != nil {
				t.Fatal(err)
			}
			if after := s.text(objects, prefix); after != before {
				t.Errorf("objects after uninstalling = %s, want those from before: %s", after, before)
			}
		})
	}
}

// appendAll goes through the ways to append of the library.
func appendAll(t *testing.T, a *rea.Archive) {
	t.Helper()
	tx := a.Autocommit()
	put(t, tx.With(rea.Expect(0), rea.Once("k"), rea.By("42"), rea.Because("r"), rea.Correlate("c"), rea.Metadata([]byte(`{}`))), order1, "A", "B")
	same(t, "Duplicate", put(t, tx.With(rea.Once("k")), order1, "A", "B").Duplicate, true)
	_, err := tx.With(rea.Expect(7)).Append(t.Context(), order1, rea.NewEvent{Type: "X"})
	same(t, "code of a conflict", rea.Code(err), "conflict")
	same(t, "history", positions(t, a), "order/1#1 order/1#2")
}

// readAll goes through import and every way to read.
func readAll(t *testing.T, a *rea.Archive) {
	t.Helper()
	tx := a.Autocommit()
	lines := []rea.Line{
		{Aggregate: order1, Event: rea.NewEvent{Type: "C", Payload: []byte(`{}`)}, Seq: 3, Key: "i"}, {Aggregate: order1, Event: rea.NewEvent{Type: "A", Payload: []byte(`{}`)}, Seq: 1},
		{Aggregate: order1, Event: rea.NewEvent{Type: "X", Payload: []byte(`{}`)}, Seq: 9},
	}
	err := a.Do(t.Context(), func(tx *rea.Tx) error {
		results, err := tx.Import(t.Context(), lines)
		if err != nil {
			return err
		}
		same(t, "results", fmt.Sprintf("%v %t %s", results[0].Err, results[1].Duplicate, rea.Code(results[2].Err)), "<nil> true hole")
		return tx.SaveImportProgress(t.Context(), rea.ImportProgress{Source: "hash", Name: "file", Lines: 3})
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := tx.ImportProgress(t.Context(), "hash")
	same(t, "progress", fmt.Sprint(p.Lines, err), "3 <nil>")
	same(t, "history", positions(t, a), "order/1#1 order/1#2 order/1#3")
	for filter, want := range map[rea.Filter]int{
		{Type: "order"}: 3, {TypePrefix: "or", EventPrefix: "A"}: 1, {Type: "order", ID: "1", Event: "B"}: 1, {Actor: "42", Reason: "r", Correlation: "c"}: 2,
	} {
		n := 0
		for _, err := range tx.History(t.Context(), filter) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		same(t, fmt.Sprintf("events for %+v", filter), n, want)
	}
	loaded, err := rea.Replay(t.Context(), tx, order1, rea.Merge)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "Seq", loaded.Seq, 3)
}

// sayAll goes through every function for SQL users.
func sayAll(s console) {
	s.t.Helper()
	s.do(`SELECT * FROM rea.append('sql', '1', 'A', '{"a": 1}', key => 'k')`)
	s.do(`SELECT * FROM rea.append('sql', 1, 'B')`)
	s.do(`SELECT * FROM rea.append_batch('sql', 1, '[{"event_type": "C"}, {"event_type": "D"}]')`)
	s.refused("RE001", `SELECT * FROM rea.append('sql', '1', 'X', expect => 1)`)
	s.refused("RE003", `SELECT * FROM rea.append('sql', '1', 'X', key => 'k')`)
	s.refused("RE005", `SELECT * FROM rea.append('', '1', 'X')`)
	s.refused("RE008", `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, seq) VALUES ('sql', '1', 'X', 9)`)
	s.refused("23514", `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ('sql', '1', 'X ')`)
	s.refused("RE007", `DELETE FROM rea.events`)
	s.do(`BEGIN; SELECT rea.set_context('42', 'why', NULL); INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ('sql', '1', 'E'); COMMIT`)
	s.do(`SELECT rea.feed_pass()`)
	if got := s.text(`SELECT seq, event_type, position IS NOT NULL, created_at < pg_catalog.now() + interval '1 hour' FROM rea.history WHERE aggregate_type OPERATOR(pg_catalog.=) 'sql' ORDER BY seq`); got !=
		"1 A true true, 2 B true true, 3 C true true, 4 D true true, 5 E true true" {
		s.t.Errorf("history = %s, want seqs 1 to 5, with positions and sane times", got)
	}
}

func TestADumpIsRestoredAndGoesOn(t *testing.T) {
	t.Parallel()
	bin, err := pgtest.Binaries("")
	if err != nil {
		t.Fatal(err)
	}
	a, s, url := archive(t)
	s.do(strangers)
	appendAll(t, a.Archive)
	readAll(t, a.Archive)
	s.do(`BEGIN; SELECT rea.append('order', '2', 'Lost'); ROLLBACK`)
	put(t, a.Autocommit(), order1, "Unnumbered")
	const all = `SELECT md5(string_agg(h::text, E'\n' ORDER BY h.id)) FROM rea.history h`
	before := s.text(all)
	for format, restore := range map[string]string{"custom": "pg_restore", "plain": "psql"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "dump")
			run(t, filepath.Join(bin, "pg_dump"), "--format", format, "--file", file, url)
			target := pgtest.Empty(t)
			if restore == "psql" {
				run(t, filepath.Join(bin, restore), "--set", "ON_ERROR_STOP=1", "--quiet", "--file", file, target)
			} else {
				run(t, filepath.Join(bin, restore), "--exit-on-error", "--dbname", target, file)
			}
			b, s := open(t, target), connect(t, target)
			s.want(before, all)
			s.want("x", `SELECT seq FROM public.events`)
			same(t, "history", positions(t, b.Archive), "order/1#1 order/1#2 order/1#3 order/1#4")
			same(t, "Seq", put(t, b.Autocommit(), order1, "After").Seq(), 5)
			same(t, "Duplicate", put(t, b.Autocommit().With(rea.Once("k")), order1, "A", "B").Duplicate, true)
			same(t, "history", positions(t, b.Archive), "order/1#1 order/1#2 order/1#3 order/1#4 order/1#5")
			s.refused("RE007", `DELETE FROM rea.events`)
			s.do(`SET session_replication_role = replica`)
			s.refused("RE007", `TRUNCATE rea.events`)
			if err := b.Migrate(t.Context(), func(m rea.Migration) { t.Errorf("migration %d was applied again", m.Version) }); err != nil {
				t.Errorf("Migrate = %v, want nothing to do", err)
			}
		})
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", filepath.Base(name), err, out)
	}
}

func TestUninstallNamesWhatDependsOnIt(t *testing.T) {
	t.Parallel()
	a, s, _ := archive(t)
	s.do(`CREATE VIEW public.mine AS SELECT seq FROM rea.events`)
	err := a.Uninstall(t.Context(), 0)
	if err == nil || !strings.Contains(err.Error(), "mine") {
		t.Errorf("Uninstall = %v, want an error that names the view", err)
	}
	put(t, a.Autocommit(), order1, "Still")
	s.want("1", `SELECT seq FROM public.mine`)
}

func TestUninstallRefusesWhileSomethingOutsideDependsOnREA(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]string{
		"a view":               `CREATE VIEW public.v AS SELECT seq FROM rea.events`,
		"a view with operator": `CREATE VIEW public.v AS SELECT 1 AS x WHERE 'a'::text OPERATOR(rea.=) 5::bigint`,
		"a column of its row":  `CREATE TABLE public.v (copy rea.events, note text)`,
		"an array of its rows": `CREATE TABLE public.v (copies rea.events[])`,
		"a function's result":  `CREATE FUNCTION public.v() RETURNS SETOF rea.events LANGUAGE sql AS 'SELECT NULL::rea.events'`,
		"a function's input":   `CREATE FUNCTION public.v(e rea.events) RETURNS int LANGUAGE sql AS 'SELECT 1'`,
		"a foreign key":        `CREATE TABLE public.v (id bigint REFERENCES rea.events (id))`,
		"a default":            `CREATE TABLE public.v (ok boolean DEFAULT rea.name_ok('x'))`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, s, _ := archive(t)
			s.do(made)
			err := a.Uninstall(t.Context(), 0)
			if err == nil || !strings.Contains(err.Error(), "v") || !strings.Contains(err.Error(), "depends") {
				t.Fatalf("Uninstall = %v, want a refusal that names v", err)
			}
			s.want("0", `SELECT count(*) FROM rea.events`)
		})
	}
}

func TestDefaultPrivilegesOfTheDatabaseNeitherGiveNorTakeAway(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	s := connect(t, url)
	name := s.text(`SELECT current_database()`)
	s.do(`CREATE ROLE ` + name + ` LOGIN;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO ` + name)
	if err := migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s.do(`GRANT rea_writer TO ` + name)
	u := connect(t, url)
	u.do(`SET SESSION AUTHORIZATION ` + name)
	u.refused("42501", `INSERT INTO rea.feed VALUES (1, 999)`)
	u.refused("42501", `DELETE FROM rea.feed_passes`)
	u.do(`SELECT rea.append('order', '1', 'OrderPlaced')`)
	u.do(`SELECT rea.feed_pass()`)
	u.do(`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ('order', '1', 'X')`)
	s.do(`DROP OWNED BY ` + name + `; DROP ROLE ` + name)
}

func TestAnEmptiedStateOfTheFeedIsSaidAndMended(t *testing.T) {
	t.Parallel()
	a, s, _ := archive(t)
	put(t, a.Autocommit(), order1, "OrderPlaced")
	same(t, "history", positions(t, a.Archive), "order/1#1")
	s.do(`DELETE FROM rea.feed_passes`)
	s.refused("55000", `SELECT rea.feed_pass()`)
	s.do(`SELECT rea.mend_sequence()`)
	put(t, a.Autocommit(), order1, "NoteAdded")
	same(t, "history", positions(t, a.Archive), "order/1#1 order/1#2")
}

func TestAUniqueIndexOfSomebodyElsesIsNamedAndEndsAnImport(t *testing.T) {
	t.Parallel()
	a, s, _ := archive(t)
	s.do(`SET ROLE rea_owner; CREATE UNIQUE INDEX uq ON rea.events ((payload->>'x')); RESET ROLE`)
	line := rea.Line{Aggregate: order1, Event: rea.NewEvent{Type: "X", Payload: []byte(`{"x": 1}`)}}
	err := a.Do(t.Context(), func(tx *rea.Tx) error {
		_, err := tx.Import(t.Context(), []rea.Line{line, line})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "uq") {
		t.Errorf("import = %v, want an error that names the index", err)
	}
	s.do(`SELECT rea.append('order', '1', 'X', '{"x": 1}')`)
	if e := s.refused("55000", `SELECT rea.append('order', '1', 'X', '{"x": 1}')`); strings.Contains(e.Message, "sequence") {
		t.Errorf("message = %q, want one about what was added to rea.events", e.Message)
	}
}
