package cli_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Roles are the server's, so that the ones of this test have names that no other test has.
func TestMissingRightsAreNamedByTheRoleThatGivesThem(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[1])
	sh.write("in.ndjson", `{"aggregate_type":"order","aggregate_id":1,"event_type":"X"}`+"\n")
	admin := stores[1].new(t)
	conn, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	prefix := "rea_cli"
	login := prefix + "_login"
	run := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if r := sh.rea("--db", admin, "migrate", "up", "--role-prefix", prefix); r.code != 0 {
		t.Fatalf("migrate up: %s", r.stderr)
	}
	run("DROP ROLE IF EXISTS " + login) // of a run that was killed
	run("CREATE ROLE " + login + " LOGIN PASSWORD 'rea'")
	t.Cleanup(func() {
		sh.rea("--db", admin, "migrate", "uninstall", "--events", "1", "--yes")
		_, _ = conn.Exec(context.Background(), "DROP ROLE IF EXISTS "+login)
	})
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(login, "rea")
	sh.env["REA_DATABASE_URL"] = u.String()

	refused := func(kind string, args ...string) {
		t.Helper()
		r := sh.rea(args...)
		want := fmt.Sprintf("%s may not do this, it needs the role %s_%s: GRANT %[2]s_%[3]s TO %[1]s", login, prefix, kind)
		if r.code != 1 || !strings.Contains(r.stderr, want) || strings.Count(r.stderr, "\n") > 2 {
			t.Errorf("rea %v ends with %d: %s\nwant %s", args, r.code, r.stderr, want)
		}
	}
	if r := sh.rea("--db", admin, "migrate", "up", "--role-prefix", "other"); r.code != 1 || !strings.Contains(r.stderr, "begin with "+prefix+"_, not other_") {
		t.Errorf("another role prefix ends with %d: %s", r.code, r.stderr)
	}
	refused("reader", "log")
	refused("reader", "log", "--follow")
	refused("reader", "export")
	refused("reader", "show", "order", "1")
	refused("reader", "guard", "status")
	refused("reader", "guard", "check", "all")
	refused("importer", "import", "in.ndjson")
	refused("writer", "append", "order", "1", "X")
	run(fmt.Sprintf("GRANT %s_reader TO %s", prefix, login))
	sh.must("log")
	sh.must("guard", "status")
	run("CREATE TABLE bills (id int PRIMARY KEY)")
	if r := sh.rea("baseline", "check", "bills", "--type", "bill"); r.code != 1 || !strings.Contains(r.stderr, "permission denied for table bills") {
		t.Errorf("the check of a table that may not be read ends with %d: %s", r.code, r.stderr)
	}
	refused("importer", "import", "in.ndjson")
	refused("writer", "append", "order", "1", "X")
	refused("owner", "migrate", "uninstall", "--events", "0", "--yes")
	const one = "rea: 1\naggregates: {order: {events: {X: {}}}}\nprojections:\n  hourly: {on: X, every: 1h, measures: {n: count}}\n"
	sh.write("one.yaml", one)
	sh.write("two.yaml", one+"  daily: {on: X, every: 24h, measures: {n: count}}\n")
	sh.must("--db", admin, "run", "--once", "--catalog", "one.yaml")
	refused("runner", "run", "--once", "--catalog", "one.yaml")
	refused("runner", "projection", "pause", "hourly", "--catalog", "one.yaml")
	run(fmt.Sprintf("REVOKE %s_reader FROM %s; GRANT %[1]s_runner TO %[2]s", prefix, login))
	sh.must("run", "--once", "--catalog", "one.yaml")
	sh.must("projection", "pause", "hourly", "--catalog", "one.yaml")
	sh.must("projection", "resume", "hourly", "--catalog", "one.yaml")
	for _, args := range [][]string{{"run", "--once"}, {"projection", "rebuild", "daily", "--yes"}} {
		if r := sh.rea(append(args, "--catalog", "two.yaml")...); r.code != 1 || !strings.Contains(r.stderr, "`rea projection rebuild daily`") {
			t.Errorf("rea %v by a runner ends with %d: %s", args, r.code, r.stderr)
		}
	}
	run(fmt.Sprintf("GRANT %s_writer TO %s", prefix, login))
	sh.must("append", "order", "1", "X")
	refused("importer", "import", "in.ndjson")
	refused("operator", "append", "order", "1", "X", "--correction", "--actor", "a", "--reason", "b")
}

func TestWarningsAreSentences(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[1])
	u, err := url.Parse(stores[1].new(t))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	const login = "rea_cli_weak"
	for _, sql := range []string{
		"DROP ROLE IF EXISTS " + login, "CREATE ROLE " + login + " LOGIN PASSWORD 'rea'",
		"ALTER DATABASE " + strings.TrimPrefix(u.Path, "/") + " OWNER TO " + login,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	t.Cleanup(func() {
		_, _ = conn.Exec(context.Background(), "REASSIGN OWNED BY "+login+" TO CURRENT_USER")
		_, _ = conn.Exec(context.Background(), "DROP OWNED BY "+login)
		_, _ = conn.Exec(context.Background(), "DROP ROLE "+login)
	})
	u.User = url.UserPassword(login, "rea")
	r := sh.rea("--db", u.String(), "migrate", "up", "--role-prefix", "rea_cli_none")
	want := "warning: rea_cli_weak may not create the role rea_cli_none_owner: a role with CREATEROLE can, then run `rea migrate up` again\n"
	if r.code != 0 || !strings.Contains(r.stderr, want) || strings.Contains(r.stderr, "level=") {
		t.Errorf("rea migrate up ends with %d: %s\nwant %s", r.code, r.stderr, want)
	}
}
