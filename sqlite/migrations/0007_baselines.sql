-- Baselines: what was observed about the statements that recorded them, and how far each has come.
-- Locks: none beyond the file's write lock; no row is read.

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
