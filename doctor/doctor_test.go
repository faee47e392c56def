package doctor_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea/doctor"
	"github.com/realtime-event-archive/rea/guard"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.Migrated(fingerprint(), migrate)) }

func fingerprint() string {
	archive, err := postgres.New(nil, postgres.Config{})
	if err != nil {
		panic(err)
	}
	return archive.MigrationSQL()
}

func migrate(ctx context.Context, url string) error {
	archive, err := postgres.Open(ctx, url, postgres.Config{})
	if err != nil {
		return err
	}
	defer archive.Close()
	return archive.Migrate(ctx, nil)
}

// patient is an archive whose health is asked for.
type patient struct {
	*pgxpool.Pool
	t       *testing.T
	archive *postgres.Archive
}

func newPatient(t *testing.T) patient {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	archive, err := postgres.New(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return patient{pool, t, archive}
}

func (p patient) do(sql string) {
	p.t.Helper()
	if _, err := p.Exec(p.t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}

// said gives the level, and what is wrong, a line each.
func (p patient) said() (level, wrong, all string) {
	p.t.Helper()
	list, err := doctor.Postgres(p.t.Context(), p, p.archive.Archive)
	if err != nil {
		p.t.Fatal(err)
	}
	return told(list)
}

func told(list []doctor.Finding) (level, wrong, all string) {
	for _, f := range list {
		if f.Level != nil {
			level = *f.Level
		}
		if !f.OK {
			wrong += f.Check + ": " + f.Text + " -> " + *f.Next + "\n"
		}
		all += f.Check + ": " + f.Text + "\n"
	}
	return level, wrong, all
}

func TestAHealthyArchiveHasNoFindings(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	level, wrong, all := p.said()
	if level != doctor.L2 || wrong != "" {
		t.Errorf("level %s, wrong:\n%s", level, wrong)
	}
	for _, want := range []string{"schema: version", "bypass: superusers: ", "sequence: ids up to 0", "feed: no holes", "guards: 0", "projections: 0"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
}

func TestEachFaultIsFound(t *testing.T) {
	t.Parallel()
	role := "test_" + strings.ToLower(rand.Text()[:10])
	for name, c := range map[string]struct{ sql, level, want string }{
		"a refusing trigger is off":     {`ALTER TABLE rea.events DISABLE TRIGGER refuse_row`, "L0", "rea.events has the trigger refuse_row switched off"},
		"a refusing trigger is lowered": {`ALTER TABLE rea.events ENABLE TRIGGER refuse_statement`, "L0", "refuse_statement switched to another mode"},
		"the insert trigger is gone":    {`DROP TRIGGER check_insert ON rea.events`, "L0", "rea.events has no trigger check_insert"},
		"the contexts' trigger is gone": {`DROP TRIGGER refuse_row ON rea.contexts`, "L0", "rea.contexts has no trigger refuse_row"},
		"a role may update":             {`CREATE ROLE ` + role + `; GRANT UPDATE ON rea.events TO ` + role, "L1", "UPDATE to " + role},
		"a role may update a column":    {`CREATE ROLE ` + role + `c; GRANT UPDATE (payload, reason) ON rea.events TO ` + role + `c`, "L1", "UPDATE (payload) to " + role + "c -> as the owner: REVOKE UPDATE (payload) ON rea.events FROM " + role + "c"},
		"the sequence hands out ten":    {`ALTER SEQUENCE rea.events_id_seq CACHE 10`, "L2", "10 ids at a time"},
		"the sequence is behind":        {`SELECT rea.append('order', '1', 'Placed'), rea.append('order', '1', 'Placed'); SELECT setval('rea.events_id_seq', 1)`, "L2", "events_id_seq is at 1, and the highest id is 2"},
		"an offset is beyond the head":  {`INSERT INTO rea.projections (name, mode, aggregate_type, version, definition, fingerprint, position) VALUES ('p', 'followed', 'order', 1, '{}', 'x', 9)`, "L2", "p is at position 9, and the events end at 0 -> rea projection rebuild p"},
		"a baseline is half done":       {`CREATE TABLE orders (id int PRIMARY KEY); SELECT rea.begin_baseline('orders', 'order', '{1}', NULL, NULL, NULL)`, "L2", "rea baseline orders --type order"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.do(c.sql)
			if strings.Contains(c.sql, "ROLE") {
				mine := strings.TrimSuffix(strings.Fields(c.sql)[2], ";")
				t.Cleanup(func() {
					_, _ = p.Exec(context.Background(), `DROP OWNED BY `+mine+`; DROP ROLE `+mine, pgx.QueryExecModeSimpleProtocol)
				})
			}
			level, wrong, _ := p.said()
			if level != c.level || !strings.Contains(wrong, c.want) {
				t.Errorf("level %s, want %s; wrong:\n%s\nwant %s", level, c.level, wrong, c.want)
			}
		})
	}
}

func TestEachTriggerOfAGuardThatIsGoneIsFound(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.do(`CREATE TABLE orders (id int PRIMARY KEY, status text)`)
	if _, err := guard.Add(t.Context(), p, "orders", guard.Settings{Type: "order"}, guard.By{}); err != nil {
		t.Fatal(err)
	}
	for _, operation := range []string{"insert", "update", "delete", "truncate"} {
		p.do(`DROP TRIGGER rea_guard_` + operation + ` ON orders`)
		if _, wrong, _ := p.said(); wrong != "guards: public.orders: public.orders has not all triggers of the guard -> rea guard regenerate public.orders\n" {
			t.Errorf("without %s: %s", operation, wrong)
		}
		if _, _, err := guard.Regenerate(t.Context(), p, "orders", guard.By{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGuardsThatAreOutOfDateAreFound(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.do(`CREATE TABLE orders (id int PRIMARY KEY, status text)`)
	if _, err := guard.Add(t.Context(), p, "orders", guard.Settings{Type: "order"}, guard.By{}); err != nil {
		t.Fatal(err)
	}
	if _, wrong, _ := p.said(); wrong != "" {
		t.Errorf("wrong:\n%s", wrong)
	}
	p.do(`ALTER TABLE orders ADD COLUMN note text; DROP TRIGGER rea_guard_update ON orders`)
	_, wrong, _ := p.said()
	for _, want := range []string{"guards: public.orders: added note since the guard was made", "has not all triggers of the guard -> rea guard regenerate"} {
		if !strings.Contains(wrong, want) {
			t.Errorf("%q is not in\n%s", want, wrong)
		}
	}
}

// as is the patient as another login sees it.
func (p patient) as(login string) patient {
	p.t.Helper()
	config := p.Config().Copy()
	config.ConnConfig.User, config.ConnConfig.Password = login, "rea"
	pool, err := pgxpool.NewWithConfig(p.t.Context(), config)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(pool.Close)
	archive, err := postgres.New(pool, postgres.Config{})
	if err != nil {
		p.t.Fatal(err)
	}
	return patient{pool, p.t, archive}
}

// login makes one for the test alone.
func (p patient) login() string {
	name := "test_" + strings.ToLower(rand.Text()[:10])
	p.do(`CREATE ROLE ` + name + ` LOGIN PASSWORD 'rea'`)
	p.t.Cleanup(func() {
		_, _ = p.Exec(context.Background(), `DROP OWNED BY `+name+` CASCADE; DROP ROLE `+name, pgx.QueryExecModeSimpleProtocol)
	})
	return name
}

func TestAReaderSeesMostOfIt(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	reader := ""
	if err := p.QueryRow(t.Context(), `SELECT quote_ident(role_name) FROM rea.roles WHERE kind = 'reader'`).Scan(&reader); err != nil {
		t.Fatal(err)
	}
	p.do(`CREATE TABLE orders (id int PRIMARY KEY)`)
	if _, err := guard.Add(t.Context(), p, "orders", guard.Settings{Type: "order"}, guard.By{}); err != nil {
		t.Fatal(err)
	}
	config := p.Config().Copy()
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `SET ROLE `+reader)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	archive, err := postgres.New(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := doctor.Postgres(t.Context(), pool, archive.Archive)
	if level, wrong, _ := told(list); err != nil || level != doctor.L2 || wrong != "" {
		t.Errorf("%v, level %s, wrong:\n%s", err, level, wrong)
	}
}
