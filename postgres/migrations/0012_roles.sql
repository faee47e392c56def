-- Roles: who may do what. Roles belong to the cluster, so several databases may share them.
-- Locks: ACCESS EXCLUSIVE on REA's own tables, for a moment, where their owner changes.

CREATE TABLE rea.roles (
    kind      text PRIMARY KEY CHECK (kind IN ('owner', 'writer', 'importer', 'operator', 'reader', 'runner')),
    role_name text NOT NULL,
    made_here boolean NOT NULL   -- uninstalling drops only what installing made
);

-- Makes the roles where it may, hands everything over to the owner role, and grants. Returns what could not be
-- done, one sentence each; none: protection level L2. It may run again at any time.
CREATE FUNCTION rea.install_roles(prefix text) RETURNS SETOF text
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r record;
    o record;
    owner_role text := prefix || '_owner';
BEGIN
    -- Default privileges of the database may give other roles more than reading, or take the functions away.
    IF NOT EXISTS (SELECT FROM rea.roles) THEN
        FOR o IN SELECT DISTINCT c.oid::regclass AS name, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
                 FROM pg_class c, aclexplode(c.relacl) a
                 WHERE c.relnamespace = 'rea'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S') AND a.grantee <> c.relowner LOOP
            EXECUTE format('REVOKE ALL ON %s FROM %s', o.name, o.grantee);
        END LOOP;
    END IF;
    FOR r IN SELECT k.kind, prefix || '_' || k.kind AS name FROM unnest('{owner,writer,importer,operator,reader,runner}'::text[]) k(kind) LOOP
        IF EXISTS (SELECT FROM pg_roles p WHERE p.rolname = r.name) THEN
            INSERT INTO rea.roles VALUES (r.kind, r.name, false) ON CONFLICT DO NOTHING;
            IF r.kind = 'owner' AND EXISTS (SELECT FROM pg_roles p WHERE p.rolname = r.name AND (p.rolcanlogin OR p.rolsuper)) THEN
                RETURN NEXT format('the role %I was there before and may log in or is a superuser: whoever is it can switch the events'' triggers off: ALTER ROLE %I NOLOGIN NOSUPERUSER, or choose another prefix', r.name, r.name);
            END IF;
        ELSE
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', r.name);
                INSERT INTO rea.roles VALUES (r.kind, r.name, true)
                ON CONFLICT (kind) DO UPDATE SET role_name = excluded.role_name, made_here = true;
            EXCEPTION
                WHEN insufficient_privilege THEN
                    RETURN NEXT format('%I may not create the role %I: a role with CREATEROLE can, then run `rea migrate up` again', current_user, r.name);
                WHEN duplicate_object OR unique_violation THEN   -- somebody else's migration, this very moment
                    INSERT INTO rea.roles VALUES (r.kind, r.name, false) ON CONFLICT DO NOTHING;
            END;
        END IF;
    END LOOP;

    FOR r IN SELECT k.kind, k.role_name AS name FROM rea.roles k WHERE k.kind <> 'owner' LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA rea TO %I', r.name);
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA rea TO %I', r.name);
        IF r.kind NOT IN ('reader', 'runner') THEN
            EXECUTE format('GRANT INSERT (aggregate_type, aggregate_id, event_type, event_version, seq, payload, actor_id, reason,
                correlation_id, idempotency_key, metadata, key_events%s) ON rea.events TO %I',
                CASE r.kind WHEN 'importer' THEN ', created_at' WHEN 'operator' THEN ', correction' ELSE '' END, r.name);
        END IF;
        IF r.kind <> 'reader' THEN
            EXECUTE format('GRANT INSERT, UPDATE, DELETE ON rea.snapshots TO %I', r.name);
        END IF;
        IF r.kind = 'runner' THEN   -- what moves; tables and definitions are the owner's to make
            EXECUTE format('GRANT UPDATE (position, event_id, updated_at, runner, state, attempts, failed_position, error, failing_since,
                next_try_at, skipped) ON rea.projections TO %I', r.name);
            EXECUTE format('GRANT UPDATE (position, event_id, updated_at, failed_position, error, skipped) ON rea.rebuilds TO %I', r.name);
        END IF;
        IF r.kind = 'importer' THEN
            EXECUTE format('GRANT INSERT, UPDATE ON rea.imports TO %I', r.name);
        END IF;
        IF r.kind = 'operator' THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION rea.begin_baseline(regclass, text, smallint[], smallint, smallint[], text) TO %I', r.name);
            EXECUTE format('GRANT EXECUTE ON FUNCTION rea.take_baseline(regclass, text[], jsonb[], text[], bigint, jsonb, jsonb, boolean, jsonb) TO %I', r.name);
        END IF;
        FOR o IN SELECT p.oid::regprocedure AS name FROM pg_proc p
                 WHERE p.pronamespace = 'rea'::regnamespace AND p.prorettype <> 'trigger'::regtype
                   AND p.proname NOT IN ('install_roles', 'protect', 'mend_sequence', 'guard_view', 'hand_over_views')
                   AND (NOT p.prosecdef OR p.proname = 'feed_pass') LOOP   -- what triggers of projections call is theirs alone
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', o.name, r.name);
        END LOOP;
    END LOOP;

    -- The owner last: afterwards the installer may have no rights left here.
    IF EXISTS (SELECT FROM rea.roles k WHERE k.kind = 'owner' AND k.role_name = owner_role) THEN
        BEGIN
            -- from version 16 on, who made a role is a member, and yet may not act as it
            IF NOT pg_has_role(current_user, owner_role, CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END) THEN
                EXECUTE format('GRANT %I TO CURRENT_USER', owner_role);
            END IF;
            EXECUTE format('ALTER SCHEMA rea OWNER TO %I', owner_role);
            FOR o IN SELECT c.oid::regclass AS name, c.relkind FROM pg_class c
                     WHERE c.relnamespace = 'rea'::regnamespace AND c.relkind IN ('r', 'p', 'v')
                       AND c.relowner <> (SELECT p.oid FROM pg_roles p WHERE p.rolname = owner_role) LOOP
                EXECUTE format('ALTER TABLE %s OWNER TO %I', o.name, owner_role);
            END LOOP;
            FOR o IN SELECT p.oid::regprocedure AS name FROM pg_proc p
                     WHERE p.pronamespace = 'rea'::regnamespace
                       AND p.proowner <> (SELECT a.oid FROM pg_roles a WHERE a.rolname = owner_role) LOOP
                EXECUTE format('ALTER FUNCTION %s OWNER TO %I', o.name, owner_role);
            END LOOP;
        EXCEPTION WHEN insufficient_privilege THEN
            RETURN NEXT format('%I may not hand REA''s tables over to %I (%s): the events'' triggers can be switched off by their owner', current_user, owner_role, SQLERRM);
        END;
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION rea.feed_pass(int) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION rea.install_roles(text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION rea.protect(regclass) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION rea.begin_baseline(regclass, text, smallint[], smallint, smallint[], text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION rea.take_baseline(regclass, text[], jsonb[], text[], bigint, jsonb, jsonb, boolean, jsonb) FROM PUBLIC;
