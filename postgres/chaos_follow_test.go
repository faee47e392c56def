package postgres_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
)

// runners are two that keep the same three projections, and are stopped or cut off at random.
type runners struct {
	c       *chaos
	catalog *rea.Catalog
	runs    atomic.Int64
}

func (c *chaos) newRunners() *runners {
	noted := rea.EventType{Name: "Noted", Operations: []rea.Operation{{Kind: rea.OpCount, Field: "notes"}},
		Fold: func(state rea.Object, _ rea.Event) (rea.Object, error) { return state, nil }}
	catalog, err := rea.NewCatalog(rea.Type{Name: "order", Events: []rea.EventType{noted}})
	if err == nil {
		catalog, err = catalog.WithProjections(
			rea.Projection{Name: "notes", Of: "order", Columns: []rea.Column{{Name: "notes", Type: rea.Bigint}}},
			rea.Projection{Name: "hourly", On: []string{"Noted"}, By: []rea.Dimension{{Name: "order_id", Operand: rea.Operand{Attribute: "@aggregate_id"}}},
				Measures: []rea.Measure{{Name: "notes", Kind: rea.MeasureCount}}})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return &runners{c: c, catalog: catalog}
}

var counted = rea.GoProjection{Name: "counted", Apply: func(ctx context.Context, tx rea.SQL, events []rea.Event) error {
	for _, e := range events {
		if _, err := tx.Exec(ctx, `INSERT INTO counted VALUES ($1, 1, $2) ON CONFLICT (id) DO UPDATE SET notes = counted.notes + 1, seq = excluded.seq`,
			e.Aggregate.ID, e.Seq); err != nil {
			return err
		}
	}
	return nil
}}

func (r *runners) open(ctx context.Context, url string) (*postgres.Archive, error) {
	return postgres.Open(ctx, url, postgres.Config{Config: rea.Config{Catalog: r.catalog, Projections: []rea.GoProjection{counted},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}})
}

// run runs again and again, for moments.
func (r *runners) run(ctx context.Context) {
	for ctx.Err() == nil {
		moment, stop := context.WithTimeout(ctx, 50*time.Millisecond+rand.N(time.Second))
		if archive, err := r.open(moment, with(r.c.t, r.c.url, "application_name", "runner")); err == nil {
			if err := archive.Run(moment); err != nil {
				r.c.t.Errorf("run: %v", err)
			}
			archive.Close()
			r.runs.Add(1)
		}
		stop()
		pause(ctx, rand.N(50*time.Millisecond))
	}
}

// cut cuts runners off in the middle of what they do.
func (r *runners) cut(ctx context.Context) {
	r.c.each(ctx, "cutter", func(conn *pgx.Conn) {
		pause(ctx, rand.N(100*time.Millisecond))
		_, _ = conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity
			WHERE application_name = 'runner' AND state <> 'idle' ORDER BY random() LIMIT 1) a`)
	})
}

// verdict compares the three tables with a fold of all events.
func (r *runners) verdict(l *lab, head int64) {
	r.c.t.Helper()
	ctx, stop := context.WithTimeout(r.c.t.Context(), 2*time.Minute)
	defer stop()
	archive, err := r.open(ctx, r.c.url)
	if err != nil {
		r.c.t.Fatal(err)
	}
	defer archive.Close()
	running, end := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- archive.Run(running) }()
	for _, name := range []string{"notes", "hourly", "counted"} {
		if err := archive.WaitFor(ctx, name, head); err != nil {
			list, _ := archive.Projections(context.WithoutCancel(ctx))
			r.c.t.Fatalf("%v: %+v", err, list)
		}
	}
	end()
	if err := <-ended; err != nil {
		r.c.t.Error(err)
	}
	for _, name := range []string{"notes", "hourly"} {
		if err := archive.CheckProjection(ctx, name, func(d rea.Drift) { r.c.t.Errorf("%s: %+v", name, d) }); err != nil {
			r.c.t.Error(err)
		}
	}
	const differs = `SELECT count(*) FROM (SELECT aggregate_id, count(*) AS n, max(seq) AS seq FROM rea.events GROUP BY aggregate_id) e
		FULL JOIN counted c ON c.id = e.aggregate_id WHERE (e.n, e.seq) IS DISTINCT FROM (c.notes, c.seq)`
	if n := query[int](l.main, differs); n != 0 {
		r.c.t.Errorf("%d orders are counted wrongly", n)
	}
	for table, sum := range map[string]string{"rea_views.notes": "notes", "rea_views.hourly": "notes", "counted": "notes"} {
		if n := query[int64](l.main, fmt.Sprintf("SELECT sum(%s)::bigint FROM %s", sum, table)); n != head {
			r.c.t.Errorf("%s has %d events, want %d", table, n, head)
		}
	}
}
