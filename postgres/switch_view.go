package postgres

import (
	"context"

	"github.com/realtime-event-archive/rea"
)

// treeSQL finds the views that depend on a table ($1) or its row type, and those that depend on them. A view is made after all that
// it reads: depth is the longest way to it.
const treeSQL = `
WITH RECURSIVE found(oid, depth) AS (
    SELECT to_regclass($1)::oid, 0
    UNION
    SELECT r.ev_class, f.depth + 1
    FROM found f
    JOIN pg_class c ON c.oid = f.oid
    LEFT JOIN pg_type y ON y.oid = c.reltype
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid OR d.refclassid = 'pg_type'::regclass AND d.refobjid IN (y.oid, y.typarray)
    JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'
    WHERE d.deptype = 'n' AND r.ev_class <> f.oid AND f.depth < 100
), tree AS (
    SELECT f.oid, max(f.depth) AS depth FROM found f WHERE f.oid IS NOT NULL GROUP BY f.oid
), views AS MATERIALIZED (
    SELECT v.*, t.depth, a.rolname::text AS owner,
           CASE v.relowner WHEN (SELECT e.relowner FROM pg_class e WHERE e.oid = 'rea.events'::regclass) THEN ''
               WHEN (SELECT u.oid FROM pg_roles u WHERE u.rolname = session_user) THEN 'none' ELSE a.rolname::text END AS role, format('%I.%I', n.nspname, v.relname) AS name,
           CASE v.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END AS kind, pg_describe_object('pg_class'::regclass, v.oid, 0) AS what
    FROM tree t
    JOIN pg_class v ON v.oid = t.oid
    JOIN pg_namespace n ON n.oid = v.relnamespace
    JOIN pg_roles a ON a.oid = v.relowner
    WHERE t.depth > 0
)`

// dependentsOfSQL lists views, and what else would be lost or keep the old table: what depends on the table, those views or their
// row types and is no part of them, and what belongs to the table and is not taken over.
const dependentsOfSQL = treeSQL + `
, others AS (
    SELECT d.classid, d.objid
    FROM tree t
    JOIN pg_class c ON c.oid = t.oid
    LEFT JOIN pg_type y ON y.oid = c.reltype
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid OR d.refclassid = 'pg_type'::regclass AND d.refobjid IN (y.oid, y.typarray)
    WHERE d.deptype = 'n'
      AND NOT (d.classid = 'pg_class'::regclass AND d.objid IN (SELECT x.oid FROM tree x))
      AND NOT (d.classid = 'pg_rewrite'::regclass AND d.objid IN (SELECT r.oid FROM pg_rewrite r JOIN views v ON v.oid = r.ev_class))
      AND NOT (d.classid = 'pg_trigger'::regclass AND d.objid IN (SELECT g.oid FROM pg_trigger g JOIN tree x ON x.oid = g.tgrelid))
      AND NOT (d.classid = 'pg_constraint'::regclass AND d.objid IN (SELECT k.oid FROM pg_constraint k WHERE k.conrelid = to_regclass($1) AND k.confrelid <> k.conrelid))
    UNION
    SELECT 'pg_rewrite'::regclass, r.oid FROM pg_rewrite r WHERE r.ev_class = to_regclass($1)
    UNION
    SELECT 'pg_policy'::regclass, p.oid FROM pg_policy p WHERE p.polrelid = to_regclass($1)
    UNION
    SELECT 'pg_publication_rel'::regclass, p.oid FROM pg_publication_rel p WHERE p.prrelid = to_regclass($1)
)
SELECT l.name, l.reason = '' AND l.view, l.reason
FROM (
    SELECT v.what AS name, true AS view, CASE
               WHEN v.relpersistence = 't' THEN 'it is temporary'
               WHEN EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = v.oid AND d.deptype = 'e') THEN 'it belongs to an extension'
               WHEN EXISTS (SELECT FROM pg_seclabel s WHERE s.classoid = 'pg_class'::regclass AND s.objoid = v.oid) THEN 'it has a security label'
               WHEN v.role NOT IN ('', 'none') AND NOT (SELECT u.rolsuper FROM pg_roles u WHERE u.rolname = session_user)
                   THEN format('it belongs to %I, whose code could take rights of %I when it is made again: %1$I drops it and makes it again afterwards, or a superuser does all this', v.owner, session_user)
               ELSE '' END AS reason
    FROM views v
    UNION ALL
    SELECT pg_describe_object(o.classid, o.objid, 0), false, '' FROM others o
    UNION ALL
    SELECT 'the row level security of ' || c.oid::regclass, false, '' FROM pg_class c WHERE c.oid = to_regclass($1) AND c.relrowsecurity
    UNION ALL
    SELECT 'inheritance from ' || i.inhparent::regclass, false, '' FROM pg_inherits i WHERE i.inhrelid = to_regclass($1)
) l
ORDER BY 1`

