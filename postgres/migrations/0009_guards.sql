-- Guards: the tables of the application that are watched, and what was observed about each statement that wrote them.
-- Locks: SHARE on rea.events, for an index of events that have a context: one look at each event.

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
-- What one statement wrote; ordinary events are not in it.
CREATE INDEX events_context ON rea.events (context_id, id) WHERE context_id IS NOT NULL;

-- For people: every event with its position (null: not numbered yet), and what was observed about the statement.
CREATE VIEW rea.history AS
    SELECT f.position, e.*, c.login, c.role, c.program, c.address, c.operation, c.table_name, c.rows, c.statement
    FROM rea.events e LEFT JOIN rea.feed f ON f.event_id = e.id LEFT JOIN rea.contexts c ON c.context_id = e.context_id;
COMMENT ON VIEW rea.history IS 'events with their positions (null: committed since the last pass) and contexts';

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
