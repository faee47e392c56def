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
    stamp        xid8 NOT NULL,         -- xid of the pass itself
    top_id       bigint NOT NULL,       -- highest id looked at
    top_position bigint NOT NULL,       -- last position given
    top_hole     xid8 NOT NULL,         -- no stamp in feed_holes is above it
    seen         pg_snapshot NOT NULL   -- snapshot of the last pass that took every event it saw in a hole
);
INSERT INTO rea.feed_passes VALUES (0, '0', 0, 0, '0', '1:1:');

-- Ids passed over because no committed event had them. Every transaction that could still commit one of them
-- has an xid below the stamp.
CREATE TABLE rea.feed_holes (
    stamp xid8 PRIMARY KEY,
    ids   int8multirange NOT NULL
);

-- The state, with what the calling statement's snapshot says of it.
-- restored: a stored xid is not below the snapshot's xmax, so it was stored in another cluster. low: no hole with a
-- stamp up to it can have been filled since `seen`, because none of its possible owners has ended since (after a
-- restore nothing is known, and it is 0). moved: some hole may be worth a search.
CREATE VIEW rea.feed_state AS
    WITH state AS MATERIALIZED (
        SELECT p.pass, p.stamp, p.top_id, p.top_position, p.top_hole, p.seen, pg_current_snapshot() AS snapshot
        FROM rea.feed_passes p ORDER BY p.pass DESC LIMIT 1
    ), judged AS MATERIALIZED (
        SELECT s.*, greatest(s.stamp, s.top_hole, pg_snapshot_xmax(s.seen)) >= pg_snapshot_xmax(s.snapshot) AS restored
        FROM state s
    ), bounded AS MATERIALIZED (
        SELECT j.*, CASE WHEN j.restored THEN '0'::xid8 ELSE least(pg_snapshot_xmax(j.seen),
                    (SELECT x FROM pg_snapshot_xip(j.seen) x WHERE pg_visible_in_snapshot(x, j.snapshot) ORDER BY x LIMIT 1)) END AS low
        FROM judged j
    )
    SELECT b.*, b.top_hole > b.low AS moved FROM bounded b;
COMMENT ON VIEW rea.feed_state IS 'how far the numbering has come; only the pass reads it';

