-- Guards: what their triggers call. The generated functions know the columns of their table; where these are others by now, where a row
-- is changed twice in one statement, and for TRUNCATE, the queries below are made from the catalog of the database.
-- Locks: none on anything that exists before.

-- What the database sees of the statement that is running, as the row of rea.contexts with this id. The roles are those of the
-- session: inside a SECURITY DEFINER function current_user is the function's, the setting `role` the effective one.
-- Returns whether this transaction has contexts of triggers that such a statement set off. Its callers pin search_path: a
-- SET here, in each guarded statement, would be one too many.
CREATE FUNCTION rea.observe(context_id bigint, table_schema text, table_name text, operation text, rows bigint, keeps_sql text) RETURNS boolean
    LANGUAGE plpgsql
AS $$
DECLARE
    statement text := current_query();
    kept text;
    excess int;
    deep int := greatest(pg_trigger_depth(), 1);
BEGIN
    IF keeps_sql = 'full' THEN
        kept := left(statement, 8192);
        LOOP   -- a character has at most four bytes
            excess := octet_length(kept) - 8192;
            EXIT WHEN excess IS NULL OR excess <= 0;
            kept := left(kept, -((excess + 3) / 4));
        END LOOP;
    END IF;
    INSERT INTO rea.contexts (context_id, xid, login, role, program, address, pid, table_name, operation, rows, depth,
                              statement, statement_cut, statement_sha256)
    VALUES (observe.context_id, pg_current_xact_id(), session_user, coalesce(nullif(current_setting('role'), 'none'), session_user),
            coalesce(current_setting('application_name', true), ''), host(inet_client_addr()), pg_backend_pid(),
            observe.table_schema || '.' || observe.table_name, observe.operation, observe.rows, deep,
            kept, coalesce(octet_length(kept) < octet_length(statement), false),
            CASE WHEN keeps_sql = 'hash' OR octet_length(kept) < octet_length(statement) THEN encode(sha256(convert_to(statement, 'UTF8')), 'hex') END);
    RETURN EXISTS (SELECT FROM rea.contexts c WHERE c.xid = pg_current_xact_id() AND c.depth > deep);
END
$$;
REVOKE EXECUTE ON FUNCTION rea.observe(bigint, text, text, text, bigint, text) FROM PUBLIC;

