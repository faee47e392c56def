package postgres_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// insert is a plain INSERT; values are SQL.
func insert(columns, values string) string {
	return "INSERT INTO rea.events (aggregate_type, aggregate_id, event_type" + columns + ") VALUES ('order', '1', 'X'" + values + ")"
}

func TestAPlainInsertIsCheckedLikeAnAppend(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(insert(", seq", ", 1"))
	s.do(insert(", idempotency_key", ", 'used'"))
	long := strings.Repeat("x", 201)
	s.do(`BEGIN`)
	for _, c := range []struct{ name, state, sql string }{
		{"a taken seq", "23505", insert(", seq", ", 2")},
		{"the first seq again", "23505", insert(", seq", ", 1")},
		{"a hole", "RE008", insert(", seq", ", 4")},
		{"a far hole", "RE008", insert(", seq", ", 9223372036854775807")},
		{"seq 0", "23514", insert(", seq", ", 0")},
		{"a negative seq", "23514", insert(", seq", ", -5")},
		{"an id", "428C9", insert(", id", ", 7")},
		{"an id that is overridden", "428C9", "INSERT INTO rea.events (id, aggregate_type, aggregate_id, event_type) OVERRIDING SYSTEM VALUE VALUES (7, 'order', '1', 'X')"},
		{"the next id", "428C9", insert(", id", ", nextval('rea.events_id_seq')")},
		{"an xid", "428C9", insert(", xid", ", '5'")},
		{"a db_user", "428C9", insert(", db_user", ", 'somebody'")},
		{"a recorded_at", "428C9", insert(", recorded_at", ", now()")},
		{"a status", "428C9", insert(", status", ", 'paid'")},
		{"a catalog_version", "428C9", insert(", catalog_version", ", 1")},
		{"a known key", "23505", insert(", idempotency_key", ", 'used'")},
		{"key_events without a key", "23514", insert(", key_events", ", 1")},
		{"key_events of 0", "23514", insert(", idempotency_key, key_events", ", 'k', 0")},
		{"a long actor", "23514", insert(", actor_id", ", '"+long+"'")},
		{"an actor with a space at the end", "23514", insert(", actor_id", ", 'x '")},
		{"an empty correlation", "23514", insert(", correlation_id", ", ''")},
		{"a key with a newline", "23514", insert(", idempotency_key", ", E'a\\nb'")},
		{"a long reason", "23514", insert(", reason", ", repeat('x', 4097)")},
		{"an empty type", "23514", "INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ('', '1', 'X')"},
		{"a long event type", "23514", "INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ('order', '1', '" + long + "')"},
		{"an id with a control character", "23514", "INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ('order', E'\\u0085', 'X')"},
		{"no type", "23502", "INSERT INTO rea.events (aggregate_id, event_type) VALUES ('1', 'X')"},
		{"version 0", "23514", insert(", event_version", ", 0")},
		{"an array as payload", "23514", insert(", payload", ", '[1]'")},
		{"a JSON null as payload", "23514", insert(", payload", ", 'null'")},
		{"no payload", "23502", insert(", payload", ", NULL")},
		{"a deep payload", "23514", insert(", payload", `, ('{"x":' || repeat('[', 900) || repeat(']', 900) || '}')::jsonb`)},
		{"a big payload", "23514", insert(", payload", ", jsonb_build_object('x', repeat('y', 16777216))")},
		{"metadata that is no object", "23514", insert(", metadata", ", '1'")},
		{"big metadata", "23514", insert(", metadata", ", jsonb_build_object('x', repeat('y', 65536))")},
		{"no JSON", "22P02", insert(", payload", ", '{'")},
		{"U+0000", "22P05", insert(", payload", `, '{"a": "\u0000"}'`)},
		{"a lone surrogate", "22P02", insert(", payload", `, '{"a": "\ud800"}'`)},
		{"a correction without a reason", "23514", insert(", correction, actor_id", ", true, '42'")},
		{"an infinite time", "23514", insert(", created_at", ", 'infinity'")},
		{"a time after 9999", "23514", insert(", created_at", ", '10000-01-01Z'")},
		{"a time before Christ", "23514", insert(", created_at", ", '0044-03-15 BC'")},
	} {
		s.do(`SAVEPOINT s`)
		e := s.refused(c.state, c.sql)
		if strings.Contains(e.Message+e.Hint, "amount") {
			t.Errorf("message for %s = %q, want no payload data in it", c.name, e.Message)
		}
		s.do(`ROLLBACK TO SAVEPOINT s`)
	}
	s.do(insert("", "") + `; COMMIT`)
	s.want("1 1 <nil>, 2 1 used, 3 1 <nil>", `SELECT seq, event_version, idempotency_key FROM rea.events ORDER BY seq`)
	s.want("", denseSQL)
}

