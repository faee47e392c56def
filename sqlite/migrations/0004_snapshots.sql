-- Snapshots: throw-away copies of states, one an aggregate. Nothing is lost with them.
-- Locks: none beyond the file's write lock; no row is read.

CREATE TABLE rea_snapshots (
    aggregate_type TEXT NOT NULL,
    aggregate_id   TEXT NOT NULL,
    seq            INTEGER NOT NULL,   -- of the last event that is folded in,
    event_id       INTEGER NOT NULL,   -- and its id: a snapshot of another event is ignored
    fingerprint    TEXT NOT NULL,      -- of the fold: a snapshot of another fold is ignored
    digest         TEXT NOT NULL,      -- sha256 of all this and the state: a damaged snapshot is ignored
    state          TEXT NOT NULL,      -- JSON, as text: what is no JSON does no harm
    created_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    PRIMARY KEY (aggregate_type, aggregate_id)
) STRICT;
