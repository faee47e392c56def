-- What every writer is held to: the state machine of the applied catalog, and the trigger that checks seq, key and step.
-- Locks: none on anything that exists before.

CREATE TABLE rea_catalogs (
    number     INTEGER PRIMARY KEY CHECK (number >= 1),
    text       TEXT NOT NULL,                    -- the declarations, as JSON
    renamed    TEXT NOT NULL DEFAULT '{}',       -- {"order": {"paid": "settled"}}: old statuses to new ones
    applied_by TEXT,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
) STRICT;

CREATE TRIGGER rea_catalogs_update BEFORE UPDATE ON rea_catalogs
BEGIN
    SELECT RAISE(ABORT, 'RE007 immutable: UPDATE refused: catalogs are only ever inserted');
END;

CREATE TRIGGER rea_catalogs_delete BEFORE DELETE ON rea_catalogs
BEGIN
    SELECT RAISE(ABORT, 'RE007 immutable: DELETE refused: catalogs are only ever inserted');
END;

CREATE TRIGGER rea_catalogs_insert BEFORE INSERT ON rea_catalogs
BEGIN
    SELECT RAISE(ABORT, 'RE007 immutable: a catalog with this number exists')
    WHERE EXISTS (SELECT 1 FROM rea_catalogs WHERE number = NEW.number);
END;

CREATE TABLE rea_steps (
    aggregate_type  TEXT NOT NULL,
    event_type      TEXT NOT NULL,                  -- '': the row of the aggregate type itself
    from_status     TEXT NOT NULL,                  -- a status, none, any; '': never (an old name, a retired event)
    to_status       TEXT,                           -- null: the status stays
    event_version   INTEGER,                        -- the newest
    ruled           INTEGER NOT NULL DEFAULT 1,     -- 0: legal because nothing is said
    alias_of        TEXT,
    strict          INTEGER NOT NULL DEFAULT 0,     -- of the type's row
    ordinal         INTEGER NOT NULL DEFAULT 0,     -- order of the declaration
    catalog_version INTEGER,                        -- null: the type has no machine
    PRIMARY KEY (aggregate_type, event_type, from_status)
) STRICT, WITHOUT ROWID;

-- What the statuses of earlier catalogs are called now, through every `renamed` since.
CREATE TABLE rea_renames (
    aggregate_type  TEXT NOT NULL,
    catalog_version INTEGER NOT NULL,
    status          TEXT NOT NULL,
    now             TEXT NOT NULL,
    PRIMARY KEY (aggregate_type, catalog_version, status)
) STRICT, WITHOUT ROWID;

