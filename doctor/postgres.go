package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/guard"
)

// Postgres looks at the archive in a PostgreSQL database. A reader's rights suffice for most of it; what it cannot see it says.
func Postgres(ctx context.Context, db guard.Beginner, archive *rea.Archive) ([]Finding, error) {
	var list []Finding
	for _, look := range []func(context.Context, guard.Beginner) ([]Finding, error){schema, protection, sequence, transactions, guards, baselines} {
		found, err := look(ctx, db)
		if err != nil {
			return nil, fmt.Errorf("rea: doctor: %w", err)
		}
		list = append(list, found...)
	}
	found, err := projections(ctx, archive)
	return append(list, found...), err
}

func schema(ctx context.Context, db guard.Beginner) ([]Finding, error) {
	var version, catalog int
	var server string
	err := row(ctx, db, `
SELECT (SELECT max(m.version) FROM rea.schema_migrations m), coalesce((SELECT max(c.number) FROM rea.catalogs c), 0), current_setting('server_version')`,
		&version, &catalog, &server)
	applied := fmt.Sprintf("catalog %d is applied", catalog)
	if catalog == 0 {
		applied = "no catalog is applied"
	}
	return []Finding{fine("schema", "version %d, on PostgreSQL %s; %s", version, server, applied)}, err
}

// triggersSQL lists what is not as it must be: the refusing triggers ENABLE ALWAYS on each table and, for statements, on each partition; the
// insert trigger ENABLE ORIGIN.
const triggersSQL = `
SELECT p.relid::regclass::text || ' has ' || CASE WHEN t.oid IS NULL THEN 'no trigger ' || w.name ELSE 'the trigger ' || w.name || ' switched ' || CASE t.tgenabled WHEN 'D' THEN 'off' ELSE 'to another mode' END END
FROM (VALUES ('rea.events'), ('rea.feed'), ('rea.catalogs'), ('rea.contexts')) r(name)
CROSS JOIN LATERAL (SELECT r.name::regclass AS relid UNION SELECT x.relid FROM pg_partition_tree(r.name::regclass) x) p
CROSS JOIN (VALUES ('refuse_row', 'A'), ('refuse_statement', 'A'), ('check_insert', 'O')) w(name, enabled)
LEFT JOIN pg_trigger t ON t.tgrelid = p.relid AND t.tgname = w.name
WHERE (w.name <> 'check_insert' OR r.name = 'rea.events') AND t.tgenabled IS DISTINCT FROM w.enabled::"char"
ORDER BY 1`

// ownerSQL says whom rea.events belongs to, and who may act as that role.
const ownerSQL = `
WITH RECURSIVE owner AS (SELECT a.oid, a.rolname, a.rolcanlogin, a.rolsuper FROM pg_class c JOIN pg_roles a ON a.oid = c.relowner WHERE c.oid = 'rea.events'::regclass),
members AS (
    SELECT m.member FROM pg_auth_members m JOIN owner o ON o.oid = m.roleid
    UNION SELECT m.member FROM pg_auth_members m JOIN members x ON x.member = m.roleid
)
SELECT o.rolname::text, o.rolcanlogin, o.rolsuper,
       ARRAY(SELECT a.rolname::text FROM members m JOIN pg_roles a ON a.oid = m.member WHERE NOT a.rolsuper ORDER BY 1),
       ARRAY(SELECT a.rolname::text FROM pg_roles a WHERE a.rolsuper ORDER BY 1),
       ARRAY(SELECT DISTINCT g.privilege_type || coalesce(' (' || x.columns || ')', '') || ' to ' || CASE g.grantee WHEN 0 THEN 'everybody' ELSE g.grantee::regrole::text END
             FROM owner o, (SELECT c.relacl AS acl, NULL AS columns FROM pg_class c WHERE c.oid = 'rea.events'::regclass
                            UNION ALL SELECT a.attacl, quote_ident(a.attname) FROM pg_attribute a WHERE a.attrelid = 'rea.events'::regclass AND a.attacl IS NOT NULL) x,
                  aclexplode(x.acl) g
             WHERE g.grantee <> o.oid AND g.privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER', 'REFERENCES') ORDER BY 1)
FROM owner o`

