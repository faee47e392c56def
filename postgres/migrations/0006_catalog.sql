-- The state machine: catalogs that were applied, the steps that they allow, and the trigger and functions that keep to them.
-- Locks: none on a table that exists before. Functions are replaced: a call that runs goes on with the old one.

CREATE TABLE rea.catalogs (
    number     int PRIMARY KEY CHECK (number >= 1),
    text       text NOT NULL,                     -- the declarations, as JSON
    renamed    jsonb NOT NULL DEFAULT '{}',       -- {"order": {"paid": "settled"}}: old statuses to new ones
    applied_by text COLLATE "C" NOT NULL DEFAULT session_user,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
SELECT rea.protect('rea.catalogs');

-- Every append reads this table, and applying a catalog takes it ACCESS EXCLUSIVE and fills it anew by TRUNCATE: so a
-- transaction keeps one machine to its end. The row with three empty names is always there: who does not see it has an
-- older snapshot than the catalog.
CREATE TABLE rea.steps (
    aggregate_type  text COLLATE "C" NOT NULL,
    event_type      text COLLATE "C" NOT NULL,       -- '': the row of the aggregate type itself
    from_status     text COLLATE "C" NOT NULL,       -- a status, none, any; '': never (an old name, a retired event)
    to_status       text COLLATE "C",                -- null: the status stays
    event_version   int,                             -- the newest
    ruled           boolean NOT NULL DEFAULT true,   -- false: legal because nothing is said
    alias_of        text COLLATE "C",
    strict          boolean NOT NULL DEFAULT false,  -- of the type's row
    ordinal         int NOT NULL DEFAULT 0,          -- order of the declaration
    catalog_version int,                             -- null: the type has no machine
    PRIMARY KEY (aggregate_type, event_type, from_status)
);
INSERT INTO rea.steps (aggregate_type, event_type, from_status) VALUES ('', '', '');
COMMENT ON TABLE rea.steps IS 'the state machine: an event of a type is legal from these statuses, and leads to that one';

-- A status as the present catalog calls it, where `version` gave it.
CREATE FUNCTION rea.carried_status(aggregate_type text, status text, version int) RETURNS text
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    names jsonb;
BEGIN
    FOR names IN SELECT c.renamed -> carried_status.aggregate_type FROM rea.catalogs c
                 WHERE c.number > version AND c.renamed ? carried_status.aggregate_type ORDER BY c.number LOOP
        status := coalesce(names ->> status, status);
    END LOOP;
    RETURN status;
END
$$;

-- The status after the event with seq `last`: the stored one, or that to which the last event with a `to` leads.
CREATE FUNCTION rea.present_status(aggregate_type text, aggregate_id text, last bigint) RETURNS text
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
    SET enable_bitmapscan = off
AS $$
DECLARE
    status text;
    version int;
    target text;
BEGIN
    SELECT e.status, e.catalog_version, s.to_status INTO status, version, target
    FROM rea.events e
    LEFT JOIN LATERAL (SELECT x.to_status FROM rea.steps x
                       WHERE x.aggregate_type = e.aggregate_type AND x.event_type = e.event_type LIMIT 1) s ON true
    WHERE e.aggregate_type = present_status.aggregate_type AND e.aggregate_id = present_status.aggregate_id AND e.seq <= last
      AND (e.status IS NOT NULL OR s.to_status IS NOT NULL)
    ORDER BY e.seq DESC LIMIT 1;
    IF status IS NULL THEN
        RETURN target;
    END IF;
    RETURN rea.carried_status(aggregate_type, status, version);
END
$$;

-- One step of a type that the catalog declares, in all its cases: what the aggregate's status is after the event, or why
-- it is refused. The event would come after seq `last`, which has the status `stored`, given by the catalog `version`.
CREATE FUNCTION rea.take_step(aggregate_type text, aggregate_id text, event_type text, last bigint, stored text, version int,
    correction boolean, OUT status text, OUT catalog_version int, OUT event_version int, OUT refused text, OUT detail jsonb)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
    SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    kind rea.steps;
    step rea.steps;
    away text := CASE WHEN last > 0 THEN 'any' ELSE 'none' END;
    legal text[];
BEGIN
    SELECT s.* INTO kind FROM rea.steps s
    WHERE s.aggregate_type = take_step.aggregate_type AND s.event_type = '' AND s.from_status = '';
    catalog_version := kind.catalog_version;
    IF last > 0 AND kind.catalog_version IS NOT NULL THEN
        status := CASE WHEN version = kind.catalog_version THEN stored
                       ELSE rea.present_status(aggregate_type, aggregate_id, last) END;
    END IF;

    SELECT s.* INTO step FROM rea.steps s
    WHERE s.aggregate_type = take_step.aggregate_type AND s.event_type = take_step.event_type
    ORDER BY s.from_status IN (coalesce(status, away), away) DESC, s.from_status DESC LIMIT 1;
    event_version := step.event_version;
    IF step.event_type IS NULL THEN
        IF kind."strict" THEN   -- a word of plpgsql
            refused := 'unknown_type';
            detail := rea.refusal(refused, format('the catalog does not know %s: declare it, and apply the catalog', left(event_type, 60)), aggregate_type, aggregate_id,
                                  jsonb_build_object('event_type', event_type));
        END IF;
    ELSIF step.from_status IN (coalesce(status, away), away) OR (correction AND step.from_status <> '') THEN
        status := coalesce(step.to_status, status);
    ELSE
        legal := ARRAY(SELECT s.event_type FROM rea.steps s
                       WHERE s.aggregate_type = take_step.aggregate_type AND s.ruled AND s.event_type <> ''
                         AND s.from_status IN (coalesce(status, away), away)
                       GROUP BY s.event_type, s.ordinal ORDER BY s.ordinal);
        refused := 'illegal_step';
        detail := rea.refusal(refused,
            CASE WHEN step.alias_of IS NOT NULL THEN format('%s is an old name: append %s', left(event_type, 60), left(step.alias_of, 60))
                 WHEN step.from_status = '' THEN format('%s is retired: it is not appended any more', left(event_type, 60))
                 ELSE format('%s is illegal %s: legal now: %s', left(event_type, 60),
                             coalesce('in status ' || left(status, 60), 'without a status'),
                             coalesce(nullif(array_to_string(legal, ', '), ''), 'nothing')) END,
            aggregate_type, aggregate_id,
            jsonb_build_object('event_type', event_type, 'status', status, 'legal', legal)
            || CASE WHEN step.alias_of IS NOT NULL THEN jsonb_build_object('alias_of', step.alias_of)
                    WHEN step.from_status = '' THEN '{"retired": true}' ELSE '{}'::jsonb END);
    END IF;
END
$$;

CREATE FUNCTION rea.refuse_stale_catalog() RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'rea: a catalog was applied since this transaction''s snapshot' USING ERRCODE = '40001',
        HINT = 'Run the transaction again.';
END
$$;

-- As in 0001, and the step between the check of seq and the xid.
CREATE OR REPLACE FUNCTION rea.check_insert() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
    SET enable_bitmapscan = off
AS $$
DECLARE
    last    bigint;
    present text;   -- the status that is stored before this event,
    version int;    -- and the catalog that gave it
    away    text;
    target  text;
    number  int;
    kind    text;
    refused text;
    detail  jsonb;
BEGIN
    IF NEW.id IS NOT NULL OR NEW.xid IS NOT NULL OR NEW.db_user IS NOT NULL OR NEW.recorded_at IS NOT NULL THEN
        RAISE EXCEPTION 'rea: id, xid, db_user, recorded_at, status and catalog_version of an event are given by the archive'
            USING ERRCODE = '428C9', SCHEMA = 'rea', TABLE = 'events',
                  HINT = 'Leave these columns out of the INSERT.';
    END IF;
    IF NEW.seq IS NULL THEN
        SELECT e.seq, e.status, e.catalog_version INTO last, present, version FROM rea.events e
        WHERE e.aggregate_type = NEW.aggregate_type AND e.aggregate_id = NEW.aggregate_id
        ORDER BY e.seq DESC LIMIT 1;
        NEW.seq := coalesce(last, 0) + 1;
    ELSIF NEW.seq > 1 THEN
        -- seqs are dense, so the one before tells everything; seq <= last is the unique index's business
        SELECT e.status, e.catalog_version INTO present, version FROM rea.events e
        WHERE e.aggregate_type = NEW.aggregate_type AND e.aggregate_id = NEW.aggregate_id AND e.seq = NEW.seq - 1;
        IF NOT FOUND THEN
            PERFORM rea.refuse_hole(NEW.aggregate_type, NEW.aggregate_id, NEW.seq);
        END IF;
    END IF;

    -- One probe where the catalog is the one that gave the present status. Everything else is take_step's.
    away := CASE WHEN NEW.seq > 1 THEN 'any' ELSE 'none' END;
    SELECT s.to_status, s.catalog_version INTO target, number FROM rea.steps s
    WHERE s.aggregate_type = NEW.aggregate_type AND s.event_type = NEW.event_type
      AND s.from_status IN (coalesce(present, away), away)
    LIMIT 1;
    IF FOUND AND (NEW.seq = 1 OR number IS NOT DISTINCT FROM version) THEN
        target := coalesce(target, present);
    ELSE
        SELECT s.aggregate_type INTO kind FROM rea.steps s
        WHERE s.aggregate_type IN ('', NEW.aggregate_type) AND s.event_type = '' AND s.from_status = ''
        ORDER BY s.aggregate_type DESC LIMIT 1;
        IF kind IS NULL THEN
            PERFORM rea.refuse_stale_catalog();
        END IF;
        target := NULL;
        number := NULL;
        IF kind <> '' THEN
            SELECT t.status, t.catalog_version, t.refused, t.detail INTO target, number, refused, detail
            FROM rea.take_step(NEW.aggregate_type, NEW.aggregate_id, NEW.event_type, NEW.seq - 1, present, version, NEW.correction) t;
        END IF;
    END IF;
    IF refused IS NOT NULL
       OR (NEW.status IS NOT NULL AND NEW.status IS DISTINCT FROM target)
       OR (NEW.catalog_version IS NOT NULL AND NEW.catalog_version IS DISTINCT FROM number) THEN
        PERFORM FROM rea.events e
        WHERE e.aggregate_type = NEW.aggregate_type AND e.aggregate_id = NEW.aggregate_id AND e.seq = NEW.seq;
        IF NOT FOUND AND refused IS NOT NULL THEN
            PERFORM rea.raise_refusal(refused, detail);
        ELSIF NOT FOUND THEN
            RAISE EXCEPTION 'rea: id, xid, db_user, recorded_at, status and catalog_version of an event are given by the archive'
                USING ERRCODE = '428C9', SCHEMA = 'rea', TABLE = 'events',
                      HINT = 'Leave these columns out of the INSERT.',
                      DETAIL = format('The status is %s, by catalog %s.', coalesce(target, 'null'), coalesce(number::text, 'null'));
        END IF;
    END IF;
    NEW.status := target;
    NEW.catalog_version := number;

    -- each expression is set up anew in every transaction: one look tells whether rea.set_context was called
    IF concat(current_setting('rea.actor', true), current_setting('rea.reason', true), current_setting('rea.correlation', true)) <> '' THEN
        NEW.actor_id := coalesce(NEW.actor_id, nullif(current_setting('rea.actor', true), ''));
        NEW.reason := coalesce(NEW.reason, nullif(current_setting('rea.reason', true), ''));
        NEW.correlation_id := coalesce(NEW.correlation_id, nullif(current_setting('rea.correlation', true), ''));
    END IF;
    IF NEW.idempotency_key IS NOT NULL AND NEW.key_events IS NULL THEN
        NEW.key_events := 1;
    END IF;
    IF NEW.created_at IS NULL THEN
        NEW.created_at := clock_timestamp();
    ELSE
        NEW.recorded_at := clock_timestamp();
    END IF;
    NEW.db_user := session_user;
    NEW.xid := pg_current_xact_id();
    NEW.id := nextval('rea.events_id_seq'::regclass);
    RETURN NEW;
END
$$;

-- As in 0002, and the steps of the call's events before anything is written.
CREATE OR REPLACE FUNCTION rea.try_append(aggregate_type text, aggregate_id text, events jsonb, expect bigint DEFAULT NULL,
    actor text DEFAULT NULL, reason text DEFAULT NULL, correlation text DEFAULT NULL, key text DEFAULT NULL,
    metadata jsonb DEFAULT NULL, correction boolean DEFAULT false)
    RETURNS TABLE (id bigint, seq bigint, status text, duplicate boolean, refused text, detail jsonb)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
    SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    n int;
    last bigint;
    seen bigint;
    keyed record;
    event jsonb;
    kind text;
    present text;      -- the status that is stored last,
    version int;       -- and the catalog that gave it
    name text;
    away text;
    target text;
    number int;
    newest int;
    versions int[];    -- the newest of each event, for those that say none
BEGIN
    correction := coalesce(correction, false);
    detail := rea.call_refusal(aggregate_type, aggregate_id, events, expect, actor, reason, correlation, key, metadata, correction);
    IF detail IS NOT NULL THEN
        refused := detail ->> 'code';
        RETURN NEXT;
        RETURN;
    END IF;
    n := jsonb_array_length(events);
    event := events -> 0;
    duplicate := false;
    LOOP
        IF key IS NOT NULL THEN
            SELECT e.seq, e.key_events INTO keyed FROM rea.events e
            WHERE e.aggregate_type = try_append.aggregate_type AND e.aggregate_id = try_append.aggregate_id
              AND e.idempotency_key = key;
            IF FOUND THEN
                IF rea.same_content(aggregate_type, aggregate_id, keyed.seq, keyed.key_events, events) THEN
                    RETURN QUERY SELECT e.id, e.seq, e.status, true, NULL::text, NULL::jsonb FROM rea.events e
                    WHERE e.aggregate_type = try_append.aggregate_type AND e.aggregate_id = try_append.aggregate_id
                      AND e.seq >= keyed.seq AND e.seq < keyed.seq + n
                    ORDER BY e.seq;
                    RETURN;
                END IF;
                refused := 'key_reused';
                detail := rea.refusal(refused, format('key %s stands on seq %s with other content', quote_literal(left(key, 60)), keyed.seq),
                                      aggregate_type, aggregate_id, jsonb_build_object('key', key, 'seq', keyed.seq));
                RETURN NEXT;
                RETURN;
            END IF;
        END IF;

        SELECT e.seq, e.status, e.catalog_version INTO last, present, version FROM rea.events e
        WHERE e.aggregate_type = try_append.aggregate_type AND e.aggregate_id = try_append.aggregate_id
        ORDER BY e.seq DESC LIMIT 1;
        last := coalesce(last, 0);
        IF expect <> last THEN
            refused := 'conflict';
            detail := rea.refusal(refused, format('expected seq %s, the last one is %s', expect, last),
                                  aggregate_type, aggregate_id, jsonb_build_object('expected', expect, 'actual', last));
            RETURN NEXT;
            RETURN;
        END IF;
        IF last = seen THEN
            -- DO NOTHING met a row, and it is none of this aggregate
            IF (SELECT q.last_value FROM rea.events_id_seq q) <= (SELECT max(e.id) FROM rea.events e) THEN
                RAISE EXCEPTION 'rea: the sequence rea.events_id_seq is behind the events: a new id is in use already'
                    USING ERRCODE = '55000', HINT = 'SELECT rea.mend_sequence()';
            END IF;
            RAISE EXCEPTION 'rea: append to %/%: something on rea.events that is not REA''s keeps the event out', left(aggregate_type, 60), left(aggregate_id, 60)
                USING ERRCODE = '55000', HINT = 'Look for a unique index, trigger or rule that was added to rea.events.';
        END IF;

        -- The steps, each from the one before. The insert trigger comes to the same: the event at `last` does not
        -- change, and rea.steps stays locked as it is.
        SELECT s.aggregate_type INTO kind FROM rea.steps s
        WHERE s.aggregate_type IN ('', try_append.aggregate_type) AND s.event_type = '' AND s.from_status = ''
        ORDER BY s.aggregate_type DESC LIMIT 1;
        IF kind IS NULL THEN
            PERFORM rea.refuse_stale_catalog();
        ELSIF kind <> '' THEN
            FOR i IN 0 .. n - 1 LOOP
                name := events -> i ->> 'event_type';
                away := CASE WHEN last + i > 0 THEN 'any' ELSE 'none' END;
                SELECT s.to_status, s.catalog_version, s.event_version INTO target, number, newest FROM rea.steps s
                WHERE s.aggregate_type = try_append.aggregate_type AND s.event_type = name
                  AND s.from_status IN (coalesce(present, away), away)
                LIMIT 1;
                IF FOUND AND (last + i = 0 OR number IS NOT DISTINCT FROM version) THEN
                    present := coalesce(target, present);
                ELSE
                    SELECT t.status, t.catalog_version, t.event_version, t.refused, t.detail INTO present, number, newest, refused, detail
                    FROM rea.take_step(aggregate_type, aggregate_id, name, last + i, present, version, correction) t;
                    IF refused IS NOT NULL THEN
                        RETURN NEXT;
                        RETURN;
                    END IF;
                END IF;
                version := number;
                versions[i + 1] := newest;
            END LOOP;
        END IF;

        -- seq is always given: a lost race then ends at the unique index as no row
        IF correction THEN
            INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type, event_version, payload,
                actor_id, reason, correlation_id, idempotency_key, key_events, metadata, correction)
            VALUES (aggregate_type, aggregate_id, last + 1, event ->> 'event_type', coalesce((event ->> 'event_version')::numeric::int, versions[1], 1),
                coalesce(event -> 'payload', '{}'), actor, reason, correlation, key, CASE WHEN key IS NOT NULL THEN n END, metadata, true)
            ON CONFLICT DO NOTHING
            RETURNING id, seq, status INTO id, seq, status;
        ELSE
            INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type, event_version, payload,
                actor_id, reason, correlation_id, idempotency_key, key_events, metadata)
            VALUES (aggregate_type, aggregate_id, last + 1, event ->> 'event_type', coalesce((event ->> 'event_version')::numeric::int, versions[1], 1),
                coalesce(event -> 'payload', '{}'), actor, reason, correlation, key, CASE WHEN key IS NOT NULL THEN n END, metadata)
            ON CONFLICT DO NOTHING
            RETURNING id, seq, status INTO id, seq, status;
        END IF;
        EXIT WHEN FOUND;
        seen := last;
    END LOOP;
    RETURN NEXT;

    IF n > 1 AND correction THEN
        RETURN QUERY INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type, event_version, payload,
            actor_id, reason, correlation_id, metadata, correction)
        SELECT aggregate_type, aggregate_id, last + x.n, x.event ->> 'event_type', coalesce((x.event ->> 'event_version')::numeric::int, versions[x.n::int], 1),
            coalesce(x.event -> 'payload', '{}'), actor, reason, correlation, metadata, true
        FROM jsonb_array_elements(events) WITH ORDINALITY x(event, n) WHERE x.n > 1
        RETURNING id, seq, status, false, NULL::text, NULL::jsonb;
    ELSIF n > 1 THEN
        RETURN QUERY INSERT INTO rea.events (aggregate_type, aggregate_id, seq, event_type, event_version, payload,
            actor_id, reason, correlation_id, metadata)
        SELECT aggregate_type, aggregate_id, last + x.n, x.event ->> 'event_type', coalesce((x.event ->> 'event_version')::numeric::int, versions[x.n::int], 1),
            coalesce(x.event -> 'payload', '{}'), actor, reason, correlation, metadata
        FROM jsonb_array_elements(events) WITH ORDINALITY x(event, n) WHERE x.n > 1
        RETURNING id, seq, status, false, NULL::text, NULL::jsonb;
    END IF;
END
$$;

-- What is new belongs to whom the rest belongs to, and may be read by who reads the rest, before a writer comes to need it.
DO $$
DECLARE
    keeper name := (SELECT a.rolname FROM pg_class c JOIN pg_roles a ON a.oid = c.relowner WHERE c.oid = 'rea.events'::regclass);
    o record;
BEGIN
    FOR o IN SELECT k.role_name FROM rea.roles k WHERE k.kind <> 'owner' LOOP
        EXECUTE format('GRANT SELECT ON rea.catalogs, rea.steps TO %I', o.role_name);
    END LOOP;
    FOR o IN SELECT p.oid::regprocedure AS name FROM pg_proc p JOIN pg_roles a ON a.oid = p.proowner
             WHERE p.pronamespace = 'rea'::regnamespace AND a.rolname <> keeper LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO %I', o.name, keeper);
    END LOOP;
    EXECUTE format('ALTER TABLE rea.catalogs OWNER TO %I; ALTER TABLE rea.steps OWNER TO %1$I', keeper);
END
$$;
