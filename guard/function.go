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

const declarations = `
<<rea_guard>>
DECLARE
    context bigint := nextval('rea.contexts_context_id_seq'::regclass);
    changed bigint;
    plainly boolean := %s;   -- the columns are those that this code knows, and each key is there once
    stored  bigint := 0;
    part    bigint;
    tries   int := 0;
    query   text;
BEGIN`

// capture is the body for INSERT, UPDATE and DELETE.
//
// Somebody may append to the aggregate of a row meanwhile: then DO NOTHING stores no event for it, and it is tried again after the other one.
func (g *Guard) capture(operation string, columns int64) string {
	known := "false"
	if len(g.Table.Columns) <= mostColumns {
		known = fmt.Sprintf("coalesce("+columnsHash+" = %d, false)", "TG_RELID", columns)
	}
	var b strings.Builder
	fmt.Fprintf(&b, declarations, known)
	fmt.Fprintf(&b, `
    IF rea_guard.plainly THEN
        %[1]s
    END IF;
    IF NOT rea_guard.plainly THEN
        SELECT rea.guard_pairs(g, TG_RELID, TG_OP) INTO query FROM rea.guards g WHERE g.guard_id = %[2]d;
        EXECUTE format('SELECT count(*) FROM (%%s) x WHERE x.was::text IS DISTINCT FROM x.now::text', rea_guard.query) INTO rea_guard.changed;
        SELECT rea.guard_store_sql(g, rea_guard.query) INTO query FROM rea.guards g WHERE g.guard_id = %[2]d;
    END IF;`, g.count(operation), g.ID)
	if g.Settings.RequireReason {
		fmt.Fprintf(&b, `
    IF rea_guard.changed > 0 AND coalesce(current_setting('rea.reason', true), '') = '' THEN
        PERFORM rea.refuse_without_reason(TG_RELID, TG_OP, rea_guard.changed);
    END IF;`)
	}
	fmt.Fprintf(&b, `
    IF rea_guard.changed > 0 THEN
        PERFORM rea.observe(rea_guard.context, TG_RELID, TG_OP, rea_guard.changed, %[1]s);
    END IF;
    WHILE rea_guard.stored < rea_guard.changed LOOP
        IF rea_guard.plainly THEN
            INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, payload, status, context_id)
            %[2]s
            ON CONFLICT DO NOTHING;
        ELSE
            EXECUTE rea_guard.query USING rea_guard.context, rea_guard.tries;
        END IF;
        GET DIAGNOSTICS part = ROW_COUNT;
        stored := rea_guard.stored + rea_guard.part;
        tries := rea_guard.tries + 1;
        IF rea_guard.tries > 100 THEN
            PERFORM rea.refuse_sequence();
        END IF;
    END LOOP;
    IF rea_guard.changed > 0 AND EXISTS (SELECT FROM rea.contexts c WHERE c.xid = pg_current_xact_id() AND c.depth > pg_trigger_depth()) THEN
        EXECUTE rea.guard_level_sql(%[3]d, TG_RELID, TG_OP) USING rea_guard.context, 0;
    END IF;
    RETURN NULL;
END`, adopt.Literal(g.Settings.SQL), g.events(operation), g.ID)
	return b.String()
}

// count is the statement that sets changed, and plainly to false where a key is there twice: a cascade may change a row again.
func (g *Guard) count(operation string) string {
	switch operation {
	case "insert":
		return "changed := (SELECT count(*) FROM rea_new);"
	case "delete":
		return "changed := (SELECT count(*) FROM rea_old);"
	}
	o, n := g.keyColumn("rea_o"), g.keyColumn("rea_n")
	return fmt.Sprintf(`SELECT count(*) FILTER (WHERE %[1]s IS NULL OR %[2]s IS NULL OR %[3]s),
               count(%[1]s) = (SELECT count(*) FROM rea_old) AND count(%[2]s) = (SELECT count(*) FROM rea_new)
        INTO rea_guard.changed, rea_guard.plainly
        FROM rea_old rea_o FULL JOIN rea_new rea_n ON %[4]s;`, o, n, differ(g.recorded(), "rea_o", "rea_n"), g.same("rea_o", "rea_n"))
}