-- REPLACE deletes the row in its way without firing a DELETE trigger (unless recursive_triggers is on), and no
-- conflict clause overrides RAISE(ABORT) of a BEFORE trigger: so whatever unique key a new event could hit is
-- looked up here first. An id that is not given is -1 here, which no event has.
CREATE TRIGGER rea_events_insert BEFORE INSERT ON rea_events
BEGIN
    SELECT RAISE(ABORT, 'RE007 immutable: an event with this id exists: leave id out of the INSERT')
    WHERE EXISTS (SELECT 1 FROM rea_events WHERE id = NEW.id);
    SELECT RAISE(ABORT, 'RE001 conflict: an event with this seq exists: name the last seq + 1')
    WHERE EXISTS (SELECT 1 FROM rea_events
                  WHERE aggregate_type = NEW.aggregate_type AND aggregate_id = NEW.aggregate_id AND seq = NEW.seq);
    SELECT RAISE(ABORT, 'RE008 hole: this seq would leave a hole: name the last seq + 1')
    WHERE NEW.seq > 1
      AND NOT EXISTS (SELECT 1 FROM rea_events
                      WHERE aggregate_type = NEW.aggregate_type AND aggregate_id = NEW.aggregate_id AND seq = NEW.seq - 1);
    SELECT RAISE(ABORT, 'RE003 key_reused: an event with this idempotency_key exists in this aggregate')
    WHERE EXISTS (SELECT 1 FROM rea_events
                  WHERE aggregate_type = NEW.aggregate_type AND aggregate_id = NEW.aggregate_id AND idempotency_key = NEW.idempotency_key);
    SELECT RAISE(ABORT, 'RE002 illegal_step: this type has no state machine: leave status and catalog_version out of the INSERT')
    WHERE (NEW.status IS NOT NULL OR NEW.catalog_version IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM rea_steps
                      WHERE aggregate_type = NEW.aggregate_type AND event_type = '' AND from_status = '' AND catalog_version IS NOT NULL);
    SELECT RAISE(ABORT, 'RE006 unknown_type: the catalog does not know this event_type, and the type is strict')
    WHERE EXISTS (SELECT 1 FROM rea_steps WHERE aggregate_type = NEW.aggregate_type AND event_type = '' AND from_status = '' AND strict = 1)
      AND NOT EXISTS (SELECT 1 FROM rea_steps WHERE aggregate_type = NEW.aggregate_type AND event_type = NEW.event_type);
    SELECT RAISE(ABORT, 'RE002 illegal_step: this event_type is an old name or retired: it is not appended any more')
    WHERE EXISTS (SELECT 1 FROM rea_steps WHERE aggregate_type = NEW.aggregate_type AND event_type = NEW.event_type AND from_status = '');
    -- present.status: the stored one, as it is called now, or that to which the last event with a to_status leads
    SELECT CASE
        WHEN NEW.correction = 0
             AND EXISTS (SELECT 1 FROM rea_steps WHERE aggregate_type = NEW.aggregate_type AND event_type = NEW.event_type)
             AND NOT EXISTS (SELECT 1 FROM rea_steps
                             WHERE aggregate_type = NEW.aggregate_type AND event_type = NEW.event_type
                               AND from_status IN (coalesce(present.status, iif(NEW.seq > 1, 'any', 'none')), iif(NEW.seq > 1, 'any', 'none')))
        THEN RAISE(ABORT, 'RE002 illegal_step: the state machine does not allow this event in the present status of the aggregate')
        WHEN NEW.status IS NOT coalesce((SELECT to_status FROM rea_steps
                                         WHERE aggregate_type = NEW.aggregate_type AND event_type = NEW.event_type LIMIT 1), present.status)
        THEN RAISE(ABORT, 'RE002 illegal_step: this is not the status of the aggregate after the event')
        WHEN NEW.catalog_version IS NOT present.number
        THEN RAISE(ABORT, 'RE002 illegal_step: catalog_version is the number of the newest catalog')
        END
    FROM (SELECT kind.catalog_version AS number,
                 (SELECT CASE WHEN e.status IS NULL
                              THEN (SELECT s.to_status FROM rea_steps s WHERE s.aggregate_type = e.aggregate_type AND s.event_type = e.event_type LIMIT 1)
                              ELSE coalesce((SELECT r.now FROM rea_renames r
                                             WHERE r.aggregate_type = e.aggregate_type AND r.catalog_version = e.catalog_version AND r.status = e.status), e.status) END
                  FROM rea_events e
                  WHERE e.aggregate_type = NEW.aggregate_type AND e.aggregate_id = NEW.aggregate_id AND e.seq < NEW.seq
                    AND (e.status IS NOT NULL
                         OR EXISTS (SELECT 1 FROM rea_steps s
                                    WHERE s.aggregate_type = e.aggregate_type AND s.event_type = e.event_type AND s.to_status IS NOT NULL))
                    AND NOT EXISTS (SELECT 1 FROM rea_events p   -- there was none to be told: not searched for again
                                    WHERE p.aggregate_type = NEW.aggregate_type AND p.aggregate_id = NEW.aggregate_id
                                      AND p.seq = NEW.seq - 1 AND p.status IS NULL AND p.catalog_version = kind.catalog_version)
                  ORDER BY e.seq DESC LIMIT 1) AS status
          FROM rea_steps kind
          WHERE kind.aggregate_type = NEW.aggregate_type AND kind.event_type = '' AND kind.from_status = ''
            AND kind.catalog_version IS NOT NULL) present;
END;