func TestAHoleIsRefusedWithItsJSONInDetail(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(insert("", ""))
	e := s.refused("RE008", insert(", seq", ", 5"))
	var detail map[string]any
	if err := json.Unmarshal([]byte(e.Detail), &detail); err != nil {
		t.Fatalf("DETAIL = %q: %v", e.Detail, err)
	}
	delete(detail, "message")
	got, _ := json.Marshal(detail)
	same(t, "DETAIL", string(got), `{"actual":1,"aggregate_id":"1","aggregate_type":"order","code":"hole","seq":5}`)
}

func TestRowsOfOneStatementCountOn(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	const seqs = `SELECT string_agg(seq || event_type, ' ' ORDER BY id) FROM rea.events WHERE aggregate_id = `
	s.do(`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ('order', 'values', 'A'), ('order', 'values', 'B'), ('order', 'values', 'C')`)
	s.want("1A 2B 3C", seqs+`'values'`)
	s.do(`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, seq) VALUES ('order', 'given', 'A', 1), ('order', 'given', 'B', 2)`)
	s.want("1A 2B", seqs+`'given'`)
	s.do(`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) SELECT 'order', 'select', chr(64 + n) FROM generate_series(1, 4) n ORDER BY n`)
	s.want("1A 2B 3C 4D", seqs+`'select'`)
	s.refused("RE008", `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, seq) VALUES ('order', 'half', 'A', 1), ('order', 'half', 'C', 3)`)
	s.want("0", `SELECT count(*) FROM rea.events WHERE aggregate_id = 'half'`)
	s.do(`WITH a AS (INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ('order', 'with', 'A') RETURNING seq) SELECT * FROM a`)
	s.want("1A", seqs+`'with'`)
	s.want("", denseSQL)
}

func TestCopyIsCheckedRowByRow(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	columns := []string{"aggregate_type", "aggregate_id", "event_type"}
	rows := [][]any{{"order", "1", "A"}, {"order", "1", "B"}, {"order", "2", "A"}}
	copied := func(columns []string, rows [][]any) error {
		_, err := s.CopyFrom(t.Context(), pgx.Identifier{"rea", "events"}, columns, pgx.CopyFromRows(rows))
		return err
	}
	if err := copied(columns, rows); err != nil {
		t.Fatal(err)
	}
	s.want("1 1 A, 1 2 B, 2 1 A", `SELECT aggregate_id, seq, event_type FROM rea.events ORDER BY id`)
	for state, c := range map[string]struct {
		column string
		value  any
	}{"428C9": {"id", int64(50)}, "RE008": {"seq", int64(9)}, "23505": {"seq", int64(2)}} {
		err := copied(append(columns[:3:3], c.column), [][]any{{"order", "1", "X", c.value}})
		same(t, "SQLSTATE of COPY with "+c.column, stateOf(err), state)
	}
	s.want("3", `SELECT count(*) FROM rea.events`)
}

func TestDoNothingMeansNoRowAndNoError(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(insert(", idempotency_key", ", 'k'"))
	s.do(`BEGIN`)
	s.want("", insert(", seq", ", 1")+` ON CONFLICT DO NOTHING RETURNING seq`)
	s.want("", insert(", seq", ", 1")+` ON CONFLICT (aggregate_type, aggregate_id, seq) DO NOTHING RETURNING seq`)
	s.want("", insert(", idempotency_key", ", 'k'")+` ON CONFLICT DO NOTHING RETURNING seq`)
	s.want("2", insert(", seq", ", 2")+` ON CONFLICT DO NOTHING RETURNING seq`)
	s.refused("RE008", insert(", seq", ", 9")+` ON CONFLICT DO NOTHING`)
	s.do(`ROLLBACK`)
	s.want("1", `SELECT count(*) FROM rea.events`)
}

func TestProvenanceIsFilledIn(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(`BEGIN; ` + insert(", created_at", ", '2020-02-02 02:02:02.000002Z'"))
	s.do(insert("", ""))
	s.want("true", `SELECT bool_and(xid = pg_current_xact_id() AND db_user = session_user) FROM rea.events`)
	s.want("true true", `SELECT created_at = '2020-02-02 02:02:02.000002Z', abs(extract(epoch FROM recorded_at - clock_timestamp())) < 60 FROM rea.events WHERE seq = 1`)
	s.want("true true", `SELECT abs(extract(epoch FROM created_at - clock_timestamp())) < 60, recorded_at IS NULL FROM rea.events WHERE seq = 2`)
	s.do(`COMMIT`)
}
