package postgres_test

import (
	"encoding/json"
	"testing"
)

func TestSQLAppendAnswersWithSeqAndDuplicate(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	const answer = `SELECT seq, status, duplicate FROM `
	s.want("1 <nil> false", answer+`rea.append('order', '10086', 'OrderPlaced')`)
	s.want("2 <nil> false", answer+`rea.append('order', 10086, 'PaymentReceived', '{"amount": 9980}', expect => 1, key => 'req-9')`)
	s.want("2 <nil> true", answer+`rea.append('order', 10086, 'PaymentReceived', '{"amount":9980.0}', expect => 1, key => 'req-9')`)
	s.want("3 <nil> false", answer+`rea.append(aggregate_type => 'order', aggregate_id => 10086::bigint, event_type => 'NoteAdded', version => 4, actor => '42',
	        reason => 'why', correlation => 'c', metadata => '{"a": 1}', correction => true)`)
	s.want("NoteAdded 4 42 why c true", `SELECT event_type, event_version, actor_id, reason, correlation_id, correction FROM rea.events WHERE seq = 3`)
	s.want("4 <nil> false, 5 <nil> false", answer+`rea.append_batch('order', '10086', '[{"event_type": "A"}, {"event_type": "B", "event_version": 2, "payload": {"x": 1}}]', key => 'two')`)
	s.want("4 <nil> true, 5 <nil> true", answer+`rea.append_batch('order', 10086, '[{"event_type": "A", "payload": {}}, {"event_type": "B", "payload": {"x": 1}}]', key => 'two')`)
	s.want("6 <nil> false <nil> <nil>", `SELECT seq, status, duplicate, refused, detail FROM rea.try_append('order', 10086, '[{"event_type": "C"}]', 5)`)
	s.want("7", `SELECT seq FROM rea.append('order', $1::text, $2::text, $3::jsonb)`, "10086", "D", `{"a": 1}`)
	s.want("true", `SELECT id = (SELECT max(e.id) + 1 FROM rea.events e) FROM rea.append('other', '1', 'X')`)
	s.want("", denseSQL)
	s.want("8", `SELECT count(*) FROM rea.events`)
}

