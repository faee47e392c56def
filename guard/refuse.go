package guard

import (
	"fmt"
	"strings"

	"github.com/realtime-event-archive/rea/adopt"
)

// refuse is the body for INSERT, UPDATE and DELETE: one look over all rows of the statement, which writes nothing.
//
// The event that stands for a row is the last of its aggregate, and this transaction's; to who is a member of the archive's owner,
// anybody's. An xid is a label, which another cluster may have given before a restore: the event is of this day besides.
func (g *Guard) refuse(operation string, columns int64) string {
	kind := adopt.Literal(g.Settings.Type)
	ours := "(rea_guard.anybodys OR e.xid = rea_guard.xid AND coalesce(e.recorded_at, e.created_at) > rea_guard.day)"
	const isDeleting, isOther = "e.event_type = ANY (rea_guard.deleting)", "e.event_type <> ALL (rea_guard.deleting)"
	// ORDER BY ... LIMIT: one look by index, whatever the statistics say
	last := func(id, fields string) string {
		return fmt.Sprintf(`(SELECT %s FROM rea.events e WHERE e.aggregate_type = %s AND e.aggregate_id = %s ORDER BY e.seq DESC LIMIT 1)`, fields, kind, id)
	}
	stands := func(alias, seq string) string {
		return fmt.Sprintf(`coalesce(%s IS NOT NULL AND %s, false)`, seq, last(g.Table.ID(alias), seq+" = e.seq AND "+isOther+" AND "+ours))
	}
	gone := fmt.Sprintf(`coalesce(%s, false)`, last(g.Table.ID("rea_o"), isDeleting+" AND "+ours))
	o, n := field("rea_o", adopt.SeqColumn), field("rea_n", adopt.SeqColumn)
	came, went := g.keyColumn("rea_o")+" IS NULL", g.keyColumn("rea_n")+" IS NULL"
	var query string
	switch operation {
	case "insert":
		query = fmt.Sprintf("SELECT %s AS id FROM rea_new rea_n WHERE NOT %s", g.Table.ID("rea_n"), stands("rea_n", n))
	case "delete":
		query = fmt.Sprintf("SELECT %s AS id FROM rea_old rea_o WHERE NOT %s", g.Table.ID("rea_o"), gone)
	default:
		query = fmt.Sprintf(`SELECT CASE WHEN %[1]s THEN %[2]s ELSE %[3]s END AS id
        FROM rea_old rea_o FULL JOIN rea_new rea_n ON %[4]s
        WHERE CASE WHEN %[1]s THEN NOT %[5]s
                   WHEN %[6]s THEN NOT %[7]s
                   WHEN %[8]s OR %[9]s IS DISTINCT FROM %[10]s THEN NOT (%[10]s > coalesce(%[9]s, 0) AND %[7]s)
                   ELSE false END`, went, g.Table.ID("rea_o"), g.Table.ID("rea_n"), g.same("rea_o", "rea_n"), gone, came, stands("rea_n", n),
			differ(g.recorded(), "rea_o", "rea_n"), o, n)
	}
	// the same over the pairs of the other way; $1 to $4 are the variables
	other := strings.NewReplacer("rea_guard.anybodys", "$1", "rea_guard.xid", "$2", "rea_guard.day", "$3", "rea_guard.deleting", "$4").Replace(fmt.Sprintf(`SELECT count(*), (array_agg(p.id ORDER BY p.id))[1:10] FROM (%%s) p
WHERE CASE WHEN p.now IS NULL THEN NOT coalesce(%[1]s, false)
           WHEN p.was IS NULL THEN NOT coalesce(p.now_seq IS NOT NULL AND %[2]s, false)
           WHEN p.was::text IS DISTINCT FROM p.now::text OR p.was_seq IS DISTINCT FROM p.now_seq
           THEN NOT coalesce(p.now_seq > coalesce(p.was_seq, 0) AND %[2]s, false)
           ELSE false END`, last("p.id", isDeleting+" AND "+ours), last("p.id", "p.now_seq = e.seq AND "+isOther+" AND "+ours)))
	return fmt.Sprintf(`
<<rea_guard>>
DECLARE
    anybodys boolean := (SELECT pg_has_role(coalesce(nullif(current_setting('role'), 'none'), session_user), c.relowner, 'MEMBER')
                         FROM pg_class c WHERE c.oid = 'rea.events'::regclass);
    xid      xid8 := pg_current_xact_id();
    day      timestamptz := now() - interval '1 day';
    deleting text[] := rea.deleting_types(%[3]s);
    ids      text[];
    rows     bigint;
BEGIN
    IF %[1]s THEN
        SELECT count(*), (array_agg(rea_y.id ORDER BY rea_y.id))[1:10] INTO rea_guard.rows, rea_guard.ids
        FROM (%[2]s) rea_y;
    ELSE
        EXECUTE (SELECT format(%[4]s, rea.guard_pairs(g, TG_RELID, TG_OP)) FROM rea.guards g WHERE g.guard_id = %[5]d)
        INTO rea_guard.rows, rea_guard.ids USING rea_guard.anybodys, rea_guard.xid, rea_guard.day, rea_guard.deleting;
    END IF;
    IF rea_guard.rows > 0 THEN
        PERFORM rea.refuse_guarded(TG_RELID, TG_OP, rea_guard.rows, rea_guard.ids, %[3]s);
    END IF;
    RETURN NULL;
END`, g.known(columns), query, kind, adopt.Literal(other), g.ID)
}
