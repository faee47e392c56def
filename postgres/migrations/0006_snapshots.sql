-- Snapshots: throw-away copies of states, one an aggregate. Nothing is lost with them.
-- Locks: none on a table that exists before.

CREATE TABLE rea.snapshots (
    aggregate_type text COLLATE "C" NOT NULL,
    aggregate_id   text COLLATE "C" NOT NULL,
    seq            bigint NOT NULL,              -- of the last event that is folded in,
    event_id       bigint NOT NULL,              -- and its id: a snapshot of another event is ignored
    fingerprint    text COLLATE "C" NOT NULL,    -- of the fold: a snapshot of another fold is ignored
    digest         text COLLATE "C" NOT NULL,    -- sha256 of all this and the state: a damaged snapshot is ignored
    state          text COLLATE "C" NOT NULL,    -- JSON, as text: what is no JSON does no harm
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (aggregate_type, aggregate_id)
);
COMMENT ON TABLE rea.snapshots IS 'copies of states that save reading old events; they may be deleted at any time';
