package postgres_test

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/catalog"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

const keptYAML = `rea: 1
aggregates:
  order:
    status: status
    events:
      Placed: {version: 2, from: [none], to: placed, set: {total: $.total, placed_at: "@created_at"}, upcast: {1: [{rename: {sum: total}}]}}
      PlacedV1: {alias: Placed, version: 1}
      Paid: {to: paid, add: {total: $.amount}, count: payments}
projections:
  order_state: {of: order, mode: inline, columns: {status: text, total: numeric, payments: bigint, placed_at: timestamptz}}
`

// kept applies a catalog with an inline projection.
func kept(t *testing.T) (*postgres.Archive, console, string) {
	t.Helper()
	_, s, url := archive(t)
	return applied(t, url), s, url
}

func applied(t *testing.T, url string) *postgres.Archive {
	t.Helper()
	c, err := catalog.Parse("rea.yaml", []byte(keptYAML))
	if err != nil {
		t.Fatal(err)
	}
	a, err := postgres.Open(t.Context(), url, postgres.Config{Config: rea.Config{Catalog: c}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	if _, err := a.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

const stateSQL = `SELECT aggregate_id, rea_seq, status, total::text, payments FROM rea_views.order_state ORDER BY aggregate_id`

func TestEveryWayIntoEventsKeepsTheTable(t *testing.T) {
	t.Parallel()
	_, s, _ := kept(t)
	s.do(`SET search_path = ''; SET TimeZone = 'America/New_York'; SET DateStyle = 'SQL, DMY'; SET standard_conforming_strings = off`)
	s.do(`SELECT rea.append('order', '1', 'Placed', '{"total": 10.50}')`)
	s.want("1 1 placed 10.50 <nil>", stateSQL)
	s.do(`SELECT rea.append_batch('order', '1', '[{"event_type": "Paid", "payload": {"amount": 1}}, {"event_type": "Paid", "payload": {"amount": 0.005}}]')`)
	s.want("1 3 paid 11.505 2", stateSQL)
	s.do(`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, event_version, payload)
		VALUES ('order', '2', 'Placed', 2, '{"total": 1}'), ('order', '1', 'Paid', 1, '{"amount": 1}'), ('order', '2', 'Paid', 1, '{}'), ('invoice', '2', 'Paid', 1, '{}'), ('order', '2', 'Paid', 1, '{"amount": 2}')`)
	s.want("1 4 paid 12.505 3, 2 3 paid 3 2", stateSQL)
	s.do(`INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type, payload) VALUES ('order', '2', 3, 'Paid', '{"amount": 9}'), ('order', '2', 4, 'Paid', '{"amount": 5}') ON CONFLICT DO NOTHING`)
	s.want("1 4 paid 12.505 3, 2 4 paid 8 3", stateSQL)
	if _, err := s.CopyFrom(t.Context(), pgx.Identifier{"rea", "events"}, []string{"aggregate_type", "aggregate_id", "event_type", "event_version", "payload"}, pgx.CopyFromRows([][]any{
		{"order", "3", "Placed", 2, `{"total": 7}`}, {"order", "3", "Paid", 1, `{"amount": 1}`}, {"order", "2", "Paid", 1, `{"amount": 1}`}})); err != nil {
		t.Fatal(err)
	}
	s.want("1 4 paid 12.505 3, 2 5 paid 9 4, 3 2 paid 8 1", stateSQL)
	s.do(`SELECT rea.append('order', 4, 'Placed', '{"total": null}', version => 2)`)
	s.want("4 1 placed <nil> <nil>", strings.Replace(stateSQL, "ORDER", "WHERE aggregate_id = '4' ORDER", 1))
	s.want("0", `SELECT count(*) FROM rea.events e JOIN rea_views.order_state v ON v.aggregate_id = e.aggregate_id AND v.rea_seq = e.seq WHERE v.rea_updated_at <> e.created_at AND e.aggregate_type = 'order'`)
}

func TestAValueThatAColumnCannotTakeIsRE010ThroughEveryDoor(t *testing.T) {
	t.Parallel()
	_, s, _ := kept(t)
	s.do(`SELECT rea.append('order', '1', 'Placed', '{"total": 1}')`)
	for _, door := range []string{
		`SELECT rea.append('order', '1', 'Paid', '{"amount": "x"}')`,
		`SELECT * FROM rea.try_append('order', '1', '[{"event_type": "Paid", "payload": {"amount": "x"}}]')`,
		`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', '1', 'Paid', '{"amount": "x"}')`,
		`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, event_version, payload) VALUES ('order', '9', 'Placed', 2, '{}'), ('order', '1', 'Paid', 1, '{"amount": "x"}') ON CONFLICT DO NOTHING`,
	} {
		e := s.refused("RE010", door)
		var detail map[string]any
		if err := json.Unmarshal([]byte(e.Detail), &detail); err != nil {
			t.Fatal(err)
		}
		delete(detail, "message")
		text, _ := json.Marshal(detail)
		same(t, "DETAIL", string(text), `{"aggregate_id":"1","aggregate_type":"order","code":"projection","column":"total","column_type":"numeric","event_type":"Paid","projection":"order_state","seq":2,"table":"rea_views.order_state"}`)
		same(t, "schema, table, column", strings.Join([]string{e.SchemaName, e.TableName, e.ColumnName}, " "), "rea_views order_state total")
	}
	s.want("1 1 placed 1 <nil>", stateSQL)
	s.want("1", `SELECT count(*) FROM rea.events`)
}

func TestAWriterNeedsNoRightOnTheTable(t *testing.T) {
	t.Parallel()
	_, s, _ := kept(t)
	s.want("rea_owner rea_owner rea_owner", `SELECT n.nspowner::regrole::text, c.relowner::regrole::text, p.relowner::regrole::text FROM pg_namespace n, pg_class c, pg_class p
		WHERE n.nspname = 'rea_views' AND c.oid = 'rea_views.order_state'::regclass AND p.oid = 'rea.projections'::regclass`)
	s.want("0", `SELECT count(*) FROM pg_proc WHERE pronamespace = 'rea'::regnamespace AND proowner <> 'rea_owner'::regrole`)
	s.do(`REVOKE ALL ON SCHEMA rea_views FROM rea_writer; SET ROLE rea_writer`)
	s.do(`SELECT rea.append('order', '1', 'Placed', '{"total": 1}')`)
	s.refused("42501", `SELECT * FROM rea_views.order_state`)
	s.refused("42501", `SELECT rea."order_state (rea catch up)"('1', 1)`)
	s.do(`RESET ROLE; SET ROLE rea_reader`)
	s.want("1 1 placed 1 <nil>", stateSQL)
	s.refused("42501", `UPDATE rea_views.order_state SET total = 0`)
	s.refused("42501", `INSERT INTO rea_views.order_state (aggregate_id, rea_seq, rea_updated_at) VALUES ('x', 1, now())`)
}

// Who applies need be no superuser: a member of the owner role can, and others cannot.
func TestAMemberOfTheOwnerAppliesAndOthersCannot(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	c, err := catalog.Parse("rea.yaml", []byte(keptYAML))
	if err != nil {
		t.Fatal(err)
	}
	as := func(login string) *postgres.Archive {
		a, err := postgres.New(poolOf(t, url, login), postgres.Config{Config: rea.Config{Catalog: c}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	admin := connect(t, pgtest.AdminURL(t))
	writer := admin.login("rea_writer")
	member := connect(t, pgtest.AdminURL(t)).login("rea_owner")
	if _, err := as(writer).Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("apply as a writer = %v, want permission denied", err)
	}
	put(t, as(writer).Autocommit(), order1, "Paid")
	if _, err := as(member).Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, as(writer).Autocommit(), order1, "Paid")
	s.want("1 2 paid <nil> 2", stateSQL)
	s.want("rea_owner", `SELECT relowner::regrole::text FROM pg_class WHERE oid = 'rea_views.order_state'::regclass`)
	s.want("2", `SELECT count(*) FROM pg_proc WHERE proname LIKE 'order_state%' AND proowner = 'rea_owner'::regrole`)
}

func TestATriggerThatSomebodyChangedIsMendedAndTheTableCaughtUp(t *testing.T) {
	t.Parallel()
	_, s, url := kept(t)
	s.do(`SELECT rea.append('order', '1', 'Placed', '{"total": 1}')`)
	for _, change := range []string{`DROP TRIGGER "order_state (rea catalog apply)" ON rea.events`, `ALTER TABLE rea.events DISABLE TRIGGER "order_state (rea catalog apply)"`,
		`CREATE OR REPLACE FUNCTION rea."order_state (rea catalog apply)"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN NULL; END'`,
		`DROP FUNCTION rea."order_state (rea catalog apply)"() CASCADE`} {
		s.do(change)
		s.do(`SELECT rea.append('order', '1', 'Paid', '{"amount": 1}')`)
		applied(t, url)
		s.do(`SELECT rea.append('order', '1', 'Paid', '{"amount": 1}')`)
		s.want("0", `SELECT count(*) FROM rea_views.order_state v WHERE rea_seq <> (SELECT max(seq) FROM rea.events) OR total <> rea_seq`)
	}
	// a row that was lost or is behind is folded by the append itself
	s.do(`DELETE FROM rea_views.order_state; SELECT rea.append('order', '1', 'Paid', '{"amount": 1}')`)
	s.want("1 10 paid 10 9", stateSQL)
	s.do(`UPDATE rea_views.order_state SET rea_seq = 8, total = 8, payments = 7; SELECT rea.append('order', '1', 'Paid', '{"amount": 1}')`)
	s.want("1 11 paid 11 10", stateSQL)
}

func TestARebuiltTableKeepsItsGrantsAndAViewHoldsItUp(t *testing.T) {
	t.Parallel()
	_, s, url := kept(t)
	s.do(`GRANT SELECT ON rea_views.order_state TO PUBLIC`)
	s.do(`UPDATE rea.projections SET fingerprint = 'other'`)
	applied(t, url)
	s.want("true", `SELECT has_table_privilege('public', 'rea_views.order_state', 'SELECT')`)
	s.want("order_state", `SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace = 'rea_views'::regnamespace AND relkind = 'r'`)
	s.do(`CREATE VIEW public.mine AS SELECT * FROM rea_views.order_state; UPDATE rea.projections SET fingerprint = 'other'`)
	c, _ := catalog.Parse("rea.yaml", []byte(keptYAML))
	a, err := postgres.Open(t.Context(), url, postgres.Config{Config: rea.Config{Catalog: c}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "view public.mine") {
		t.Errorf("apply = %v, want an error that names what is in the way", err)
	}
}

// An appender that leaves a row behind, and has not committed: who catches the row up must not overtake him.
func TestCatchingUpWaitsForAnAppendThatLeftItsRowBehind(t *testing.T) {
	t.Parallel()
	for _, there := range []string{"no row", "a row"} {
		t.Run(there, func(t *testing.T) {
			t.Parallel()
			_, s, url := kept(t)
			if there == "a row" {
				s.do(`SELECT rea.append('order', '1', 'Placed', '{"total": 1}')`)
			}
			s.do(`SELECT rea.append('order', '1', 'Placed', '{"sum": 1}', version => 1, correction => true, actor => 'x', reason => 'x')`)
			s.do(`BEGIN; SELECT rea.append('order', '1', 'Paid', '{"amount": 1}')`)
			done := make(chan struct{})
			go func() {
				defer close(done)
				applied(t, url)
			}()
			if err := waiting(t, url)(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			s.do(`COMMIT`)
			<-done
			s.want("0 1", `SELECT count(*) FILTER (WHERE v.rea_seq <> (SELECT max(seq) FROM rea.events)), count(*) FROM rea_views.order_state v`)
		})
	}
}

// Under REPEATABLE READ a row that was caught up since the snapshot is a serialization failure, and never left behind.
func TestAnOldSnapshotThatMissesTheRowIsARetry(t *testing.T) {
	t.Parallel()
	for _, there := range []string{"no row", "a row"} {
		t.Run(there, func(t *testing.T) {
			t.Parallel()
			_, s, url := kept(t)
			if there == "a row" {
				s.do(`SELECT rea.append('order', '1', 'Placed', '{"total": 1}')`)
			}
			s.do(`SELECT rea.append('order', '1', 'Placed', '{"sum": 1}', version => 1, correction => true, actor => 'x', reason => 'x')`)
			s.do(`BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rea.events`)
			applied(t, url)
			s.refused("40001", `SELECT rea.append('order', '1', 'Paid', '{"amount": 1}')`)
			s.do(`ROLLBACK; SELECT rea.append('order', '1', 'Paid', '{"amount": 1}')`)
			s.want("1", `SELECT count(*) FROM rea_views.order_state v WHERE v.rea_seq = (SELECT max(seq) FROM rea.events)`)
		})
	}
}

func TestUninstallingTakesTheProjectionsAlong(t *testing.T) {
	t.Parallel()
	a, s, _ := kept(t)
	put(t, a.Autocommit(), order1, "Placed")
	s.do(`CREATE VIEW public.mine AS SELECT * FROM rea_views.order_state`)
	if err := a.Uninstall(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "mine") {
		t.Errorf("uninstall under a view = %v, want an error that names it", err)
	}
	s.do(`DROP VIEW public.mine`)
	if err := a.Uninstall(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.want("0", `SELECT count(*) FROM pg_namespace WHERE nspname IN ('rea', 'rea_views')`)
}

// An archive that was installed without the right to make roles, and has projections when they come.
func TestRolesThatComeLaterTakeTheProjectionsAlong(t *testing.T) {
	t.Parallel()
	name := connect(t, pgtest.AdminURL(t)).login("")
	url := pgtest.Empty(t)
	s := connect(t, url)
	s.do(`GRANT CREATE ON DATABASE ` + pgx.Identifier{s.Config().Database}.Sanitize() + ` TO ` + name)
	c, err := catalog.Parse("rea.yaml", []byte(keptYAML))
	if err != nil {
		t.Fatal(err)
	}
	prefix := "r" + strings.ToLower(rand.Text()[:8])
	config := postgres.Config{RolePrefix: prefix, Config: rea.Config{Catalog: c, Logger: slog.New(slog.DiscardHandler)}}
	a, err := postgres.New(poolOf(t, url, name), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, a.Autocommit(), order1, "Placed")
	able, err := postgres.Open(t.Context(), url, config)
	if err != nil {
		t.Fatal(err)
	}
	defer able.Close()
	if err := able.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.do(`SET ROLE ` + prefix + `_writer; SELECT rea.append('order', '1', 'Paid', '{"amount": 1}')`)
	s.do(`SET ROLE ` + prefix + `_reader`)
	s.want("1 2 paid 1 1", stateSQL)
	s.refused("42501", `SELECT rea."order_state (rea catch up)"('1', 2)`)
	s.do(`RESET ROLE`)
	s.want(prefix+"_owner", `SELECT tableowner FROM pg_tables WHERE schemaname = 'rea_views'`)
	change, err := able.Apply(t.Context())
	if err != nil || !change.Nothing() {
		t.Errorf("apply again = %+v, %v, want nothing to do", change, err)
	}
	if err := able.Uninstall(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
}

// jsonb, in which rows are handed over, holds 256 MiB at most.
func TestLargeRowsFillATableInSeveralStatements(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	s.do(`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, event_version, payload)
		SELECT 'order', n::text, 'Placed', 2, jsonb_build_object('total', ('1' || repeat('0', 130000))::numeric) FROM generate_series(1, 150) n`)
	applied(t, url)
	s.want("150 true", `SELECT count(*), bool_and(total = ('1' || repeat('0', 130000))::numeric) FROM rea_views.order_state`)
}
