package postgres

// indexesSQL makes the indexes and constraints of others on the table beside ($2) what they are on the one that is read ($1). An
// index there has a name of its own until the switch, by the oid of the other. Nothing but the beginning of its text names the
// table, and that is compared as a whole, not searched for. Foreign keys are among them if $3.
const indexesSQL = `
WITH pair AS (
    SELECT to_regclass($1) AS old, to_regclass($2) AS new
), things AS (
    SELECT i.indrelid AS rel, 'INDEX' AS kind, x.relname::text AS name, 'rea_index_' || x.oid AS beside, u.u || t.rest AS def,
           pg_describe_object('pg_class'::regclass, x.oid, 0) AS what, format('DROP INDEX %I.%I', n.nspname, x.relname) AS gone,
           format('CREATE %sINDEX %I ON %s %s', u.u, 'rea_index_' || x.oid, $2, t.rest) AS text
    FROM pair, pg_index i
    JOIN pg_class x ON x.oid = i.indexrelid
    JOIN pg_class c ON c.oid = i.indrelid
    JOIN pg_namespace n ON n.oid = x.relnamespace
    CROSS JOIN LATERAL (SELECT CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END AS u, pg_get_indexdef(x.oid) AS def) u
    CROSS JOIN LATERAL (SELECT format('CREATE %sINDEX %I ON %I.%I ', u.u, x.relname, n.nspname, c.relname) AS head) h
    CROSS JOIN LATERAL (SELECT CASE WHEN starts_with(u.def, h.head) THEN substr(u.def, length(h.head) + 1) END AS rest) t
    WHERE i.indrelid IN (pair.old, pair.new) AND i.indisvalid
      AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = x.oid AND k.contype IN ('p', 'u', 'x'))
    UNION ALL
    SELECT k.conrelid, 'CONSTRAINT', k.conname::text, b.beside, pg_get_constraintdef(k.oid), pg_describe_object('pg_constraint'::regclass, k.oid, 0),
           format('ALTER TABLE %s DROP CONSTRAINT %I', $2, k.conname), format('ALTER TABLE %s ADD CONSTRAINT %I %s', $2, b.beside, pg_get_constraintdef(k.oid))
    FROM pair, pg_constraint k
    CROSS JOIN LATERAL (SELECT CASE WHEN k.contype IN ('u', 'x') THEN 'rea_index_' || k.conindid ELSE k.conname::text END AS beside) b
    WHERE k.conrelid IN (pair.old, pair.new) AND (k.contype IN ('c', 'u', 'x') OR k.contype = 'f' AND $3)
)
SELECT t.what, '', t.gone
FROM pair, things t
WHERE t.rel = pair.new AND NOT EXISTS (SELECT FROM things o WHERE o.rel = pair.old AND o.kind = t.kind AND o.beside = t.name AND o.def = t.def)
UNION ALL
SELECT t.what, '', t.text
FROM pair, things t
WHERE t.rel = pair.old AND NOT EXISTS (SELECT FROM things o WHERE o.rel = pair.new AND o.kind = t.kind AND o.name = t.beside AND o.def = t.def)`

// restSQL writes what makes the rest of what others have made on a table ($1) again on the one that has taken its name: there the
// texts of triggers and statistics hold as they are.
const restSQL = `
WITH x AS (
    SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = to_regclass($1) AND $2 <> ''
)
SELECT o.what, '', o.text
FROM (
    SELECT 1 AS turn, pg_describe_object('pg_class'::regclass, i.oid, 0) AS what, format('ALTER INDEX rea_views.%I RENAME TO %I', 'rea_index_' || i.oid, i.relname) AS text
    FROM x JOIN pg_index p ON p.indrelid = x.oid AND p.indisvalid AND NOT p.indisprimary JOIN pg_class i ON i.oid = p.indexrelid
    UNION ALL
    SELECT 2, pg_describe_object('pg_class'::regclass, x.oid, 0), format('ALTER TABLE %s SET (%s)', x.name, w.list)
    FROM x LEFT JOIN pg_class t ON t.oid = x.reltoastrelid
    CROSS JOIN LATERAL (SELECT string_agg(format('%s%I = %L', q.prefix, q.option_name, q.option_value), ', ') AS list
                        FROM (SELECT '' AS prefix, o.* FROM pg_options_to_table(x.reloptions) o
                              UNION ALL
                              SELECT 'toast.', o.* FROM pg_options_to_table(t.reloptions) o) q) w
    WHERE x.reloptions IS DISTINCT FROM ARRAY['fillfactor=80'] AND w.list IS NOT NULL OR t.reloptions IS NOT NULL
    UNION ALL
    SELECT 3, pg_describe_object('pg_statistic_ext'::regclass, s.oid, 0), pg_get_statisticsobjdef(s.oid)
    FROM x JOIN pg_statistic_ext s ON s.stxrelid = x.oid
    UNION ALL
    SELECT 4, 'the replica identity of ' || x.name, format('ALTER TABLE %s REPLICA IDENTITY %s', x.name,
               CASE x.relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING'
                   ELSE (SELECT format('USING INDEX %I', i.relname) FROM pg_index p JOIN pg_class i ON i.oid = p.indexrelid WHERE p.indrelid = x.oid AND p.indisreplident) END)
    FROM x
    WHERE x.relreplident <> 'd'
    UNION ALL
    SELECT w.turn, pg_describe_object('pg_trigger'::regclass, t.oid, 0), w.text
    FROM x JOIN pg_trigger t ON t.tgrelid = x.oid AND NOT t.tgisinternal
    CROSS JOIN LATERAL (VALUES (5, pg_get_triggerdef(t.oid)),
        (6, format('ALTER TABLE %s %s TRIGGER %I', x.name, CASE t.tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'A' THEN 'ENABLE ALWAYS' END, t.tgname))) w(turn, text)
    WHERE w.turn = 5 OR t.tgenabled <> 'O'
    UNION ALL
    SELECT 7, w.what, 'COMMENT ON ' || w.kind || ' IS ' || quote_literal(w.comment)
    FROM x
    CROSS JOIN LATERAL (
        SELECT pg_describe_object('pg_class'::regclass, i.oid, 0) AS what, format('INDEX rea_views.%I', i.relname) AS kind, obj_description(i.oid, 'pg_class') AS comment
        FROM pg_index p JOIN pg_class i ON i.oid = p.indexrelid WHERE p.indrelid = x.oid
        UNION ALL
        SELECT pg_describe_object('pg_constraint'::regclass, k.oid, 0), format('CONSTRAINT %I ON %s', k.conname, x.name), obj_description(k.oid, 'pg_constraint')
        FROM pg_constraint k WHERE k.conrelid = x.oid
        UNION ALL
        SELECT pg_describe_object('pg_trigger'::regclass, t.oid, 0), format('TRIGGER %I ON %s', t.tgname, x.name), obj_description(t.oid, 'pg_trigger')
        FROM pg_trigger t WHERE t.tgrelid = x.oid
        UNION ALL
        SELECT pg_describe_object('pg_statistic_ext'::regclass, s.oid, 0), format('STATISTICS %I.%I', n.nspname, s.stxname), obj_description(s.oid, 'pg_statistic_ext')
        FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace WHERE s.stxrelid = x.oid
    ) w
    WHERE w.comment IS NOT NULL
) o
ORDER BY o.turn, o.what`
