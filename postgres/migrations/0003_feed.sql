-- The feed: a position for each committed event, given afterwards. docs/design/feed.md has the proof.
-- Locks: none on anything that exists before.

CREATE TABLE rea.feed (
    position bigint NOT NULL,
    event_id bigint NOT NULL,
    CONSTRAINT feed_pkey PRIMARY KEY (position),
    CONSTRAINT feed_event_id_key UNIQUE (event_id)
);
COMMENT ON TABLE rea.feed IS 'position: the number of a committed event in the whole archive, 1, 2, 3... without holes';
SELECT rea.protect('rea.feed');

-- One small row a pass, the newest is the state. (One updated row would rot while somebody's snapshot is open.)
CREATE TABLE rea.feed_passes (
    pass         bigint PRIMARY KEY,
    stamp        xid8 NOT NULL,        -- xid of the pass itself
    top_id       bigint NOT NULL,      -- highest id looked at
    top_position bigint NOT NULL,      -- last position given
    seen         pg_snapshot NOT NULL  -- snapshot of the last pass that took every event it saw in a hole
);
INSERT INTO rea.feed_passes VALUES (0, '0', 0, 0, '1:1:');

-- Ids passed over because no committed event had them. Every transaction that could still commit one of them
-- has an xid below the stamp.
CREATE TABLE rea.feed_holes (
    stamp xid8 PRIMARY KEY,
    ids   int8multirange NOT NULL
);

-- Gives positions to at most at_most committed events and returns how many; NULL: another session is at it.
-- A statement of its own, in a transaction of its own. The steps stay apart on purpose: the planner may evaluate
-- a stable function before the snapshot is taken, so nothing that reads may stand in one statement with the xid.
CREATE FUNCTION rea.feed_pass(at_most int DEFAULT 10000) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    own   xid8;
    drawn bigint;
    s     record;     -- the state, as the pass's one snapshot shows it
    taken bigint[];
    top   bigint;
    cut   boolean;    -- late filled the pass: there may be more of it
    gaps  int8multirange;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'rea: feed_pass needs READ COMMITTED' USING ERRCODE = '25000',
            HINT = 'Call it as a statement of its own: SELECT rea.feed_pass()';
    END IF;
    IF current_setting('transaction_read_only')::boolean THEN
        RAISE EXCEPTION 'rea: feed_pass writes, and this transaction or server is read-only' USING ERRCODE = '25006',
            HINT = 'Read rea.feed as it stands; the pass runs on the primary.';
    END IF;
    IF pg_current_xact_id_if_assigned() IS NOT NULL THEN
        RAISE EXCEPTION 'rea: feed_pass in a transaction that has written' USING ERRCODE = '25001',
            HINT = 'Call it as a statement of its own: SELECT rea.feed_pass()';
    END IF;
    IF at_most IS NULL OR at_most NOT BETWEEN 1 AND 1000000 THEN
        RAISE EXCEPTION 'rea: feed_pass takes 1 to 1000000 events, not %', at_most USING ERRCODE = '22023';
    END IF;

    -- 1. A look without lock, xid or WAL.
    PERFORM FROM rea.feed_state() f
    WHERE f.moved OR EXISTS (SELECT FROM rea.events e WHERE e.id > (SELECT f.top_id));
    IF NOT FOUND THEN
        RETURN 0;
    END IF;

    -- 2. Lock first (an advisory lock takes no xid), snapshot second: what an earlier pass stored is then visible,
    -- and its xid below this snapshot's xmax.
    IF NOT pg_try_advisory_xact_lock(7497057, 1) THEN
        RETURN NULL;
    END IF;
    PERFORM FROM pg_subscription_rel r WHERE r.srrelid = 'rea.events'::regclass;
    IF FOUND THEN
        RAISE EXCEPTION 'rea: feed_pass on a logical subscriber of rea.events' USING ERRCODE = '55000',
            HINT = 'Replicate rea.feed too; the pass runs on the publisher.';
    END IF;
    PERFORM FROM pg_sequence q WHERE q.seqrelid = 'rea.events_id_seq'::regclass AND q.seqcache <> 1;
    IF FOUND THEN
        RAISE EXCEPTION 'rea: the sequence rea.events_id_seq has a cache: ids drawn ahead would be lost' USING ERRCODE = '55000',
            HINT = 'ALTER SEQUENCE rea.events_id_seq CACHE 1, and end the sessions that used it';
    END IF;

    -- 3. One read-only statement, so one snapshot, into plain variables.
    SELECT f.*,
           ARRAY(SELECT e.id
                 FROM rea.feed_holes h, unnest(h.ids) AS r(ids),
                      LATERAL (SELECT e.id FROM rea.events e WHERE e.id >= lower(r.ids) AND e.id < upper(r.ids)
                               ORDER BY e.id LIMIT at_most) e
                 WHERE f.restored OR h.stamp > f.low
                 ORDER BY e.id LIMIT at_most) AS late,
           ARRAY(SELECT e.id FROM rea.events e WHERE e.id > (SELECT f.top_id) AND NOT f.restored
                 ORDER BY e.id LIMIT at_most) AS fresh
    INTO STRICT s
    FROM rea.feed_state() f;
    cut := cardinality(s.late) >= at_most;
    -- at_most events in id order, late ones first: their ids are all below the fresh ones
    s.fresh := s.fresh[1 : at_most - cardinality(s.late)];
    taken := s.late || s.fresh;
    top := CASE WHEN cardinality(s.fresh) > 0 THEN s.fresh[cardinality(s.fresh)] ELSE s.top_id END;

    -- 4. Then the own xid, in a statement of its own. It is above the xid of every possible owner of the gaps below
    -- `top`: they had their xid before their id, and that id lies below one that had been committed.
    IF pg_current_xact_id_if_assigned() IS NOT NULL THEN
        RAISE EXCEPTION 'rea: feed_pass: reading has drawn a transaction id' USING ERRCODE = 'XX000';
    END IF;
    own := pg_current_xact_id();
    SELECT CASE WHEN q.is_called THEN q.last_value ELSE q.last_value - 1 END INTO drawn FROM rea.events_id_seq q;
    IF drawn < top THEN
        RAISE EXCEPTION 'rea: the sequence rea.events_id_seq stands at %, behind the events, whose last id is %', drawn, top
            USING ERRCODE = '55000', HINT = 'SELECT setval(''rea.events_id_seq'', (SELECT max(id) FROM rea.events))';
    END IF;

    -- 5. The fence: whoever read an older state than the last pass's finds its number taken, and writes nothing.
    INSERT INTO rea.feed_passes (pass, stamp, top_id, top_position, seen)
    VALUES (s.pass + 1, own, top, s.top_position + cardinality(taken), CASE WHEN cut THEN s.seen ELSE s.snapshot END)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    -- A follower may keep its offset elsewhere: what it has seen must survive a crash.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    -- 6. Positions, filled holes, new holes, and holes whose owners have all ended.
    INSERT INTO rea.feed (position, event_id)
    SELECT s.top_position + t.n, t.id FROM unnest(taken) WITH ORDINALITY t(id, n);
    IF cardinality(s.late) > 0 THEN
        gaps := (SELECT range_agg(int8range(t.id, t.id + 1)) FROM unnest(s.late) t(id));
        UPDATE rea.feed_holes h SET ids = h.ids - gaps WHERE h.ids && gaps;
        DELETE FROM rea.feed_holes h WHERE isempty(h.ids);
    END IF;
    IF NOT cut THEN
        IF s.restored THEN
            -- Stored xids are of another cluster. Every hole has been searched; whoever may still own an id in one
            -- of them, in this cluster, has an xid below `own`.
            gaps := (SELECT range_agg(r.ids) FROM rea.feed_holes h, unnest(h.ids) AS r(ids));
            DELETE FROM rea.feed_holes;
        ELSIF cardinality(s.fresh) > 0 THEN
            gaps := int8multirange(int8range(s.top_id + 1, top + 1))
                    - (SELECT range_agg(int8range(t.id, t.id + 1)) FROM unnest(s.fresh) t(id));
        ELSE
            gaps := NULL;
        END IF;
        IF NOT isempty(gaps) AND own > pg_snapshot_xmin(s.snapshot) THEN
            INSERT INTO rea.feed_holes (stamp, ids) VALUES (own, gaps);
        END IF;
        DELETE FROM rea.feed_holes h WHERE h.stamp <= pg_snapshot_xmin(s.snapshot);
    END IF;
    IF s.pass % 64 = 0 THEN
        DELETE FROM rea.feed_passes p WHERE p.pass < s.pass - 64;
    END IF;
    RETURN cardinality(taken);
END
$$;
COMMENT ON FUNCTION rea.feed_pass IS 'numbers committed events; call it as a statement of its own';

-- The state with what the calling statement's snapshot says of it.
-- low: no hole with a stamp up to it can have been filled since `seen`, because none of its possible owners has
-- ended since. moved: some hole is worth a search. restored: a stored xid is not below the snapshot's xmax, so it
-- was stored in another cluster.
CREATE FUNCTION rea.feed_state(OUT pass bigint, OUT top_id bigint, OUT top_position bigint, OUT seen pg_snapshot,
    OUT snapshot pg_snapshot, OUT restored boolean, OUT low xid8, OUT moved boolean)
    RETURNS SETOF record
    LANGUAGE sql STABLE ROWS 1
    SET search_path = pg_catalog, pg_temp
AS $$
    WITH state AS MATERIALIZED (
        SELECT p.*, pg_current_snapshot() AS snapshot,
               (SELECT h.stamp FROM rea.feed_holes h ORDER BY h.stamp DESC LIMIT 1) AS newest_hole
        FROM rea.feed_passes p ORDER BY p.pass DESC LIMIT 1
    ), judged AS MATERIALIZED (
        SELECT s.*, greatest(s.stamp, pg_snapshot_xmax(s.seen), s.newest_hole) >= pg_snapshot_xmax(s.snapshot) AS restored,
               least(pg_snapshot_xmax(s.seen),
                     (SELECT x FROM pg_snapshot_xip(s.seen) x WHERE pg_visible_in_snapshot(x, s.snapshot) ORDER BY x LIMIT 1)) AS low
        FROM state s
    )
    SELECT j.pass, j.top_id, j.top_position, j.seen, j.snapshot, j.restored, j.low,
           j.newest_hole IS NOT NULL AND (j.restored OR j.newest_hole > j.low)
    FROM judged j
$$;

-- For people: every event with its position (null: not numbered yet).
CREATE VIEW rea.history AS
    SELECT f.position, e.* FROM rea.events e LEFT JOIN rea.feed f ON f.event_id = e.id;
COMMENT ON VIEW rea.history IS 'events with their positions; null: committed since the last pass';
