package guard_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/guard"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

func (w world) regenerate(table string, want int64) {
	w.t.Helper()
	_, levelled, err := guard.Regenerate(w.t.Context(), w, table, guard.By{Actor: "42"})
	if err != nil || levelled != want {
		w.t.Errorf("regenerate %s: %d rows, %v, want %d", table, levelled, err, want)
	}
}

// problems are those of the only guard.
func (w world) problems() string {
	w.t.Helper()
	states, err := guard.Status(w.t.Context(), w)
	if err != nil || len(states) != 1 {
		w.t.Fatalf("Status = %v, %v", states, err)
	}
	return strings.Join(states[0].Problems, "\n")
}

func TestAColumnThatCameLaterIsRecordedAndLevelled(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`UPDATE orders SET status = 'a'`)
	w.do(`ALTER TABLE orders ADD city text DEFAULT 'Paris'`)
	w.do(`UPDATE orders SET city = 'Rome' WHERE id = 1`)
	w.want(`{"new": {"city": "Rome"}, "old": {"city": "Paris"}}`, `SELECT payload FROM rea.events WHERE aggregate_type = 'order' ORDER BY id DESC LIMIT 1`)
	if got := w.problems(); !strings.Contains(got, "added city") {
		t.Errorf("problems = %s", got)
	}
	w.regenerate("orders", 1)
	w.want(`2 {"new": {"city": "Paris"}, "old": {}}`, `SELECT aggregate_id || ' ' || payload FROM rea.events WHERE aggregate_type = 'order' ORDER BY id DESC LIMIT 1`)
	w.want("ALTER 1", `SELECT operation || ' ' || rows FROM rea.contexts ORDER BY context_id DESC LIMIT 1`)
	if got := w.problems(); got != "" {
		t.Errorf("problems = %s", got)
	}
	w.do(`UPDATE orders SET city = 'Oslo'`)
	w.want("true", folded)
}

func TestAColumnThatWasRenamedIsRecordedAndLevelled(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`UPDATE orders SET status = 'a'`)
	w.do(`ALTER TABLE orders RENAME status TO state; ALTER TABLE orders RENAME id TO nr; ALTER TABLE orders RENAME TO purchases`)
	w.do(`UPDATE purchases SET state = 'b' WHERE nr = 1; INSERT INTO purchases VALUES (3, 'c', 3, NULL)`)
	w.want("1 b {\"new\": {\"state\": \"b\"}, \"old\": {\"state\": \"a\"}}", `SELECT aggregate_id || ' ' || status || ' ' || payload FROM rea.events WHERE aggregate_type = 'order' AND aggregate_id = '1' ORDER BY id DESC LIMIT 1`)
	w.regenerate("purchases", 2)
	w.want(`{"new": {"nr": 2, "state": "a"}, "old": {"id": 2, "status": "a"}, "gone": ["id", "status"]}`, `SELECT payload FROM rea.events WHERE aggregate_type = 'order' AND aggregate_id = '2' ORDER BY id DESC LIMIT 1`)
	w.do(`UPDATE purchases SET state = 'z'`)
	w.want("z 3", `SELECT string_agg(DISTINCT status, '') || ' ' || count(*) FROM rea.events WHERE context_id = (SELECT max(context_id) FROM rea.contexts)`)
	w.want("public.purchases", `SELECT table_name FROM rea.contexts ORDER BY context_id DESC LIMIT 1`)
}

func TestAColumnThatWasDroppedOrRetypedIsRecordedAndLevelled(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{Ignore: []string{"note"}})
	w.do(`UPDATE orders SET status = 'a'`)
	w.do(`ALTER TABLE orders DROP note; ALTER TABLE orders ALTER amount TYPE text USING amount || ' EUR'`)
	w.do(`UPDATE orders SET amount = '5 EUR' WHERE id = 1; DELETE FROM orders WHERE id = 1`)
	w.want(`{"old": {"id": 1, "amount": "5 EUR", "status": "a"}}`, `SELECT payload FROM rea.events WHERE aggregate_type = 'order' ORDER BY id DESC LIMIT 1`)
	w.regenerate("orders", 1)
	w.want(`{"new": {"amount": "2 EUR"}, "old": {"amount": 2}}`, `SELECT payload FROM rea.events WHERE aggregate_type = 'order' ORDER BY id DESC LIMIT 1`)
	w.regenerate("orders", 0)
}

