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
    last_key       jsonb,                              -- the values of the key, as texts, up to which rows were looked at; null: none
    taken          bigint NOT NULL DEFAULT 0,          -- events stored
    skipped        bigint NOT NULL DEFAULT 0,          -- rows whose aggregate had events already
    refused        bigint NOT NULL DEFAULT 0,          -- rows that cannot be taken
    done           boolean NOT NULL DEFAULT false,
    started_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE rea.baselines IS 'how far `rea baseline` has come with each table';

-- Tells rea.steps which types are guarded: from none, their rows lead every append to rea.take_step, which looks for a row of
-- the table. It is called whenever rea.guards has changed, and after a catalog was applied. An append that reads the steps
-- as they were before misses the refusal, and nothing else.
CREATE FUNCTION rea.guards_changed() RETURNS void
    LANGUAGE sql
    SET search_path = pg_temp
AS $$
    DELETE FROM rea.steps s
    WHERE s.event_type = '' AND s.from_status = 'none' AND NOT EXISTS (SELECT FROM rea.guards g WHERE g.aggregate_type = s.aggregate_type);
    UPDATE rea.steps s SET guarded = NOT s.guarded
    WHERE s.from_status = 'none' AND s.event_type <> '' AND s.guarded <> EXISTS (SELECT FROM rea.guards g WHERE g.aggregate_type = s.aggregate_type);
    INSERT INTO rea.steps (aggregate_type, event_type, from_status, ruled, guarded)
    SELECT g.aggregate_type, '', 'none', false, true FROM rea.guards g
    ON CONFLICT DO NOTHING;
$$;

-- The guarded table in which the aggregate's row is; null: no such row.
CREATE FUNCTION rea.table_of_row(aggregate_type text, aggregate_id text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_temp
AS $$
BEGIN
    RETURN (SELECT g.relation::text FROM rea.guards g
            WHERE g.aggregate_type = table_of_row.aggregate_type AND rea.guard_row(table_of_row.aggregate_type, table_of_row.aggregate_id) IS NOT NULL);
END
$$;
