-- Append: one function that never raises for a refusal, and shells over it.
-- Locks: none on a table.

CREATE FUNCTION rea.set_context(actor text, reason text, correlation text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_temp
AS $$
BEGIN
    IF NOT (coalesce(rea.name_ok(actor), true) AND coalesce(rea.reason_ok(reason), true) AND coalesce(rea.name_ok(correlation), true)) THEN
        RAISE EXCEPTION 'rea: set_context: actor and correlation are 1 to 200 bytes without control characters or spaces at the ends, reason 1 to 4096 bytes'
            USING ERRCODE = 'RE005', DETAIL = jsonb_build_object('code', 'limit', 'what', 'context');
    END IF;
    -- true: these settings end with the transaction, so that nothing leaks through a pool
    PERFORM set_config('rea.actor', coalesce(actor, ''), true);
    PERFORM set_config('rea.reason', coalesce(reason, ''), true);
    PERFORM set_config('rea.correlation', coalesce(correlation, ''), true);
END
$$;
COMMENT ON FUNCTION rea.set_context IS 'claims who acts and why, for the events of this transaction that do not say';

-- Whether one element of an append's events is plainly right; false is not the last word.
CREATE FUNCTION rea.element_ok(event jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(event) = 'object'
                THEN jsonb_typeof(event -> 'event_type') = 'string' AND rea.name_ok(event ->> 'event_type') AND NOT rea.is_own(event ->> 'event_type')
                     AND coalesce(event ->> 'event_version', '1') ~ '^[1-9][0-9]{0,8}$'
                     AND coalesce(jsonb_typeof(event -> 'event_version'), 'number') = 'number'
                     AND event - '{event_type,event_version,payload}'::text[] = '{}'
                     AND coalesce(jsonb_typeof(event -> 'payload'), 'object') = 'object'
                     AND rea.size_ok(coalesce(event -> 'payload', '{}'), 16777216)
                ELSE false END;

-- What is wrong with the arguments of an append, in the order of the specification: names and limits, then payloads.
-- NULL where nothing is.
CREATE FUNCTION rea.call_refusal(aggregate_type text, aggregate_id text, events jsonb, expect bigint, actor text,
    reason text, correlation text, key text, metadata jsonb, correction boolean) RETURNS jsonb
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    bad text;
    event jsonb;
BEGIN
    -- One expression knows the calls that are plainly right, which is most of them: each further one is set up anew in
    -- every transaction. The rest says where a call is not.
    IF jsonb_array_length(CASE WHEN jsonb_typeof(events) = 'array' THEN events ELSE '[]' END) = 1
       AND rea.name_ok(aggregate_type) AND rea.name_ok(aggregate_id) AND coalesce(rea.name_ok(actor), true)
       AND coalesce(rea.reason_ok(reason), true) AND coalesce(rea.name_ok(correlation), true) AND coalesce(rea.name_ok(key), true)
       AND metadata IS NULL AND NOT correction AND coalesce(expect, 0) >= 0
       AND coalesce(current_setting('rea.actor', true), '') = '' AND coalesce(current_setting('rea.reason', true), '') = ''
       AND coalesce(current_setting('rea.correlation', true), '') = '' AND rea.element_ok(events -> 0) THEN
        RETURN NULL;
    END IF;
    bad := CASE WHEN NOT coalesce(rea.name_ok(aggregate_type), false) THEN 'aggregate_type'
                WHEN NOT coalesce(rea.name_ok(aggregate_id), false) THEN 'aggregate_id'
                WHEN NOT rea.name_ok(coalesce(actor, nullif(current_setting('rea.actor', true), ''))) THEN 'actor_id'
                WHEN NOT rea.name_ok(coalesce(correlation, nullif(current_setting('rea.correlation', true), ''))) THEN 'correlation_id'
                WHEN NOT rea.name_ok(key) THEN 'idempotency_key' END;
    IF bad IS NOT NULL THEN
        RETURN rea.refusal('limit', bad || ' is not 1 to 200 bytes without control characters or spaces at the ends',
                           coalesce(aggregate_type, ''), coalesce(aggregate_id, ''), jsonb_build_object('what', bad, 'limit', 200));
    END IF;
    IF NOT rea.reason_ok(coalesce(reason, nullif(current_setting('rea.reason', true), ''))) THEN
        RETURN rea.refusal('limit', 'reason is not 1 to 4096 bytes', aggregate_type, aggregate_id, '{"what": "reason", "limit": 4096}');
    END IF;
    IF events IS NULL OR jsonb_typeof(events) <> 'array' THEN
        RETURN rea.refusal('bad_payload', 'events is no JSON array', aggregate_type, aggregate_id, '{"path": "$"}');
    END IF;
    IF jsonb_array_length(events) NOT BETWEEN 1 AND 10000 THEN
        RETURN rea.refusal('limit', format('events of one call are 1 to 10000, not %s', jsonb_array_length(events)),
                           aggregate_type, aggregate_id, '{"what": "events", "limit": 10000}');
    END IF;
    IF expect < 0 THEN
        RETURN rea.refusal('limit', 'expect is negative', aggregate_type, aggregate_id, '{"what": "expect", "limit": 0}');
    END IF;
    IF correction AND (coalesce(actor, nullif(current_setting('rea.actor', true), '')) IS NULL
                       OR coalesce(reason, nullif(current_setting('rea.reason', true), '')) IS NULL) THEN
        RETURN rea.refusal('limit', 'a correction needs an actor and a reason', aggregate_type, aggregate_id, '{"what": "correction", "limit": 0}');
    END IF;
    IF jsonb_array_length(events) > 1 THEN
        events := events || '[]';   -- once uncompressed, not once for each event
    END IF;
    FOR i IN 0 .. jsonb_array_length(events) - 1 LOOP
        event := events -> i;
        IF NOT coalesce(rea.name_ok(event ->> 'event_type'), false) OR jsonb_typeof(event -> 'event_type') <> 'string' THEN
            RETURN rea.refusal('limit', format('event_type of events[%s] is not 1 to 200 bytes without control characters or spaces at the ends', i),
                               aggregate_type, aggregate_id, jsonb_build_object('what', 'event_type', 'limit', 200, 'path', format('events[%s]', i)));
        END IF;
        IF rea.is_own(event ->> 'event_type') THEN
            RETURN rea.own_name(aggregate_type, aggregate_id, event ->> 'event_type') || jsonb_build_object('path', format('events[%s]', i));
        END IF;
        IF jsonb_typeof(event -> 'event_version') NOT IN ('number', 'null')
           OR NOT coalesce((event ->> 'event_version')::numeric BETWEEN 1 AND 2147483647, true)
           OR (event ->> 'event_version')::numeric % 1 <> 0 THEN
            RETURN rea.refusal('limit', format('event_version of events[%s] is no whole number from 1', i),
                               aggregate_type, aggregate_id, jsonb_build_object('what', 'event_version', 'limit', 2147483647, 'path', format('events[%s]', i)));
        END IF;
    END LOOP;
    FOR i IN 0 .. jsonb_array_length(events) - 1 LOOP
        event := events -> i;
        IF event - '{event_type,event_version,payload}'::text[] <> '{}' THEN
            RETURN rea.refusal('bad_payload', format('events[%s] has a key other than event_type, event_version, payload', i),
                               aggregate_type, aggregate_id, jsonb_build_object('path', format('$[%s]', i)));
        END IF;
        IF jsonb_typeof(event -> 'payload') <> 'object' THEN
            RETURN rea.refusal('bad_payload', format('payload of events[%s] is no JSON object', i),
                               aggregate_type, aggregate_id, jsonb_build_object('path', format('$[%s].payload', i)));
        END IF;
        IF NOT rea.size_ok(event -> 'payload', 16777216) THEN
            RETURN rea.refusal('limit', format('payload of events[%s] is more than 16 MiB of text, or 900 deep', i),
                               aggregate_type, aggregate_id, jsonb_build_object('what', 'payload', 'limit', 16777216, 'path', format('$[%s].payload', i)));
        END IF;
    END LOOP;
    IF jsonb_typeof(metadata) <> 'object' THEN
        RETURN rea.refusal('bad_payload', 'metadata is no JSON object', aggregate_type, aggregate_id, '{"path": "metadata"}');
    END IF;
    IF NOT rea.size_ok(metadata, 65536) THEN
        RETURN rea.refusal('limit', 'metadata is more than 64 KiB of text, or 900 deep', aggregate_type, aggregate_id, '{"what": "metadata", "limit": 65536}');
    END IF;
    RETURN NULL;
END
$$;

-- What SQL, the command line and Go append by, but for one event in a transaction of its own, which Go inserts and asks here
-- only why that stored nothing. It refuses by returning one row with
-- `refused`, so that the caller's transaction goes on; no savepoint, which would burn a subtransaction per append.
-- The first row goes in with DO NOTHING (no target: a racer may hit either unique index); once it is ours the rest
-- cannot conflict. A lost race is looked at again with a new snapshot.
CREATE FUNCTION rea.try_append(aggregate_type text, aggregate_id text, events jsonb, expect bigint DEFAULT NULL,
    actor text DEFAULT NULL, reason text DEFAULT NULL, correlation text DEFAULT NULL, key text DEFAULT NULL,
    metadata jsonb DEFAULT NULL, correction boolean DEFAULT false)
    RETURNS TABLE (id bigint, seq bigint, status text, duplicate boolean, refused text, detail jsonb)
    LANGUAGE plpgsql
    SET search_path = pg_temp
    SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    n int;
    last bigint;
    seen bigint;
    keyed record;
    event jsonb;
    kind text;
    present text;      -- the status that is stored last,
    version int;       -- and the catalog that gave it
    name text;
    away text;
    target text;
    number int;
    newest int;
    versions int[];    -- the newest of each event, for those that say none
BEGIN
    correction := coalesce(correction, false);
    detail := rea.call_refusal(aggregate_type, aggregate_id, events, expect, actor, reason, correlation, key, metadata, correction);
    IF detail IS NOT NULL THEN
        refused := detail ->> 'code';
        RETURN NEXT;
        RETURN;
    END IF;
    n := jsonb_array_length(events);
    event := events -> 0;
    duplicate := false;
    LOOP
        IF key IS NOT NULL THEN
            SELECT e.seq, e.key_events INTO keyed FROM rea.events e
            WHERE e.aggregate_type = try_append.aggregate_type AND e.aggregate_id = try_append.aggregate_id
              AND e.idempotency_key = key;
            IF FOUND THEN
                IF rea.same_content(aggregate_type, aggregate_id, keyed.seq, keyed.key_events, events) THEN
                    RETURN QUERY SELECT e.id, e.seq, e.status, true, NULL::text, NULL::jsonb FROM rea.events e
                    WHERE e.aggregate_type = try_append.aggregate_type AND e.aggregate_id = try_append.aggregate_id
                      AND e.seq >= keyed.seq AND e.seq < keyed.seq + n
                    ORDER BY e.seq;
                    RETURN;
                END IF;
                refused := 'key_reused';
                detail := rea.refusal(refused, format('key %s stands on seq %s with other content', quote_literal(left(key, 60)), keyed.seq),
                                      aggregate_type, aggregate_id, jsonb_build_object('key', key, 'seq', keyed.seq));
                RETURN NEXT;
                RETURN;
            END IF;
        END IF;

        SELECT e.seq, e.status, e.catalog_version INTO last, present, version FROM rea.events e
        WHERE e.aggregate_type = try_append.aggregate_type AND e.aggregate_id = try_append.aggregate_id
        ORDER BY e.seq DESC LIMIT 1;
        last := coalesce(last, 0);
        IF expect <> last THEN
            refused := 'conflict';
            detail := rea.refusal(refused, format('expected seq %s, the last one is %s', expect, last),
                                  aggregate_type, aggregate_id, jsonb_build_object('expected', expect, 'actual', last));
            RETURN NEXT;
            RETURN;
        END IF;
        IF last = seen THEN
            -- DO NOTHING met a row, and it is none of this aggregate
            IF (SELECT q.last_value FROM rea.events_id_seq q) <= (SELECT max(e.id) FROM rea.events e) THEN
                RAISE EXCEPTION 'rea: the sequence rea.events_id_seq is behind the events: a new id is in use already'
                    USING ERRCODE = '55000', HINT = 'SELECT rea.mend_sequence()';
            END IF;
            RAISE EXCEPTION 'rea: append to %/%: something on rea.events that is not REA''s keeps the event out', left(aggregate_type, 60), left(aggregate_id, 60)
                USING ERRCODE = '55000', HINT = 'Look for a unique index, trigger or rule that was added to rea.events.';
        END IF;

        -- The steps, each from the one before. The insert trigger comes to the same: the event at `last` does not
        -- change, and rea.steps stays locked as it is.
        SELECT s.aggregate_type INTO kind FROM rea.steps s
        WHERE s.aggregate_type IN ('', try_append.aggregate_type) AND s.event_type = '' AND s.from_status IN ('', CASE WHEN last = 0 THEN 'none' ELSE '' END)
        ORDER BY s.aggregate_type DESC LIMIT 1;
        IF kind IS NULL THEN
            PERFORM rea.refuse_stale_catalog();
        ELSIF kind <> '' THEN
            FOR i IN 0 .. n - 1 LOOP
                name := events -> i ->> 'event_type';
                away := CASE WHEN last + i > 0 THEN 'any' ELSE 'none' END;
                SELECT s.to_status, s.catalog_version, s.event_version INTO target, number, newest FROM rea.steps s
                WHERE s.aggregate_type = try_append.aggregate_type AND s.event_type = name
                  AND s.from_status IN (coalesce(present, away), away) AND NOT s.guarded
                LIMIT 1;
                IF FOUND AND (last + i = 0 OR number IS NOT DISTINCT FROM version) THEN
                    present := coalesce(target, present);
                ELSE
                    SELECT t.status, t.catalog_version, t.event_version, t.refused, t.detail INTO present, number, newest, refused, detail
                    FROM rea.take_step(aggregate_type, aggregate_id, name, last + i, present, version, correction) t;
                    IF refused IS NOT NULL THEN
                        RETURN NEXT;
                        RETURN;
                    END IF;
                END IF;
                version := number;
                versions[i + 1] := newest;
            END LOOP;
        END IF;

        -- seq is always given: a lost race then ends at the unique index as no row
        IF correction THEN
            INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type, event_version, payload,
                actor_id, reason, correlation_id, idempotency_key, key_events, metadata, correction)
            VALUES (aggregate_type, aggregate_id, last + 1, event ->> 'event_type', coalesce((event ->> 'event_version')::numeric::int, versions[1], 1),
                coalesce(event -> 'payload', '{}'), actor, reason, correlation, key, CASE WHEN key IS NOT NULL THEN n END, metadata, true)
            ON CONFLICT DO NOTHING
            RETURNING id, seq, status INTO id, seq, status;
        ELSE
            INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type, event_version, payload,
                actor_id, reason, correlation_id, idempotency_key, key_events, metadata)
            VALUES (aggregate_type, aggregate_id, last + 1, event ->> 'event_type', coalesce((event ->> 'event_version')::numeric::int, versions[1], 1),
                coalesce(event -> 'payload', '{}'), actor, reason, correlation, key, CASE WHEN key IS NOT NULL THEN n END, metadata)
            ON CONFLICT DO NOTHING
            RETURNING id, seq, status INTO id, seq, status;
        END IF;
        EXIT WHEN FOUND;
        seen := last;
    END LOOP;
    RETURN NEXT;

    IF n > 1 AND correction THEN
        RETURN QUERY INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type, event_version, payload,
            actor_id, reason, correlation_id, metadata, correction)
        SELECT aggregate_type, aggregate_id, last + x.n, x.event ->> 'event_type', coalesce((x.event ->> 'event_version')::numeric::int, versions[x.n::int], 1),
            coalesce(x.event -> 'payload', '{}'), actor, reason, correlation, metadata, true
        FROM jsonb_array_elements(events) WITH ORDINALITY x(event, n) WHERE x.n > 1
        RETURNING id, seq, status, false, NULL::text, NULL::jsonb;
    ELSIF n > 1 THEN
        RETURN QUERY INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type, event_version, payload,
            actor_id, reason, correlation_id, metadata)
        SELECT aggregate_type, aggregate_id, last + x.n, x.event ->> 'event_type', coalesce((x.event ->> 'event_version')::numeric::int, versions[x.n::int], 1),
            coalesce(x.event -> 'payload', '{}'), actor, reason, correlation, metadata
        FROM jsonb_array_elements(events) WITH ORDINALITY x(event, n) WHERE x.n > 1
        RETURNING id, seq, status, false, NULL::text, NULL::jsonb;
    END IF;