func protection(ctx context.Context, db guard.Beginner) ([]Finding, error) {
	var owner string
	var logs, super bool
	var members, supers, granted []string
	faults, err := texts(ctx, db, triggersSQL)
	if err != nil {
		return nil, err
	}
	if err := row(ctx, db, ownerSQL, &owner, &logs, &super, &members, &supers, &granted); err != nil {
		return nil, err
	}
	level, why := L2, fmt.Sprintf("triggers refuse every change, and nobody logs in as %s, whose they are. L3 takes a checkpoint that is kept elsewhere, which this version does not make", owner)
	next := ""
	switch {
	case len(faults) > 0:
		level, why = L0, "not all triggers are there and on"
	case super:
		level, why = L1, fmt.Sprintf("triggers refuse every change, and %s, who may switch them off, is a superuser", owner)
		next = "rea migrate up, as a role with CREATEROLE: the archive then belongs to a role of its own"
	case logs:
		level, why = L1, fmt.Sprintf("triggers refuse every change, and %s, who may switch them off, can log in", owner)
		next = "rea migrate up, as a role with CREATEROLE: the archive then belongs to a role of its own"
	case len(granted) > 0:
		level, why = L1, "triggers refuse every change, and roles have rights on the events that they do not need"
	}
	list := []Finding{{Check: "protection", OK: true, Level: &level, Text: why}}
	if next != "" {
		list[0].Next = &next
	}
	bypass := "superusers: " + joined(supers)
	if len(members) > 0 {
		bypass += "; who may act as " + owner + ": " + joined(members)
	}
	list = append(list, fine("bypass", "%s", bypass))
	for _, f := range faults {
		list = append(list, wrong("triggers", "as the owner: SELECT rea.protect('rea.events') and ALTER TABLE ... ENABLE [ALWAYS] TRIGGER; then find out who did it", "%s", f))
	}
	for _, g := range granted {
		right, role, _ := strings.Cut(g, " to ")
		if role == "everybody" {
			role = "PUBLIC"
		}
		list = append(list, wrong("rights", fmt.Sprintf("as the owner: REVOKE %s ON rea.events FROM %s", right, role), "%s", g))
	}
	return list, nil
}

func sequence(ctx context.Context, db guard.Beginner) ([]Finding, error) {
	var cache, highest int64
	var last *int64
	err := row(ctx, db, `
SELECT s.cache_size, s.last_value, coalesce((SELECT max(e.id) FROM rea.events e), 0)
FROM pg_sequences s WHERE s.schemaname = 'rea' AND s.sequencename = 'events_id_seq'`, &cache, &last, &highest)
	switch {
	case err != nil:
		return nil, err
	case cache != 1:
		return []Finding{wrong("sequence", "as the owner: ALTER SEQUENCE rea.events_id_seq CACHE 1", "events_id_seq hands out %d ids at a time, so that followers would lose events", cache)}, nil
	case last == nil && highest > 0:
		return []Finding{fine("sequence", "its last value cannot be seen with these rights")}, nil
	case last != nil && *last < highest:
		return []Finding{wrong("sequence", "as the owner: SELECT rea.mend_sequence()", "events_id_seq is at %d, and the highest id is %d: appends are refused", *last, highest)}, nil
	}
	return []Finding{fine("sequence", "ids up to %d", highest)}, nil
}

func guards(ctx context.Context, db guard.Beginner) (list []Finding, err error) {
	states, err := guard.Status(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		for _, p := range s.Problems {
			text, next, found := strings.Cut(strings.TrimPrefix(p, "rea: "), ": `")
			if next, _, _ = strings.Cut(next, "`"); !found {
				next = "rea guard status"
			}
			list = append(list, wrong("guards", next, "%s: %s", s.Table, text))
		}
	}
	if len(list) == 0 {
		list = append(list, fine("guards", "%d, each as its table is", len(states)))
	}
	return list, nil
}

func baselines(ctx context.Context, db guard.Beginner) (list []Finding, err error) {
	half, err := texts(ctx, db, `SELECT b.relation::text || ' --type ' || b.aggregate_type FROM rea.baselines b WHERE NOT b.done ORDER BY 1`)
	for _, h := range half {
		list = append(list, wrong("baselines", "rea baseline "+h, "that of %s has not come to its end", strings.Fields(h)[0]))
	}
	return list, err
}

func row(ctx context.Context, db guard.Beginner, query string, dest ...any) error {
	rows, err := db.Query(ctx, query)
	if err != nil {
		return err
	}
	_, err = pgx.CollectExactlyOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) { return struct{}{}, r.Scan(dest...) })
	return err
}

func texts(ctx context.Context, db guard.Beginner, query string) ([]string, error) {
	rows, err := db.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func joined(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
