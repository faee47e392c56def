package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// What a view's owner has others run when the view is made: a CHECK on a constant of it.
func TestAViewMadeAgainGivesItsOwnerNoRightsOfTheLogin(t *testing.T) {
	t.Parallel()
	s, ada, eve := rolesConsole(t)
	url := s.Config().ConnString()
	if err := recreating(t, url).Rebuild(t.Context(), "orders", nil); err != nil {
		t.Fatal(err)
	}
	s.do(`GRANT USAGE ON SCHEMA rea_views TO ` + eve + `; GRANT SELECT ON rea_views.orders TO ` + eve + `; GRANT CREATE ON SCHEMA public TO ` + eve + `; GRANT rea_owner, ` + eve + ` TO ` + ada)
	owner := connect(t, with(t, url, "user", eve))
	owner.do(strings.NewReplacer("eve", eve).Replace(`
		CREATE SEQUENCE public.calls;
		CREATE TABLE public.later (n int);
		CREATE FUNCTION public.rise() RETURNS void LANGUAGE plpgsql AS $$
		BEGIN
			BEGIN PERFORM set_config('role', 'none', true); ALTER ROLE eve SUPERUSER; EXCEPTION WHEN OTHERS THEN NULL; END;
			BEGIN PERFORM set_config('role', 'rea_owner', true); DELETE FROM rea.projections; EXCEPTION WHEN OTHERS THEN NULL; END;
			BEGIN SET SESSION AUTHORIZATION DEFAULT; ALTER ROLE eve SUPERUSER; EXCEPTION WHEN OTHERS THEN NULL; END;
		END $$;
		CREATE FUNCTION public.risen() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM public.rise(); RETURN NULL; END';
		CREATE CONSTRAINT TRIGGER later AFTER INSERT ON public.later DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.risen();
		CREATE FUNCTION public.evil(int) RETURNS boolean LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM nextval('public.calls');
			PERFORM public.rise();
			BEGIN INSERT INTO public.later VALUES (1); EXCEPTION WHEN OTHERS THEN NULL; END;
			BEGIN CREATE OR REPLACE FUNCTION pg_temp.rea_run(text) RETURNS int LANGUAGE sql AS 'SELECT public.rise(); SELECT 1'; EXCEPTION WHEN OTHERS THEN NULL; END;
			BEGIN EXECUTE 'DEALLOCATE ALL'; PERFORM nextval('public.calls'); EXCEPTION WHEN OTHERS THEN NULL; END;
			PERFORM set_config('search_path', 'public', false), set_config('standard_conforming_strings', 'off', false);
			RETURN true;
		END $$;
		CREATE DOMAIN public.d AS int CHECK (public.evil(VALUE));
		CREATE TYPE public.c AS (x public.d);
		CREATE VIEW public.v AS SELECT n, '(1)'::public.c AS c FROM rea_views.orders;
		SELECT setval('public.calls', 1);
		DELETE FROM public.later`))
	before := s.text(othersSQL)
	if err := recreating(t, url).Rebuild(t.Context(), "orders", nil); err != nil {
		t.Fatal(err)
	}
	s.want("false", `SELECT rolsuper FROM pg_roles WHERE rolname = $1`, eve)
	s.want("1", `SELECT count(*) FROM rea.projections`)
	s.want("3 0", `SELECT last_value, (SELECT count(*) FROM public.later) FROM public.calls`) // called in the rehearsal and at the switch
	same(t, "all", s.text(othersSQL), before)
	err := recreating(t, with(t, url, "user", ada)).Rebuild(t.Context(), "orders", nil)
	var refused *rea.DependentsError
	if want := "view public.v (it belongs to " + eve + ", whose code could take rights of " + ada + " when it is made again: " + eve + " drops it and makes it again afterwards, or a superuser does all this)"; !errors.As(err, &refused) || refused.Again || !strings.Contains(err.Error(), want) {
		t.Errorf("rebuild = %v, want %q", err, want)
	}
	s.want("3", `SELECT last_value FROM public.calls`)
	s.do(`REVOKE CREATE ON SCHEMA public FROM ` + eve)
	if err := recreating(t, url).Rebuild(t.Context(), "orders", nil); err == nil || !strings.Contains(err.Error(), "view public.v (permission denied for schema public)") {
		t.Errorf("rebuild = %v, want what the owner of the view may not do", err)
	}
	same(t, "all", s.text(othersSQL), before)
}
