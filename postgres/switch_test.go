package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

// recreating is an archive like that of counting, which makes views again.
func recreating(t *testing.T, url string) *postgres.Archive {
	t.Helper()
	config := counting(t)
	config.RecreateViews = true
	archive, err := postgres.Open(t.Context(), url, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(archive.Close)
	return archive
}

// rolesConsole gives a superuser's session and two roles, which are dropped after the database.
func rolesConsole(t *testing.T) (s console, ada, eve string) {
	t.Helper()
	admin := connect(t, pgtest.AdminURL(t))
	ada = admin.login("")
	admin.do(`RESET SESSION AUTHORIZATION`)
	eve = admin.login("")
	return connect(t, pgtest.Database(t)), ada, eve
}

// othersSQL is all that is to be the same after a switch, of views in public and of the tables in rea_views.
const othersSQL = `
SELECT string_agg(x, E'\n' ORDER BY x) FROM (
    SELECT concat_ws(' ', c.relkind, c.oid::regclass, c.relowner::regrole, c.relreplident, c.relispopulated, c.reloptions::text, a.acl, obj_description(c.oid, 'pg_class'),
               CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END) AS x
    FROM pg_class c
    CROSS JOIN LATERAL (SELECT string_agg(e::text, ' ' ORDER BY e::text) AS acl FROM unnest(c.relacl) e) a
    WHERE c.relnamespace IN ('rea_views'::regnamespace, 'public'::regnamespace)
    UNION ALL
    SELECT concat_ws(' ', a.attrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod), (SELECT string_agg(e::text, ' ' ORDER BY e::text) FROM unnest(a.attacl) e),
               col_description(a.attrelid, a.attnum), pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.relnamespace IN ('rea_views'::regnamespace, 'public'::regnamespace) AND a.attnum > 0
    UNION ALL
    SELECT pg_get_indexdef(i.indexrelid) || i.indisreplident FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace IN ('rea_views'::regnamespace, 'public'::regnamespace)
    UNION ALL
    SELECT concat_ws(' ', k.conrelid::regclass, k.conname, pg_get_constraintdef(k.oid), obj_description(k.oid, 'pg_constraint')) FROM pg_constraint k WHERE k.connamespace IN ('rea_views'::regnamespace, 'public'::regnamespace)
    UNION ALL
    SELECT concat_ws(' ', pg_get_triggerdef(g.oid), g.tgenabled, obj_description(g.oid, 'pg_trigger')) FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
    WHERE c.relnamespace IN ('rea_views'::regnamespace, 'public'::regnamespace) AND NOT g.tgisinternal
    UNION ALL
    SELECT pg_get_ruledef(r.oid) FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', pg_get_statisticsobjdef(s.oid), obj_description(s.oid, 'pg_statistic_ext')) FROM pg_statistic_ext s
) o`

func TestASwitchTakesOverWhatOthersHaveMade(t *testing.T) {
	t.Parallel()
	s, ada, eve := rolesConsole(t)
	a := recreating(t, s.Config().ConnString())
	put(t, a.Autocommit(), order1, "A")
	for _, name := range []string{"hourly", "orders"} {
		if err := a.Rebuild(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	named := strings.NewReplacer("ada", ada, "eve", eve)
	s.do(named.Replace(`
		GRANT CREATE ON SCHEMA public TO ada; GRANT USAGE ON SCHEMA rea_views TO ada;
		GRANT SELECT ON rea_views.orders TO ada;
		GRANT SELECT (n) ON rea_views.orders TO eve;
		COMMENT ON COLUMN rea_views.orders.n IS 'how "many"';
		CREATE INDEX "by N" ON rea_views.orders USING btree (n DESC, (lower(aggregate_id))) INCLUDE (rea_seq) WITH (fillfactor = 50) WHERE n > 0;
		CREATE UNIQUE INDEX "rea_views.orders" ON rea_views.orders (rea_seq, aggregate_id COLLATE "C" text_pattern_ops);
		COMMENT ON INDEX rea_views."by N" IS 'mine';
		ALTER TABLE rea_views.orders ADD CONSTRAINT "not less" CHECK (n >= 0), ADD CONSTRAINT one UNIQUE (aggregate_id, n) DEFERRABLE, REPLICA IDENTITY FULL,
			SET (autovacuum_enabled = off, toast.autovacuum_enabled = off);
		COMMENT ON CONSTRAINT one ON rea_views.orders IS 'one';
		CREATE STATISTICS rea_views.together ON aggregate_id, n FROM rea_views.orders; CREATE STATISTICS rea_views.sums ON (n + rea_seq) FROM rea_views.orders;
		ALTER TABLE rea_views.orders ADD CONSTRAINT alone EXCLUDE USING btree ((n + 1) WITH =, aggregate_id WITH =);
		CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER seen AFTER UPDATE OF n ON rea_views.orders FOR EACH ROW WHEN (NEW.n > 7) EXECUTE FUNCTION public.see();
		ALTER TABLE rea_views.orders DISABLE TRIGGER seen;
		SET ROLE ada;
		ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC;
		CREATE VIEW public.mine WITH (security_barrier, check_option = local) AS SELECT o.aggregate_id AS "The Id", o.n FROM rea_views.orders o WHERE o.n > 0;
		GRANT SELECT ON public.mine TO eve WITH GRANT OPTION;
		GRANT UPDATE (n), SELECT ("The Id") ON public.mine TO eve;
		COMMENT ON VIEW public.mine IS 'it''s \ mine';
		COMMENT ON COLUMN public.mine."The Id" IS 'id';
		ALTER VIEW public.mine ALTER COLUMN n SET DEFAULT 7;
		CREATE TRIGGER instead INSTEAD OF UPDATE ON public.mine FOR EACH ROW EXECUTE FUNCTION public.see();
		CREATE RULE nothing AS ON DELETE TO public.mine DO INSTEAD NOTHING;
		REVOKE ALL ON public.mine FROM PUBLIC, ada;
		CREATE MATERIALIZED VIEW public."a kept" WITH (autovacuum_enabled = off) AS SELECT o.n, count(*) FROM rea_views.orders o GROUP BY o.n;
		CREATE UNIQUE INDEX kept_n ON public."a kept" (n);
		CREATE MATERIALIZED VIEW public.share AS SELECT 100 / count(*) AS percent FROM rea_views.orders; -- it fails on no rows
		CREATE MATERIALIZED VIEW public.empty AS SELECT 1 AS one FROM rea_views.orders WITH NO DATA;
		SELECT set_config('role', 'none', false);
		CREATE VIEW public."0 first" AS SELECT m."The Id", h.n, k.n AS kept, o FROM public.mine m, rea_views.hourly h, public."a kept" k, rea_views.orders o;
		CREATE VIEW public.rest AS SELECT f."The Id" FROM public."0 first" f JOIN rea_views.orders o ON o.aggregate_id = f."The Id"`))
	before := s.text(othersSQL)
	for range 2 {
		if err := a.Rebuild(t.Context(), "orders", nil); err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(s.text(othersSQL), "\n") {
			if want := strings.Split(before, "\n"); i < len(want) && want[i] != line {
				t.Errorf("%q, want %q", line, want[i])
			}
		}
		same(t, "all", s.text(othersSQL), before)
	}
	s.want("1 1", `SELECT n || ' ' || count FROM public."a kept"`)
	s.want("rea_owner", `SELECT string_agg(DISTINCT tableowner::text, ' ') FROM pg_tables WHERE schemaname = 'rea_views'`)
	err := countingArchive(t, s.Config().ConnString()).Rebuild(t.Context(), "orders", nil)
	var refused *rea.DependentsError
	if !errors.As(err, &refused) || !refused.Again || len(refused.Dependents) != 6 || !strings.Contains(err.Error(), "`rea projection rebuild orders --recreate-views`") {
		t.Errorf("rebuild = %v, want six views and what helps", err)
	}
	same(t, "all", s.text(othersSQL), before)
}

// Refused before anything is done: nothing is locked, made or recorded afterwards.
func TestWhatASwitchCannotTakeOverIsNamedBeforeAnyWork(t *testing.T) {
	t.Parallel()
	s, ada, eve := rolesConsole(t)
	url := s.Config().ConnString()
	for _, name := range []string{"hourly", "orders"} {
		if err := recreating(t, url).Rebuild(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.do(`GRANT rea_owner TO ` + ada + `; GRANT USAGE ON SCHEMA rea_views TO ` + eve + `; GRANT SELECT ON rea_views.orders TO ` + eve + `; GRANT CREATE ON SCHEMA public TO ` + eve)
	a := recreating(t, with(t, url, "user", ada))
	for _, c := range []struct{ name, make, drop, says string }{
		{"a foreign key", `CREATE TABLE public.f (id text REFERENCES rea_views.orders)`, `DROP TABLE public.f`, "constraint f_id_fkey on table public.f"},
		{"a foreign key to itself", `ALTER TABLE rea_views.orders ADD CONSTRAINT self FOREIGN KEY (aggregate_id) REFERENCES rea_views.orders`,
			`ALTER TABLE rea_views.orders DROP CONSTRAINT self`, "constraint self on table rea_views.orders"},
		{"a function", `CREATE FUNCTION public.f() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT sum(n) FROM rea_views.orders; END`, `DROP FUNCTION public.f`, "function public.f()"},
		{"a function of the type of a view", `CREATE VIEW public.v AS SELECT * FROM rea_views.orders; ALTER VIEW public.v OWNER TO rea_owner; CREATE FUNCTION public.f(public.v[]) RETURNS int LANGUAGE sql AS 'SELECT 1'`,
			`DROP FUNCTION public.f; DROP VIEW public.v`, "function public.f(public.v[])"},
		{"a policy", `CREATE POLICY p ON rea_views.orders USING (n > 1)`, `DROP POLICY p ON rea_views.orders`, "policy p on table rea_views.orders"},
		{"row level security", `ALTER TABLE rea_views.orders ENABLE ROW LEVEL SECURITY`, `ALTER TABLE rea_views.orders DISABLE ROW LEVEL SECURITY`, "the row level security of rea_views.orders"},
		{"a publication", `CREATE PUBLICATION p FOR TABLE rea_views.orders`, `DROP PUBLICATION p`, "publication of table rea_views.orders in publication p"},
		{"a rule", `CREATE RULE r AS ON DELETE TO rea_views.orders DO ALSO NOTHING`, `DROP RULE r ON rea_views.orders`, "rule r on table rea_views.orders"},
		{"a rule of another table", `CREATE TABLE public.f (n int); CREATE RULE r AS ON INSERT TO public.f DO ALSO DELETE FROM rea_views.orders`, `DROP TABLE public.f`, "rule r on table public.f"},
		{"a child", `CREATE TABLE public.f () INHERITS (rea_views.orders)`, `DROP TABLE public.f`, "table public.f"},
		{"a temporary view", `CREATE TEMP VIEW v AS SELECT n FROM rea_views.orders`, `DROP VIEW v`, "(it is temporary)"},
		{"a view of somebody else's", `SET ROLE ` + eve + `; CREATE VIEW public.v AS SELECT n FROM rea_views.orders; SET ROLE NONE`, `DROP VIEW public.v`,
			"view public.v (it belongs to " + eve + ", whose code could take rights of " + ada},
		{"a view in a schema that is closed by now", `CREATE VIEW public.v AS SELECT n FROM rea_views.orders; ALTER VIEW public.v OWNER TO rea_owner`, `DROP VIEW public.v`,
			"view public.v (permission denied for schema public)"},
	} {
		s.do(c.make)
		before := s.text(othersSQL)
		err := a.Rebuild(t.Context(), "orders", nil)
		var refused *rea.DependentsError
		if !errors.As(err, &refused) || refused.Again || len(refused.Dependents) != 1 || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: rebuild = %v, want %q", c.name, err, c.says)
		}
		same(t, c.name, s.text(othersSQL), before)
		s.want("0", `SELECT count(*) FROM rea.rebuilds`)
		s.do(c.drop)
	}
	if err := a.Rebuild(t.Context(), "orders", nil); err != nil {
		t.Fatal(err)
	}
}

// A view or an index over a column that the new definition does not have.
func TestWhatDoesNotHoldOnTheNewTableIsNamedBeforeAnyWork(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	a := recreating(t, url)
	if err := a.Rebuild(t.Context(), "hourly", nil); err != nil {
		t.Fatal(err)
	}
	put(t, a.Autocommit(), order1, "A")
	config := counting(t)
	config.RecreateViews = true
	var err error
	config.Catalog, err = rea.NewCatalog(rea.Type{Name: "order", Events: []rea.EventType{{Name: "A"}}})
	if err == nil {
		config.Catalog, err = config.Catalog.WithProjections(rea.Projection{Name: "hourly", On: []string{"A"}, Measures: []rea.Measure{{Name: "m", Kind: rea.MeasureCount}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	changed, err := postgres.Open(t.Context(), url, config)
	if err != nil {
		t.Fatal(err)
	}
	defer changed.Close()
	for _, c := range []struct{ make, drop, says string }{
		{`CREATE VIEW public.v AS SELECT sum(n) FROM rea_views.hourly`, `DROP VIEW public.v`, "view public.v (column hourly.n does not exist)"},
		{`CREATE INDEX i ON rea_views.hourly (n)`, `DROP INDEX rea_views.i`, `index rea_views.i (column "n" does not exist)`},
		{`ALTER TABLE rea_views.hourly ADD CHECK (n < 8)`, `ALTER TABLE rea_views.hourly DROP CONSTRAINT hourly_n_check`, `constraint hourly_n_check on table rea_views.hourly (column "n" does not exist)`},
		{`CREATE STATISTICS rea_views.st ON bucket_local, n FROM rea_views.hourly`, `DROP STATISTICS rea_views.st`, `statistics object rea_views.st (column "n" does not exist)`},
	} {
		s.do(c.make)
		before := s.text(othersSQL)
		err := changed.Rebuild(t.Context(), "hourly", nil)
		if refused := (*rea.DependentsError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("rebuild = %v, want %q", err, c.says)
		}
		same(t, "all", s.text(othersSQL), before)
		s.want("0", `SELECT count(*) FROM rea.rebuilds`)
		s.do(c.drop)
	}
	s.do(`CREATE VIEW public.v AS SELECT bucket_local FROM rea_views.hourly; CREATE INDEX i ON rea_views.hourly (bucket_local)`)
	if err := changed.Rebuild(t.Context(), "hourly", nil); err != nil {
		t.Fatal(err)
	}
	s.want("hourly_pkey i", `SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes WHERE schemaname = 'rea_views'`)
	s.want("1", `SELECT count(bucket_local) FROM public.v`)
}
