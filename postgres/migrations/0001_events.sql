-- The archive: one table of events, its limits, and the triggers that refuse every change.
-- Locks: none on anything that exists before.

CREATE SCHEMA rea;

CREATE TABLE rea.schema_migrations (
    version    int PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Names: 1 to 200 bytes, no control characters (U+0000-001F, U+007F-009F), no space at either end.
-- The bodies are parsed here and now, so that no search_path gives their operators another meaning.
CREATE FUNCTION rea.name_ok(value text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN octet_length(value) BETWEEN 1 AND 200
        AND value COLLATE "C" !~ E'^ | $|[\u0001-\u001f\u007f-\u009f]';

CREATE FUNCTION rea.reason_ok(value text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN octet_length(value) BETWEEN 1 AND 4096;

-- Whether a value has at most that many bytes as text and is at most 900 containers deep. Below 1,500 bytes of jsonb
-- no value has 16 MiB of text or is 900 deep (a number takes 12 bytes for at most 131,072 digits, a container 8 bytes),
-- and the look is saved. || gives the value uncompressed, whichever table it comes from.
-- STABLE, as pg_column_size is: only then does PostgreSQL put the body into the calling expression; else it is planned
-- anew in every statement, which took a third of an append.
CREATE FUNCTION rea.size_ok(value jsonb, bytes int) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (bytes >= 16777216 AND pg_column_size(value || '{}') < 1500)
        OR (octet_length(value::text) <= bytes
            AND NOT jsonb_path_exists(value, 'strict $.**{900} ? (@.type() == "object" || @.type() == "array")'));

-- The limits of an event, as one constraint and one function whose plan stays: PostgreSQL reads and plans every CHECK
-- anew in every statement, and fifteen of them took four times as long as all the rest of an append.
-- The error is a check violation that names the column, as events_COLUMN_check.
CREATE FUNCTION rea.within_limits(aggregate_type text, aggregate_id text, seq bigint, event_type text, event_version int, payload jsonb,
    correction boolean, actor_id text, reason text, correlation_id text, idempotency_key text, key_events int, metadata jsonb,
    created_at timestamptz) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    bad text;
BEGIN
    -- false or null where a rule may be broken: then each one is looked at (a null in a NOT NULL column is the table's business)
    IF rea.name_ok(aggregate_type) AND rea.name_ok(aggregate_id) AND rea.name_ok(event_type)
       AND seq OPERATOR(pg_catalog.>=) 1 AND event_version OPERATOR(pg_catalog.>=) 1
       AND pg_catalog.jsonb_typeof(payload) OPERATOR(pg_catalog.=) 'object' AND rea.size_ok(payload, 16777216)
       AND (actor_id IS NULL OR rea.name_ok(actor_id)) AND (reason IS NULL OR rea.reason_ok(reason))
       AND (correlation_id IS NULL OR rea.name_ok(correlation_id)) AND (idempotency_key IS NULL AND key_events IS NULL
            OR rea.name_ok(idempotency_key) AND key_events OPERATOR(pg_catalog.>=) 1 AND key_events OPERATOR(pg_catalog.<=) 10000)
       AND (metadata IS NULL OR pg_catalog.jsonb_typeof(metadata) OPERATOR(pg_catalog.=) 'object' AND rea.size_ok(metadata, 65536))
       AND (NOT correction OR (actor_id IS NOT NULL AND reason IS NOT NULL))
       AND created_at OPERATOR(pg_catalog.>=) '0001-01-01 00:00:00+00'::timestamptz
       AND created_at OPERATOR(pg_catalog.<) '10000-01-01 00:00:00+00'::timestamptz THEN
        RETURN true;
    END IF;
    bad := rea.broken_limit(aggregate_type, aggregate_id, seq, event_type, event_version, payload, correction,
        actor_id, reason, correlation_id, idempotency_key, key_events, metadata, created_at);
    IF bad IS NULL THEN
        RETURN true;
    ELSIF bad OPERATOR(pg_catalog.=) 'aggregate_id' AND event_type OPERATOR(pg_catalog.=) ANY ('{DirectInsert,DirectUpdate,DirectDelete}'::text[]) THEN
        PERFORM rea.refuse_row(aggregate_type, aggregate_id, 'id');   -- the application wrote a row, and not this table
    END IF;
    RAISE EXCEPTION 'new row for relation "events" violates check constraint "events_%_check"', bad
        USING ERRCODE = '23514', SCHEMA = 'rea', TABLE = 'events', COLUMN = bad, CONSTRAINT = 'events_' OPERATOR(pg_catalog.||) bad OPERATOR(pg_catalog.||) '_check';
END
$$;

CREATE FUNCTION rea.broken_limit(aggregate_type text, aggregate_id text, seq bigint, event_type text, event_version int, payload jsonb,
    correction boolean, actor_id text, reason text, correlation_id text, idempotency_key text, key_events int, metadata jsonb,
    created_at timestamptz) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN NOT rea.name_ok(aggregate_type) THEN 'aggregate_type'
                WHEN NOT rea.name_ok(aggregate_id) THEN 'aggregate_id'
                WHEN NOT rea.name_ok(event_type) THEN 'event_type'
                WHEN seq < 1 THEN 'seq'
                WHEN event_version < 1 THEN 'event_version'
                WHEN jsonb_typeof(payload) <> 'object' THEN 'payload'
                WHEN NOT rea.size_ok(payload, 16777216) THEN 'payload'
                WHEN jsonb_typeof(metadata) <> 'object' THEN 'metadata'
                WHEN NOT rea.size_ok(metadata, 65536) THEN 'metadata'
                WHEN NOT rea.name_ok(actor_id) THEN 'actor_id'
                WHEN NOT rea.reason_ok(reason) THEN 'reason'
                WHEN NOT rea.name_ok(correlation_id) THEN 'correlation_id'
                WHEN NOT rea.name_ok(idempotency_key) THEN 'idempotency_key'
                WHEN (idempotency_key IS NULL) <> (key_events IS NULL) OR key_events NOT BETWEEN 1 AND 10000 THEN 'key_events'
                WHEN correction AND (actor_id IS NULL OR reason IS NULL) THEN 'correction'
                WHEN NOT (created_at >= '0001-01-01 00:00:00+00'::timestamptz AND created_at < '10000-01-01 00:00:00+00'::timestamptz) THEN 'created_at'
           END;

CREATE SEQUENCE rea.events_id_seq AS bigint CACHE 1;

CREATE TABLE rea.events (
    id              bigint NOT NULL,
    aggregate_type  text COLLATE "C" NOT NULL,
    aggregate_id    text COLLATE "C" NOT NULL,
    seq             bigint NOT NULL,
    event_type      text COLLATE "C" NOT NULL,
    event_version   int NOT NULL DEFAULT 1,
    payload         jsonb NOT NULL DEFAULT '{}',
    status          text COLLATE "C",
    catalog_version int,
    correction      boolean NOT NULL DEFAULT false,
    actor_id        text COLLATE "C",
    reason          text COLLATE "C",
    correlation_id  text COLLATE "C",
    idempotency_key text COLLATE "C",
    key_events      int,
    metadata        jsonb,
    xid             xid8 NOT NULL,
    db_user         text COLLATE "C" NOT NULL,
    created_at      timestamptz NOT NULL,
    recorded_at     timestamptz,
    context_id      bigint,     -- of rea.contexts: what was observed about the statement that a guard or a baseline recorded
    CONSTRAINT events_pkey PRIMARY KEY (id),
    CONSTRAINT events_aggregate_seq_key UNIQUE (aggregate_type, aggregate_id, seq),
    CONSTRAINT events_limits_check CHECK (rea.within_limits(aggregate_type, aggregate_id, seq, event_type, event_version, payload, correction,
        actor_id, reason, correlation_id, idempotency_key, key_events, metadata, created_at))
);
CREATE UNIQUE INDEX events_idempotency_key ON rea.events (aggregate_type, aggregate_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX events_created_at ON rea.events USING brin (created_at);
ALTER SEQUENCE rea.events_id_seq OWNED BY rea.events.id;

COMMENT ON TABLE rea.events IS 'What happened: immutable facts, ordered by seq within an aggregate, by rea.feed in the whole archive';
COMMENT ON COLUMN rea.events.id IS 'storage id, drawn by the insert trigger; never an order for followers';
COMMENT ON COLUMN rea.events.created_at IS 'for people; nothing is ordered or decided by it';

-- The article's `aggregate_id = 10086` under SET search_path = rea: inlined to an index condition.
CREATE FUNCTION rea.text_eq_bigint(a text, b bigint) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN a = b::text;
CREATE FUNCTION rea.text_ne_bigint(a text, b bigint) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN a <> b::text;
CREATE OPERATOR rea.= (FUNCTION = rea.text_eq_bigint, LEFTARG = text, RIGHTARG = bigint);
CREATE OPERATOR rea.<> (FUNCTION = rea.text_ne_bigint, LEFTARG = text, RIGHTARG = bigint);

-- Reads nothing: no OLD (NULL under TRUNCATE), no setting, no list of exceptions.
CREATE FUNCTION rea.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'rea: % of %.% refused: events are only ever inserted', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'RE007', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
              HINT = 'Append an event that puts it right.',
              DETAIL = jsonb_build_object('code', 'immutable', 'operation', TG_OP);
END
$$;

-- Row and statement triggers on a table and on each of its partitions: row triggers are cloned to partitions,
-- statement triggers are not. ENABLE ALWAYS: session_replication_role does not switch them off.
CREATE FUNCTION rea.protect(target regclass) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_temp
AS $$
DECLARE
    part regclass;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = target AND t.tgname = 'refuse_row') THEN
        EXECUTE format('CREATE TRIGGER refuse_row BEFORE UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION rea.refuse_change()', target);
    END IF;
    FOR part IN SELECT tree.relid FROM pg_partition_tree(target) tree UNION SELECT target LOOP
        IF NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = part AND t.tgname = 'refuse_statement') THEN
            EXECUTE format('CREATE TRIGGER refuse_statement BEFORE UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION rea.refuse_change()', part);
        END IF;
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER refuse_row', part);
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER refuse_statement', part);
    END LOOP;
END
$$;

SELECT rea.protect('rea.events');