END
$$;
COMMENT ON FUNCTION rea.try_append(text, text, jsonb, bigint, text, text, text, text, jsonb, boolean)
    IS 'appends events to one aggregate; a refusal is a row, not an error';

-- Same content: the same types, versions (one that is not said fits any) and payloads, in number and order.
CREATE FUNCTION rea.same_content(aggregate_type text, aggregate_id text, first bigint, key_events int, events jsonb) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_temp
    SET enable_seqscan = off
AS $$
    SELECT same_content.key_events = jsonb_array_length(events) AND bool_and(coalesce(
               e.event_type = x.event ->> 'event_type'
               AND e.event_version = coalesce((x.event ->> 'event_version')::numeric::int, e.event_version)
               AND e.payload = coalesce(x.event -> 'payload', '{}'), false))
    FROM jsonb_array_elements(events) WITH ORDINALITY x(event, n)
    LEFT JOIN rea.events e ON e.aggregate_type = same_content.aggregate_type AND e.aggregate_id = same_content.aggregate_id
        AND e.seq = first + x.n - 1
$$;

CREATE FUNCTION rea.append_batch(aggregate_type text, aggregate_id text, events jsonb, expect bigint DEFAULT NULL,
    actor text DEFAULT NULL, reason text DEFAULT NULL, correlation text DEFAULT NULL, key text DEFAULT NULL,
    metadata jsonb DEFAULT NULL, correction boolean DEFAULT false)
    RETURNS TABLE (id bigint, seq bigint, status text, duplicate boolean)
    LANGUAGE plpgsql
    SET search_path = pg_temp
