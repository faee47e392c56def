package postgres

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

// planDatabase is one whose events table was vacuumed while it was empty: the planner takes it for tiny for ever.
func planDatabase(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	// no autovacuum: it would put the statistics right in the middle of a test
	for _, table := range []string{"rea.events", "rea.feed", "rea.snapshots"} {
		planDo(t, conn, `ALTER TABLE `+table+` SET (autovacuum_enabled = off)`)
		planDo(t, conn, `VACUUM ANALYZE `+table)
	}
	return conn
}

func planDo(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// explain gives the plan of a statement as text, and with analyze the pages that it touched.
func explain(t *testing.T, conn *pgx.Conn, analyze bool, sql string, args ...any) (plan string, pages int) {
	t.Helper()
	var text []byte
	prefix := `EXPLAIN (FORMAT JSON) `
	if analyze {
		prefix = `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) `
	}
	if err := conn.QueryRow(t.Context(), prefix+sql, args...).Scan(&text); err != nil {
		t.Fatalf("explain %s: %v", sql, err)
	}
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	return string(text), plans[0].Plan.Hit + plans[0].Plan.Read
}

func TestABulkInsertIntoAVacuumedEmptyTableDoesBoundedWork(t *testing.T) {
	t.Parallel()
	conn := planDatabase(t)
	const rows = 100_000
	const pagesOfRow = 60 // a scan of the whole table would be thousands
	for name, sql := range map[string]string{
		"without seqs": `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) SELECT 'order', (n % 20)::text, 'X' FROM generate_series(1, %d) n`,
		"with seqs":    `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, seq) SELECT 'given', (n % 20)::text, 'X', n / 20 + 1 FROM generate_series(0, %d - 1) n`,
	} {
		_, pages := explain(t, conn, true, fmt.Sprintf(strings.ReplaceAll(sql, "% 20", "%% 20"), rows/2))
		if pages > rows/2*pagesOfRow {
			t.Errorf("pages touched %s = %d for %d rows, want at most %d a row", name, pages, rows/2, pagesOfRow)
		}
		if pages < rows/2 {
			t.Errorf("pages touched %s = %d, want at least one a row: the trigger's are not counted", name, pages)
		}
	}
	_, pages := explain(t, conn, true, `SELECT * FROM rea.append_batch('batch', '1', (SELECT jsonb_agg('{"event_type": "X"}'::jsonb) FROM generate_series(1, 10000)), key => 'k')`)
	if pages > 10_000*pagesOfRow {
		t.Errorf("pages touched by a batch of 10,000 = %d, want at most %d an event", pages, pagesOfRow)
	}
	// The least of three: databases that others make and drop may empty the session's caches, which are filled again by a thousand pages.
	least := math.MaxInt
	for i := range 3 {
		_, pages = explain(t, conn, true, fmt.Sprintf(`SELECT * FROM rea.append('order', '7', 'X', key => 'k%d')`, i))
		least = min(least, pages)
	}
	if least > 500 {
		t.Errorf("pages touched by one append = %d, want at most 500", least)
	}
}

// scanOfEvents: of the feed, a scan of its few pages may be the cheapest while it is small.
var scanOfEvents = regexp.MustCompile(`"Node Type": "Seq Scan"[^{}]*"Relation Name": "events"`)

func TestHotQueriesGoThroughTheirIndexes(t *testing.T) {
	t.Parallel()
	conn := planDatabase(t)
	planDo(t, conn, `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, idempotency_key, payload)
	      SELECT 'order', (n % 200)::text, 'X', 'k' || n, jsonb_build_object('x', repeat(md5(n::text), 50)) FROM generate_series(1, 20000) n`)
	planDo(t, conn, `SELECT rea.feed_pass(100000)`)
	planDo(t, conn, `INSERT INTO rea.snapshots (aggregate_type, aggregate_id, seq, event_id, fingerprint, digest, state)
	      SELECT e.aggregate_type, e.aggregate_id, e.seq, e.id, 'f', 'd', repeat('x', 500) FROM rea.events e WHERE e.seq = 90`)
	page := []any{int64(500), 100, (*string)(nil), (*string)(nil), optional("or"), nil, nil, nil, nil, nil, nil, nil, nil, "[]", nil}
	one := append([]any{int64(500), 100, optional("order"), optional("7")}, page[4:]...)
	for name, c := range map[string]struct {
		sql     string
		args    []any
		indexes []string
		pages   int
	}{
		"the events of an aggregate": {aggregateSQL, []any{"order", "7", int64(10), 100}, []string{"events_aggregate_seq_key"}, 1500},
		"the events of a fold":       {foldSQL, []any{"order", "7", int64(10), 100}, []string{"events_aggregate_seq_key"}, 600},
		"the events of a snapshot":   {resumeSQL, []any{"order", "7", "f", int64(99), 1000}, []string{"events_aggregate_seq_key"}, 120},
		"a page":                     {unfilteredPageSQL, []any{int64(500), 100}, []string{"feed_pkey", "events_pkey"}, 1500},
		"a filtered page":            {pageSQL, page, []string{"feed_pkey", "events_pkey"}, 1500},
		"the end of a page":          {pageEndSQL, []any{int64(500), 100}, []string{"feed_pkey"}, 300},
		"a page of a context":        {contextPageSQL, append(append([]any{}, page[:14]...), int64(7)), []string{"events_context"}, 300},
		"a page of an aggregate":     {aggregatePageSQL, one, []string{"events_aggregate_seq_key"}, 1500},
	} {
		for _, statistics := range []string{"stale", "fresh"} {
			if statistics == "fresh" {
				planDo(t, conn, `ANALYZE rea.events, rea.feed`)
			}
			plan, pages := explain(t, conn, true, c.sql, c.args...)
			for _, index := range c.indexes {
				if !strings.Contains(plan, `"`+index+`"`) {
					t.Errorf("plan of %s with %s statistics = %s, want %s in it", name, statistics, plan, index)
				}
			}
			if scanOfEvents.MatchString(plan) {
				t.Errorf("plan of %s with %s statistics = %s, want no sequential scan of events", name, statistics, plan)
			}
			if pages > c.pages {
				t.Errorf("pages touched by %s with %s statistics = %d, want at most %d", name, statistics, pages, c.pages)
			}
		}
	}
}

// What apply looks at under its lock grows with the aggregates, not with their events.
func TestPresentStatusesAreFoundByAFewPagesAnAggregate(t *testing.T) {
	t.Parallel()
	conn := planDatabase(t)
	const aggregates = 200
	planDo(t, conn, `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type)
	      SELECT k, (n % 200)::text, CASE WHEN n < 200 * 95 THEN 'Opened' ELSE 'Noted' END FROM generate_series(0, 200 * 100 - 1) n, unnest('{order,payment}'::text[]) k`)
	planDo(t, conn, `SET enable_seqscan = off`) // as PresentStatuses does
	for _, statistics := range []string{"stale", "fresh"} {
		if statistics == "fresh" {
			planDo(t, conn, `ANALYZE rea.events`)
		}
		plan, pages := explain(t, conn, true, presentSQL, "order", []string{"Opened"}, "status")
		if scanOfEvents.MatchString(plan) || !strings.Contains(plan, `"events_aggregate_seq_key"`) || pages > 20*aggregates {
			t.Errorf("pages with %s statistics = %d for %d aggregates, want at most 20 each; plan = %s", statistics, pages, aggregates, plan)
		}
	}
}
