package cli_test

import (
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

func TestDemoOnPostgresCapturesTheAccidentAndRefusesTheNext(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	url := pgtest.Empty(t)
	got := sh.must("demo", "--no-serve", "--orders", "300", "--dir", "shop", "--db", url)
	_, act, found := strings.Cut(got, "5. A table that is changed in place")
	if !found {
		t.Fatalf("the demo has no fifth act:\n%s", got)
	}
	for _, want := range []string{
		"shop.orders: 400 rows, 400 new", "UPDATE 200", `status: "paid" -> "cancelled"`, "observed: login", "UPDATE of 200 rows of shop.orders",
		"shop.orders: 400 rows, as the events say", "ERROR:  rea: UPDATE of shop.orders refused: no event of this transaction stands for 100 rows",
	} {
		if !strings.Contains(act, want) {
			t.Errorf("%q is not in\n%s", want, act)
		}
	}
	if r := sh.rea("demo", "--dir", "other", "--db", url); r.code != 2 || !strings.Contains(r.stderr, "is not empty") {
		t.Errorf("a demo in a database that is not empty: %d, %s", r.code, r.stderr)
	}
	for sql, want := range map[string]string{
		`CREATE TABLE kept (a int)`:                     "the relation public.kept",
		`CREATE FUNCTION "my f"() RETURNS int RETURN 1`: `the function public."my f"`,
		`CREATE TYPE mood AS ENUM ('glad')`:             "the type public.mood",
		`CREATE DOMAIN pg_like AS int`:                  "the type public.pg_like",
		`CREATE SCHEMA shop`:                            "the schema shop",
		`CREATE SCHEMA informations`:                    "the schema informations",
	} {
		other := newShell(t, stores[0])
		url := pgtest.Empty(t)
		other.env["REA_DATABASE_URL"] = url
		other.create(sql)
		if r := other.rea("demo", "--dir", "other", "--db", url); r.code != 2 || !strings.Contains(r.stderr, "it has "+want+":") {
			t.Errorf("a demo after %s: %d, %s", sql, r.code, r.stderr)
		}
	}
	if r := sh.rea("demo", "--dir", "other", "--db", "sqlite:x.db"); r.code != 2 {
		t.Errorf("a demo in a named file: %d, %s", r.code, r.stderr)
	}
}