-- A row that does not fit into an event: it stands where the payload would.
CREATE FUNCTION rea.refuse_row(aggregate_type text, aggregate_id text, what text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    message text := format('rea: the guard of %s cannot record the row %s: its %s is beyond the limits of an event', left(aggregate_type, 60),
                           left(aggregate_id, 60), what);
BEGIN
    RAISE EXCEPTION USING MESSAGE = message, ERRCODE = 'RE005',
        HINT = CASE what WHEN 'id' THEN 'The id of an object has 1 to 200 bytes, no control characters, and no space at either end.'
                         ELSE 'Let the guard ignore or redact the column: rea guard change TABLE --ignore ...' END,
        DETAIL = jsonb_build_object('code', 'limit', 'message', message, 'what', what, 'aggregate_type', left(aggregate_type, 200),
                                    'aggregate_id', left(aggregate_id, 200));
END
$$;
REVOKE EXECUTE ON FUNCTION rea.refuse_row(text, text, text) FROM PUBLIC;

-- What is refused because of a guard. DETAIL carries the JSON that Go decodes.
CREATE FUNCTION rea.raise_guarded(relation oid, operation text, rows bigint, ids text[], message text, hint text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    name text := (SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation);
BEGIN
    message := format('rea: %s of %s refused: %s', operation, name, message);
    RAISE EXCEPTION USING MESSAGE = message, ERRCODE = 'RE011', HINT = hint, TABLE = name,
        DETAIL = jsonb_build_object('code', 'guarded', 'message', message, 'table', name, 'operation', operation, 'rows', rows, 'ids', ids);
END
$$;
REVOKE EXECUTE ON FUNCTION rea.raise_guarded(oid, text, bigint, text[], text, text) FROM PUBLIC;

CREATE FUNCTION rea.refuse_without_reason(relation oid, operation text, rows bigint) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
    RETURN rea.raise_guarded(relation, operation, rows, NULL, 'the guard wants a reason, and none was given',
        'First in the same transaction: SELECT rea.set_context(''who'', ''why'', NULL).');
REVOKE EXECUTE ON FUNCTION rea.refuse_without_reason(oid, text, bigint) FROM PUBLIC;

CREATE FUNCTION rea.refuse_truncate(relation oid) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
    RETURN rea.raise_guarded(relation, 'TRUNCATE', NULL, NULL, 'the guard allows no TRUNCATE', 'DELETE the rows, or let the guard capture TRUNCATE.');
REVOKE EXECUTE ON FUNCTION rea.refuse_truncate(oid) FROM PUBLIC;

-- A guard stores no event although nobody else's is in the way.
CREATE FUNCTION rea.refuse_sequence() RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'rea: a guard could not store its events: the sequence rea.events_id_seq is behind the data'
        USING ERRCODE = '55000', HINT = 'Its owner mends it: SELECT rea.mend_sequence()';
END
$$;
REVOKE EXECUTE ON FUNCTION rea.refuse_sequence() FROM PUBLIC;

-- A policy of the table's owner that would decide which rows the owner of the archive sees, and run with his rights; null: none.
CREATE FUNCTION rea.foreign_policy(relation oid) RETURNS name
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
    RETURN (SELECT p.polname FROM pg_class x
            JOIN pg_roles k ON k.oid = x.relowner AND NOT k.rolsuper AND NOT k.rolbypassrls
            JOIN pg_class c ON c.oid = foreign_policy.relation AND c.relrowsecurity AND (c.relforcerowsecurity OR NOT pg_has_role(k.oid, c.relowner, 'USAGE'))
            JOIN pg_policy p ON p.polrelid = c.oid AND p.polname <> 'rea_guard' AND p.polcmd IN ('*', 'r')
                 AND EXISTS (SELECT FROM unnest(p.polroles) r WHERE CASE WHEN r = 0 THEN true ELSE pg_has_role(k.oid, r, 'USAGE') END)
            WHERE x.oid = 'rea.events'::regclass
            ORDER BY p.polname LIMIT 1);

-- Refuses to go on where row security would hide rows from whom the archive belongs to, or run code of others as him.
CREATE FUNCTION rea.refuse_hidden_rows(relation oid, operation text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    policy name;
BEGIN
    IF NOT row_security_active(relation) THEN
        RETURN;
    END IF;
    policy := rea.foreign_policy(relation);
    IF policy IS NOT NULL THEN
        PERFORM rea.raise_guarded(relation, operation, NULL, NULL, format('its policy %s would choose the rows that the guard sees', policy),
            'Let the policy name the roles that it is for (ALTER POLICY ... TO ...), or ALTER ROLE ... BYPASSRLS for the owner of the archive.');
    ELSIF NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = relation AND p.polname = 'rea_guard') THEN
        PERFORM rea.raise_guarded(relation, operation, NULL, NULL, 'row security, which is newer than the guard, hides rows from it', 'Run `rea guard regenerate`.');
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION rea.refuse_hidden_rows(oid, text) FROM PUBLIC;

-- Whether the relation that is emptied has rows of its own. One whose partitions lack the guard's trigger is not emptied.
CREATE FUNCTION rea.truncates_leaf(relation oid) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bare text;
BEGIN
    IF EXISTS (SELECT FROM pg_class c WHERE c.oid = relation AND c.relkind = 'r') THEN
        PERFORM rea.refuse_hidden_rows(relation, 'TRUNCATE');
        RETURN true;
    END IF;
    SELECT p.relid::text INTO bare FROM pg_partition_tree(relation) p
    WHERE p.isleaf AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = p.relid AND t.tgname = 'rea_guard_truncate' AND t.tgenabled <> 'D') LIMIT 1;
    IF bare IS NOT NULL THEN
        PERFORM rea.raise_guarded(relation, 'TRUNCATE', NULL, NULL, format('its partition %s has no triggers of the guard', bare), 'Run `rea guard regenerate`.');
    END IF;
    RETURN false;
END
$$;
REVOKE EXECUTE ON FUNCTION rea.truncates_leaf(oid) FROM PUBLIC;

-- The present names of columns that have these numbers in the guarded table. Who restores a table, or drops a column and makes it anew,
-- numbers it anew: then those that had the numbers by name.
CREATE FUNCTION rea.guard_names(g rea.guards, numbers smallint[]) RETURNS text[]
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
    RETURN ARRAY(SELECT a.attname::text FROM unnest(numbers) WITH ORDINALITY n(number, i)
                 LEFT JOIN jsonb_to_recordset(g.columns) c(number smallint, name text) ON c.number = n.number
                 LEFT JOIN pg_attribute k ON k.attrelid = g.relation AND k.attnum = n.number AND NOT k.attisdropped AND g.made_for = g.relation::oid
                 JOIN pg_attribute a ON a.attrelid = g.relation AND a.attnum > 0 AND NOT a.attisdropped
                      AND CASE WHEN k.attnum IS NOT NULL THEN a.attnum = k.attnum ELSE a.attname::text = c.name END
                 ORDER BY n.i);

-- SQL for the id of a row of `alias`, as Go writes it.
CREATE FUNCTION rea.guard_id_sql(g rea.guards, alias text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    names text[] := rea.guard_names(g, g.key);
BEGIN
    IF cardinality(names) < cardinality(g.key) THEN
        PERFORM rea.raise_guarded(g.relation, 'write', NULL, NULL, 'a column of the key that the guard knows is gone', 'Run `rea guard remove`, and add the guard again.');
    END IF;
    IF cardinality(names) = 1 THEN
        RETURN format('%s.%I::text', alias, names[1]);
    END IF;
    RETURN (SELECT string_agg(format('replace(replace(%s.%I::text, ''%%'', ''%%25''), ''/'', ''%%2F'')', alias, n.name), ' || ''/'' || ' ORDER BY n.i)
            FROM unnest(names) WITH ORDINALITY n(name, i));
END
$$;

-- SQL for the JSON of a row of `alias` of a relation: the guarded table or a partition of it.
CREATE FUNCTION rea.guard_row_sql(g rea.guards, relation oid, alias text) RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
    BEGIN ATOMIC
        WITH RECURSIVE types AS (
            SELECT a.attnum, a.attname::text AS name, a.atttypid AS type FROM pg_attribute a
            WHERE a.attrelid = guard_row_sql.relation AND a.attnum > 0 AND NOT a.attisdropped
              AND a.attname <> 'rea_seq' AND a.attname::text <> ALL (rea.guard_names(guard_row_sql.g, (guard_row_sql.g).ignored))
            UNION
            SELECT t.attnum, t.name, CASE WHEN p.typbasetype <> 0 THEN p.typbasetype ELSE p.typelem END
            FROM types t JOIN pg_type p ON p.oid = t.type WHERE p.typbasetype <> 0 OR (p.typelem <> 0 AND p.typcategory = 'A')
        ), pairs AS (
            SELECT (row_number() OVER (ORDER BY t.attnum) - 1) / 40 AS chunk, t.attnum,
                   CASE WHEN t.name = ANY (rea.guard_names(guard_row_sql.g, (guard_row_sql.g).redacted)) THEN format('%L, ''(redacted)''::text', t.name)
                        WHEN bool_or(t.type IN ('json'::regtype, 'xml'::regtype)) THEN format('%L, %s.%I::text', t.name, guard_row_sql.alias, t.name)
                        ELSE format('%L, %s.%I', t.name, guard_row_sql.alias, t.name) END AS pair
            FROM types t GROUP BY t.attnum, t.name
        ), objects AS (
            SELECT p.chunk, 'jsonb_build_object(' || string_agg(p.pair, ', ' ORDER BY p.attnum) || ')' AS object FROM pairs p GROUP BY p.chunk
        )
        SELECT coalesce('(' || string_agg(o.object, ' || ' ORDER BY o.chunk) || ')', '''{}''::jsonb') FROM objects o;
    END;

-- SQL for the status of a row of `alias`, as Go writes it: the text of the column, as far as it can be one. status null: no column.
CREATE FUNCTION rea.guard_status_sql(status text, alias text) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
    RETURN CASE WHEN status IS NULL THEN 'NULL::text'
                ELSE format('CASE WHEN octet_length(%1$s.%2$I::text) BETWEEN 1 AND 200 THEN %1$s.%2$I::text END', alias, status) END;

-- SQL for the rows of a statement in pairs: id, place, the row before and after as JSON, their rea_seq, and the status after. A key that is
-- there several times is paired in the order in which its rows were written.
CREATE FUNCTION rea.guard_pairs(g rea.guards, relation oid, operation text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    status text := (rea.guard_names(g, ARRAY[g.status]))[1];
    seq boolean := EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = 'rea_seq' AND a.attnum > 0 AND NOT a.attisdropped);
    side text := 'SELECT %1$s AS id, %2$s AS row, %3$s AS seq, %4$s AS status, row_number() OVER () AS place FROM %5$s %6$s';
    numbered text := 'SELECT x.*, row_number() OVER (PARTITION BY x.id ORDER BY x.place) AS n FROM (%s) x';
    sides text[] := '{}';
    source text;
    alias text;
BEGIN
    FOREACH alias IN ARRAY '{rea_o,rea_n}'::text[] LOOP
        source := CASE WHEN operation = 'TRUNCATE' AND alias = 'rea_o' THEN 'ONLY ' || relation::regclass
                       WHEN operation IN ('UPDATE', 'DELETE') AND alias = 'rea_o' THEN 'rea_old'
                       WHEN operation IN ('UPDATE', 'INSERT') AND alias = 'rea_n' THEN 'rea_new' END;
        sides := sides || CASE WHEN source IS NULL
            THEN 'SELECT NULL::text AS id, NULL::jsonb AS row, NULL::bigint AS seq, NULL::text AS status, NULL::bigint AS place, NULL::bigint AS n WHERE false'
            ELSE format(numbered, format(side, rea.guard_id_sql(g, alias), rea.guard_row_sql(g, relation, alias),
                CASE WHEN seq THEN format('%s.rea_seq', alias) ELSE 'NULL::bigint' END,
                rea.guard_status_sql(status, alias),
                source, alias)) END;
    END LOOP;
    RETURN format('SELECT coalesce(o.id, n.id) AS id, coalesce(n.place, o.place) AS place, o.row AS was, n.row AS now, o.seq AS was_seq, n.seq AS now_seq, n.status
FROM (%s) o FULL JOIN (%s) n ON o.id COLLATE "C" = n.id COLLATE "C" AND o.n = n.n', sides[1], sides[2]);
END
$$;

-- The members of a JSON object that are not the same in another one.
CREATE FUNCTION rea.guard_delta(a jsonb, b jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
    RETURN (SELECT coalesce(jsonb_object_agg(e.key, e.value), '{}') FROM jsonb_each(a) e WHERE (b -> e.key)::text IS DISTINCT FROM e.value::text);

-- SQL that stores the events of pairs in the context $1; $2: how often that was tried.
CREATE FUNCTION rea.guard_store_sql(g rea.guards, pairs text) RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
    RETURN format('INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, payload, status, context_id)
SELECT %1$L, p.id, CASE WHEN p.was IS NULL THEN ''DirectInsert'' WHEN p.now IS NULL THEN ''DirectDelete'' ELSE ''DirectUpdate'' END,
       CASE WHEN rea.size_ok(p.payload, 16777216) THEN p.payload ELSE rea.refuse_row(%1$L, p.id, ''payload'') END, p.status, $1
FROM (SELECT x.*, CASE WHEN x.was IS NULL THEN jsonb_build_object(''new'', x.now) WHEN x.now IS NULL THEN jsonb_build_object(''old'', x.was)
                       WHEN (SELECT e.seq FROM rea.events e WHERE e.aggregate_type = %1$L AND e.aggregate_id = x.id AND e.seq = 1) IS NULL
                       THEN jsonb_build_object(''old'', x.was, ''new'', rea.guard_delta(x.now, x.was))
                       ELSE jsonb_build_object(''old'', rea.guard_delta(x.was, x.now), ''new'', rea.guard_delta(x.now, x.was)) END AS payload
      FROM (%2$s) x WHERE x.was::text IS DISTINCT FROM x.now::text OFFSET 0) p
WHERE $2 = 0 OR (SELECT 1 FROM rea.events e WHERE e.aggregate_type = %1$L AND e.aggregate_id = p.id AND e.context_id = $1 LIMIT 1) IS NULL
ORDER BY p.id, p.place
ON CONFLICT DO NOTHING', g.aggregate_type, pairs);

-- SQL that compares what a statement left with what the table holds now: a trigger of the application's may have changed the rows again,
-- and its events came first. They are brought level by another event.
CREATE FUNCTION rea.guard_level_sql(guard int, relation oid, operation text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    g rea.guards := (SELECT x FROM rea.guards x WHERE x.guard_id = guard);
    status text := (rea.guard_names(g, ARRAY[g.status]))[1];
    keys text := (SELECT string_agg(format('%I', n.name), ', ' ORDER BY n.i) FROM unnest(rea.guard_names(g, g.key)) WITH ORDINALITY n(name, i));
    touched text := CASE operation WHEN 'INSERT' THEN format('SELECT %s FROM rea_new', keys) WHEN 'DELETE' THEN format('SELECT %s FROM rea_old', keys)
                                   ELSE format('SELECT %1$s FROM rea_old UNION SELECT %1$s FROM rea_new', keys) END;
BEGIN
    PERFORM rea.refuse_hidden_rows(g.relation, operation);
    RETURN rea.guard_store_sql(g, format('SELECT k.id, k.place, k.now AS was, t.row AS now, t.status
FROM (SELECT DISTINCT ON (y.id) y.* FROM (%s) y ORDER BY y.id, y.place DESC) k
LEFT JOIN (SELECT %s AS id, %s AS row, %s AS status FROM %s rea_t WHERE (%s) IN (%s)) t ON t.id COLLATE "C" = k.id COLLATE "C"',
        rea.guard_pairs(g, relation, operation), rea.guard_id_sql(g, 'rea_t'), rea.guard_row_sql(g, g.relation, 'rea_t'),
        rea.guard_status_sql(status, 'rea_t'), g.relation,
        (SELECT string_agg(format('rea_t.%I', n.name), ', ' ORDER BY n.i) FROM unnest(rea.guard_names(g, g.key)) WITH ORDINALITY n(name, i)), touched));
END
$$;

-- The row that the guard of this type would capture for this id; null: no guard, or no such row, or one that row security could hide.
-- A text that cannot be a key has none.
CREATE FUNCTION rea.guard_row(aggregate_type text, aggregate_id text) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET "TimeZone" = 'UTC'
    SET "DateStyle" = 'ISO, MDY'
    SET "IntervalStyle" = 'postgres'
    SET bytea_output = 'hex'
    SET extra_float_digits = 1
    SET lc_monetary = 'C'
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
    SET jit = off
AS $$
DECLARE
    g rea.guards := (SELECT x FROM rea.guards x WHERE x.aggregate_type = guard_row.aggregate_type);
    found jsonb;
BEGIN
    IF g.guard_id IS NULL OR rea.foreign_policy(g.relation) IS NOT NULL THEN
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT %s FROM %s rea_t WHERE %s AND (%s) COLLATE "C" = $1 LIMIT 1', rea.guard_row_sql(g, g.relation, 'rea_t'), g.relation,
        (SELECT string_agg(format('rea_t.%I = CAST(%s AS %s)', n.name,
                    CASE WHEN cardinality(g.key) = 1 THEN '$1' ELSE format('replace(replace(split_part($1, ''/'', %s), ''%%2F'', ''/''), ''%%25'', ''%%'')', n.i) END,
                    format_type(a.atttypid, a.atttypmod)), ' AND ')
         FROM unnest(rea.guard_names(g, g.key)) WITH ORDINALITY n(name, i)
         JOIN pg_attribute a ON a.attrelid = g.relation AND a.attname::text = n.name AND a.attnum > 0), rea.guard_id_sql(g, 'rea_t'))
    INTO found USING aggregate_id;
    RETURN found;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION rea.guard_row(text, text) FROM PUBLIC;

-- The event types that say that an object is gone: DELETE of a row is theirs.
CREATE FUNCTION rea.deleting_types(aggregate_type text) RETURNS text[]
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
    RETURN '{DirectDelete}'::text[] || ARRAY(SELECT DISTINCT s.event_type FROM rea.steps s WHERE s.aggregate_type = deleting_types.aggregate_type AND s.deletes);

-- A write of rows that no event stands for.
CREATE FUNCTION rea.refuse_guarded(relation oid, operation text, rows bigint, ids text[], aggregate_type text) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
    RETURN rea.raise_guarded(relation, operation, rows, ids,
        format('no event of this transaction stands for %s: %s%s', CASE rows WHEN 1 THEN '1 row' ELSE rows || ' rows' END,
               (SELECT string_agg(left(i.id, 60), ', ' ORDER BY i.n) FROM unnest(ids) WITH ORDINALITY i(id, n)), CASE WHEN rows > cardinality(ids) THEN '...' ELSE '' END),
        CASE operation WHEN 'DELETE' THEN format('First append an event of %s that is declared `deletes: true`, in the same transaction.', aggregate_type)
                       ELSE format('First append an event of %s, in the same transaction, and set rea_seq to its seq.', aggregate_type) END);
REVOKE EXECUTE ON FUNCTION rea.refuse_guarded(oid, text, bigint, text[], text) FROM PUBLIC;
