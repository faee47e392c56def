-- The archive: one table of events, its limits, and the triggers that refuse every change.
-- Locks: none on anything that exists before. Needs SQLite 3.37 or newer, also in programs that only read.

CREATE TABLE rea_events (
    id              INTEGER PRIMARY KEY,
    aggregate_type  TEXT NOT NULL,
    aggregate_id    TEXT NOT NULL,
    seq             INTEGER NOT NULL,
    event_type      TEXT NOT NULL,
    event_version   INTEGER NOT NULL DEFAULT 1,
    payload         TEXT NOT NULL DEFAULT '{}',
    status          TEXT,
    catalog_version INTEGER,
    correction      INTEGER NOT NULL DEFAULT 0,
    actor_id        TEXT,
    reason          TEXT,
    correlation_id  TEXT,
    idempotency_key TEXT,
    key_events      INTEGER,
    metadata        TEXT,
    xid             TEXT,
    db_user         TEXT,
    created_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    recorded_at     TEXT,
    context_id      INTEGER,
    CONSTRAINT events_aggregate_seq_key UNIQUE (aggregate_type, aggregate_id, seq),
    -- Names: 1 to 200 bytes, no space at either end, no control characters (U+0000, which ends a text for GLOB, by itself).
    CONSTRAINT events_aggregate_type_check CHECK (
        length(CAST(aggregate_type AS BLOB)) BETWEEN 1 AND 200 AND aggregate_type = trim(aggregate_type) AND instr(aggregate_type, char(0)) = 0
        AND aggregate_type NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'),
    CONSTRAINT events_aggregate_id_check CHECK (
        length(CAST(aggregate_id AS BLOB)) BETWEEN 1 AND 200 AND aggregate_id = trim(aggregate_id) AND instr(aggregate_id, char(0)) = 0
        AND aggregate_id NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'),
    CONSTRAINT events_event_type_check CHECK (
        length(CAST(event_type AS BLOB)) BETWEEN 1 AND 200 AND event_type = trim(event_type) AND instr(event_type, char(0)) = 0
        AND event_type NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'),
    CONSTRAINT events_actor_id_check CHECK (
        actor_id IS NULL OR length(CAST(actor_id AS BLOB)) BETWEEN 1 AND 200 AND actor_id = trim(actor_id) AND instr(actor_id, char(0)) = 0
        AND actor_id NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'),
    CONSTRAINT events_correlation_id_check CHECK (
        correlation_id IS NULL OR length(CAST(correlation_id AS BLOB)) BETWEEN 1 AND 200 AND correlation_id = trim(correlation_id) AND instr(correlation_id, char(0)) = 0
        AND correlation_id NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'),
    CONSTRAINT events_idempotency_key_check CHECK (
        idempotency_key IS NULL OR length(CAST(idempotency_key AS BLOB)) BETWEEN 1 AND 200 AND idempotency_key = trim(idempotency_key) AND instr(idempotency_key, char(0)) = 0
        AND idempotency_key NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'),
    CONSTRAINT events_reason_check CHECK (reason IS NULL OR length(CAST(reason AS BLOB)) BETWEEN 1 AND 4096 AND instr(reason, char(0)) = 0),
    CONSTRAINT events_seq_check CHECK (seq >= 1),
    CONSTRAINT events_event_version_check CHECK (event_version BETWEEN 1 AND 2147483647),
    -- JSON on one line, as export writes it, and nothing that no import takes: no control characters (json_valid reads up to
    -- U+0000), and, once doubled backslashes are gone, no escapes of U+0000 and of surrogates: U+1F600 stands for itself.
    CONSTRAINT events_payload_check CHECK (
        length(CAST(payload AS BLOB)) <= 16777216 AND CASE WHEN json_valid(payload) THEN json_type(payload) = 'object' ELSE 0 END
        AND instr(payload, char(0)) = 0 AND payload NOT GLOB '*[' || char(1) || '-' || char(31) || ']*'
        AND replace(payload, '\\', '') NOT GLOB '*\u0000*' AND replace(payload, '\\', '') NOT GLOB '*\u[Dd][89A-Fa-f]*'),
    CONSTRAINT events_metadata_check CHECK (metadata IS NULL OR
        length(CAST(metadata AS BLOB)) <= 65536 AND CASE WHEN json_valid(metadata) THEN json_type(metadata) = 'object' ELSE 0 END
        AND instr(metadata, char(0)) = 0 AND metadata NOT GLOB '*[' || char(1) || '-' || char(31) || ']*'
        AND replace(metadata, '\\', '') NOT GLOB '*\u0000*' AND replace(metadata, '\\', '') NOT GLOB '*\u[Dd][89A-Fa-f]*'),
    -- Given together: a BEFORE trigger cannot fill in the 1 that PostgreSQL's fills in.
    CONSTRAINT events_key_events_check CHECK ((idempotency_key IS NULL) = (key_events IS NULL) AND (key_events IS NULL OR key_events BETWEEN 1 AND 10000)),
    CONSTRAINT events_correction_check CHECK (correction = 0 OR correction = 1 AND actor_id IS NOT NULL AND reason IS NOT NULL),
    CONSTRAINT events_db_user_check CHECK (db_user IS NULL),
    -- With a modifier, strftime moves what is no date (February 30, hour 24) in every SQLite; without one, old ones give it back.
    CONSTRAINT events_created_at_check CHECK (
        created_at GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z'
        AND created_at >= '0001' AND strftime('%Y-%m-%dT%H:%M:%S', substr(created_at, 1, 19), '+0 days') IS substr(created_at, 1, 19)),
    CONSTRAINT events_recorded_at_check CHECK (recorded_at IS NULL OR
        recorded_at GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z'
        AND recorded_at >= '0001' AND substr(recorded_at, 1, 19) IS strftime('%Y-%m-%dT%H:%M:%S', substr(recorded_at, 1, 19), '+0 days'))
) STRICT;

CREATE UNIQUE INDEX rea_events_idempotency_key ON rea_events (aggregate_type, aggregate_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- The id is the position: dense, in the order of insertion.
CREATE TRIGGER rea_events_id AFTER INSERT ON rea_events
WHEN NEW.id <> coalesce((SELECT id FROM rea_events WHERE id <> NEW.id ORDER BY id DESC LIMIT 1), 0) + 1
BEGIN
    SELECT RAISE(ABORT, 'rea: the id of an event is the highest one + 1: leave id out of the INSERT');
END;

CREATE TRIGGER rea_events_update BEFORE UPDATE ON rea_events
BEGIN
    SELECT RAISE(ABORT, 'RE007 immutable: UPDATE refused: events are only ever inserted');
END;

CREATE TRIGGER rea_events_delete BEFORE DELETE ON rea_events
BEGIN
    SELECT RAISE(ABORT, 'RE007 immutable: DELETE refused: events are only ever inserted');
END;
