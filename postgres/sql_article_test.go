package postgres_test

import (
	"strings"
	"testing"
)

// The statements of the founding article, as they stand there.
const (
	articleColumns = `SELECT id, aggregate_type, aggregate_id, event_type, seq, payload, actor_id, created_at FROM events ORDER BY seq`

	articleWrite = `BEGIN; INSERT INTO events (aggregate_type, aggregate_id, event_type, seq, payload, actor_id) VALUES ('order', 10086, 'PaymentReceived', 3, '{"amount": 9980}', 42); UPDATE order_projection SET status = 'paid', paid_at = now() WHERE order_id = 10086; COMMIT;`

	articleAudit = `SELECT id, seq, event_type, actor_id, created_at FROM events WHERE aggregate_type = 'order' AND aggregate_id = 10086 ORDER BY seq;`
)

func TestTheArticlesStatementsRunUnchanged(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(`CREATE TABLE public.order_projection (order_id bigint PRIMARY KEY, status text NOT NULL, paid_at timestamptz);
	      INSERT INTO public.order_projection VALUES (10086, 'placed'), (10087, 'placed');
	      SET search_path = rea, public`)
	s.do(`INSERT INTO events (aggregate_type, aggregate_id, event_type, seq) VALUES ('order', 10086, 'OrderPlaced', 1);
	      INSERT INTO events (aggregate_type, aggregate_id, event_type, seq) VALUES ('order', 10086, 'ItemAdded', 2);
	      INSERT INTO events (aggregate_type, aggregate_id, event_type, seq) VALUES ('order', 10087, 'OrderPlaced', 1);
	      INSERT INTO events (aggregate_type, aggregate_id, event_type, seq) VALUES ('payment', 10086, 'PaymentOpened', 1)`)
	s.do(articleWrite)
	s.want("10086 paid true, 10087 placed false", `SELECT order_id, status, paid_at IS NOT NULL FROM order_projection ORDER BY 1`)

	rows := strings.Split(s.text(articleAudit), ", ")
	same(t, "rows of the audit query", len(rows), 3)
	s.want("1 OrderPlaced <nil>, 2 ItemAdded <nil>, 3 PaymentReceived 42", `SELECT seq, event_type, actor_id FROM (`+strings.TrimSuffix(articleAudit, ";")+`) a`)
	same(t, "rows with the article's columns", len(strings.Split(s.text(articleColumns), ", ")), 5)
	s.want(`{"amount":9980}`, `SELECT payload FROM events WHERE aggregate_id = 10086 AND seq = 3`)

	// Written once more, it is refused by the same unique key as the article's table has.
	s.refused("23505", `BEGIN; INSERT INTO events (aggregate_type, aggregate_id, event_type, seq, payload, actor_id) VALUES ('order', 10086, 'PaymentReceived', 3, '{"amount": 9980}', 42)`)
	s.do(`ROLLBACK`)
}

func TestANumberIsComparedWithATextIdExactlyAndThroughTheIndex(t *testing.T) {
	t.Parallel()
	a, s, _ := archive(t)
	for _, id := range []string{"10086", "010086", "10086.0", "-1", "9223372036854775807", "x"} {
		ref := order1
		ref.ID = id
		put(t, a.Autocommit(), ref, "X")
	}
	s.do(`SET search_path = rea, public`)
	s.want("1", `SELECT count(*) FROM events WHERE aggregate_id = 10086`)
	s.want("5", `SELECT count(*) FROM events WHERE aggregate_id <> 10086`)
	s.want("1", `SELECT count(*) FROM events WHERE aggregate_id = -1`)
	s.want("1", `SELECT count(*) FROM events WHERE aggregate_id = 9223372036854775807`)
	s.want("1", `SELECT count(*) FROM events WHERE aggregate_id = '10086'`)
	s.want("1", `SELECT count(*) FROM events WHERE aggregate_id = $1`, int64(10086))
	s.do(`SET enable_seqscan = off`)
	plan := s.text(`EXPLAIN (COSTS OFF) SELECT seq FROM events WHERE aggregate_type = 'order' AND aggregate_id = 10086 ORDER BY seq`)
	if !strings.Contains(plan, "events_aggregate_seq_key") || !strings.Contains(plan, "aggregate_id = '10086'::text") {
		t.Errorf("plan = %s, want an index condition on aggregate_id in events_aggregate_seq_key", plan)
	}
}
