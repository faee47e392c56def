package postgres_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

// counting is an archive's configuration that counts the events A of orders.
func counting(t *testing.T) postgres.Config {
	t.Helper()
	a := rea.EventType{Name: "A", Operations: []rea.Operation{{Kind: rea.OpCount, Field: "n"}}, Fold: func(state rea.Object, _ rea.Event) (rea.Object, error) { return state, nil }}
	catalog, err := rea.NewCatalog(rea.Type{Name: "order", Events: []rea.EventType{a}})
	if err == nil {
		catalog, err = catalog.WithProjections(rea.Projection{Name: "hourly", On: []string{"A"}, Measures: []rea.Measure{{Name: "n", Kind: rea.MeasureCount}}},
			rea.Projection{Name: "orders", Of: "order", Columns: []rea.Column{{Name: "n", Type: rea.Bigint}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return postgres.Config{Config: rea.Config{Catalog: catalog, PollEvery: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}}
}

func countingArchive(t *testing.T, url string) *postgres.Archive {
	t.Helper()
	archive, err := postgres.Open(t.Context(), url, counting(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(archive.Close)
	return archive
}

// runs runs the projections until t ends.
func runs(t *testing.T, a *postgres.Archive) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

func has(t *testing.T, a *postgres.Archive, receipt rea.Receipt) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for _, name := range []string{"hourly", "orders"} {
		if err := a.WaitForEvent(ctx, name, receipt.Events[0].ID); err != nil {
			list, _ := a.Projections(t.Context())
			t.Fatalf("%v: %+v", err, list)
		}
	}
}

// A runner polls and listens to nobody, so that a connection that is lost in silence cannot be missed.
func TestARunnerWhoseConnectionsAreCutOrTakeNoWritesGoesOnByItself(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s := connect(t, url)
	a := countingArchive(t, with(t, url, "application_name", "follower"))
	writer := open(t, url) // nobody cuts its connections
	runs(t, a)
	has(t, writer, put(t, a.Autocommit(), order1, "A"))
	const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'follower' AND datname = current_database()`
	s.do(cut)
	has(t, writer, put(t, writer.Autocommit(), order1, "A"))

	name := s.text(`SELECT quote_ident(current_database())`)
	s.do(`ALTER DATABASE ` + name + ` SET default_transaction_read_only = on`)
	s.do(cut)
	late := put(t, writer.Autocommit(), order1, "A") // its connection is from before
	var err error
	for range 100 { // dead connections first
		if _, err = a.Autocommit().Append(t.Context(), order1, rea.NewEvent{Type: "A"}); rea.Code(err) == "read_only" {
			break
		}
	}
	same(t, "code of an append", rea.Code(err), "read_only")
	list, err := writer.Projections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "state", list[0].State, rea.StateRunning)
	same(t, "position", list[0].Position, int64(2))
	s.do(`ALTER DATABASE ` + name + ` RESET default_transaction_read_only`)
	s.do(cut)
	has(t, writer, late)
	s.want("3", `SELECT sum(n)::text FROM rea_views.hourly`)
	if list, err = writer.Projections(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "attempts", list[0].Failed.Attempts, 0)
}

func TestARunnerNeedsTheOwnersRightAndReadersReadWhatItMakes(t *testing.T) {
	t.Parallel()
	owner, name := roleConsole(t, "rea_owner")
	url := with(t, owner.Config().ConnString(), "user", name)
	a := countingArchive(t, url)
	runs(t, a)
	admin := open(t, owner.Config().ConnString())
	has(t, a, put(t, admin.Autocommit(), order1, "A"))
	owner.do(`RESET SESSION AUTHORIZATION`)
	owner.want("rea_owner", `SELECT tableowner::text FROM pg_tables WHERE schemaname = 'rea_views' AND tablename = 'hourly'`)
	owner.do(`SET ROLE rea_reader`)
	owner.want("1", `SELECT sum(n)::text FROM rea_views.hourly`)
	owner.want("hourly 2", `SELECT projection_name || ' ' || last_processed_seq FROM rea.projection_offsets WHERE projection_name = 'hourly'`)
	owner.refused(denied, `DELETE FROM rea_views.hourly`)
	owner.refused(denied, `UPDATE rea.projections SET position = 0`)
}
