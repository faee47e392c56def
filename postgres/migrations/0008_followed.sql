-- Followed projections: how far each has come, what keeps it from going on, and how far a rebuild beside it has come.
-- Locks: ACCESS EXCLUSIVE on rea.projections, which has a row for each projection, and which appends do not read.

ALTER TABLE rea.projections
    ADD COLUMN kind            text NOT NULL DEFAULT 'state' CHECK (kind IN ('state', 'statistics', 'go')),
    ADD COLUMN position        bigint NOT NULL DEFAULT 0 CHECK (position >= 0), -- of the last event that is in the table
    ADD COLUMN event_id        bigint NOT NULL DEFAULT 0,                       -- of the event at that position; 0: none
    ADD COLUMN updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),  -- when position last moved
    ADD COLUMN runner          text COLLATE "C",                                -- who moved it: host and process
    ADD COLUMN state           text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'paused', 'stalled')),
    ADD COLUMN attempts        int NOT NULL DEFAULT 0,                          -- of the event after position, in vain
    ADD COLUMN failed_position bigint,                                          -- of that event
    ADD COLUMN error           text,
    ADD COLUMN failing_since   timestamptz,
    ADD COLUMN next_try_at     timestamptz,
    ADD COLUMN skipped         jsonb NOT NULL DEFAULT '[]';                     -- [{"position", "error", "by", "at"}]: events left out

-- One row for each rebuild that has not come to its end. The table that it fills is NAME.FINGERPRINT, its beginning.
CREATE TABLE rea.rebuilds (
    name        text COLLATE "C" PRIMARY KEY,
    definition  text NOT NULL,
    fingerprint text NOT NULL,
    version     int NOT NULL,
    position    bigint NOT NULL DEFAULT 0,
    event_id    bigint NOT NULL DEFAULT 0,
    failed_position bigint,                       -- of the event that it fails on
    error       text,
    skipped     jsonb NOT NULL DEFAULT '[]',      -- events that it leaves out, and the projection with its end
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE rea.rebuilds IS 'rebuilds of projections that are not finished: `rea projection rebuild NAME` goes on with them';

CREATE VIEW rea.projection_offsets AS
SELECT p.name AS projection_name, p.position AS last_processed_seq, p.updated_at
FROM rea.projections p
WHERE p.mode = 'followed';
COMMENT ON VIEW rea.projection_offsets IS 'the position up to which each followed projection has come';
