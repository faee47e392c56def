package adopt_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea/guard"
)

// guardOrders guards the orders as they are keyed by id.
func guardOrders(t *testing.T, pool *pgxpool.Pool, s guard.Settings) {
	t.Helper()
	s.Type = "order"
	if _, err := guard.Add(t.Context(), pool, "public.orders", s, guard.By{}); err != nil {
		t.Fatal(err)
	}
}
