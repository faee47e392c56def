package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
)

// orders is the order of the specification; more adds events to it.
func orders(t *testing.T, more ...rea.EventType) *rea.Catalog {
	t.Helper()
	c, err := rea.NewCatalog(rea.Type{Name: "order", Status: "status", Strict: true, Events: append([]rea.EventType{
		{Name: "OrderPlaced", From: []string{rea.FromNone}, To: "placed"},
		{Name: "PaymentReceived", From: []string{"placed"}, To: "paid"},
		{Name: "OrderShipped", From: []string{"paid"}, To: "shipped"},
		{Name: "NoteAdded", From: []string{rea.FromAny}},
	}, more...)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func apply(t *testing.T, url string, c *rea.Catalog) rea.Change {
	t.Helper()
	a, err := postgres.Open(t.Context(), url, postgres.Config{Config: rea.Config{Catalog: c}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	change, err := a.Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return change
}

const orderInsert = `INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type) `

// P10 for every way that SQL has of writing rows, at every isolation level.
func TestSQLIsHeldToTheMachine(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			_, s, url := archive(t)
			apply(t, url, orders(t))
			s.do(`SET default_transaction_isolation = '` + strings.ToLower(level) + `'`)
			s.do(orderInsert + `VALUES ('order', '1', 1, 'OrderPlaced'), ('order', '1', NULL, 'PaymentReceived'), ('order', '2', 1, 'OrderPlaced')`)
			s.want("placed 1, paid 1, placed 1", `SELECT status, catalog_version FROM rea.events ORDER BY id`)
			for name, sql := range map[string]string{
				"INSERT":         orderInsert + `VALUES ('order', '1', 3, 'PaymentReceived')`,
				"without seq":    orderInsert + `VALUES ('order', '1', NULL, 'PaymentReceived')`,
				"multi-row":      orderInsert + `VALUES ('order', '1', 3, 'OrderShipped'), ('order', '1', 4, 'PaymentReceived')`,
				"INSERT SELECT":  orderInsert + `SELECT 'order', '1', 2 + n, 'PaymentReceived' FROM generate_series(1, 3) n`,
				"DO NOTHING":     orderInsert + `VALUES ('order', '1', 3, 'PaymentReceived') ON CONFLICT DO NOTHING`,
				"rea.append":     `SELECT rea.append('order', '1', 'PaymentReceived')`,
				"append_batch":   `SELECT rea.append_batch('order', '1', '[{"event_type": "OrderShipped"}, {"event_type": "PaymentReceived"}]')`,
				"without status": orderInsert + `VALUES ('order', '3', 1, 'PaymentReceived')`,
			} {
				var detail struct {
					Code   string   `json:"code"`
					Status *string  `json:"status"`
					Legal  []string `json:"legal"`
				}
				if err := json.Unmarshal([]byte(s.refused("RE002", sql).Detail), &detail); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				status := ""
				if detail.Status != nil {
					status = *detail.Status
				}
				want := map[string]string{"multi-row": "illegal_step shipped [NoteAdded]", "append_batch": "illegal_step shipped [NoteAdded]",
					"without status": "illegal_step  [OrderPlaced]"}[name]
				if want == "" {
					want = "illegal_step paid [OrderShipped NoteAdded]"
				}
				same(t, name, fmt.Sprint(detail.Code, " ", status, " ", detail.Legal), want)
			}
			_, err := s.CopyFrom(t.Context(), pgx.Identifier{"rea", "events"}, []string{"aggregate_type", "aggregate_id", "seq", "event_type"},
				pgx.CopyFromRows([][]any{{"order", "2", int64(2), "PaymentReceived"}, {"order", "2", int64(3), "PaymentReceived"}}))
			same(t, "SQLSTATE of COPY", stateOf(err), "RE002")
			s.refused("RE006", orderInsert+`VALUES ('order', '1', 3, 'Other')`)
			s.want("1 0", `SELECT count(*) FILTER (WHERE refused = 'illegal_step' AND detail ->> 'status' = 'paid'), count(id)
				FROM rea.try_append('order', 1, '[{"event_type": "NoteAdded"}, {"event_type": "PaymentReceived"}]')`)
			s.want("unknown_type", `SELECT refused FROM rea.try_append('order', 1, '[{"event_type": "Other"}]')`)

			// a taken seq is the unique index's business, whatever the step
			s.refused("23505", orderInsert+`VALUES ('order', '1', 2, 'OrderShipped')`)
			s.do(orderInsert + `VALUES ('order', '1', 2, 'OrderShipped') ON CONFLICT DO NOTHING`)
			// a given status that is right, and wrong ones
			const given = `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, status, catalog_version) `
			s.refused("428C9", given+`VALUES ('order', '1', 'NoteAdded', 'shipped', 1)`)
			s.refused("428C9", given+`VALUES ('order', '1', 'NoteAdded', 'paid', 2)`)
			s.refused("428C9", given+`VALUES ('payment', '1', 'X', 'paid', NULL)`)
			s.do(given + `VALUES ('order', '1', 'NoteAdded', 'paid', 1)`)
			// a correction
			const correct = `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, correction, actor_id, reason) `
			s.refused("23514", correct+`VALUES ('order', '1', 'PaymentReceived', true, '42', NULL)`)
			s.do(correct + `VALUES ('order', '1', 'OrderPlaced', true, '42', 'by mistake')`)
			s.want("1 placed, 2 paid, 3 paid, 4 placed", `SELECT seq, status FROM rea.events WHERE aggregate_id = '1' ORDER BY seq`)
			// a refusal draws no id
			last := s.text(`SELECT last_value FROM rea.events_id_seq`)
			s.refused("RE002", `SELECT rea.append('order', '1', 'OrderShipped')`)
			s.want(last, `SELECT last_value FROM rea.events_id_seq`)
		})
	}
}

// An open transaction that has appended holds up apply, and sees one machine to its end.
// The version that nobody says is the newest, through every door; only a column that is left out of an INSERT is 1.
func TestAVersionThatIsNullIsTheNewest(t *testing.T) {
	t.Parallel()
	a, s, url := archive(t)
	same := func(p rea.Object) (rea.Object, error) { return p, nil }
	apply(t, url, orders(t, rea.EventType{Name: "ItemAdded", Version: 3, From: []string{"placed"}, Upcast: map[int]rea.UpcastFunc{1: same, 2: same}}))
	put(t, a.Autocommit(), order1, "OrderPlaced")
	s.do(`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, event_version) VALUES ('order', '1', 'ItemAdded', NULL), ('other', '1', 'X', NULL)`)
	s.do(orderInsert + `VALUES ('order', '1', NULL, 'ItemAdded')`)
	put(t, a.Autocommit(), order1, "ItemAdded")
	s.do(`SELECT rea.append('order', '1', 'ItemAdded')`)
	s.want("1, 3, 1, 1, 3, 3", `SELECT event_version FROM rea.events ORDER BY id`)
}

func TestApplyWaitsForAnOpenAppend(t *testing.T) {
	t.Parallel()
	a, s, url := archive(t)
	apply(t, url, orders(t))
	open := connect(t, url)
	open.do(`BEGIN`)
	open.do(`SELECT rea.append('order', '1', 'OrderPlaced')`)
	done := make(chan rea.Change, 1)
	go func() {
		done <- apply(t, url, orders(t, rea.EventType{Name: "Gift", From: []string{rea.FromNone}, To: "gift"}))
	}()
	if err := waiting(t, url)(t.Context()); err != nil {
		t.Fatal(err)
	}
	open.refused("RE006", `SELECT rea.append('order', '2', 'Gift')`)
	open.do(`ROLLBACK; BEGIN; SELECT rea.append('order', '1', 'OrderPlaced')`)
	select {
	case <-done: // between the two transactions: also right
	case <-time.After(1500 * time.Millisecond): // longer than lock_timeout: it has tried again
		open.do(`COMMIT`)
		if change := <-done; !change.New || change.Number != 2 {
			t.Errorf("change = %+v, want catalog 2", change)
		}
	}
	put(t, a.Autocommit(), rea.Ref{Type: "order", ID: "2"}, "Gift")
	s.want("2", `SELECT catalog_version FROM rea.events WHERE aggregate_id = '2'`)
}

// An append waits for apply, and then goes by the new machine.
func TestAnAppendWaitsForApply(t *testing.T) {
	t.Parallel()
	a, s, url := archive(t)
	apply(t, url, orders(t))
	applying := connect(t, url)
	applying.do(`BEGIN; LOCK TABLE rea.steps IN ACCESS EXCLUSIVE MODE`)
	answer := make(chan error, 1)
	go func() {
		_, err := a.Autocommit().Append(context.Background(), order1, rea.NewEvent{Type: "Gift"})
		answer <- err
	}()
	if err := waiting(t, url)(t.Context()); err != nil {
		t.Fatal(err)
	}
	applying.do(`INSERT INTO rea.catalogs (number, text) VALUES (2, '[]');
		CREATE TEMP TABLE kept AS SELECT * FROM rea.steps;
		TRUNCATE rea.steps;
		INSERT INTO rea.steps SELECT aggregate_type, event_type, from_status, to_status, event_version, ruled, alias_of, strict, ordinal, 2 FROM kept;
		INSERT INTO rea.steps VALUES ('order', 'Gift', 'none', 'gift', 1, true, NULL, false, 9, 2);
		COMMIT`)
	if err := <-answer; err != nil {
		t.Errorf("append behind apply = %v", err)
	}
	s.want("gift 2", `SELECT status, catalog_version FROM rea.events`)
}

// A snapshot from before a catalog never appends by an older machine.
func TestAnOldSnapshotIsARetry(t *testing.T) {
	t.Parallel()
	a, s, url := archive(t)
	apply(t, url, orders(t))
	for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
		s.do(`BEGIN ISOLATION LEVEL ` + level)
		s.want("0", `SELECT count(*) FROM rea.feed`)
		apply(t, url, orders(t, rea.EventType{Name: "Gift" + level[:1], From: []string{rea.FromNone}, To: "gift"}))
		_, err := a.Tx(s.Conn).Append(t.Context(), order1, rea.NewEvent{Type: "OrderPlaced"})
		if !errors.Is(err, rea.ErrRetry) {
			t.Errorf("%s: append = %v, want ErrRetry", level, err)
		}
		s.do(`ROLLBACK`)
	}
}

// A catalog's rows are read, and written by nobody but the owner; a catalog that was applied stays as it was.
func TestTheCatalogBelongsToTheOwner(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	apply(t, url, orders(t))
	s.refused("RE007", `UPDATE rea.catalogs SET text = ''`)
	s.refused("RE007", `DELETE FROM rea.catalogs`)
	s.want("rea_owner rea_owner", `SELECT a.relowner::regrole::text, b.relowner::regrole::text FROM pg_class a, pg_class b
		WHERE a.oid = 'rea.catalogs'::regclass AND b.oid = 'rea.steps'::regclass`)
	s.want("0", `SELECT count(*) FROM pg_proc WHERE pronamespace = 'rea'::regnamespace AND proowner <> 'rea_owner'::regrole`)
	s.do(`SET ROLE rea_writer`)
	s.do(`SELECT rea.append('order', '1', 'OrderPlaced')`)
	s.refused("42501", `INSERT INTO rea.steps (aggregate_type, event_type, from_status) VALUES ('order', 'X', 'any')`)
	s.refused("42501", `DELETE FROM rea.steps`)
	s.refused("42501", `SELECT rea.append('order', '1', 'OrderPlaced', actor => '1', reason => 'x', correction => true)`)
	s.refused("RE002", `SELECT rea.append('order', '1', 'OrderPlaced')`)
	s.do(`RESET ROLE; SET ROLE rea_operator`)
	s.do(`SELECT rea.append('order', '1', 'OrderPlaced', actor => '1', reason => 'x', correction => true)`)
}

// FSM-1 and FSM-2 in SQL, forced: the winner has written and not committed when the loser comes.
func TestAStepThatLostItsRaceIsRefusedByName(t *testing.T) {
	t.Parallel()
	for _, loser := range []string{"PaymentReceived", "OrderCancelled"} {
		t.Run(loser, func(t *testing.T) {
			t.Parallel()
			_, s, url := archive(t)
			apply(t, url, orders(t, rea.EventType{Name: "OrderCancelled", From: []string{"placed"}, To: "cancelled"}))
			s.do(`SELECT rea.append('order', '1', 'OrderPlaced')`)
			for i, lose := range []func(c console) string{
				func(c console) string {
					return c.text(`SELECT refused, detail ->> 'status' FROM rea.try_append('order', '1', jsonb_build_array(jsonb_build_object('event_type', $1::text)))`, loser)
				},
				func(c console) string {
					return stateOf(c.try(`SELECT rea.append('order', '2', $1)`, loser))
				},
			} {
				id := fmt.Sprint(i + 1)
				if i > 0 {
					s.do(`SELECT rea.append('order', '2', 'OrderPlaced')`)
				}
				s.do(`BEGIN`)
				s.do(`SELECT rea.append('order', $1, 'PaymentReceived')`, id)
				other := connect(t, url)
				done := make(chan string, 1)
				go func() { done <- lose(other) }()
				if err := waiting(t, url)(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.do(`COMMIT`)
				same(t, "loser", <-done, []string{"illegal_step paid", "RE002"}[i])
			}
		})
	}
}

// What SQL callers read is what Go says of the same refusal.
func TestTheWordsOfARefusedStepAreTheSameInSQLAndInGo(t *testing.T) {
	t.Parallel()
	a, s, url := archive(t)
	var more []rea.EventType
	for i := range 12 {
		more = append(more, rea.EventType{Name: fmt.Sprint("Viewed", i), From: []string{rea.FromAny}})
	}
	apply(t, url, orders(t, more...))
	order := rea.Ref{Type: "order", ID: "1"}
	for i, want := range []string{
		"rea: append to order/1: OrderShipped is illegal as the first event: legal now: OrderPlaced",
		"rea: append to order/1: OrderShipped is illegal in status placed at seq 1: legal now: PaymentReceived, NoteAdded, " +
			"Viewed0, Viewed1, Viewed2, Viewed3, Viewed4, Viewed5, Viewed6, Viewed7 and 4 more",
	} {
		if i > 0 {
			s.do(`SELECT rea.append('order', '1', 'OrderPlaced')`)
		}
		same(t, "SQL", s.text(`SELECT detail ->> 'message' FROM rea.try_append('order', '1', '[{"event_type": "OrderShipped"}]')`), want)
		_, err := a.Autocommit().Append(t.Context(), order, rea.NewEvent{Type: "OrderShipped"})
		same(t, "Go", fmt.Sprint(err), want)
		var refused *rea.TransitionError
		if !errors.As(err, &refused) || refused.Seq != int64(i) || len(refused.Legal) != []int{1, 14}[i] {
			t.Errorf("refused = %+v, want seq %d and every legal event", refused, i)
		}
	}
}
