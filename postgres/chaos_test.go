package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

const (
	chaosWriters = 32
	chaosOrders  = 64
)

// chaos is a server on which everything happens at once.
type chaos struct {
	t   *testing.T
	url string

	commits, rollbacks, savepoints, prepared, kills, passes, broken atomic.Int64

	mu    sync.Mutex
	acked []int64 // ids whose commit the server has confirmed
}

// TestChaos proves little where it passes (two wrong passes have passed such a run; TestFeed... are the proof), and
// much where it fails. The long form: make chaos.
func TestChaos(t *testing.T) {
	t.Parallel()
	half := 4 * time.Second
	if long() {
		half = 90 * time.Second
	}
	server := pgtest.NewServer(t, pgtest.Options{Settings: map[string]string{"deadlock_timeout": "100ms"}})
	if err := migrate(t.Context(), server.URL("postgres")); err != nil {
		t.Fatal(err)
	}
	c := &chaos{t: t, url: server.URL("postgres")}
	l := newLab(t, c.url)
	l.main.exec("CREATE TABLE public.stock (n int)")
	l.main.exec("CREATE TABLE public.counted (id text PRIMARY KEY, notes bigint NOT NULL, seq bigint NOT NULL)")

	// Open the whole time, the crash included: an appender and a transaction that has nothing to do with us.
	holder := l.open("held")
	holder.exec("PREPARE TRANSACTION 'held appender'")
	holder.begin()
	holder.exec("INSERT INTO stock VALUES (1)")
	holder.exec("PREPARE TRANSACTION 'held unrelated'")

	var readers, writers sync.WaitGroup
	reading, stopReaders := context.WithCancel(t.Context())
	defer stopReaders()
	follower := &tail{c: c, sql: "SELECT f.position, f.event_id FROM rea.feed f WHERE f.position > $1 ORDER BY f.position LIMIT 500"}
	naive := &tail{c: c, sql: "SELECT e.id, e.id FROM rea.events e WHERE e.id > $1 ORDER BY e.id LIMIT 500"}
	readers.Go(func() { follower.run(reading) })
	readers.Go(func() { naive.run(reading) })
	for range 2 {
		readers.Go(func() { c.sequence(reading) })
	}
	projections := c.newRunners()
	for range 2 {
		readers.Go(func() { projections.run(reading) })
	}
	readers.Go(func() { projections.cut(reading) })
	writing, stopWriters := context.WithCancel(t.Context())
	defer stopWriters()
	for n := range chaosWriters {
		writers.Go(func() { c.write(writing, n) })
	}
	writers.Go(func() { c.disturb(writing) })

	// The same two, of living sessions, for each half.
	live := func(l *lab) (appender, unrelated *session) {
		appender, unrelated = l.open("live"), l.session()
		unrelated.begin()
		unrelated.exec("INSERT INTO stock VALUES (1)")
		return appender, unrelated
	}
	live(l)
	pause(t.Context(), half)
	if err := server.StopImmediate(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	l = newLab(t, c.url)
	liveAppender, liveUnrelated := live(l)
	pause(t.Context(), half)

	stopWriters()
	writers.Wait()
	c.finishPrepared(l.main.conn, 0)
	l.settle()
	// They are still open, and everybody else's events have their positions.
	if n := query[int](l.main, "SELECT count(*) FROM pg_prepared_xacts"); n != 2 {
		t.Errorf("prepared transactions = %d, want the 2 that are open the whole time", n)
	}
	l.wantVerdict(verdict{})
	if query[bool](l.main, "SELECT EXISTS (SELECT FROM rea.history WHERE aggregate_id IN ('held', 'live'))") {
		t.Error("an open transaction's event is visible")
	}
	follower.reach(query[int64](l.main, "SELECT max(position) FROM rea.feed"))
	naive.reach(query[int64](l.main, "SELECT max(id) FROM rea.events"))

	// And theirs, when they commit.
	l.main.exec("COMMIT PREPARED 'held appender'")
	liveAppender.commit()
	liveUnrelated.commit()
	l.main.exec("COMMIT PREPARED 'held unrelated'")
	l.settle()
	l.wantVerdict(verdict{})
	l.retry(func() bool { // the server's own work, as vacuum's, may be open for a moment
		l.main.append("last")
		l.settle()
		return l.holes() == ""
	}, "holes are left when everything has ended, want none")
	l.wantVerdict(verdict{})
	head := query[int64](l.main, "SELECT max(position) FROM rea.feed")
	follower.reach(head)
	naive.reach(query[int64](l.main, "SELECT max(id) FROM rea.events"))
	stopReaders()
	readers.Wait()
	projections.verdict(l, head)

	feed := query[[]int64](l.main, "SELECT array_agg(event_id ORDER BY position) FROM rea.feed")
	if !slices.Equal(follower.ids, feed) {
		t.Errorf("the follower saw %d events, not those of the feed, %d, in their order", len(follower.ids), len(feed))
	}
	if lost := query[int](l.main, "SELECT count(*) FROM unnest($1::bigint[]) a(id) WHERE NOT EXISTS (SELECT FROM rea.events e WHERE e.id = a.id)", c.acked); lost > 0 {
		t.Errorf("%d of %d confirmed events are gone", lost, len(c.acked))
	}
	// If by nothing else, then by the held appender's event, whose id is the first of all.
	skipped := query[int](l.main, "SELECT count(*) FROM rea.events e WHERE NOT e.id = ANY ($1)", naive.ids)
	if skipped == 0 {
		t.Error("a reader of id > last has skipped nothing, want that it does: the run is too tame")
	}
	t.Logf("%d events; %d commits, %d rollbacks, %d savepoints, %d prepared, %d kills, %d passes, %d broken connections, %d runs; id > last skipped %d",
		head, c.commits.Load(), c.rollbacks.Load(), c.savepoints.Load(), c.prepared.Load(), c.kills.Load(), c.passes.Load(), c.broken.Load(), projections.runs.Load(), skipped)
	for what, n := range map[string]*atomic.Int64{"commits": &c.commits, "rollbacks": &c.rollbacks, "savepoints": &c.savepoints,
		"prepared": &c.prepared, "kills": &c.kills, "passes": &c.passes, "broken connections": &c.broken, "runs": &projections.runs} {
		if n.Load() == 0 {
			t.Errorf("%s = 0: the run is too tame", what)
		}
	}
}

// settle runs passes until nothing is left, beside other sequencers.
func (l *lab) settle() {
	l.t.Helper()
	for l.pass() != 0 {
		continue
	}
}

// pause waits for d or until ctx ends: chaos comes from the clock, no assertion does.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// connect tries until the server answers; nil: ctx has ended.
func (c *chaos) connect(ctx context.Context, name string) *pgx.Conn {
	for ctx.Err() == nil {
		config, err := pgx.ParseConfig(c.url)
		if err != nil {
			c.t.Error(err)
			return nil
		}
		config.RuntimeParams["application_name"] = name
		config.RuntimeParams["lock_timeout"] = "500ms"
		if conn, err := pgx.ConnectConfig(ctx, config); err == nil {
			return conn
		}
		c.broken.Add(1)
		pause(ctx, 20*time.Millisecond)
	}
	return nil
}

// each calls fn with a connection again and again, a new one where it is broken.
func (c *chaos) each(ctx context.Context, name string, fn func(conn *pgx.Conn)) {
	for conn := c.connect(ctx, name); conn != nil; {
		fn(conn)
		if ctx.Err() != nil || conn.IsClosed() {
			_ = conn.Close(context.WithoutCancel(ctx))
			conn = c.connect(ctx, name)
		}
	}
}

// write runs transactions of all kinds.
func (c *chaos) write(ctx context.Context, n int) {
	round := 0
	c.each(ctx, "writer", func(conn *pgx.Conn) {
		round++
		w := writer{c: c, conn: conn, name: fmt.Sprintf("w%d-%d", n, round)}
		// To its end also when writers are stopped: what is open then is open on purpose.
		if err := w.transaction(context.WithoutCancel(ctx)); err != nil {
			_, _ = conn.Exec(context.WithoutCancel(ctx), "ROLLBACK")
			c.rollbacks.Add(1)
		}
	})
}

type writer struct {
	c    *chaos
	conn *pgx.Conn
	name string
	ids  []int64
}

func (w *writer) transaction(ctx context.Context) error {
	exec := func(sql string) error {
		_, err := w.conn.Exec(ctx, sql)
		return err
	}
	if err := exec("BEGIN"); err != nil {
		return err
	}
	if rand.IntN(2) == 0 { // an xid long before the events
		if err := exec("INSERT INTO public.stock VALUES (1)"); err != nil {
			return err
		}
		pause(ctx, rand.N(10*time.Millisecond))
	}
	for range 1 + rand.IntN(3) {
		kept := len(w.ids)
		inside := rand.IntN(4) == 0
		if inside {
			w.c.savepoints.Add(1)
			if err := exec("SAVEPOINT s"); err != nil {
				return err
			}
		}
		if err := w.append(ctx); err != nil {
			return err
		}
		if inside {
			end := "RELEASE s"
			if rand.IntN(2) == 0 {
				end, w.ids = "ROLLBACK TO s", w.ids[:kept]
			}
			if err := exec(end); err != nil {
				return err
			}
		}
		pause(ctx, rand.N(8*time.Millisecond))
	}
	switch n := rand.IntN(100); {
	case n < 15:
		w.c.rollbacks.Add(1)
		return exec("ROLLBACK")
	case n < 25:
		if err := exec("PREPARE TRANSACTION '" + w.name + "'"); err != nil {
			return err
		}
		w.c.prepared.Add(1)
		pause(ctx, rand.N(20*time.Millisecond))
		if rand.IntN(4) == 0 {
			return exec("ROLLBACK PREPARED '" + w.name + "'")
		}
		if err := exec("COMMIT PREPARED '" + w.name + "'"); err != nil {
			return err
		}
	default:
		if err := exec("COMMIT"); err != nil {
			return err
		}
	}
	w.c.commits.Add(1)
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.c.acked = append(w.c.acked, w.ids...)
	return nil
}

func (w *writer) append(ctx context.Context) error {
	var id int64
	err := w.conn.QueryRow(ctx, []string{
		`SELECT a.id FROM rea.try_append('order', $1::text, '[{"event_type": "Noted"}]') a`,
		`SELECT a.id FROM rea.append('order', $1::text, 'Noted') a`,
		insertEvent + ` RETURNING id`,
	}[rand.IntN(3)], fmt.Sprint(rand.IntN(chaosOrders))).Scan(&id)
	w.ids = append(w.ids, id)
	return err
}

// disturb kills backends and ends what they left prepared.
func (c *chaos) disturb(ctx context.Context) {
	const kill = `SELECT count(pg_terminate_backend(pid))
		FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'writer' ORDER BY random() LIMIT 1) a`
	c.each(ctx, "disturber", func(conn *pgx.Conn) {
		pause(ctx, rand.N(150*time.Millisecond))
		var n int64
		_ = conn.QueryRow(ctx, kill).Scan(&n)
		c.kills.Add(n)
		c.finishPrepared(conn, time.Second)
	})
}

// finishPrepared ends writers' prepared transactions of that age, either way.
func (c *chaos) finishPrepared(conn *pgx.Conn, age time.Duration) {
	ctx := context.WithoutCancel(c.t.Context())
	rows, err := conn.Query(ctx, "SELECT gid FROM pg_prepared_xacts WHERE gid LIKE 'w%' AND prepared <= clock_timestamp() - $1::interval", age)
	if err != nil {
		return
	}
	names, _ := pgx.CollectRows(rows, pgx.RowTo[string])
	for i, name := range names {
		_, _ = conn.Exec(ctx, []string{"COMMIT", "ROLLBACK"}[i%2]+" PREPARED '"+name+"'") // its writer may be quicker
	}
}

// sequence is one of two that run passes of all sizes.
func (c *chaos) sequence(ctx context.Context) {
	c.each(ctx, "sequencer", func(conn *pgx.Conn) {
		var n *int64
		err := conn.QueryRow(ctx, "SELECT rea.feed_pass($1)", []int{1, 7, 100, 10000}[rand.IntN(4)]).Scan(&n)
		switch {
		case err == nil:
			c.passes.Add(1)
		case ctx.Err() == nil && !conn.IsClosed() && state(err) != "57P01":
			c.t.Errorf("feed_pass: %v", err)
		}
		pause(ctx, rand.N(4*time.Millisecond))
	})
}

// tail reads a table by a rising number, from the start, through crashes.
type tail struct {
	c    *chaos
	sql  string
	last atomic.Int64
	ids  []int64
}

func (f *tail) run(ctx context.Context) {
	f.c.each(ctx, "reader", func(conn *pgx.Conn) {
		rows, err := conn.Query(ctx, f.sql, f.last.Load())
		if err != nil {
			return
		}
		var page [][2]int64
		var row [2]int64
		_, err = pgx.ForEachRow(rows, []any{&row[0], &row[1]}, func() error {
			page = append(page, row)
			return nil
		})
		if err != nil {
			return
		}
		for _, row := range page {
			f.ids = append(f.ids, row[1])
			f.last.Store(row[0])
		}
		pause(ctx, rand.N(5*time.Millisecond))
	})
}

// reach waits until the reader has come to n.
func (f *tail) reach(n int64) {
	f.c.t.Helper()
	for began := time.Now(); f.last.Load() < n; pause(f.c.t.Context(), time.Millisecond) {
		if time.Since(began) > time.Minute {
			f.c.t.Fatalf("a reader stands at %d, want %d", f.last.Load(), n)
		}
	}
}