AS $$
DECLARE
    refused text;
    detail jsonb;
BEGIN
    FOR id, seq, status, duplicate, refused, detail IN
        SELECT * FROM rea.try_append(aggregate_type, aggregate_id, events, expect, actor, reason, correlation, key, metadata, correction)
    LOOP
        IF refused IS NOT NULL THEN
            PERFORM rea.raise_refusal(refused, detail);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION rea.append_batch(text, text, jsonb, bigint, text, text, text, text, jsonb, boolean)
    IS 'appends events [{"event_type", "event_version", "payload"}] to one aggregate; raises a refusal';

CREATE FUNCTION rea.append(aggregate_type text, aggregate_id text, event_type text, payload jsonb DEFAULT '{}',
    version int DEFAULT NULL, expect bigint DEFAULT NULL, actor text DEFAULT NULL, reason text DEFAULT NULL,
    correlation text DEFAULT NULL, key text DEFAULT NULL, metadata jsonb DEFAULT NULL, correction boolean DEFAULT false)
    RETURNS TABLE (id bigint, seq bigint, status text, duplicate boolean)
    LANGUAGE plpgsql
    SET search_path = pg_temp
AS $$
DECLARE
    refused text;
    detail jsonb;
BEGIN
    SELECT t.* INTO id, seq, status, duplicate, refused, detail
    FROM rea.try_append(aggregate_type, aggregate_id,
        jsonb_build_array(CASE WHEN version IS NULL THEN jsonb_build_object('event_type', event_type, 'payload', payload)
                               ELSE jsonb_build_object('event_type', event_type, 'event_version', version, 'payload', payload) END),
        expect, actor, reason, correlation, key, metadata, correction) t;
    IF refused IS NOT NULL THEN
        PERFORM rea.raise_refusal(refused, detail);
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION rea.append(text, text, text, jsonb, int, bigint, text, text, text, text, jsonb, boolean)
    IS 'appends one event; raises a refusal as SQLSTATE RE001..RE006 with the error''s JSON in DETAIL';

