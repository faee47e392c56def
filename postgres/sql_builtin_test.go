package postgres_test

import (
	"testing"
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
