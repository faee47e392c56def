-- Imports: how far each file has come, moved in the transaction that stores its lines.
-- Locks: none on anything that exists before.

CREATE TABLE rea_imports (
    source      TEXT NOT NULL PRIMARY KEY,   -- sha256 of the file's content
    name        TEXT NOT NULL,               -- of the file, for people
    lines       INTEGER NOT NULL,            -- done with, from the first
    stored      INTEGER NOT NULL,
    duplicates  INTEGER NOT NULL,
    rejected    INTEGER NOT NULL,
    done        INTEGER NOT NULL CHECK (done IN (0, 1)),
    started_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
) STRICT;
