package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

func TestAFirstAppendTakesNoSecondConnectionOfThePool(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	config, err := pgxpool.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	a, err := postgres.New(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := a.Tx(tx).Append(ctx, order1, rea.NewEvent{Type: "OrderPlaced"})
		return err
	})
	if err != nil {
		t.Fatalf("append in the only connection: %v", err)
	}
}

func TestWithoutASchemaTheUsersTransactionStaysUsable(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	s, a := connect(t, url), open(t, url)
	s.do(`BEGIN; CREATE TABLE business (n int)`)
	_, err := a.Tx(s.Conn).Append(t.Context(), order1, rea.NewEvent{Type: "OrderPlaced"})
	same(t, "code", rea.Code(err), "no_schema")
	s.do(`INSERT INTO business VALUES (1); COMMIT`)
	s.want("1", `SELECT count(*) FROM business`)
}

func TestCatchingUpEndsWhileOthersWrite(t *testing.T) {
	t.Parallel()
	a, s, _ := archive(t)
	ctx, stop := context.WithCancel(t.Context())
	var writers []chan error
	for _, id := range []string{"1", "2", "3", "4"} {
		done := make(chan error, 1)
		writers = append(writers, done)
		go func() {
			for ctx.Err() == nil {
				if _, err := a.Autocommit().Append(t.Context(), rea.Ref{Type: "order", ID: id}, rea.NewEvent{Type: "NoteAdded"}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	const times = 20
	for range times {
		if _, err := a.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	for _, done := range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	s.want("true", `SELECT max(pass) <= $1 FROM rea.feed_passes`, times) // a pass that is not full has taken all
}

func TestAnImportedLineWithoutASeqThatLosesARaceIsStoredAfterTheWinner(t *testing.T) {
	t.Parallel()
	a, s, url := archive(t)
	s.do(`BEGIN; SELECT rea.append('order', '1', 'OrderPlaced')`)
	imported := make(chan error, 1)
	go func() {
		imported <- a.Do(t.Context(), func(tx *rea.Tx) error {
			results, err := tx.Import(t.Context(), []rea.Line{{Aggregate: order1, Event: rea.NewEvent{Type: "NoteAdded"}}})
			if err == nil {
				err = results[0].Err
			}
			return err
		})
	}()
	connect(t, url).waitFor("1", waiters)
	s.do(`COMMIT`)
	if err := <-imported; err != nil {
		t.Fatalf("import: %v", err)
	}
	s.want("1 OrderPlaced, 2 NoteAdded", `SELECT seq, event_type FROM rea.events ORDER BY seq`)
}

func TestACompressedPayloadIsMeasuredAsWhatItIs(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(`CREATE TABLE source (payload jsonb);
INSERT INTO source SELECT jsonb_build_object('n', jsonb_agg('1e131071'::jsonb)) FROM generate_series(1, 200)`)
	s.want("true", `SELECT pg_column_size(payload) < 1500 FROM source`)
	s.refused("23514", `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, payload) SELECT 'order', '1', 'X', payload FROM source`)
}
