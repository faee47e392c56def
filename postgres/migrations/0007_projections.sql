-- Projections: the table that lists them, the schema that theirs live in, and what the triggers of inline ones call.
-- Locks: none on anything that exists before.

CREATE TABLE rea.projections (
    name           text COLLATE "C" PRIMARY KEY,
    mode           text NOT NULL CHECK (mode IN ('inline', 'followed')),
    aggregate_type text COLLATE "C" NOT NULL,
    version        int NOT NULL CHECK (version >= 1),
    definition     text NOT NULL,              -- JSON: which event does what to which column
    fingerprint    text NOT NULL,              -- of the definition by which the table was filled
    made_by        text COLLATE "C" NOT NULL DEFAULT session_user,
    made_at        timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE rea.projections IS 'the tables of rea_views that are computed from events: rea_views.NAME each';

CREATE SCHEMA rea_views;
COMMENT ON SCHEMA rea_views IS 'REA''s projections: tables that are computed from events, written by REA alone';

-- Whether a text is a day of the calendar, from the year 1 on. Only what has the form yyyy-mm-dd may be asked.
CREATE FUNCTION rea.day_ok(day text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN left(day, 4) = '0000' OR substr(day, 6, 2)::int NOT BETWEEN 1 AND 12 OR substr(day, 9, 2)::int < 1 THEN false
                ELSE substr(day, 9, 2)::int <= extract(day FROM make_date(left(day, 4)::int, substr(day, 6, 2)::int, 1)
                                                               + interval '1 month' - interval '1 day') END;

-- Whether a column of one of these types takes a JSON value beside null. What is not looked at here stands in the
-- triggers themselves.
CREATE FUNCTION rea.is_date(value jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(value) = 'string' AND value #>> '{}' ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' THEN rea.day_ok(value #>> '{}') ELSE false END;

-- RFC 3339, up to six digits, years 1 to 9999 in UTC.
CREATE FUNCTION rea.is_timestamptz(value jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(value) <> 'string'
                     OR value #>> '{}' !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[-+](0[0-9]|1[0-5]):[0-5][0-9])$' THEN false
                WHEN NOT rea.day_ok(left(value #>> '{}', 10)) THEN false
                ELSE (value #>> '{}')::timestamptz >= '0001-01-01 00:00:00+00'::timestamptz
                     AND (value #>> '{}')::timestamptz < '10000-01-01 00:00:00+00'::timestamptz END;

-- 1.00 too. CASE: a number with a huge exponent is compared, not cast.
CREATE FUNCTION rea.is_bigint(value jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(value) = 'number'
                THEN value::numeric BETWEEN -9223372036854775808 AND 9223372036854775807 AND trunc(value::numeric) = value::numeric
                ELSE false END;

-- A value that a column of an inline projection cannot take. It stands where the value would, so that the statement
-- which keeps the row is the only one.
CREATE FUNCTION rea.refuse_value(projection text, column_name text, column_type text, aggregate_type text, aggregate_id text,
    event_type text, seq bigint) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    message text := format('rea: append to %s/%s: the column %s (%s) of rea_views.%s cannot take what %s says', left(aggregate_type, 60),
                           left(aggregate_id, 60), column_name, column_type, projection, left(event_type, 60));
BEGIN
    RAISE EXCEPTION USING MESSAGE = message, ERRCODE = 'RE010', SCHEMA = 'rea_views', TABLE = projection, COLUMN = column_name,
        HINT = 'Give the event another value, or the column another type in the catalog, and apply it.',
        DETAIL = jsonb_build_object('code', 'projection', 'message', message, 'projection', projection, 'table', 'rea_views.' || projection,
                                    'column', column_name, 'column_type', column_type, 'event_type', event_type,
                                    'aggregate_type', aggregate_type, 'aggregate_id', aggregate_id, 'seq', seq);
END
$$;

-- Who may do what with a table in rea_views: its owner everything, the runner's role write rows, the roles of REA read, nobody
-- else anything, whatever the database's default privileges say.
CREATE FUNCTION rea.guard_view(target regclass) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    o record;
BEGIN
    FOR o IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
             FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = target AND a.grantee <> c.relowner LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', target, o.grantee);
    END LOOP;
    FOR o IN SELECT k.kind, k.role_name FROM rea.roles k WHERE k.kind <> 'owner' LOOP
        EXECUTE format('GRANT SELECT%s ON %s TO %I', CASE o.kind WHEN 'runner' THEN ', INSERT, UPDATE, DELETE' ELSE '' END, target, o.role_name);
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION rea.guard_view(regclass) FROM PUBLIC;

-- rea_views belongs to whom rea.events belongs to, those who read that read this, and the runner's role writes the rows of what REA
-- keeps. It may run again at any time.
CREATE FUNCTION rea.hand_over_views() RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    keeper name := (SELECT a.rolname FROM pg_class c JOIN pg_roles a ON a.oid = c.relowner WHERE c.oid = 'rea.events'::regclass);
    o record;
BEGIN
    FOR o IN SELECT k.role_name FROM rea.roles k WHERE k.kind <> 'owner' LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA rea_views TO %I', o.role_name);
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA rea_views TO %I', o.role_name);
    END LOOP;
    IF keeper <> (SELECT a.rolname FROM pg_namespace n JOIN pg_roles a ON a.oid = n.nspowner WHERE n.nspname = 'rea_views') THEN
        EXECUTE format('ALTER SCHEMA rea_views OWNER TO %I', keeper);
    END IF;
    FOR o IN SELECT c.oid::regclass AS name, k.role_name FROM pg_class c, rea.roles k
             WHERE c.relnamespace = 'rea_views'::regnamespace AND c.relkind = 'r' AND k.kind = 'runner'
               AND (c.relname ~ '[.][0-9a-f]{8}$' OR EXISTS (SELECT FROM rea.projections p WHERE p.name = c.relname::text)) LOOP
        EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %s TO %I', o.name, o.role_name);
    END LOOP;
    -- the functions of their triggers are the keeper's by now, and could not write them
    FOR o IN SELECT c.oid::regclass AS name FROM pg_class c JOIN pg_roles a ON a.oid = c.relowner
             WHERE c.relnamespace = 'rea_views'::regnamespace AND c.relkind = 'r' AND a.rolname <> keeper
               AND (c.relname ~ '[.][0-9a-f]{8}$' OR EXISTS (SELECT FROM rea.projections p WHERE p.name = c.relname::text)) LOOP
        EXECUTE format('ALTER TABLE %s OWNER TO %I', o.name, keeper);
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION rea.hand_over_views() FROM PUBLIC;

-- What one of REA's own events says of a field of the row: a JSON null where it is not there any more, nothing where it stays.
CREATE FUNCTION rea.row_value(event_type text, payload jsonb, seq bigint, field text) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE event_type
        WHEN 'BaselineCreated' THEN coalesce(payload -> 'row' -> field, 'null')
        WHEN 'DirectInsert' THEN coalesce(payload -> 'new' -> field, 'null')
        WHEN 'DirectDelete' THEN 'null'
        WHEN 'Reverted' THEN CASE WHEN payload -> 'unset' ? field THEN 'null' ELSE payload -> 'set' -> field END
        ELSE CASE WHEN payload -> 'gone' ? field THEN 'null'
                  ELSE coalesce(payload -> 'new' -> field, CASE WHEN seq = 1 THEN coalesce(payload -> 'old' -> field, 'null') END) END
    END;

-- Whether a column of a type takes a JSON value, or nothing.
CREATE FUNCTION rea.column_takes(value jsonb, type text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN value IS NULL OR jsonb_typeof(value) = 'null' OR CASE type
        WHEN 'numeric' THEN jsonb_typeof(value) = 'number'
        WHEN 'boolean' THEN jsonb_typeof(value) = 'boolean'
        WHEN 'bigint' THEN rea.is_bigint(value)
        WHEN 'timestamptz' THEN rea.is_timestamptz(value)
        WHEN 'date' THEN rea.is_date(value)
        WHEN 'text' THEN jsonb_typeof(value) NOT IN ('object', 'array')
        ELSE true END;
