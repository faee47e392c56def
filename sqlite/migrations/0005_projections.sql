-- Projections: the table that lists them. Their own tables are rea_views_NAME, made when a catalog is applied.
-- Locks: none beyond the file's write lock; no row is read.

CREATE TABLE rea_projections (
    name           TEXT PRIMARY KEY,
    mode           TEXT NOT NULL CHECK (mode IN ('inline', 'followed')),
    aggregate_type TEXT NOT NULL,
    version        INTEGER NOT NULL CHECK (version >= 1),
    definition     TEXT NOT NULL,              -- JSON: which event does what to which column
    fingerprint    TEXT NOT NULL,              -- of the definition by which the table was filled
    made_by        TEXT,
    made_at        TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
) STRICT, WITHOUT ROWID;