-- Gives positions to at most at_most committed events and returns how many; NULL: another session is at it.
-- A statement of its own, in a transaction of its own. The steps stay apart on purpose: the planner may evaluate
-- a stable function before the snapshot is taken, so nothing that reads may stand in one statement with the xid.
-- Reads and changes of feed_holes are bounded on both sides by stamps, so that rows that are dead, but that somebody's
-- open snapshot keeps, are not walked over by every pass.
CREATE FUNCTION rea.feed_pass(at_most int DEFAULT 10000) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    work  boolean;
    own   xid8;
    drawn bigint;
    s     record;     -- the state, as the pass's one snapshot shows it
    taken bigint[];
    top   bigint;
    cut   boolean;    -- late filled the pass: there may be more of it
    gaps  int8multirange;
    late  int8multirange;
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
    SELECT f.moved OR EXISTS (SELECT FROM rea.events e WHERE e.id > (SELECT f.top_id)) INTO work FROM rea.feed_state f;
    IF work IS NULL THEN
        RAISE EXCEPTION 'rea: feed_pass: rea.feed_passes is empty, so nothing is known of what is numbered' USING ERRCODE = '55000',
            HINT = 'SELECT rea.mend_sequence()';
    ELSIF NOT work THEN
        RETURN 0;
    END IF;

    -- 2. Lock first (an advisory lock takes no xid), snapshot second: what an earlier pass stored is then visible,
    -- and its xid below this snapshot's xmax.
    IF NOT pg_try_advisory_xact_lock(7497057, 1) THEN
        RETURN NULL;
    END IF;
    PERFORM FROM pg_subscription_rel r
    WHERE r.srrelid = 'rea.events'::regclass OR r.srrelid IN (SELECT t.relid FROM pg_partition_tree('rea.events') t);
    IF FOUND THEN
        RAISE EXCEPTION 'rea: feed_pass on a logical subscriber of rea.events' USING ERRCODE = '55000',
            HINT = 'Replicate rea.feed too; the pass runs on the publisher.';
    END IF;
    PERFORM FROM pg_sequence q
    WHERE q.seqrelid = 'rea.events_id_seq'::regclass AND (q.seqcache <> 1 OR q.seqincrement < 1 OR q.seqcycle);
    IF FOUND THEN
        RAISE EXCEPTION 'rea: the sequence rea.events_id_seq has a cache or does not only rise: events would be lost' USING ERRCODE = '55000',
            HINT = 'ALTER SEQUENCE rea.events_id_seq CACHE 1 INCREMENT 1 NO CYCLE, and end the sessions that used it';
    END IF;

    -- 3. One read-only statement, so one snapshot, into plain variables.
    SELECT f.*,
           ARRAY(SELECT e.id
                 FROM rea.feed_holes h, unnest(h.ids) AS r(ids),
                      LATERAL (SELECT e.id FROM rea.events e WHERE e.id >= lower(r.ids) AND e.id < upper(r.ids)
                               ORDER BY e.id LIMIT at_most) e
                 WHERE h.stamp > f.low
                 ORDER BY e.id LIMIT at_most) AS late,
           ARRAY(SELECT e.id FROM rea.events e WHERE e.id > (SELECT f.top_id)
                 ORDER BY e.id LIMIT at_most) AS fresh
    INTO STRICT s
    FROM rea.feed_state f;
    cut := cardinality(s.late) >= at_most;
    -- at_most events in id order, late ones first: their ids are all below the fresh ones
    s.fresh := s.fresh[1 : at_most - cardinality(s.late)];
    taken := s.late || s.fresh;
    top := CASE WHEN cardinality(s.fresh) > 0 THEN s.fresh[cardinality(s.fresh)] ELSE s.top_id END;

    -- 4. Then the own xid, in a statement of its own. It is above the xid of every possible owner of the ids below
    -- `top`: they had their xid before their id, and that id lies below one that had been committed.
    IF pg_current_xact_id_if_assigned() IS NOT NULL THEN
        RAISE EXCEPTION 'rea: feed_pass: reading has drawn a transaction id' USING ERRCODE = 'XX000';
    END IF;
    own := pg_current_xact_id();
    SELECT CASE WHEN q.is_called THEN q.last_value ELSE q.last_value - 1 END INTO drawn FROM rea.events_id_seq q;
    IF drawn < top THEN
        RAISE EXCEPTION 'rea: the sequence rea.events_id_seq stands at %, behind the events, whose last id is %', drawn, top
            USING ERRCODE = '55000', HINT = 'SELECT rea.mend_sequence()';
    END IF;

    IF top - s.top_id > cardinality(s.fresh) THEN
        SELECT range_agg(int8range(g.before + 1, g.id)) INTO gaps
        FROM (SELECT t.id, lag(t.id, 1, s.top_id) OVER (ORDER BY t.n) AS before
              FROM unnest(s.fresh) WITH ORDINALITY t(id, n)) g
        WHERE g.id > g.before + 1;
    END IF;

    -- 5. The fence: whoever read an older state than the last pass's finds its number taken, and writes nothing.
    INSERT INTO rea.feed_passes (pass, stamp, top_id, top_position, top_hole, seen)
    VALUES (s.pass + 1, own, top, s.top_position + cardinality(taken),
            CASE WHEN gaps IS NOT NULL OR (s.restored AND NOT cut) THEN own ELSE s.top_hole END,
            CASE WHEN cut THEN s.seen ELSE s.snapshot END)
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
        late := (SELECT range_agg(int8range(t.id, t.id + 1)) FROM unnest(s.late) t(id));
        DELETE FROM rea.feed_holes h WHERE h.stamp > s.low AND h.ids <@ late;
        UPDATE rea.feed_holes h SET ids = h.ids - late WHERE h.stamp > s.low AND h.ids && late;
    END IF;
    IF cut THEN
        NULL;   -- the rest of late comes first
    ELSIF s.restored THEN
        -- Stored xids are of another cluster, or something is wrong. Every hole has been searched; whoever may still
        -- own an id in one of them, in this cluster, has an xid below `own`.
        gaps := (SELECT range_agg(r.ids) FROM (SELECT gaps UNION ALL SELECT h.ids FROM rea.feed_holes h) a(ids), unnest(a.ids) AS r(ids));
        DELETE FROM rea.feed_holes;
    ELSE
        -- down to xmin(seen) an earlier pass has done it
        DELETE FROM rea.feed_holes h WHERE h.stamp > pg_snapshot_xmin(s.seen) AND h.stamp <= pg_snapshot_xmin(s.snapshot);
    END IF;
    IF gaps IS NOT NULL AND own > pg_snapshot_xmin(s.snapshot) THEN   -- else nobody was at work: these ids are dead
        INSERT INTO rea.feed_holes (stamp, ids) VALUES (own, gaps);
    END IF;
    -- a window, for the same reason; pass numbers are dense, so none is left behind
    IF s.pass % 64 = 0 THEN
        DELETE FROM rea.feed_passes p WHERE p.pass >= s.pass - 128 AND p.pass < s.pass - 64;
    END IF;
    RETURN cardinality(taken);
