package postgres_test

import (
	"testing"
	"time"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

// The costs that docs/design/feed.md quotes:
//
//	go test ./postgres -run '^$' -bench Feed -benchtime 1000x
func BenchmarkFeedLook(b *testing.B) {
	for _, test := range []struct {
		name    string
		prepare func(l *lab)
	}{
		{"empty", func(*lab) {}},
		{"million-events", func(l *lab) { l.fill("order", 1_000_000, 1) }},
		{"hole-of-a-million", func(l *lab) { l.holdHoles(1, 1_000_000) }},
		{"100000-holes", func(l *lab) { l.holdHoles(100_000, 2) }},
		{"100000-uncommitted-events", func(l *lab) {
			open := l.session()
			open.begin()
			open.exec("SET LOCAL session_replication_role = replica")
			open.exec(`INSERT INTO rea.events (id, aggregate_type, aggregate_id, seq, event_type, xid, db_user, created_at)
				SELECT g, 'order', g::text, 1, 'Noted', '3', 'filled', now() FROM generate_series(1, 100000) g`)
		}},
	} {
		b.Run(test.name, func(b *testing.B) {
			l := newLab(b, pgtest.Database(b))
			test.prepare(l)
			l.drain(100_000)
			l.main.exec(`CREATE PROCEDURE public.look(n int) LANGUAGE plpgsql AS $$
				BEGIN FOR i IN 1 .. n LOOP PERFORM rea.feed_pass(); COMMIT; END LOOP; END $$`)
			b.ResetTimer()
			l.main.exec("CALL public.look($1)", b.N) // one round trip, so that the server's part is what counts
		})
	}
}

// BenchmarkFeedPass is an append and the pass that numbers it, beside what is open.
func BenchmarkFeedPass(b *testing.B) {
	for _, test := range []struct {
		name    string
		prepare func(l *lab)
	}{
		{"quiet", func(*lab) {}},
		{"100000-holes", func(l *lab) { l.holdHoles(100_000, 2) }},
	} {
		b.Run(test.name, func(b *testing.B) {
			l := newLab(b, pgtest.Database(b))
			test.prepare(l)
			l.drain(100_000)
			l.main.exec(`CREATE PROCEDURE public.work(n int) LANGUAGE plpgsql AS $$
				BEGIN FOR i IN 1 .. n LOOP
					INSERT INTO rea.events (aggregate_type, aggregate_id, event_type) VALUES ('order', i::text, 'Noted');
					COMMIT; PERFORM rea.feed_pass(); COMMIT;
				END LOOP; END $$`)
			b.ResetTimer()
			l.main.exec("CALL public.work($1)", b.N)
		})
	}
}

// BenchmarkFeedSearch is the one search of 100,000 holes when the transaction that held them has ended.
func BenchmarkFeedSearch(b *testing.B) {
	for range min(b.N, 3) {
		l := newLab(b, pgtest.Database(b))
		open := l.holdHoles(100_000, 2)
		l.drain(100_000)
		open.commit()
		began := time.Now()
		l.drain(100_000)
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms")
	}
}

// holdHoles leaves holes that a transaction, open until the end, might own.
func (l *lab) holdHoles(n, step int) *session {
	l.t.Helper()
	open := l.session()
	open.begin()
	open.drawXID()
	l.main.append("first")
	l.fill("sparse", n, step)
	return open
}

// BenchmarkFeedBacklog numbers 300,000 events, and puts the same columns into a table with the same constraints by
// one INSERT ... SELECT: ratio is the time of that through the time of the passes.
func BenchmarkFeedBacklog(b *testing.B) {
	const events = 300_000
	for range min(b.N, 3) {
		l := newLab(b, pgtest.Database(b))
		l.fill("order", events, 1)
		l.main.exec("VACUUM ANALYZE rea.events")
		l.main.exec("CREATE TABLE public.plain (position bigint PRIMARY KEY, event_id bigint NOT NULL UNIQUE)")
		began := time.Now()
		l.main.exec("INSERT INTO public.plain SELECT row_number() OVER (ORDER BY e.id), e.id FROM rea.events e")
		plain := time.Since(began)
		began = time.Now()
		l.drain(10_000)
		passes := time.Since(began)
		b.ReportMetric(plain.Seconds()/passes.Seconds(), "ratio")
		b.ReportMetric(events/passes.Seconds(), "events/s")
	}
}
