package guard

import (
	"fmt"
	"strings"

	"github.com/realtime-event-archive/rea/adopt"
)

// mostColumns is how many columns the generated code compares by name; a row of a query has 1,664 fields at most, and each column
// takes three. A wider table goes the generic way.
const mostColumns = 500

// operations are those that a guard has triggers for.
var operations = []string{"insert", "update", "delete", "truncate"}

// function is the statement that makes the trigger function of an operation. columns is the hash of those that the code knows.
//
// Every name of the application's stands behind an alias, and every variable behind the block's name, so that none can be taken for
// another one. plan_cache_mode: a custom plan is made anew in each of the first five calls, and is no better. jit: it takes longer than it saves.
func (g *Guard) function(operation string, columns int64) string {
	var body string
	switch {
	case operation == "truncate":
		body = g.truncate()
	case g.refusing():
		body = g.refuse(operation, columns)
	default:
		body = g.capture(operation, columns)
	}
	settings := append([][2]string{{"jit", "off"}, {"enable_seqscan", "off"}, {"enable_mergejoin", "off"}, {"plan_cache_mode", "force_generic_plan"}}, adopt.Settings...)
	return fmt.Sprintf("CREATE OR REPLACE FUNCTION rea.guard_%d_%s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER%s AS %s",
		g.ID, operation, setClauses(settings), adopt.Literal(body))
}

func setClauses(settings [][2]string) string {
	var b strings.Builder
	for _, s := range settings {
		value := adopt.Literal(s[1])
		if s[0] == "search_path" { // a list of names
			value = s[1]
		}
		fmt.Fprintf(&b, " SET %s = %s", s[0], value)
	}
	return b.String()
}

// columnsHash tells the columns of a relation from others, whatever their order is. The oids of types that somebody made are others after a restore.
const columnsHash = `(SELECT bit_xor(hashtextextended(a.attname::text, CASE WHEN a.atttypid < 16384 THEN a.atttypid::bigint ELSE 1 END))
    FROM pg_catalog.pg_attribute a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped)`

// capture is the body for INSERT, UPDATE and DELETE.
//
// plainly: the columns are those that this code knows, and each key of the old rows is there once among the new ones, and the other way
// round: neither did a key change, nor a cascade write a row again. expected is an upper bound first: the exact number is counted
// where fewer are stored, for a row may not have changed, or somebody may append to its aggregate meanwhile. Then DO NOTHING
// stores no event for it, and it is tried again after the other one.
func (g *Guard) capture(operation string, columns int64) string {
	kept := adopt.Literal(g.Settings.SQL)
	reason := ""
	if g.Settings.RequireReason {
		reason = `
        IF coalesce(current_setting('rea.reason', true), '') = '' THEN
            PERFORM rea.refuse_without_reason(TG_RELID, TG_OP, rea_guard.stored);
        END IF;`
	}
	counted, exactly := g.count(operation)
	return fmt.Sprintf(`
<<rea_guard>>
DECLARE
    context  bigint := nextval('rea.contexts_context_id_seq'::regclass);
    plainly  boolean := %[1]s;
    expected bigint;
    stored   bigint := 0;
    part     bigint;
    tries    int := 0;
    query    text;
BEGIN
    IF rea_guard.plainly THEN
        %[2]s
    END IF;
    IF NOT rea_guard.plainly THEN
        SELECT rea.guard_pairs(g, TG_RELID, TG_OP) INTO query FROM rea.guards g WHERE g.guard_id = %[3]d;
        EXECUTE format('SELECT count(*) FROM (%%s) x WHERE x.was::text IS DISTINCT FROM x.now::text', rea_guard.query) INTO rea_guard.expected;
        SELECT rea.guard_store_sql(g, rea_guard.query) INTO query FROM rea.guards g WHERE g.guard_id = %[3]d;
    END IF;
    WHILE rea_guard.stored < rea_guard.expected LOOP
        IF rea_guard.plainly THEN
            %[4]s
            ON CONFLICT DO NOTHING;
        ELSE
            EXECUTE rea_guard.query USING rea_guard.context, rea_guard.tries;
        END IF;
        GET DIAGNOSTICS part = ROW_COUNT;
        stored := rea_guard.stored + rea_guard.part;
        tries := rea_guard.tries + 1;
        IF rea_guard.tries = 1 AND rea_guard.plainly AND rea_guard.stored < rea_guard.expected THEN
            PERFORM FROM rea.steps s WHERE s.aggregate_type = '' AND s.event_type = '' AND s.from_status = '';
            IF NOT FOUND THEN
                PERFORM rea.refuse_stale_catalog();
            END IF;
            %[5]s
        ELSIF rea_guard.tries > 100 THEN
            PERFORM rea.refuse_sequence();
        END IF;
    END LOOP;
    IF rea_guard.stored > 0 THEN%[6]s
        IF rea.observe(rea_guard.context, TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP, rea_guard.stored, %[7]s) THEN
            EXECUTE rea.guard_level_sql(%[3]d, TG_RELID, TG_OP) USING rea_guard.context, 0;
        END IF;
    END IF;
    RETURN NULL;
END`, g.known(columns), counted, g.ID, g.events(operation), exactly, reason, kept)
}

