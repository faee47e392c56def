package postgres_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

const migratorOf = "REA_TEST_MIGRATE"

// TestProcessesMigrateAtOnceAndOneIsKilled runs this test program five times as migrators. The third migration
// stops half-way, and the process that is in it is killed with -9.
func TestProcessesMigrateAtOnceAndOneIsKilled(t *testing.T) {
	if url := os.Getenv(migratorOf); url != "" {
		a, err := postgres.Open(t.Context(), url, postgres.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if err := a.Migrate(t.Context(), func(m rea.Migration) { fmt.Println("applied", m.Version) }); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Parallel()
	url := pgtest.Empty(t)
	s := connect(t, url)
	s.do(`CREATE FUNCTION public.gate() RETURNS event_trigger LANGUAGE plpgsql AS $$
	      BEGIN
	          IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() c WHERE c.object_identity = 'rea.feed') THEN
	              PERFORM pg_advisory_xact_lock(4242);
	          END IF;
	      END $$`)
	s.do(`CREATE EVENT TRIGGER gate ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION public.gate()`)
	s.do(`SELECT pg_advisory_lock(4242)`)
	const migrators = 5
	var cmds [migrators]*exec.Cmd
	var said [migrators]bytes.Buffer
	for i := range cmds {
		cmds[i] = exec.Command(os.Args[0], "-test.run", "^TestProcessesMigrateAtOnceAndOneIsKilled$")
		cmds[i].Env = append(os.Environ(), migratorOf+"="+with(t, url, "application_name", fmt.Sprint("migrator", i)))
		cmds[i].Stdout, cmds[i].Stderr = &said[i], &said[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	// one inside; the others wait for it, now that it does not get on
	s.waitFor("1", `SELECT count(*) FROM pg_locks l WHERE l.locktype = 'advisory' AND NOT l.granted AND l.objid = 4242`)
	s.waitFor(fmt.Sprint(migrators), waiters)
	var killed int
	inside := s.text(`SELECT a.application_name FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
	                  WHERE l.locktype = 'advisory' AND NOT l.granted AND l.objid = 4242`)
	if _, err := fmt.Sscanf(inside, "migrator%d", &killed); err != nil {
		t.Fatalf("who is inside the migration = %q, want one migrator", inside)
	}
	if err := cmds[killed].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmds[killed].Wait()
	s.do(`SELECT pg_advisory_unlock(4242)`)
	applied := map[string]int{}
	for i, cmd := range cmds {
		if err := cmd.Wait(); i != killed && err != nil {
			t.Errorf("migrator %d: %v: %s", i, err, said[i].String())
		}
		for line := range strings.Lines(said[i].String()) {
			if version, ok := strings.CutPrefix(strings.TrimSpace(line), "applied "); ok {
				applied[version]++
			}
		}
	}
	a := open(t, url)
	known, err := a.Migrations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range known {
		same(t, fmt.Sprint("times that migration was applied: ", m.Version), applied[fmt.Sprint(m.Version)], 1)
		same(t, fmt.Sprint("pending of ", m.Version), m.AppliedAt.IsZero(), false)
	}
	put(t, a.Autocommit(), order1, "A")
	same(t, "history", positions(t, a.Archive), "order/1#1")
	// Whoever installs the roles may be the one that was killed: the next migrator must see to it.
	s.want("true", `SELECT has_table_privilege('rea_writer', 'rea.events', 'SELECT')`)
}

func TestTheMigrationTextIsWhatMigrateRuns(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	a, s := open(t, url), connect(t, url)
	s.do(a.MigrationSQL())
	if err := a.Migrate(t.Context(), func(m rea.Migration) { t.Errorf("migration %d was applied again", m.Version) }); err != nil {
		t.Fatal(err)
	}
	put(t, a.Autocommit(), order1, "A")
	migrated := connect(t, pgtest.Database(t))
	const columns = `SELECT string_agg(c.table_name || '.' || c.column_name || ' ' || c.data_type, ', ' ORDER BY c.table_name, c.column_name) FROM information_schema.columns c WHERE c.table_schema = 'rea'`
	same(t, "columns", s.text(columns), migrated.text(columns))
}