func TestAColumnThatIsNoLongerHiddenIsLevelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(orders + `INSERT INTO orders VALUES (1, 'placed', 1, 'a')`)
	w.add("orders", guard.Settings{Type: "order", Ignore: []string{"note"}, Redact: []string{"amount"}})
	w.do(`UPDATE orders SET status = 'paid', note = 'b'; UPDATE orders SET amount = 2`)
	if _, _, err := guard.Change(t.Context(), w, "orders", to(guard.Settings{Redact: []string{"note"}}), guard.By{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := guard.Change(t.Context(), w, "orders", to(guard.Settings{}), guard.By{}); err != nil {
		t.Fatal(err)
	}
	w.events("order", `1 1 DirectUpdate {"new": {"status": "paid"}, "old": {"id": 1, "amount": "(redacted)", "status": "placed"}}
1 2 DirectUpdate {"new": {"amount": "(redacted)"}, "old": {"amount": "(redacted)"}}
1 3 DirectUpdate {"new": {"amount": 2}, "old": {"amount": "(redacted)"}}
1 4 DirectUpdate {"new": {"note": "b"}, "old": {}}`)
}

// to changes settings to others, whatever they are.
func to(s guard.Settings) func(guard.Settings) guard.Settings {
	return func(guard.Settings) guard.Settings { return s }
}

func TestTwoChangesAtOnceBothHold(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	tx, err := w.session().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := guard.Change(t.Context(), tx, "orders", func(s guard.Settings) guard.Settings { s.SQL = "off"; return s }, guard.By{}); err != nil {
		t.Fatal(err)
	}
	other, done := w.session(), make(chan error, 1)
	go func() {
		_, _, err := guard.Change(context.Background(), other, "orders", func(s guard.Settings) guard.Settings { s.Redact = []string{"note"}; return s }, guard.By{})
		done <- err
	}()
	w.waits(other)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.want("off {note}", `SELECT keeps_sql || ' ' || rea.guard_names(g, g.redacted)::text FROM rea.guards g`)
}

func TestEveryWayToRenewAGuardLevelsColumns(t *testing.T) {
	t.Parallel()
	w, _ := refusingWorld(t)
	by := guard.By{Actor: "42", Reason: "incident 7"}
	rows := w.one(`SELECT count(*) FROM orders`)
	for i, renew := range []func() (*guard.Guard, int64, error){
		func() (*guard.Guard, int64, error) {
			return guard.Change(t.Context(), w, "orders", to(guard.Settings{Mode: guard.Refuse, Status: "status", SQL: "hash"}), by)
		},
		func() (*guard.Guard, int64, error) { return guard.BreakGlass(t.Context(), w, "orders", by) },
		func() (*guard.Guard, int64, error) { return guard.MendGlass(t.Context(), w, "orders", by) },
	} {
		w.do(fmt.Sprintf(`ALTER TABLE orders ADD came%d text DEFAULT 'Paris'`, i))
		if _, levelled, err := renew(); err != nil || fmt.Sprint(levelled) != rows {
			t.Errorf("way %d: %d rows levelled, %v, want %s", i, levelled, err, rows)
		}
		w.want("0", fmt.Sprintf(`SELECT count(*) FROM orders WHERE rea.fold_value('order', id::text, 'came%d') IS DISTINCT FROM '"Paris"'`, i))
	}
	if got := w.problems(); got != "" {
		t.Errorf("problems = %s", got)
	}
	w.want(`["came2"] []`, `SELECT concat_ws(' ', payload -> 'came', payload -> 'went') FROM rea.events WHERE event_type = 'GlassMended'`)
}

func TestAKeyThatIsGoneStopsWritesWithAWordAboutIt(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`ALTER TABLE orders DROP id`)
	w.refused("RE011", `UPDATE orders SET status = 'a'`)
	if got := w.problems(); !strings.Contains(got, "dropped id") && !strings.Contains(got, "no primary key") {
		t.Errorf("problems = %s", got)
	}
}