// known is the SQL that says whether the columns are those that the code knows.
func (g *Guard) known(columns int64) string {
	if len(g.Table.Columns) > mostColumns {
		return "false"
	}
	return fmt.Sprintf("coalesce("+columnsHash+" = %d, false)", "TG_RELID", columns)
}

// count are the statements that set expected: to a bound, and to the number.
func (g *Guard) count(operation string) (bound, exact string) {
	switch operation {
	case "insert":
		return g.countOf("rea_new", "rea_n"), "NULL;"
	case "delete":
		return g.countOf("rea_old", "rea_o"), "NULL;"
	}
	// as many pairs as rows: each row has exactly one other
	same := g.same("rea_o", "rea_n")
	bound = fmt.Sprintf(`SELECT x.rows, x.rows = (SELECT count(*) FROM rea_old rea_o FULL JOIN rea_new rea_n ON %s)
        INTO rea_guard.expected, rea_guard.plainly FROM (SELECT count(*) AS rows FROM rea_new) x;`, same)
	return bound, fmt.Sprintf("expected := (SELECT count(*) FILTER (WHERE %[2]s) FROM rea_old rea_o FULL JOIN rea_new rea_n ON %[1]s);", same, differ(g.recorded(), "rea_o", "rea_n"))
}

// countOf counts the rows of one side. A key that is deferrable may be there twice: then they have two events.
func (g *Guard) countOf(side, alias string) string {
	if !g.Table.Late {
		return "expected := (SELECT count(*) FROM " + side + ");"
	}
	return fmt.Sprintf(`SELECT count(*), count(*) = count(DISTINCT %s) INTO rea_guard.expected, rea_guard.plainly FROM %s %s;`, g.Table.ID(alias), side, alias)
}