-- Overloads for numeric ids: an untyped literal goes to text, 10086 to bigint.
CREATE FUNCTION rea.try_append(aggregate_type text, aggregate_id bigint, events jsonb, expect bigint DEFAULT NULL,
    actor text DEFAULT NULL, reason text DEFAULT NULL, correlation text DEFAULT NULL, key text DEFAULT NULL,
    metadata jsonb DEFAULT NULL, correction boolean DEFAULT false)
    RETURNS TABLE (id bigint, seq bigint, status text, duplicate boolean, refused text, detail jsonb)
    LANGUAGE sql
    SET search_path = pg_temp
AS $$
    SELECT * FROM rea.try_append(aggregate_type, aggregate_id::text, events, expect, actor, reason, correlation, key, metadata, correction)
$$;

CREATE FUNCTION rea.append_batch(aggregate_type text, aggregate_id bigint, events jsonb, expect bigint DEFAULT NULL,
    actor text DEFAULT NULL, reason text DEFAULT NULL, correlation text DEFAULT NULL, key text DEFAULT NULL,
    metadata jsonb DEFAULT NULL, correction boolean DEFAULT false)
    RETURNS TABLE (id bigint, seq bigint, status text, duplicate boolean)
    LANGUAGE sql
    SET search_path = pg_temp
AS $$
    SELECT * FROM rea.append_batch(aggregate_type, aggregate_id::text, events, expect, actor, reason, correlation, key, metadata, correction)
$$;

CREATE FUNCTION rea.append(aggregate_type text, aggregate_id bigint, event_type text, payload jsonb DEFAULT '{}',
    version int DEFAULT NULL, expect bigint DEFAULT NULL, actor text DEFAULT NULL, reason text DEFAULT NULL,
    correlation text DEFAULT NULL, key text DEFAULT NULL, metadata jsonb DEFAULT NULL, correction boolean DEFAULT false)
    RETURNS TABLE (id bigint, seq bigint, status text, duplicate boolean)
    LANGUAGE sql
    SET search_path = pg_temp
AS $$
    SELECT * FROM rea.append(aggregate_type, aggregate_id::text, event_type, payload, version, expect, actor, reason, correlation, key, metadata, correction)
$$;