// refusedCalls are the arguments of append_batch and try_append that are refused, with SQLSTATE and detail.
var refusedCalls = []struct{ name, state, arguments, detail string }{
	{"a conflict", "RE001", `'order', '1', '[{"event_type": "X"}]', 5`, `{"actual":1,"aggregate_id":"1","aggregate_type":"order","code":"conflict","expected":5}`},
	{"a conflict with nothing", "RE001", `'order', 2, '[{"event_type": "X"}]', 5`, `{"actual":0,"aggregate_id":"2","aggregate_type":"order","code":"conflict","expected":5}`},
	{"a reused key", "RE003", `'order', '1', '[{"event_type": "Other"}]', key => 'used'`, `{"aggregate_id":"1","aggregate_type":"order","code":"key_reused","key":"used","seq":1}`},
	{"an array as payload", "RE004", `'order', '1', '[{"event_type": "X", "payload": [1]}]'`, `{"aggregate_id":"1","aggregate_type":"order","code":"bad_payload","path":"$[0].payload"}`},
	{"a null payload", "RE004", `'order', '1', '[{"event_type": "X"}, {"event_type": "X", "payload": null}]'`, `{"aggregate_id":"1","aggregate_type":"order","code":"bad_payload","path":"$[1].payload"}`},
	{"a deep payload", "RE005", `'order', '1', ('[{"event_type": "X", "payload": {"x":' || repeat('[', 900) || repeat(']', 900) || '}}]')::jsonb`, ``},
	{"a big payload", "RE005", `'order', '1', jsonb_build_array(jsonb_build_object('event_type', 'X', 'payload', jsonb_build_object('x', repeat('y', 16777216))))`, ``},
	{"an unknown key", "RE004", `'order', '1', '[{"event_type": "X", "payloud": {}}]'`, ``},
	{"events that are no array", "RE004", `'order', '1', '{}'`, `{"aggregate_id":"1","aggregate_type":"order","code":"bad_payload","path":"$"}`},
	{"no events at all", "RE004", `'order', '1', NULL`, ``},
	{"metadata that is no object", "RE004", `'order', '1', '[{"event_type": "X"}]', metadata => '1'`, ``},
	{"metadata of 64 KiB and one", "RE005", `'order', '1', '[{"event_type": "X"}]', metadata => jsonb_build_object('x', repeat('y', 65529))`, ``},
	{"an empty array", "RE005", `'order', '1', '[]'`, `{"aggregate_id":"1","aggregate_type":"order","code":"limit","limit":10000,"what":"events"}`},
	{"10,001 events", "RE005", `'order', '1', (SELECT jsonb_agg('{"event_type": "X"}'::jsonb) FROM generate_series(1, 10001))`, ``},
	{"an event that is a number", "RE005", `'order', '1', '[1]'`, ``},
	{"an event without a type", "RE005", `'order', '1', '[{}]'`, ``},
	{"an event type that is a number", "RE005", `'order', '1', '[{"event_type": 5}]'`, ``},
	{"an event type with a space", "RE005", `'order', '1', '[{"event_type": "X "}]'`, ``},
	{"version 0", "RE005", `'order', '1', '[{"event_type": "X", "event_version": 0}]'`, ``},
	{"version 1.5", "RE005", `'order', '1', '[{"event_type": "X", "event_version": 1.5}]'`, ``},
	{"a version above int", "RE005", `'order', '1', '[{"event_type": "X", "event_version": 2147483648}]'`, ``},
	{"a version that is a text", "RE005", `'order', '1', '[{"event_type": "X", "event_version": "one"}]'`, ``},
	{"a version that is a number in a text", "RE005", `'order', '1', '[{"event_type": "X", "event_version": "2"}]'`, ``},
	{"no aggregate type", "RE005", `NULL, '1', '[{"event_type": "X"}]'`, ``},
	{"no aggregate id", "RE005", `'order', NULL::text, '[{"event_type": "X"}]'`, ``},
	{"a long type", "RE005", `repeat('x', 201), '1', '[{"event_type": "X"}]'`, ``},
	{"a long key", "RE005", `'order', '1', '[{"event_type": "X"}]', key => repeat('x', 201)`, `{"aggregate_id":"1","aggregate_type":"order","code":"limit","limit":200,"what":"idempotency_key"}`},
	{"an empty actor", "RE005", `'order', '1', '[{"event_type": "X"}]', actor => ''`, ``},
	{"a long reason", "RE005", `'order', '1', '[{"event_type": "X"}]', reason => repeat('x', 4097)`, ``},
	{"a negative expectation", "RE005", `'order', '1', '[{"event_type": "X"}]', expect => -1`, ``},
	{"a correction without an actor", "RE005", `'order', '1', '[{"event_type": "X"}]', reason => 'r', correction => true`, ``},
}

func TestSQLTryAppendRefusesWithARowAndTheTransactionGoesOn(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(`SELECT rea.append('order', '1', 'OrderPlaced', key => 'used'); CREATE TABLE business (n int); BEGIN`)
	for n, c := range refusedCalls {
		s.want("true true", `SELECT refused IS NOT NULL AND id IS NULL AND seq IS NULL, refused = detail->>'code' FROM rea.try_append(`+c.arguments+`)`)
		if c.detail != "" {
			same(t, "detail of "+c.name, s.text(`SELECT detail - 'message' FROM rea.try_append(`+c.arguments+`)`), c.detail)
		}
		s.do(`INSERT INTO business VALUES ($1)`, n)
	}
	s.do(`SELECT rea.append('order', '1', 'After', expect => 1); COMMIT`)
	s.want("2", `SELECT count(*) FROM rea.events`)
	same(t, "business rows", s.text(`SELECT count(*)::int FROM business`), s.text(`SELECT $1::int`, len(refusedCalls)))
	s.want("true", `SELECT max(id) = 2 FROM rea.events`) // a refusal draws no id
}

