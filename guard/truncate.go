package guard

import (
	"fmt"

	"github.com/realtime-event-archive/rea/adopt"
)

// truncate is the body for TRUNCATE, which fires for a partitioned table and for each of its partitions: those that have rows record them.
func (g *Guard) truncate() string {
	if g.refusing() || g.Settings.Truncate == string(Refuse) {
		return `
BEGIN
    PERFORM rea.refuse_truncate(TG_RELID);
    RETURN NULL;
END`
	}
	kind := adopt.Literal(g.Settings.Type)
	reason := ""
	if g.Settings.RequireReason {
		reason = `
    IF rea_guard.changed > 0 AND coalesce(current_setting('rea.reason', true), '') = '' THEN
        PERFORM rea.refuse_without_reason(TG_RELID, TG_OP, rea_guard.changed);
    END IF;`
	}
	insert := fmt.Sprintf(`INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, payload, context_id)
SELECT %s, rea_y.id, 'DirectDelete', CASE WHEN rea.size_ok(rea_y.payload, 16777216) THEN rea_y.payload ELSE rea.refuse_row(%s, rea_y.id, 'payload') END, $1
FROM (SELECT %s AS id, jsonb_build_object('old', %s) AS payload FROM ONLY %%s rea_o OFFSET 0) rea_y
ORDER BY rea_y.id`, kind, kind, g.Table.ID("rea_o"), g.object("rea_o"))
	return fmt.Sprintf(`
<<rea_guard>>
DECLARE
    context bigint;
    changed bigint;
BEGIN
    IF NOT rea.truncates_leaf(TG_RELID) THEN
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT count(*) FROM ONLY %%s', TG_RELID::regclass) INTO rea_guard.changed;%s
    IF rea_guard.changed > 0 THEN
        context := nextval('rea.contexts_context_id_seq'::regclass);
        PERFORM rea.observe(rea_guard.context, TG_RELID, TG_OP, rea_guard.changed, %s);
        EXECUTE replace(%s, '%%s', TG_RELID::regclass::text) USING rea_guard.context;
    END IF;
    RETURN NULL;
END`, reason, adopt.Literal(g.Settings.SQL), adopt.Literal(insert))
}
