package postgres_test

import (
	"errors"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
)

// fact is a plain INSERT of one of REA's own events, as a guard makes it; values are SQL.
func fact(kind, columns, values string) string {
	return "INSERT INTO rea.events (aggregate_type, aggregate_id, event_type" + columns + ") VALUES ('order', '1', '" + kind + "'" + values + ")"
}

func TestEventsOfREAsOwnNeedAContextOrATime(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	for _, sql := range []string{
		fact("DirectUpdate", "", ""),
		`SELECT rea.append('order', '1', 'DirectUpdate')`,
		`SELECT rea.append_batch('order', '1', '[{"event_type": "A"}, {"event_type": "Reverted"}]')`,
	} {
		s.refused("RE005", sql)
	}
	s.want("limit event_type rea: append to order/1: event_type DirectInsert is a name of REA's own events: choose another",
		`SELECT refused, detail ->> 'what', detail ->> 'message' FROM rea.try_append('order', '1', '[{"event_type": "DirectInsert"}]')`)
	s.refused("428C9", fact("Other", ", context_id", ", 1"))
	s.do(fact("BaselineCreated", ", context_id, payload, status", `, 1, '{"row": {"state": "x"}}', 'paid '`))
	s.do(fact("DirectUpdate", ", context_id, payload, status", `, 1, '{}', repeat('x', 201)`))
	s.do(fact("DirectDelete", ", context_id, status", `, 1, 'paid'`))
	s.do(fact("Other", "", ""))
	s.want("paid |-|-|-", `SELECT string_agg(coalesce(e.status, '-') || coalesce(e.catalog_version::text, ''), '|' ORDER BY e.seq) FROM rea.events e`)
}

// A guard stores its facts complete. What is not this transaction's, or has an id of another origin, is refused to the owner as well.
func TestACompleteFactIsThisTransactionsAndHasAnIDOfTheSequence(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	complete := func(kind, id, context, xid string) string {
		return `INSERT INTO rea.events (id, aggregate_type, aggregate_id, seq, event_type, context_id, xid, db_user, created_at)
			VALUES (` + id + `, 'order', '1', 1, '` + kind + `', ` + context + `, ` + xid + `, session_user, clock_timestamp())`
	}
	const drawn, own = `nextval('rea.events_id_seq')`, `pg_current_xact_id()`
	for _, sql := range []string{
		complete("OrderPlaced", drawn, "1", own),
		complete("DirectInsert", drawn, "NULL", own),
		complete("DirectInsert", drawn, "1", "'3'"),
		complete("DirectInsert", drawn, "1", "NULL"),
		complete("DirectInsert", "NULL", "1", own),
		complete("DirectInsert", drawn+" + 1", "1", own),
	} {
		s.refused("428C9", sql)
	}
	s.do(complete("DirectInsert", drawn, "1", own))
	s.refused("428C9", complete("DirectUpdate", "(SELECT max(e.id) - 1 FROM rea.events e)", "1", own))
	s.refused("23505", complete("DirectUpdate", drawn, "1", own))
	s.want("1", `SELECT count(*) FROM rea.events`)
}

func TestTheFirstEventOfAGuardedRowIsItsBaseline(t *testing.T) {
	t.Parallel()
	a, s, url := archive(t)
	s.do(`CREATE TABLE orders (id text)`)
	s.do(`CREATE OR REPLACE FUNCTION rea.guard_row(aggregate_type text, aggregate_id text) RETURNS jsonb LANGUAGE sql
		AS $$ SELECT '{}'::jsonb WHERE aggregate_id = 'there' $$`)
	guard := func(kind string) {
		s.do(`INSERT INTO rea.guards OVERRIDING SYSTEM VALUE SELECT * FROM jsonb_populate_record(NULL::rea.guards, jsonb_build_object('guard_id', 1,
			'relation', 'orders', 'aggregate_type', $1::text, 'mode', 'capture', 'key', '{1}', 'ignored', '{}', 'redacted', '{}', 'keeps_sql', 'full',
			'needs_reason', false, 'on_truncate', 'capture', 'columns', '[]'::jsonb, 'made_for', 1, 'granted', '{}', 'glass_broken', false, 'added_by', 'x', 'added_at', now()))`, kind)
		s.do(`SELECT rea.guards_changed()`)
	}
	check := func(kind string) {
		t.Helper()
		s.refused("RE012", `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ($1, 'there', 'OrderPlaced')`, kind)
		s.refused("RE012", `SELECT rea.append($1, 'there', 'OrderPlaced')`, kind)
		s.want("no_baseline public.orders", `SELECT refused, detail ->> 'table' FROM rea.try_append($1, 'there', '[{"event_type": "OrderPlaced"}]')`, kind)
		_, err := a.Autocommit().Append(t.Context(), rea.Ref{Type: kind, ID: "there"}, rea.NewEvent{Type: "OrderPlaced"})
		if missing := new(rea.NoBaselineError); !errors.As(err, &missing) || missing.Table != "public.orders" {
			t.Errorf("append: error = %v, want a *rea.NoBaselineError", err)
		}
		s.do(`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, context_id) VALUES ($1, 'there', 'BaselineCreated', 1)`, kind)
		put(t, a.Autocommit(), rea.Ref{Type: kind, ID: "there"}, "NoteAdded")
		put(t, a.Autocommit(), rea.Ref{Type: kind, ID: "new"}, "OrderPlaced", "NoteAdded")
		s.want("4", `SELECT count(*) FROM rea.events WHERE aggregate_type = $1`, kind)
		s.do(`DELETE FROM rea.guards`)
		s.do(`SELECT rea.guards_changed()`)
		s.want("0", `SELECT count(*) FROM rea.steps WHERE guarded`)
	}
	guard("plain")
	check("plain")
	guard("order")
	rules, err := rea.NewCatalog(rea.Type{Name: "order", Status: "status", Events: []rea.EventType{
		{Name: "OrderPlaced", From: []string{rea.FromNone}, To: "placed"}, {Name: "NoteAdded", From: []string{rea.FromAny}, Deletes: true}}})
	if err != nil {
		t.Fatal(err)
	}
	applying, err := postgres.Open(t.Context(), url, postgres.Config{Config: rea.Config{Catalog: rules}})
	if err != nil {
		t.Fatal(err)
	}
	defer applying.Close()
	if _, err := applying.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want("OrderPlaced, ", `SELECT event_type FROM rea.steps WHERE guarded ORDER BY event_type DESC`)
	s.want("true status", `SELECT bool_or(deletes), max(status_field) FROM rea.steps`)
	check("order")
}
