-- Guards: putting them in place, levelling the history with what became of the columns, and taking them away.
-- Locks: none on anything that exists before.

-- An event about a guard itself, and what was observed.
CREATE FUNCTION rea.record_guard(name text, event text, facts jsonb, actor text, reason text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    context bigint := nextval('rea.contexts_context_id_seq'::regclass);
BEGIN
    PERFORM rea.observe(context, split_part(name, '.', 1), substr(name, strpos(name, '.') + 1), 'ALTER', 0, 'full');
    INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, payload, actor_id, reason, context_id)
    VALUES ('rea.guard', name, event, facts, actor, reason, context);
END
$$;
REVOKE EXECUTE ON FUNCTION rea.record_guard(text, text, jsonb, text, text) FROM PUBLIC;

-- Gives the functions of a guard to whom the archive belongs, and that role the right to read the table.
CREATE FUNCTION rea.hand_over_guard(guard int, relation oid) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    keeper name := (SELECT a.rolname FROM pg_class c JOIN pg_roles a ON a.oid = c.relowner WHERE c.oid = 'rea.events'::regclass);
    space name := (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation);
    part regclass;
    f regprocedure;
BEGIN
    PERFORM rea.guards_changed();
    FOR f IN SELECT p.oid::regprocedure FROM pg_proc p
             WHERE p.pronamespace = 'rea'::regnamespace AND p.proname ~ ('^guard_' || guard || '_[a-z]+$') AND pg_get_userbyid(p.proowner) <> keeper LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO %I', f, keeper);
    END LOOP;
    IF NOT has_schema_privilege(keeper, space, 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', space, keeper);
        UPDATE rea.guards g SET granted = g.granted || '{schema}' WHERE g.guard_id = guard;
    END IF;
    FOR part IN SELECT t.relid FROM pg_partition_tree(relation) t UNION SELECT relation LOOP
        IF NOT has_table_privilege(keeper, part, 'SELECT') THEN
            EXECUTE format('GRANT SELECT ON %s TO %I', part, keeper);
            UPDATE rea.guards g SET granted = g.granted || '{table}' WHERE g.guard_id = guard AND 'table' <> ALL (g.granted);
        END IF;
        IF EXISTS (SELECT FROM pg_class c WHERE c.oid = part AND c.relrowsecurity)
           AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = part AND p.polname = 'rea_guard') THEN
            EXECUTE format('CREATE POLICY rea_guard ON %s FOR SELECT TO %I USING (true)', part, keeper);
        END IF;
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION rea.hand_over_guard(int, oid) FROM PUBLIC;

-- What the last event that speaks of a member of the state says of it; null: nothing, or that it is gone.
CREATE FUNCTION rea.fold_value(aggregate_type text, aggregate_id text, member text) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path = pg_temp
    SET enable_seqscan = off
    BEGIN ATOMIC
        SELECT CASE e.event_type WHEN 'BaselineCreated' THEN e.payload -> 'row' WHEN 'Reverted' THEN e.payload -> 'set' WHEN 'DirectInsert' THEN e.payload -> 'new'
                    WHEN 'DirectUpdate' THEN CASE WHEN e.seq = 1 THEN e.payload -> 'old' ELSE '{}' END || (e.payload -> 'new')
                    WHEN 'DirectDelete' THEN '{}' ELSE e.payload END -> fold_value.member
        FROM rea.events e
        WHERE e.aggregate_type = fold_value.aggregate_type AND e.aggregate_id = fold_value.aggregate_id
          AND CASE e.event_type WHEN 'BaselineCreated' THEN true WHEN 'DirectInsert' THEN true WHEN 'DirectDelete' THEN true
                   WHEN 'DirectUpdate' THEN e.payload -> 'new' ? fold_value.member OR e.payload -> 'gone' ? fold_value.member OR e.seq = 1
                   WHEN 'Reverted' THEN e.payload -> 'set' ? fold_value.member OR e.payload -> 'unset' ? fold_value.member
                   ELSE e.payload ? fold_value.member END
        ORDER BY e.seq DESC LIMIT 1;
    END;

-- Brings the history of a guarded table level with its columns: those of `came` have the values that the rows have, those of `went` are
-- gone. Returns the number of rows that got an event. Rows without events are the baseline's.
CREATE FUNCTION rea.level_guard(guard int, came text[], went text[]) RETURNS bigint
    LANGUAGE plpgsql
    SET "TimeZone" = 'UTC'
    SET "DateStyle" = 'ISO, MDY'
    SET "IntervalStyle" = 'postgres'
    SET bytea_output = 'hex'
    SET extra_float_digits = 1
    SET lc_monetary = 'C'
    SET search_path = pg_catalog, pg_temp
    SET jit = off
AS $$
DECLARE
    g rea.guards := (SELECT x FROM rea.guards x WHERE x.guard_id = guard);
    context bigint := nextval('rea.contexts_context_id_seq'::regclass);
    status text := (rea.guard_names(g, ARRAY[g.status]))[1];
    stored bigint;