func TestTriggersThatAreOffAreSeenAndPutOn(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`ALTER TABLE orders DISABLE TRIGGER rea_guard_update; DROP TRIGGER rea_guard_delete ON orders`)
	if got := w.problems(); !strings.Contains(got, "switched off") || !strings.Contains(got, "not all triggers") {
		t.Errorf("problems = %s", got)
	}
	w.regenerate("orders", 0)
	if got := w.problems(); got != "" {
		t.Errorf("problems = %s", got)
	}
	w.do(`UPDATE orders SET status = 'a'; DELETE FROM orders`)
	w.want("1Update 2Update 1Delete 2Delete", kinds)
}

func TestARemovedGuardLeavesItsEventsAndNothingElse(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`UPDATE orders SET status = 'a'`)
	if _, err := guard.Remove(t.Context(), w, "orders", guard.By{Actor: "42", Reason: "it moves"}); err != nil {
		t.Fatal(err)
	}
	w.do(`UPDATE orders SET status = 'b'`)
	w.want("1Update 2Update", kinds)
	w.want("GuardAdded GuardRemoved:it moves", `SELECT string_agg(concat_ws(':', event_type, reason), ' ' ORDER BY seq) FROM rea.events WHERE aggregate_type = 'rea.guard'`)
	w.want("0 0 false", `SELECT (SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'rea_guard%') || ' ' || (SELECT count(*) FROM pg_proc WHERE proname ~ '^guard_[0-9]+_') || ' ' || has_table_privilege('rea_owner', 'orders', 'SELECT')`)
	w.add("orders", guard.Settings{Type: "order"})
}

func TestTheActorOfOneRequestIsNotThatOfTheNext(t *testing.T) { // CAP-3
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	pool := w.pool(1)
	request := func(actor, status string, commit bool) {
		err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
			if actor != "" {
				if _, err := tx.Exec(context.Background(), `SELECT rea.set_context($1, NULL, NULL)`, actor); err != nil {
					return err
				}
			}
			if _, err := tx.Exec(context.Background(), `UPDATE orders SET status = $1 WHERE id = 1`, status); err != nil {
				return err
			}
			if !commit {
				return tx.Rollback(context.Background())
			}
			return nil
		})
		if err != nil && commit {
			t.Fatal(err)
		}
	}
	request("42", "a", true)
	request("", "b", true)
	request("43", "c", false)
	if _, err := pool.Exec(t.Context(), `UPDATE orders SET status = 'd' WHERE id = 1`); err != nil {
		t.Fatal(err)
	}
	w.want("42 - -", `SELECT string_agg(coalesce(actor_id, '-'), ' ' ORDER BY seq) FROM rea.events WHERE aggregate_type = 'order'`)
}

func TestTheEffectiveRoleIsKeptBesideTheLogin(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	login, role := w.login(), w.login()
	w.do(`GRANT ` + role + ` TO ` + login + `; GRANT ALL ON orders TO ` + role)
	s := w.session()
	s.do(`SET application_name = 'shop'; SET SESSION AUTHORIZATION ` + login + `; SET ROLE ` + role + `; UPDATE orders SET status = 'a'`)
	w.want(login+" "+role+" shop", `SELECT login || ' ' || role || ' ' || program FROM rea.contexts ORDER BY context_id DESC LIMIT 1`)
	w.want("true", `SELECT pid = $1 AND xid IS NOT NULL FROM rea.contexts ORDER BY context_id DESC LIMIT 1`, int32(s.PgConn().PID()))
	s.do(`RESET ROLE`)
	w.want(login, `SELECT DISTINCT db_user FROM rea.events WHERE aggregate_type = 'order'`)
}

func TestWhoMayNotGuardIsToldWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := w.login()
	w.do(orders + `GRANT CREATE ON SCHEMA public TO ` + name + `; GRANT USAGE ON SCHEMA rea TO ` + name + `; GRANT rea_reader TO ` + name)
	s := w.session()
	s.do(`SET SESSION AUTHORIZATION ` + name + `; CREATE TABLE mine (id int PRIMARY KEY, n int)`)
	if _, err := guard.Add(t.Context(), s, "orders", guard.Settings{Type: "order"}, guard.By{}); err == nil || !strings.Contains(err.Error(), "owns the table") {
		t.Errorf("guard a table of somebody else: %v", err)
	}
	if _, err := guard.Add(t.Context(), s, "mine", guard.Settings{Type: "mine"}, guard.By{}); err == nil || !strings.Contains(err.Error(), "archive's owner") {
		t.Errorf("guard without the owner's role: %v", err)
	}
	w.do(`GRANT rea_owner TO ` + name)
	if _, err := guard.Add(t.Context(), s, "mine", guard.Settings{Type: "mine"}, guard.By{}); err != nil {
		t.Errorf("guard one's own table: %v", err)
	}
	s.do(`INSERT INTO mine VALUES (1, 1)`)
	w.want("1", `SELECT count(*) FROM rea.events WHERE aggregate_type = 'mine'`)
	w.want("rea_owner", `SELECT string_agg(DISTINCT pg_get_userbyid(proowner)::text, ' ') FROM pg_proc WHERE proname ~ '^guard_[0-9]'`)
	if _, err := guard.Remove(t.Context(), s, "mine", guard.By{}); err != nil {
		t.Error(err)
	}
}

func TestAGuardWaitsForATableInUseAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(orders)
	other := w.session()
	other.do(`BEGIN; LOCK TABLE orders IN ROW EXCLUSIVE MODE`)
	done := make(chan error, 1)
	go func() {
		_, err := guard.Add(context.Background(), w, "orders", guard.Settings{Type: "order"}, guard.By{})
		done <- err
	}()
	other.waits(w)
	other.do(`COMMIT`)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestUninstallTakesGuardsOffTheirTables(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`UPDATE orders SET status = 'a'`)
	archive, err := postgres.Open(t.Context(), w.url, postgres.Config{Config: rea.Config{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	stored, err := archive.Autocommit().Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Uninstall(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	w.do(`UPDATE orders SET status = 'b'; TRUNCATE orders`)
	w.want("0", `SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'rea_guard%'`)
}

func TestAGuardSurvivesDumpAndRestore(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	w.do(`ALTER TABLE orders DROP note; ALTER TABLE orders ADD city text DEFAULT 'Paris'; UPDATE orders SET city = 'Rome' WHERE id = 1`)
	w.regenerate("orders", 0)
	bin, err := pgtest.Binaries("")
	if err != nil {
		t.Fatal(err)
	}
	dump, err := exec.CommandContext(t.Context(), filepath.Join(bin, "pg_dump"), w.url).Output()
	if err != nil {
		t.Fatal(err)
	}
	copied := world{t: t, url: pgtest.Empty(t)}
	restore := exec.CommandContext(t.Context(), filepath.Join(bin, "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", copied.url)
	restore.Stdin = bytes.NewReader(dump)
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	copied = copied.session()
	copied.want("1Update", kinds)
	copied.do(`UPDATE orders SET city = 'Oslo', status = 'paid'`)
	copied.want("1Update 1Update 2Update", kinds)
	if got := copied.problems(); !strings.Contains(got, "restored") {
		t.Errorf("problems = %s", got)
	}
	copied.regenerate("orders", 0)
	if got := copied.problems(); got != "" {
		t.Errorf("problems = %s", got)
	}
	copied.do(`UPDATE orders SET city = 'Bern' WHERE id = 1; TRUNCATE orders`)
	copied.want("1Update 1Update 2Update 1Update 1Delete 2Delete", kinds)
}

func TestTheGuardOfATableThatWasDroppedIsRemovedByItsNumber(t *testing.T) {
	t.Parallel()
	w := ordersWorld(t, guard.Settings{})
	number := w.one(`SELECT 'orders'::regclass::oid`)
	w.do(`DROP TABLE orders`)
	if got := w.problems(); !strings.Contains(got, "rea guard remove "+number) {
		t.Errorf("problems = %s", got)
	}
	if _, err := guard.Remove(t.Context(), w, number, guard.By{}); err != nil {
		t.Fatal(err)
	}
	w.want("0 public.orders", `SELECT (SELECT count(*) FROM rea.guards) || ' ' || max(aggregate_id) FROM rea.events WHERE event_type = 'GuardRemoved'`)
	w.do(orders)
	w.add("orders", guard.Settings{Type: "order"})
}
