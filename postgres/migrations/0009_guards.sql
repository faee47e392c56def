-- Guards: the tables of the application that are watched, and what was observed about each statement that wrote them.
-- Locks: none on anything that exists before.

CREATE TABLE rea.contexts (
    context_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid           xid8 NOT NULL,                       -- of the transaction
    login         text COLLATE "C" NOT NULL,           -- session_user
    role          text COLLATE "C" NOT NULL,           -- the effective one, SET ROLE counted
    program       text NOT NULL,                       -- application_name; '': none
    address       text,                                -- of the client, behind a pooler the pooler's; null: a local socket
    pid           int NOT NULL,                        -- of the backend
    table_name    text NOT NULL,                       -- schema.table as it was called then
    operation     text NOT NULL,                       -- INSERT, UPDATE, DELETE, TRUNCATE, BASELINE, ALTER
    rows          bigint NOT NULL,                     -- changed, and recorded as events
    depth         int NOT NULL,                        -- 1: the statement itself; more: a trigger that it set off
    statement     text,                                -- as the client sent it; null: not kept
    statement_cut boolean NOT NULL DEFAULT false,      -- there were more than 8 KiB
    statement_sha256 text,                             -- of the whole text; null: not kept
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX contexts_xid ON rea.contexts (xid);
COMMENT ON TABLE rea.contexts IS 'what the database observed about the statements that guards and baselines recorded: one row for each statement and table';
SELECT rea.protect('rea.contexts');

CREATE TABLE rea.guards (
    guard_id       int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    relation       regclass NOT NULL UNIQUE,
    aggregate_type text COLLATE "C" NOT NULL UNIQUE,
    mode           text NOT NULL CHECK (mode IN ('capture', 'refuse')),
    key            smallint[] NOT NULL,                -- attribute numbers of the columns that make the aggregate's id
    status         smallint,                           -- of the column that is the status; null: none
    ignored        smallint[] NOT NULL DEFAULT '{}',
    redacted       smallint[] NOT NULL DEFAULT '{}',
    keeps_sql      text NOT NULL DEFAULT 'full' CHECK (keeps_sql IN ('full', 'hash', 'off')),
    needs_reason   boolean NOT NULL DEFAULT false,
    on_truncate    text NOT NULL DEFAULT 'capture' CHECK (on_truncate IN ('capture', 'refuse')),
    columns        jsonb NOT NULL,                     -- [{"number", "name", "type"}]: those that the generated code knows
    glass_broken   boolean NOT NULL DEFAULT false,     -- refuse is capture for now
    added_by       text COLLATE "C" NOT NULL DEFAULT session_user,
    added_at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE rea.guards IS 'tables of the application whose changes are captured or refused';

CREATE TABLE rea.baselines (
    relation       regclass PRIMARY KEY,
    aggregate_type text COLLATE "C" NOT NULL,
    key            smallint[] NOT NULL,                -- attribute numbers of the columns that make the aggregate's id
    status         smallint,                           -- of the column that is the status; null: none
    columns        smallint[],                         -- those that were asked for; null: all
    condition      text,                               -- SQL that chooses rows; null: all
    last_key       jsonb,                              -- the values of the key, as texts in its index's order, up to which rows were looked at; null: none
    taken          bigint NOT NULL DEFAULT 0,          -- events stored
    skipped        bigint NOT NULL DEFAULT 0,          -- rows whose aggregate had events already
    refused        bigint NOT NULL DEFAULT 0,          -- rows that cannot be taken
    done           boolean NOT NULL DEFAULT false,
    started_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE rea.baselines IS 'how far `rea baseline` has come with each table';

-- Begins the baseline of a table, or goes on with one that asked for the same.
CREATE FUNCTION rea.begin_baseline(relation regclass, aggregate_type text, key smallint[], status smallint, columns smallint[], condition text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_temp
    BEGIN ATOMIC
        INSERT INTO rea.baselines AS b (relation, aggregate_type, key, status, columns, condition)
        VALUES (begin_baseline.relation, begin_baseline.aggregate_type, begin_baseline.key, begin_baseline.status, begin_baseline.columns,
                begin_baseline.condition)
        ON CONFLICT ON CONSTRAINT baselines_pkey DO UPDATE
        SET aggregate_type = excluded.aggregate_type, key = excluded.key, status = excluded.status, columns = excluded.columns,
            condition = excluded.condition, last_key = NULL, taken = 0, skipped = 0, refused = 0, done = false,
            started_at = clock_timestamp(), updated_at = clock_timestamp()
        WHERE b.done OR (b.aggregate_type, b.key, b.status, b.columns, b.condition) IS DISTINCT FROM
              (excluded.aggregate_type, excluded.key, excluded.status, excluded.columns, excluded.condition);
    END;

-- Stores BaselineCreated for rows that the caller has read and locked, where their aggregates have no events, and moves the
-- baseline on from from_key to last_key, both in the caller's transaction. It reads no table of the application's: its owner need not
-- be able to. SECURITY DEFINER: it names context_id, which no writer may.
CREATE FUNCTION rea.take_baseline(relation regclass, aggregate_ids text[], payloads jsonb[], statuses text[], refused bigint,
    from_key jsonb, last_key jsonb, done boolean, metadata jsonb, OUT taken bigint, OUT skipped bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_temp
    SET enable_seqscan = off
    SET jit = off
AS $$
DECLARE
    context bigint := nextval('rea.contexts_context_id_seq'::regclass);
    kind text;
BEGIN
    UPDATE rea.baselines b SET last_key = take_baseline.last_key, done = take_baseline.done, updated_at = clock_timestamp()
    WHERE b.relation = take_baseline.relation AND NOT b.done AND b.last_key IS NOT DISTINCT FROM from_key
    RETURNING b.aggregate_type INTO kind;
    IF kind IS NULL THEN
        RAISE EXCEPTION 'rea: another process moves the baseline of %', relation USING ERRCODE = '40001';
    END IF;

    INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type, payload, actor_id, metadata, context_id)
    SELECT kind, r.aggregate_id, 1, 'BaselineCreated', r.payload, 'baseline', take_baseline.metadata, context
    FROM unnest(aggregate_ids, payloads, statuses) WITH ORDINALITY r(aggregate_id, payload, status, n)
    WHERE (SELECT e.seq FROM rea.events e
           WHERE e.aggregate_type = kind AND e.aggregate_id = r.aggregate_id AND e.seq = 1) IS NULL   -- no join: one look by index a row
    ORDER BY r.n;
    GET DIAGNOSTICS taken = ROW_COUNT;
    skipped := coalesce(cardinality(aggregate_ids), 0) - taken;
    UPDATE rea.baselines b SET taken = b.taken + take_baseline.taken, skipped = b.skipped + take_baseline.skipped,
                               refused = b.refused + coalesce(take_baseline.refused, 0)
    WHERE b.relation = take_baseline.relation;
    IF taken > 0 THEN
        INSERT INTO rea.contexts (context_id, xid, login, role, program, address, pid, table_name, operation, rows, depth)
        OVERRIDING SYSTEM VALUE
        SELECT context, pg_current_xact_id(), session_user, CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END,
               current_setting('application_name'), host(inet_client_addr()), pg_backend_pid(),
               (SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation),
               'BASELINE', taken, 1;
    END IF;
END
$$;