func TestSQLAppendRefusesWithItsStateAndTheJSONInDetail(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(`SELECT rea.append('order', '1', 'OrderPlaced', key => 'used'); BEGIN`)
	for _, c := range refusedCalls {
		s.do(`SAVEPOINT s`)
		e := s.refused(c.state, `SELECT * FROM rea.append_batch(`+c.arguments+`)`)
		var detail map[string]any
		if err := json.Unmarshal([]byte(e.Detail), &detail); err != nil {
			t.Fatalf("DETAIL of %s = %q: %v", c.name, e.Detail, err)
		}
		if detail["message"] != e.Message || e.Message == "" {
			t.Errorf("message of %s = %q, want the one in DETAIL: %q", c.name, e.Message, detail["message"])
		}
		s.do(`ROLLBACK TO SAVEPOINT s`)
	}
	s.do(`SAVEPOINT s`)
	s.refused("RE001", `SELECT * FROM rea.append('order', 1, 'X', expect => 3)`)
	s.do(`ROLLBACK TO SAVEPOINT s`)
	s.refused("RE004", `SELECT * FROM rea.append('order', '1', 'X', '[]')`)
	s.do(`ROLLBACK TO SAVEPOINT s`)
	s.refused("22P02", `SELECT * FROM rea.append('order', '1', 'X', '{')`)
	s.do(`ROLLBACK TO SAVEPOINT s; SELECT rea.append('order', '1', 'After', expect => 1); COMMIT`)
	s.want("2", `SELECT count(*) FROM rea.events`)
}

func TestSQLChecksComeInTheSpecifiedOrder(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(`SELECT rea.append('order', '1', 'OrderPlaced', key => 'used')`)
	for arguments, want := range map[string]string{
		`'order', '1', '[{"event_type": "X", "payload": 1}]', 9, ' x', key => 'used'`:          "limit",
		`'order', '1', '[{"event_type": "X", "payload": 1}]', 9, key => 'used'`:                "bad_payload",
		`'order', '1', '[{"event_type": "X"}]', 9, key => 'used'`:                              "key_reused",
		`'order', '1', '[{"event_type": "X"}]', 9, key => 'new'`:                               "conflict",
		`'order', '1', '[{"event_type": "OrderPlaced", "payload": {}}]', 9, key => 'used'`:     "<nil>",
		`'order', '1', '[{"event_type": "X", "payload": 1}, {"event_type": " X"}]', 9`:         "limit",
		`'order', '1', '[{"event_type": "X", "payload": 1}]', 9, correction => true`:           "limit",
		`'order', '1', '[{"event_type": "X", "payload": 1}]', 9, metadata => '1', key => 'u '`: "limit",
	} {
		same(t, "refused of "+arguments, s.text(`SELECT refused FROM rea.try_append(`+arguments+`)`), want)
	}
}

func TestTheContextEndsWithItsTransaction(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	const last = `SELECT actor_id, reason, correlation_id FROM rea.events ORDER BY id DESC LIMIT 1`
	s.do(`BEGIN; SELECT rea.set_context('42', 'why', 'c'); ` + insert("", ""))
	s.want("42 why c", last)
	s.do(`SELECT rea.append('order', '1', 'X', actor => '7')`)
	s.want("7 why c", last)
	s.do(`SELECT rea.set_context('43', NULL, NULL); SELECT rea.append('order', '1', 'X')`)
	s.want("43 <nil> <nil>", last)
	s.do(`SELECT rea.append('order', '1', 'X', reason => 'r', correction => true); COMMIT`) // the context's actor counts
	s.do(insert("", ""))
	s.want("<nil> <nil> <nil>", last)
	s.do(`BEGIN; SELECT rea.set_context('44', 'why', 'c'); ROLLBACK; ` + insert("", ""))
	s.want("<nil> <nil> <nil>", last)
	s.do(`BEGIN; SAVEPOINT s; SELECT rea.set_context('45', 'why', 'c'); ROLLBACK TO SAVEPOINT s; ` + insert("", "") + `; COMMIT`)
	s.want("<nil> <nil> <nil>", last)
	for _, arguments := range []string{`' 42', NULL, NULL`, `repeat('x', 201), NULL, NULL`, `NULL, repeat('x', 4097), NULL`, `NULL, NULL, E'\n'`, `'', NULL, NULL`} {
		s.refused("RE005", `SELECT rea.set_context(`+arguments+`)`)
	}
	s.do(`SELECT rea.set_context(NULL, NULL, NULL)`)
}
