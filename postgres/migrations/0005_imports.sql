-- Imports: how far each file has come, moved in the transaction that stores its lines.
-- Locks: none on anything that exists before.

CREATE TABLE rea.imports (
    source      text COLLATE "C" PRIMARY KEY,   -- sha256 of the file's content
    name        text NOT NULL,                  -- of the file, for people
    lines       bigint NOT NULL,                -- done with, from the first
    stored      bigint NOT NULL,
    duplicates  bigint NOT NULL,
    rejected    bigint NOT NULL,
    done        boolean NOT NULL,
    imported_by text COLLATE "C" NOT NULL DEFAULT session_user,
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
