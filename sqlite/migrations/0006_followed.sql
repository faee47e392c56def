-- Followed projections: how far each has come, what keeps it from going on, and how far a rebuild beside it has come.
-- Locks: none beyond the file's write lock; no row is read.

ALTER TABLE rea_projections ADD COLUMN kind TEXT NOT NULL DEFAULT 'state' CHECK (kind IN ('state', 'statistics', 'go'));
ALTER TABLE rea_projections ADD COLUMN position INTEGER NOT NULL DEFAULT 0 CHECK (position >= 0); -- of the last event that is in the table
ALTER TABLE rea_projections ADD COLUMN event_id INTEGER NOT NULL DEFAULT 0;                       -- of the event at that position; 0: none
ALTER TABLE rea_projections ADD COLUMN updated_at TEXT;                                           -- when position last moved
ALTER TABLE rea_projections ADD COLUMN runner TEXT;                                               -- who moved it: host and process
ALTER TABLE rea_projections ADD COLUMN state TEXT NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'paused', 'stalled'));
ALTER TABLE rea_projections ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;                       -- of the event after position, in vain
ALTER TABLE rea_projections ADD COLUMN failed_position INTEGER;                                   -- of that event
ALTER TABLE rea_projections ADD COLUMN error TEXT;
ALTER TABLE rea_projections ADD COLUMN failing_since TEXT;
ALTER TABLE rea_projections ADD COLUMN next_try_at TEXT;
ALTER TABLE rea_projections ADD COLUMN skipped TEXT NOT NULL DEFAULT '[]';                        -- [{"position", "error", "by", "at"}]: events left out

-- One row for each rebuild that has not come to its end. The table that it fills is rea_views_NAME.FINGERPRINT, its beginning.
CREATE TABLE rea_rebuilds (
    name        TEXT PRIMARY KEY,
    definition  TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    version     INTEGER NOT NULL,
    position    INTEGER NOT NULL DEFAULT 0,
    event_id    INTEGER NOT NULL DEFAULT 0,
    failed_position INTEGER,                      -- of the event that it fails on
    error       TEXT,
    skipped     TEXT NOT NULL DEFAULT '[]',       -- events that it leaves out, and the projection with its end
    started_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
) STRICT, WITHOUT ROWID;

CREATE VIEW rea_projection_offsets AS
SELECT p.name AS projection_name, p.position AS last_processed_seq, coalesce(p.updated_at, p.made_at) AS updated_at
FROM rea_projections p
WHERE p.mode = 'followed';