END
$$;
COMMENT ON FUNCTION rea.feed_pass IS 'numbers committed events; call it as a statement of its own';

-- Puts right a sequence that was set backwards or not restored: sets it after the last event, and returns how many
-- events had got an id that the feed had passed over already and given up. The next pass numbers them.
-- Locks: SHARE ROW EXCLUSIVE on rea.events while it reads the archive once; appends wait.
CREATE FUNCTION rea.mend_sequence() RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    s     record;
    last  bigint;
    lost  int8multirange;
    found bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'rea: mend_sequence needs READ COMMITTED' USING ERRCODE = '25000';
    END IF;
    PERFORM pg_advisory_xact_lock(7497057, 1);
    LOCK TABLE rea.events IN SHARE ROW EXCLUSIVE MODE;
    IF NOT EXISTS (SELECT FROM rea.feed_passes) THEN   -- somebody has emptied it: everything below the last numbered id is looked at
        INSERT INTO rea.feed_passes (pass, stamp, top_id, top_position, top_hole, seen)
        SELECT 0, '0', coalesce(max(p.event_id), 0), coalesce(max(p.position), 0), '0', '1:1:' FROM rea.feed p;
        DELETE FROM rea.feed_holes;
    END IF;
    SELECT f.* INTO STRICT s FROM rea.feed_state f;
    SELECT greatest((SELECT max(e.id) FROM rea.events e), s.top_id, CASE WHEN q.is_called THEN q.last_value END)
    INTO last FROM rea.events_id_seq q;
    PERFORM setval('rea.events_id_seq', greatest(last, 1), last > 0);

    SELECT range_agg(int8range(e.id, e.id + 1)), count(*) INTO lost, found
    FROM rea.events e WHERE e.id <= s.top_id AND NOT EXISTS (SELECT FROM rea.feed p WHERE p.event_id = e.id);
    UPDATE rea.feed_holes h SET ids = h.ids - lost WHERE h.ids && lost;
    INSERT INTO rea.feed_holes (stamp, ids) SELECT pg_current_xact_id(), lost WHERE found > 0;
    -- nothing seen yet: the next pass searches every hole
    INSERT INTO rea.feed_passes (pass, stamp, top_id, top_position, top_hole, seen)
    VALUES (s.pass + 1, pg_current_xact_id(), s.top_id, s.top_position, pg_current_xact_id(), '1:1:');
    RETURN found;
END
$$;
COMMENT ON FUNCTION rea.mend_sequence IS 'sets the sequence of event ids after the last event, and finds events under reused ids';
REVOKE EXECUTE ON FUNCTION rea.mend_sequence() FROM PUBLIC;
