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
    status_field    TEXT,                           -- of the type's row: the field of the state that is the status
    deletes         INTEGER NOT NULL DEFAULT 0,     -- after the event the object's row may go from a guarded table
    PRIMARY KEY (aggregate_type, event_type, from_status)
) STRICT, WITHOUT ROWID;

-- What the statuses of earlier catalogs are called now, through every `renamed` since; 0: of the time before the first.
CREATE TABLE rea_renames (
    aggregate_type  TEXT NOT NULL,
    catalog_version INTEGER NOT NULL,
    status          TEXT NOT NULL,
    now             TEXT NOT NULL,
    PRIMARY KEY (aggregate_type, catalog_version, status)
) STRICT, WITHOUT ROWID;

-- What an event of REA's own says that could be a status: a short text of the row, by the field's name.
CREATE VIEW rea_said AS
SELECT e.id, j.key AS field, j.value AS status
FROM rea_events e, json_each(e.payload, CASE e.event_type WHEN 'BaselineCreated' THEN '$.row' WHEN 'Reverted' THEN '$.set' ELSE '$.new' END) j
WHERE e.event_type IN ('BaselineCreated', 'DirectInsert', 'DirectUpdate', 'Reverted')
  AND j.type = 'text' AND length(CAST(j.value AS BLOB)) BETWEEN 1 AND 200 AND j.value NOT IN ('none', 'any')
UNION ALL
SELECT e.id, j.key, j.value   -- the whole row, where nothing was known of it
FROM rea_events e, json_each(e.payload, '$.old') j
WHERE e.event_type = 'DirectUpdate' AND e.seq = 1
  AND j.type = 'text' AND length(CAST(j.value AS BLOB)) BETWEEN 1 AND 200 AND j.value NOT IN ('none', 'any')
  AND NOT EXISTS (SELECT 1 FROM json_each(e.payload, '$.new') n WHERE n.key = j.key);

-- The events that tell the status of their aggregate, as it is called now: a stored one, that to which an event leads, that
-- which a row had; null: a row had none, or went, and nothing before it tells anything.
CREATE VIEW rea_telling AS
SELECT t.aggregate_type, t.aggregate_id, t.seq,
       coalesce((SELECT r.now FROM rea_renames r
                 WHERE r.aggregate_type = t.aggregate_type AND r.catalog_version = coalesce(t.catalog_version, 0) AND r.status = t.was),
                t.was, t.to_status) AS status
FROM (SELECT e.aggregate_type, e.aggregate_id, e.seq, e.event_type, e.catalog_version,
             coalesce(e.status, (SELECT s.status FROM rea_said s WHERE s.id = e.id AND s.field = kind.status_field)) AS was,
             (SELECT s.to_status FROM rea_steps s WHERE s.aggregate_type = e.aggregate_type AND s.event_type = e.event_type LIMIT 1) AS to_status
      FROM rea_events e JOIN rea_steps kind ON kind.aggregate_type = e.aggregate_type AND kind.event_type = '' AND kind.from_status = '') t
WHERE t.was IS NOT NULL OR t.to_status IS NOT NULL OR t.event_type IN ('BaselineCreated', 'DirectInsert', 'DirectDelete');

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
    SELECT RAISE(ABORT, 'RE005 limit: this event_type is a name of REA''s own events: choose another')
    WHERE NEW.recorded_at IS NULL AND NEW.context_id IS NULL AND NEW.event_type IN ('BaselineCreated', 'DirectInsert', 'DirectUpdate', 'DirectDelete', 'Reverted');
    SELECT RAISE(ABORT, 'rea: context_id of an event is given by the archive: leave it out of the INSERT')
    WHERE NEW.context_id IS NOT NULL AND NEW.event_type NOT IN ('BaselineCreated', 'DirectInsert', 'DirectUpdate', 'DirectDelete', 'Reverted');
    SELECT RAISE(ABORT, 'RE002 illegal_step: this type has no state machine: leave status and catalog_version out of the INSERT')
    WHERE (NEW.status IS NOT NULL AND NEW.event_type NOT IN ('BaselineCreated', 'DirectInsert', 'DirectUpdate', 'DirectDelete', 'Reverted') OR NEW.catalog_version IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM rea_steps
                      WHERE aggregate_type = NEW.aggregate_type AND event_type = '' AND from_status = '' AND catalog_version IS NOT NULL);
    SELECT RAISE(ABORT, 'RE006 unknown_type: the catalog does not know this event_type, and the type is strict')
    WHERE EXISTS (SELECT 1 FROM rea_steps WHERE aggregate_type = NEW.aggregate_type AND event_type = '' AND from_status = '' AND strict = 1)
      AND NEW.event_type NOT IN ('BaselineCreated', 'DirectInsert', 'DirectUpdate', 'DirectDelete', 'Reverted')
      AND NOT EXISTS (SELECT 1 FROM rea_steps WHERE aggregate_type = NEW.aggregate_type AND event_type = NEW.event_type);
    SELECT RAISE(ABORT, 'RE002 illegal_step: this event_type is an old name or retired: it is not appended any more')
    WHERE EXISTS (SELECT 1 FROM rea_steps WHERE aggregate_type = NEW.aggregate_type AND event_type = NEW.event_type AND from_status = '');
    -- an event of REA's own is a fact: the status is what its row says
    SELECT CASE
        WHEN NEW.correction = 0
             AND EXISTS (SELECT 1 FROM rea_steps WHERE aggregate_type = NEW.aggregate_type AND event_type = NEW.event_type)
             AND NOT EXISTS (SELECT 1 FROM rea_steps
                             WHERE aggregate_type = NEW.aggregate_type AND event_type = NEW.event_type
                               AND from_status IN (coalesce(present.status, iif(NEW.seq > 1, 'any', 'none')), iif(NEW.seq > 1, 'any', 'none')))
        THEN RAISE(ABORT, 'RE002 illegal_step: the state machine does not allow this event in the present status of the aggregate')
        WHEN NEW.event_type NOT IN ('BaselineCreated', 'DirectInsert', 'DirectUpdate', 'DirectDelete', 'Reverted') AND NEW.status IS NOT coalesce((SELECT to_status FROM rea_steps
                                         WHERE aggregate_type = NEW.aggregate_type AND event_type = NEW.event_type LIMIT 1), present.status)
        THEN RAISE(ABORT, 'RE002 illegal_step: this is not the status of the aggregate after the event')
        WHEN NEW.catalog_version IS NOT present.number
        THEN RAISE(ABORT, 'RE002 illegal_step: catalog_version is the number of the newest catalog')
        END
    FROM (SELECT kind.catalog_version AS number,
                 (SELECT e.status
                  FROM rea_telling e
                  WHERE e.aggregate_type = NEW.aggregate_type AND e.aggregate_id = NEW.aggregate_id AND e.seq < NEW.seq
                    AND NOT EXISTS (SELECT 1 FROM rea_events p   -- there was none to be told: not searched for again
                                    WHERE p.aggregate_type = NEW.aggregate_type AND p.aggregate_id = NEW.aggregate_id
                                      AND p.seq = NEW.seq - 1 AND p.status IS NULL AND p.catalog_version = kind.catalog_version)
                  ORDER BY e.seq DESC LIMIT 1) AS status
          FROM rea_steps kind
          WHERE kind.aggregate_type = NEW.aggregate_type AND kind.event_type = '' AND kind.from_status = ''
            AND kind.catalog_version IS NOT NULL) present;
END;