func (s *ownSession) Dependents(ctx context.Context, f rea.Followed) (list []rea.Dependent, err error) {
	var d rea.Dependent
	err = each(ctx, s.db, func() error {
		list = append(list, d)
		return nil
	}, []any{&d.Name, &d.Again, &d.Reason}, dependentsOfSQL, followedSQL{f}.table(false))
	return list, mapError("look for what depends on "+f.Name, err)
}

// dropViewsSQL: those first that others do not read.
const dropViewsSQL = treeSQL + `
SELECT v.what, v.role, format('DROP %s %s', v.kind, v.name) FROM views v WHERE $2 <> '' ORDER BY v.depth DESC, v.oid`

// viewsSQL writes what makes the views of a table ($1) again as they are, materialized ones without rows unless $3. A new view has the
// default privileges of its owner, which are taken away. Grants come last: an owner may have taken rights from himself.
const viewsSQL = treeSQL + `
SELECT v.what, v.role, o.text
FROM views v
CROSS JOIN LATERAL (
    SELECT 1 AS turn, format('CREATE %s %s%s%s%s AS %s%s', v.kind, v.name,
               CASE v.relkind WHEN 'm' THEN (SELECT format(' USING %I', m.amname) FROM pg_am m WHERE m.oid = v.relam) END,
               (SELECT ' WITH (' || string_agg(format('%I = %L', p.option_name, p.option_value), ', ') || ')' FROM pg_options_to_table(v.reloptions) p),
               (SELECT format(' TABLESPACE %I', t.spcname) FROM pg_tablespace t WHERE t.oid = v.reltablespace),
               left(pg_get_viewdef(v.oid), -1),
               CASE WHEN v.relkind = 'v' THEN '' WHEN v.relispopulated AND $3 THEN ' WITH DATA' ELSE ' WITH NO DATA' END) AS text
    UNION ALL
    SELECT 2, format('ALTER VIEW %s ALTER COLUMN %I SET DEFAULT %s', v.name, c.attname, pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attrdef d JOIN pg_attribute c ON c.attrelid = d.adrelid AND c.attnum = d.adnum
    WHERE d.adrelid = v.oid
    UNION ALL
    SELECT 3, pg_get_ruledef(r.oid) FROM pg_rewrite r WHERE r.ev_class = v.oid AND r.rulename <> '_RETURN'
    UNION ALL
    SELECT 4, pg_get_triggerdef(g.oid) FROM pg_trigger g WHERE g.tgrelid = v.oid AND NOT g.tgisinternal
    UNION ALL
    SELECT 5, pg_get_indexdef(i.indexrelid) FROM pg_index i WHERE i.indrelid = v.oid
    UNION ALL
    SELECT 6, pg_get_statisticsobjdef(s.oid) FROM pg_statistic_ext s WHERE s.stxrelid = v.oid
    UNION ALL
    SELECT 7, format('COMMENT ON %s IS %L', w.kind, w.comment)
    FROM (SELECT v.kind || ' ' || v.name AS kind, obj_description(v.oid, 'pg_class') AS comment
          UNION ALL
          SELECT format('COLUMN %s.%I', v.name, c.attname), col_description(v.oid, c.attnum) FROM pg_attribute c WHERE c.attrelid = v.oid AND c.attnum > 0
          UNION ALL
          SELECT format('RULE %I ON %s', r.rulename, v.name), obj_description(r.oid, 'pg_rewrite') FROM pg_rewrite r WHERE r.ev_class = v.oid
          UNION ALL
          SELECT format('TRIGGER %I ON %s', g.tgname, v.name), obj_description(g.oid, 'pg_trigger') FROM pg_trigger g WHERE g.tgrelid = v.oid
          UNION ALL
          SELECT format('INDEX %I.%I', n.nspname, x.relname), obj_description(x.oid, 'pg_class')
          FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_namespace n ON n.oid = x.relnamespace WHERE i.indrelid = v.oid) w
    WHERE w.comment IS NOT NULL
    UNION ALL
    SELECT 8, format('REVOKE ALL ON TABLE %s FROM %s', v.name, string_agg(DISTINCT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END, ', '))
    FROM (SELECT a.grantee FROM pg_default_acl d, aclexplode(d.defaclacl) a WHERE d.defaclrole = v.relowner AND d.defaclobjtype = 'r'
          UNION ALL
          SELECT v.relowner WHERE v.relacl IS NOT NULL) g
    HAVING count(*) > 0
    UNION ALL
    SELECT 9, format('GRANT %s ON TABLE %s TO %s%s', a.privilege_type, v.name, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
               CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END)
    FROM aclexplode(CASE WHEN v.relacl IS NOT NULL THEN v.relacl
                         WHEN EXISTS (SELECT FROM pg_default_acl d WHERE d.defaclrole = v.relowner AND d.defaclobjtype = 'r') THEN acldefault('r', v.relowner) END) a
    UNION ALL
    SELECT 10, format('GRANT %s (%I) ON TABLE %s TO %s%s', a.privilege_type, c.attname, v.name, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
               CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END)
    FROM pg_attribute c, aclexplode(c.attacl) a
    WHERE c.attrelid = v.oid AND c.attnum > 0
) o
WHERE $2 <> ''
ORDER BY v.depth, v.oid, o.turn`