BEGIN
    PERFORM rea.refuse_hidden_rows(g.relation, 'ALTER');
    EXECUTE format('INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, payload, status, context_id)
SELECT %1$L, l.id, ''DirectUpdate'', jsonb_build_object(''old'', l.old, ''new'', l.new) || CASE WHEN l.gone IS NULL THEN ''{}'' ELSE jsonb_build_object(''gone'', l.gone) END, l.status, $3
FROM (SELECT t.id, t.status,
             (SELECT coalesce(jsonb_object_agg(c.name, f.value) FILTER (WHERE f.value IS NOT NULL), ''{}'')
              FROM unnest($1 || $2) c(name), LATERAL rea.fold_value(%1$L, t.id, c.name) f(value) WHERE (t.row -> c.name)::text IS DISTINCT FROM f.value::text) AS old,
             (SELECT coalesce(jsonb_object_agg(c.name, t.row -> c.name), ''{}'') FROM unnest($1) c(name)
              WHERE (t.row -> c.name)::text IS DISTINCT FROM rea.fold_value(%1$L, t.id, c.name)::text) AS new,
             (SELECT jsonb_agg(c.name ORDER BY c.name) FROM unnest($2) c(name) WHERE rea.fold_value(%1$L, t.id, c.name) IS NOT NULL) AS gone
      FROM (SELECT %2$s AS id, %3$s AS row, %4$s AS status FROM %5$s rea_t OFFSET 0) t
      WHERE (SELECT e.seq FROM rea.events e WHERE e.aggregate_type = %1$L AND e.aggregate_id = t.id AND e.seq = 1) IS NOT NULL OFFSET 0) l
WHERE l.new <> ''{}'' OR l.gone IS NOT NULL
ORDER BY l.id', g.aggregate_type, rea.guard_id_sql(g, 'rea_t'), rea.guard_row_sql(g, g.relation, 'rea_t'),
        rea.guard_status_sql(status, 'rea_t'), g.relation)
    USING came, went, context;
    GET DIAGNOSTICS stored = ROW_COUNT;
    IF stored > 0 THEN
        PERFORM rea.observe(context, n.nspname, c.relname, 'ALTER', stored, g.keeps_sql)
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = g.relation;
    END IF;
    RETURN stored;
END
$$;
REVOKE EXECUTE ON FUNCTION rea.level_guard(int, text[], text[]) FROM PUBLIC;

-- Takes the triggers, the functions, the rights that were given for them, and the row of a guard away. DROP TRIGGER takes ACCESS EXCLUSIVE.
CREATE FUNCTION rea.remove_guard(guard int) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    g rea.guards := (SELECT x FROM rea.guards x WHERE x.guard_id = guard);
    keeper name := (SELECT a.rolname FROM pg_class c JOIN pg_roles a ON a.oid = c.relowner WHERE c.oid = 'rea.events'::regclass);
    parts oid[] := ARRAY(SELECT t.relid FROM pg_partition_tree(g.relation) t UNION SELECT g.relation);
    o record;
BEGIN
    FOR o IN SELECT t.tgname, t.tgrelid::regclass AS part FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
             WHERE p.pronamespace = 'rea'::regnamespace AND p.proname ~ ('^guard_' || guard || '_[a-z]+$') LOOP
        parts := parts || o.part::oid;   -- one that was detached has its triggers still
        EXECUTE format('DROP TRIGGER %I ON %s', o.tgname, o.part);
    END LOOP;
    FOR o IN SELECT p.oid::regprocedure AS name FROM pg_proc p
             WHERE p.pronamespace = 'rea'::regnamespace AND p.proname ~ ('^guard_' || guard || '_[a-z]+$') LOOP
        EXECUTE format('DROP FUNCTION %s', o.name);
    END LOOP;
    FOR o IN SELECT c.oid::regclass AS part, n.nspname AS space
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY (parts) LOOP
        IF EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = o.part AND p.polname = 'rea_guard') THEN
            EXECUTE format('DROP POLICY rea_guard ON %s', o.part);
        END IF;
        IF 'table' = ANY (g.granted) THEN
            EXECUTE format('REVOKE SELECT ON %s FROM %I', o.part, keeper);
        END IF;
        IF 'schema' = ANY (g.granted) AND o.part = g.relation AND NOT EXISTS (
                SELECT FROM rea.guards x JOIN pg_class c ON c.oid = x.relation JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = o.space AND x.guard_id <> guard) THEN
            EXECUTE format('REVOKE USAGE ON SCHEMA %I FROM %I', o.space, keeper);
        END IF;
    END LOOP;
    DELETE FROM rea.guards x WHERE x.guard_id = guard;
    PERFORM rea.guards_changed();
END
$$;
REVOKE EXECUTE ON FUNCTION rea.remove_guard(int) FROM PUBLIC;
