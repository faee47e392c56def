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
	reason := ""
	if g.Settings.RequireReason {
		reason = `
    IF rea_guard.changed > 0 AND coalesce(current_setting('rea.reason', true), '') = '' THEN
        PERFORM rea.refuse_without_reason(TG_RELID, TG_OP, rea_guard.changed);
    END IF;`
	}
	return fmt.Sprintf(`
<<rea_guard>>
DECLARE
    context bigint;
    changed bigint;
    pairs   text;
BEGIN
    IF NOT rea.truncates_leaf(TG_RELID) THEN
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT count(*) FROM ONLY %%s', TG_RELID::regclass) INTO rea_guard.changed;%s
    IF rea_guard.changed > 0 THEN
        context := nextval('rea.contexts_context_id_seq'::regclass);
        PERFORM rea.observe(rea_guard.context, TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP, rea_guard.changed, %s);
        SELECT rea.guard_store_sql(g, rea.guard_pairs(g, TG_RELID, TG_OP)) INTO pairs FROM rea.guards g WHERE g.guard_id = %d;
        EXECUTE rea_guard.pairs USING rea_guard.context, 0;
    END IF;
    RETURN NULL;
END`, reason, adopt.Literal(g.Settings.SQL), g.ID)
}
