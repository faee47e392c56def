-- Baselines: what was observed about the statements that recorded them, and how far each has come.
-- Locks: none beyond the file's write lock; for an index, each event is looked at.

CREATE TABLE rea_contexts (
    context_id INTEGER PRIMARY KEY,
    xid        TEXT NOT NULL,
    program    TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    table_name TEXT NOT NULL,
    operation  TEXT NOT NULL,      -- BASELINE
    rows       INTEGER NOT NULL,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
) STRICT;

-- What one statement wrote; ordinary events are not in it.
CREATE INDEX rea_events_context ON rea_events (context_id) WHERE context_id IS NOT NULL;

-- For people: every event with its position, and what was observed about the statement (the columns of PostgreSQL, too).
CREATE VIEW rea_history AS
SELECT e.id AS position, e.id, e.aggregate_type, e.aggregate_id, e.seq, e.event_type, e.event_version, e.payload, e.status, e.catalog_version,
       e.correction, e.actor_id, e.reason, e.correlation_id, e.idempotency_key, e.key_events, e.metadata, e.xid, e.db_user, e.created_at,
       e.recorded_at, e.context_id, NULL AS login, NULL AS role, c.program, NULL AS address, c.operation, c.table_name, c.rows, NULL AS statement
FROM rea_events e LEFT JOIN rea_contexts c ON c.context_id = e.context_id;

CREATE TABLE rea_baselines (
    table_name     TEXT PRIMARY KEY,
    aggregate_type TEXT NOT NULL,
    key            TEXT NOT NULL,  -- JSON: the columns that make the aggregate's id
    status         TEXT,           -- the column that is the status; null: none
    columns        TEXT,           -- JSON: those that were asked for; null: all
    condition      TEXT,           -- SQL that chooses rows; null: all
    last_key       TEXT,           -- JSON: the values of the key up to which rows were looked at; null: none
    taken          INTEGER NOT NULL DEFAULT 0,
    skipped        INTEGER NOT NULL DEFAULT 0,
    refused        INTEGER NOT NULL DEFAULT 0,
    done           INTEGER NOT NULL DEFAULT 0,
    started_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
) STRICT, WITHOUT ROWID;