// events is the query for type, id, event type, payload, status and context of the events of a statement.
func (g *Guard) events(operation string) string {
	kind := adopt.Literal(g.Settings.Type)
	// none of this statement's is stored already; LIMIT: no plan looks for all of them at once
	again := fmt.Sprintf(`(rea_guard.tries = 0 OR (SELECT 1 FROM rea.events e WHERE e.aggregate_type = %s AND e.aggregate_id = rea_y.id
                AND e.context_id = rea_guard.context LIMIT 1) IS NULL)`, kind)
	payload := fmt.Sprintf(`CASE WHEN rea.size_ok(rea_y.payload, 16777216) THEN rea_y.payload ELSE rea.refuse_row(%s, rea_y.id, 'payload') END`, kind)
	var inner string
	switch operation {
	case "insert":
		inner = fmt.Sprintf(`SELECT %s AS id, 'DirectInsert' AS event, jsonb_build_object('new', %s) AS payload, %s AS status FROM rea_new rea_n OFFSET 0`,
			g.Table.ID("rea_n"), g.object("rea_n"), g.status("rea_n"))
	case "delete":
		inner = fmt.Sprintf(`SELECT %s AS id, 'DirectDelete' AS event, jsonb_build_object('old', %s) AS payload, NULL::text AS status FROM rea_old rea_o OFFSET 0`,
			g.Table.ID("rea_o"), g.object("rea_o"))
	default:
		inner = g.updates()
	}
	return fmt.Sprintf(`SELECT %s, rea_y.id, rea_y.event, %s, rea_y.status, rea_guard.context
        FROM (%s) rea_y
        WHERE %s
        ORDER BY rea_y.id`, kind, payload, inner, again)
}

// updates pairs the old rows with the new ones. Each column is compared once: OFFSET 0 keeps the planner from writing the comparison
// into each place that uses it.
func (g *Guard) updates() string {
	var fields, flags []string
	for i, c := range g.recorded() {
		fields = append(fields, fmt.Sprintf("%s AS o%d, %s AS n%d, %s AS d%d", field("rea_o", c.Name), i, field("rea_n", c.Name), i, differs(c, "rea_o", "rea_n"), i))
		flags = append(flags, fmt.Sprintf("rea_x.d%d", i))
	}
	flags = append(flags, "rea_x.came", "rea_x.went")
	return fmt.Sprintf(`SELECT rea_x.id, CASE WHEN rea_x.came THEN 'DirectInsert' WHEN rea_x.went THEN 'DirectDelete' ELSE 'DirectUpdate' END AS event,
            CASE WHEN rea_x.came THEN jsonb_build_object('new', %[1]s)
                 WHEN rea_x.went THEN jsonb_build_object('old', %[2]s)
                 WHEN (SELECT e.seq FROM rea.events e WHERE e.aggregate_type = %[3]s AND e.aggregate_id = rea_x.id AND e.seq = 1) IS NULL
                 THEN jsonb_build_object('old', %[2]s, 'new', %[5]s)
                 ELSE jsonb_build_object('old', %[4]s, 'new', %[5]s) END AS payload,
            rea_x.status
        FROM (SELECT CASE WHEN %[6]s IS NULL THEN %[7]s ELSE %[8]s END AS id, %[9]s IS NULL AS came, %[6]s IS NULL AS went, %[10]s AS status,
                %[11]s
            FROM rea_old rea_o FULL JOIN rea_new rea_n ON %[12]s OFFSET 0) rea_x
        WHERE %[13]s OFFSET 0`,
		g.whole("n"), g.whole("o"), adopt.Literal(g.Settings.Type), g.delta("o"), g.delta("n"),
		g.keyColumn("rea_n"), g.Table.ID("rea_o"), g.Table.ID("rea_n"), g.keyColumn("rea_o"), g.status("rea_n"),
		strings.Join(fields, ",\n                "), g.same("rea_o", "rea_n"), strings.Join(flags, " OR "))
}
