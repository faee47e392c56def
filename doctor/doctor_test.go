package doctor_test

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/doctor"
	"github.com/realtime-event-archive/rea/guard"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
	"github.com/realtime-event-archive/rea/sqlite"
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
		"the sequence hands out ten":    {`ALTER SEQUENCE rea.events_id_seq CACHE 10`, "L2", "10 ids at a time"},
		"the sequence is behind":        {`SELECT rea.append('order', '1', 'Placed'), rea.append('order', '1', 'Placed'); SELECT setval('rea.events_id_seq', 1)`, "L2", "events_id_seq is at 1, and the highest id is 2"},
		"an offset is beyond the head":  {`INSERT INTO rea.projections (name, mode, aggregate_type, version, definition, fingerprint, position) VALUES ('p', 'followed', 'order', 1, '{}', 'x', 9)`, "L2", "p is at position 9, and the events end at 0 -> rea projection rebuild p"},
		"a baseline is half done":       {`CREATE TABLE orders (id int PRIMARY KEY); SELECT rea.begin_baseline('orders', 'order', '{1}', NULL, NULL, NULL)`, "L2", "rea baseline orders --type order"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.do(c.sql)
			if strings.Contains(c.sql, role) {
				t.Cleanup(func() {
					_, _ = p.Exec(context.Background(), `REVOKE UPDATE ON rea.events FROM `+role+`; DROP ROLE `+role, pgx.QueryExecModeSimpleProtocol)
				})
			}
			level, wrong, _ := p.said()
			if level != c.level || !strings.Contains(wrong, c.want) {
				t.Errorf("level %s, want %s; wrong:\n%s\nwant %s", level, c.level, wrong, c.want)
			}
		})
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

func TestWhoKeepsAHoleOpenIsNamed(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	tx, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := p.archive.Tx(tx).Append(t.Context(), rea.Ref{Type: "order", ID: "1"}, rea.NewEvent{Type: "Placed"}); err != nil {
		t.Fatal(err)
	}
	p.do(`SELECT rea.append('order', '2', 'Placed')`)
	if _, err := p.archive.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	level, wrong, all := p.said()
	if level != doctor.L2 || wrong != "" || !strings.Contains(all, "feed: 1 passes met ids that may still commit") || !strings.Contains(all, "idle in transaction for") {
		t.Errorf("wrong:\n%s\nall:\n%s", wrong, all)
	}
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

func TestSQLiteSaysWhoMayWriteTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rea.db")
	archive, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o666: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		list, err := doctor.SQLite(t.Context(), path, archive.Archive)
		if level, wrong, _ := told(list); err != nil || level != doctor.L1 || (wrong == "") != want {
			t.Errorf("mode %v: %v, level %s, wrong:\n%s", mode, err, level, wrong)
		}
	}
}