// events is the statement that stores the events, complete: the insert trigger lets them pass, which is half of its cost. A seq is one beyond
// the last that the statement sees: who was faster makes it do nothing, and it is tried again. The transaction has its xid before it draws an
// id, for it has written rows; so has a later seq a later id.
func (g *Guard) events(operation string) string {
	kind := adopt.Literal(g.Settings.Type)
	// none of this statement's is stored already; LIMIT: no plan looks for all of them at once
	again := fmt.Sprintf(`(rea_guard.tries = 0 OR (SELECT 1 FROM rea.events e WHERE e.aggregate_type = %s AND e.aggregate_id = rea_y.id
                AND e.context_id = rea_guard.context LIMIT 1) IS NULL)`, kind)
	// a value in memory is not compressed: size_ok makes sure of it
	payload := fmt.Sprintf(`CASE WHEN pg_column_size(rea_y.payload) < 1500 OR rea.size_ok(rea_y.payload, 16777216) THEN rea_y.payload ELSE rea.refuse_row(%s, rea_y.id, 'payload') END`, kind)
	var inner string
	switch operation {
	case "insert":
		inner = fmt.Sprintf(`SELECT %s AS id, 'DirectInsert' AS event, jsonb_build_object('new', %s) AS payload, %s AS status, %s AS last FROM rea_new rea_n OFFSET 0`,
			g.Table.ID("rea_n"), g.object("rea_n"), g.status("rea_n"), g.last(g.Table.ID("rea_n")))
	case "delete":
		inner = fmt.Sprintf(`SELECT %s AS id, 'DirectDelete' AS event, jsonb_build_object('old', %s) AS payload, NULL::text AS status, %s AS last FROM rea_old rea_o OFFSET 0`,
			g.Table.ID("rea_o"), g.object("rea_o"), g.last(g.Table.ID("rea_o")))
	default:
		inner = g.updates()
	}
	return fmt.Sprintf(`INSERT INTO rea.events (id, aggregate_type, aggregate_id, seq, event_type, payload, status, catalog_version,
                actor_id, reason, correlation_id, xid, db_user, created_at, context_id)
            SELECT nextval('rea.events_id_seq'::regclass), %[1]s, rea_y.id, rea_y.last + 1, rea_y.event, %[2]s,
                rea.fact_status(%[1]s, rea_y.id, rea_y.event, rea_y.payload, rea_y.status, rea_y.last, rea_k.status_field, rea_k.catalog_version), rea_k.catalog_version,
                rea_k.actor, rea_k.reason, rea_k.correlation, pg_current_xact_id(), session_user, clock_timestamp(), rea_guard.context
            FROM (%[3]s) rea_y,
                (SELECT s.status_field, s.catalog_version, nullif(current_setting('rea.actor', true), '') AS actor,
                        nullif(current_setting('rea.reason', true), '') AS reason, nullif(current_setting('rea.correlation', true), '') AS correlation
                 FROM rea.steps s WHERE s.aggregate_type IN ('', %[1]s) AND s.event_type = '' AND s.from_status = ''
                 ORDER BY s.aggregate_type DESC LIMIT 1) rea_k
            WHERE %[4]s
            ORDER BY rea_y.id`, kind, payload, inner, again)
}

// last is the last seq of an aggregate; 0: it has no events.
func (g *Guard) last(id string) string {
	return fmt.Sprintf(`coalesce((SELECT e.seq FROM rea.events e WHERE e.aggregate_type = %s AND e.aggregate_id = %s ORDER BY e.seq DESC LIMIT 1), 0)`,
		adopt.Literal(g.Settings.Type), id)
}

// updates pairs the old rows with the new ones. Each column is compared once: OFFSET 0 keeps the planner from writing the comparison
// into each place that uses it. All rows have another one here, and yet the join is a full one: that is no nested loop, whatever number of
// rows the plan, which stays, was made for.
func (g *Guard) updates() string {
	var fields, flags []string
	for i, c := range g.recorded() {
		fields = append(fields, fmt.Sprintf("%s AS o%d, %s AS n%d, %s AS d%d", field("rea_o", c.Name), i, field("rea_n", c.Name), i, differs(c, "rea_o", "rea_n"), i))
		flags = append(flags, fmt.Sprintf("rea_x.d%d", i))
	}
	if len(fields) == 0 {
		fields, flags = []string{"NULL"}, []string{"false"}
	}
	return fmt.Sprintf(`SELECT rea_x.id, 'DirectUpdate' AS event, rea_x.status, rea_x.last,
            jsonb_build_object('old', CASE WHEN rea_x.last = 0
                THEN %[2]s
                ELSE %[3]s END, 'new', %[4]s) AS payload
        FROM (SELECT rea_x.*, %[1]s AS last FROM (SELECT %[5]s AS id, %[6]s AS status,
                %[7]s
            FROM rea_old rea_o FULL JOIN rea_new rea_n ON %[8]s OFFSET 0) rea_x
        WHERE %[9]s OFFSET 0) rea_x`,
		g.last("rea_x.id"), g.whole("o"), g.delta("o"), g.delta("n"), g.Table.ID("rea_n"), g.status("rea_n"),
		strings.Join(fields, ",\n                "), g.same("rea_o", "rea_n"), strings.Join(flags, " OR "))
}
