package postgres_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
)

// heard collects the first word of each statement that goes to the server.
type heard struct {
	mu    sync.Mutex
	words []string
}

func (h *heard) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.words = append(h.words, strings.ToLower(strings.Fields(data.SQL)[0]))
	return ctx
}

func (h *heard) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (h *heard) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	words := strings.Join(h.words, " ")
	h.words = nil
	return words
}

func TestAppendsWithoutInlineFunctionsKeepTheirOneStatement(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	s.do(`CREATE TABLE tally (id text)`)
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	var h heard
	config.ConnConfig.Tracer = &h
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	a, err := postgres.New(pool, postgres.Config{Config: rea.Config{Inline: []rea.Inline{{
		Name: "tally", Of: "order", Apply: func(ctx context.Context, tx rea.SQL, e rea.Event) error {
			_, err := tx.Exec(ctx, `UPDATE tally SET id = id`)
			return err
		},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	invoice := rea.Ref{Type: "invoice", ID: "1"}
	put(t, a.Autocommit(), invoice, "A") // asks for the schema's version, too
	h.take()
	put(t, a.Autocommit(), invoice, "A")
	same(t, "statements without a function", h.take(), "insert")
	put(t, a.Autocommit(), order1, "A", "B")
	same(t, "statements with one", h.take(), "begin select select update update commit")
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		put(t, a.Tx(tx), invoice, "A")
		put(t, a.Tx(tx), order1, "A")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	same(t, "statements in the user's transaction", h.take(), "begin select savepoint select select update release commit")
}
