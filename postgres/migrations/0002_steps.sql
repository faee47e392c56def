-- What every writer is held to: the state machine of the applied catalog, and the trigger that checks seq and step.
-- Locks: none on anything that exists before.

-- The JSON of a refusal: what Go decodes, what DETAIL and --json show.
CREATE FUNCTION rea.refusal(code text, message text, aggregate_type text, aggregate_id text, fields jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN jsonb_build_object('code', code,
        'message', 'rea: append to ' || left(aggregate_type, 60) || '/' || left(aggregate_id, 60) || ': ' || message,
        'aggregate_type', left(aggregate_type, 200), 'aggregate_id', left(aggregate_id, 200)) || fields;

-- The SQLSTATEs of refusals, for callers who want an error.
CREATE FUNCTION rea.raise_refusal(refused text, detail jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = detail ->> 'message', DETAIL = detail::text,
        ERRCODE = CASE refused WHEN 'conflict' THEN 'RE001' WHEN 'illegal_step' THEN 'RE002' WHEN 'key_reused' THEN 'RE003'
                               WHEN 'bad_payload' THEN 'RE004' WHEN 'limit' THEN 'RE005' WHEN 'unknown_type' THEN 'RE006' WHEN 'no_baseline' THEN 'RE012' END;
END
$$;

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
-- older snapshot than the catalog. REA's own events stand under the empty type: the insert trigger finds them where it
-- would find that row, and a type's own row comes before them.
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
    status_field    text COLLATE "C",                -- of the type's row: the field of the state that is the status
    deletes         boolean NOT NULL DEFAULT false,  -- after the event the object's row may go from a guarded table
    guarded         boolean NOT NULL DEFAULT false,  -- from none, of a guarded type: rea.take_step looks for a row of the table
    PRIMARY KEY (aggregate_type, event_type, from_status)
);
CREATE FUNCTION rea.own_steps() RETURNS TABLE (event_type text, from_status text)
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_temp
AS $$
    SELECT '', '' UNION ALL
    SELECT e, f FROM unnest('{BaselineCreated,DirectInsert,DirectUpdate,DirectDelete,Reverted}'::text[]) e, unnest('{none,any}'::text[]) f
$$;
INSERT INTO rea.steps (aggregate_type, event_type, from_status) SELECT '', o.event_type, o.from_status FROM rea.own_steps() o;
COMMENT ON TABLE rea.steps IS 'the state machine: an event of a type is legal from these statuses, and leads to that one';

-- A status as the present catalog calls it, where `version` gave it.
CREATE FUNCTION rea.carried_status(aggregate_type text, status text, version int) RETURNS text
    LANGUAGE plpgsql
    SET search_path = pg_temp
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

-- What a value of a row says as a status: nothing where it is empty, too long for one, or a word of the machine's own.
CREATE FUNCTION rea.row_status(value text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN octet_length(value) BETWEEN 1 AND 200 AND value COLLATE "C" NOT IN ('none', 'any') THEN value END;

-- The status that an event of REA's own says in its payload, in the field that the catalog calls the status; null: none.
CREATE FUNCTION rea.said_status(event_type text, payload jsonb, seq bigint, field text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_temp
AS $$
DECLARE
    part text := CASE event_type WHEN 'BaselineCreated' THEN 'row' WHEN 'DirectInsert' THEN 'new' WHEN 'DirectUpdate' THEN 'new' WHEN 'Reverted' THEN 'set' END;
BEGIN
    IF event_type = 'DirectUpdate' AND seq = 1 AND NOT coalesce(payload -> part ? field, false) THEN
        part := 'old';   -- the whole row, where nothing was known of it
    END IF;
    RETURN CASE WHEN jsonb_typeof(payload -> part -> field) = 'string' THEN rea.row_status(payload -> part ->> field) END;
END
$$;

-- The status after the event with seq `last`: the stored one, or that to which the last event with a `to` leads, or that
-- a row had. Nothing before a whole row, or its end, tells anything.
CREATE FUNCTION rea.present_status(aggregate_type text, aggregate_id text, last bigint) RETURNS text
    LANGUAGE plpgsql
    SET search_path = pg_temp
    SET enable_seqscan = off
AS $$
DECLARE
    status text;
    version int;
    target text;
    field text := (SELECT k.status_field FROM rea.steps k
                   WHERE k.aggregate_type = present_status.aggregate_type AND k.event_type = '' AND k.from_status = '');
BEGIN
    SELECT coalesce(e.status, rea.said_status(e.event_type, e.payload, e.seq, field)), coalesce(e.catalog_version, 0), s.to_status
    INTO status, version, target
    FROM rea.events e
    LEFT JOIN LATERAL (SELECT x.to_status FROM rea.steps x
                       WHERE x.aggregate_type = e.aggregate_type AND x.event_type = e.event_type LIMIT 1) s ON true
    WHERE e.aggregate_type = present_status.aggregate_type AND e.aggregate_id = present_status.aggregate_id AND e.seq <= last
      AND (e.status IS NOT NULL OR s.to_status IS NOT NULL OR e.event_type IN ('BaselineCreated', 'DirectInsert', 'DirectDelete')
           OR rea.said_status(e.event_type, e.payload, e.seq, field) IS NOT NULL)
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
    SET search_path = pg_temp
    SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    kind rea.steps;
    step rea.steps;
    away text := CASE WHEN last > 0 THEN 'any' ELSE 'none' END;
    legal text[];
    found text;
BEGIN
    -- the row of a guarded type: is an object there that no event tells of?
    IF last = 0 AND NOT rea.is_own(event_type)
       AND EXISTS (SELECT FROM rea.steps s WHERE s.aggregate_type = take_step.aggregate_type AND s.event_type = '' AND s.from_status = 'none') THEN
        found := rea.table_of_row(aggregate_type, aggregate_id);
        IF found IS NOT NULL THEN
            refused := 'no_baseline';
            detail := rea.refusal(refused, format('its row is in %s already, and no event says what it was: rea baseline %1$s --type %s', found, left(aggregate_type, 60)),
                                  aggregate_type, aggregate_id, jsonb_build_object('table', found));
            RETURN;
        END IF;
    END IF;
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
        IF rea.is_own(event_type) THEN
            refused := 'limit';
            detail := rea.own_name(aggregate_type, aggregate_id, event_type);
        ELSIF kind."strict" THEN   -- a word of plpgsql
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
                             CASE WHEN last = 0 THEN 'as the first event'
                                  ELSE coalesce('in status ' || left(status, 60), 'without a status') || ' at seq ' || last END,
                             coalesce(nullif(array_to_string(legal[:10], ', '), ''), 'nothing')
                             || CASE WHEN cardinality(legal) > 10 THEN format(' and %s more', cardinality(legal) - 10) ELSE '' END) END,
            aggregate_type, aggregate_id,
            jsonb_build_object('event_type', event_type, 'status', status, 'seq', last, 'legal', legal)
            || CASE WHEN step.alias_of IS NOT NULL THEN jsonb_build_object('alias_of', step.alias_of)
                    WHEN step.from_status = '' THEN '{"retired": true}' ELSE '{}'::jsonb END);
    END IF;
END
$$;

-- What names of events nobody else may give.
CREATE FUNCTION rea.is_own(event_type text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN is_own.event_type COLLATE "C" IN ('BaselineCreated', 'DirectInsert', 'DirectUpdate', 'DirectDelete', 'Reverted');

-- The refusal of an event that has a name of REA's own ones.
CREATE FUNCTION rea.own_name(aggregate_type text, aggregate_id text, event_type text) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN rea.refusal('limit', 'event_type ' || event_type || ' is a name of REA''s own events: choose another',
                       aggregate_type, aggregate_id, jsonb_build_object('what', 'event_type', 'limit', 0));

-- The status after an event of REA's own, which no machine judges: the one `given`, else what the row says in the field that the
-- catalog calls the status, else the present one. A catalog that says nothing of the type has neither number nor field.
CREATE FUNCTION rea.fact_status(aggregate_type text, aggregate_id text, event_type text, payload jsonb, given text, last bigint, field text, number int)
    RETURNS text
    LANGUAGE sql
    RETURN CASE WHEN event_type COLLATE "C" <> 'DirectDelete'
                THEN coalesce(rea.row_status(given), CASE WHEN field IS NOT NULL THEN rea.said_status(event_type, payload, last + 1, field) END,
                              CASE WHEN number IS NOT NULL AND last > 0 AND event_type COLLATE "C" IN ('DirectUpdate', 'Reverted')
                                   THEN rea.present_status(aggregate_type, aggregate_id, last) END) END;

-- The same, with the catalog's number.
CREATE FUNCTION rea.take_fact(aggregate_type text, aggregate_id text, event_type text, payload jsonb, given text, last bigint,
    OUT status text, OUT catalog_version int)
    LANGUAGE plpgsql
    SET search_path = pg_temp
    SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    field text;
BEGIN
    SELECT s.catalog_version, s.status_field INTO catalog_version, field FROM rea.steps s
    WHERE s.aggregate_type = take_fact.aggregate_type AND s.event_type = '' AND s.from_status = '';
    status := rea.fact_status(aggregate_type, aggregate_id, event_type, payload, given, last, field, catalog_version);
END
$$;

CREATE FUNCTION rea.refuse_stale_catalog() RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'rea: a catalog was applied since this transaction''s snapshot' USING ERRCODE = '40001',
        HINT = 'Run the transaction again.';
END
$$;

CREATE FUNCTION rea.refuse_hole(aggregate_type text, aggregate_id text, seq bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_temp
AS $$
DECLARE
    last bigint;
    message text;
BEGIN
    SELECT coalesce(max(e.seq), 0) INTO last FROM rea.events e
    WHERE e.aggregate_type = refuse_hole.aggregate_type AND e.aggregate_id = refuse_hole.aggregate_id;
    message := format('rea: append to %s/%s: seq %s would leave a hole, the next one is %s',
                      left(aggregate_type, 60), left(aggregate_id, 60), seq, last + 1);
    RAISE EXCEPTION USING MESSAGE = message, ERRCODE = 'RE008', SCHEMA = 'rea', TABLE = 'events',
        HINT = 'Leave seq out, and the archive gives the next one.',
        DETAIL = jsonb_build_object('code', 'hole', 'message', message, 'aggregate_type', aggregate_type,
                                    'aggregate_id', aggregate_id, 'seq', seq, 'actual', last);
END
$$;

-- Checks first, then the transaction's xid, then the id: within an aggregate id order is then seq order, and the
-- owner of every id had its xid before it drew the id, which the feed's proof rests on (docs/design/feed.md).
-- enable_seqscan: a vacuumed, still empty table would otherwise be scanned for every row of a bulk insert.
CREATE FUNCTION rea.check_insert() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_temp
    SET enable_seqscan = off
AS $$
DECLARE
    last    bigint;
    present text;   -- the status that is stored before this event,
    version int;    -- and the catalog that gave it
    away    text;
    target  text;
    number  int;
    kind    text;
    named   text;
    newest  int;
    refused text;
    detail  jsonb;
BEGIN
    IF NEW.id IS NOT NULL OR NEW.xid IS NOT NULL OR NEW.db_user IS NOT NULL OR NEW.recorded_at IS NOT NULL
       OR (NEW.context_id IS NOT NULL AND NOT rea.is_own(NEW.event_type) AND NEW.aggregate_type <> 'rea.guard') THEN
        -- A fact that a guard or a baseline stores with many others comes complete: with this transaction's xid, and an id that
        -- was drawn in the same session just now. Who may not name these columns cannot do the same, and who may does not do it unawares.
        IF (CASE WHEN NEW.context_id IS NOT NULL AND NEW.xid = pg_current_xact_id()
                THEN NEW.id = currval('rea.events_id_seq'::regclass) AND rea.is_own(NEW.event_type) END) THEN
            RETURN NEW;
        END IF;
        RAISE EXCEPTION 'rea: id, xid, db_user, recorded_at, status, catalog_version and context_id of an event are given by the archive'
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

    -- One probe: of the legal step where the catalog is the one that gave the present status, else of the type's row,
    -- else of one of REA's own events, else of the row that is always there. What is not plain is take_step's.
    away := CASE WHEN NEW.seq > 1 THEN 'any' ELSE 'none' END;
    SELECT s.aggregate_type, CASE WHEN s.guarded THEN '' ELSE s.event_type END, s.to_status, CASE WHEN s.aggregate_type <> '' THEN s.catalog_version END, s.event_version
    INTO kind, named, target, number, newest
    FROM rea.steps s
    WHERE s.aggregate_type IN ('', NEW.aggregate_type) AND s.event_type IN ('', NEW.event_type)
      AND s.from_status IN ('', coalesce(present, away), away) AND (s.event_type = '' OR s.from_status <> '')
    ORDER BY s.aggregate_type DESC, s.event_type DESC LIMIT 1;
    IF kind <> '' THEN
        IF named <> '' AND (NEW.seq = 1 OR number IS NOT DISTINCT FROM version) THEN
            target := CASE WHEN number IS NOT NULL THEN coalesce(target, present) END;
        ELSIF NEW.context_id IS NOT NULL THEN   -- a fact of a guard or a baseline: no machine judges it
            SELECT f.status, f.catalog_version, f.status INTO target, number, NEW.status
            FROM rea.take_fact(NEW.aggregate_type, NEW.aggregate_id, NEW.event_type, NEW.payload, NEW.status, NEW.seq - 1) f;
        ELSE
            SELECT t.status, t.catalog_version, t.event_version, t.refused, t.detail INTO target, number, newest, refused, detail
            FROM rea.take_step(NEW.aggregate_type, NEW.aggregate_id, NEW.event_type, NEW.seq - 1, present, version, NEW.correction) t;
        END IF;
    ELSIF named IS DISTINCT FROM '' THEN
        IF kind IS NULL THEN
            PERFORM rea.refuse_stale_catalog();
        ELSIF NEW.context_id IS NOT NULL THEN
            target := CASE WHEN NEW.event_type <> 'DirectDelete' THEN rea.row_status(NEW.status) END;
            NEW.status := target;
        ELSE
            refused := 'limit';
            detail := rea.own_name(NEW.aggregate_type, NEW.aggregate_id, NEW.event_type);
        END IF;
    END IF;
    IF refused IS NOT NULL
       OR (NEW.status IS NOT NULL AND NEW.status IS DISTINCT FROM target)
       OR (NEW.catalog_version IS NOT NULL AND NEW.catalog_version IS DISTINCT FROM number) THEN
        IF refused = 'limit' AND NEW.created_at IS NOT NULL AND NEW.catalog_version IS NULL THEN   -- a fact of an import
            SELECT f.status, f.catalog_version INTO target, number
            FROM rea.take_fact(NEW.aggregate_type, NEW.aggregate_id, NEW.event_type, NEW.payload, NEW.status, NEW.seq - 1) f;
        ELSIF NOT EXISTS (SELECT FROM rea.events e
                          WHERE e.aggregate_type = NEW.aggregate_type AND e.aggregate_id = NEW.aggregate_id AND e.seq = NEW.seq) THEN
            IF refused IS NOT NULL THEN
                PERFORM rea.raise_refusal(refused, detail);
            END IF;
            RAISE EXCEPTION 'rea: id, xid, db_user, recorded_at, status, catalog_version and context_id of an event are given by the archive'
                USING ERRCODE = '428C9', SCHEMA = 'rea', TABLE = 'events',
                      HINT = 'Leave these columns out of the INSERT.',
                      DETAIL = format('The status is %s, by catalog %s.', coalesce(target, 'null'), coalesce(number::text, 'null'));
        END IF;
    END IF;
    NEW.status := target;
    NEW.catalog_version := number;
    IF NEW.event_version IS NULL THEN
        NEW.event_version := coalesce(newest, 1);
    END IF;

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

CREATE TRIGGER check_insert BEFORE INSERT ON rea.events
    FOR EACH ROW EXECUTE FUNCTION rea.check_insert();
