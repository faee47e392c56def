package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const story = `refused: OrderShipped of an order that is placed; legal now: PaymentReceived, OrderCancelled
order 10086 is shipped at seq 3
order 10085, stored as version 1 {"items": [8, 9, 10], "total_cents": 4500}: 3 items [8 9 10]
order 10087 is cancelled at seq 2
order 10086 at seq 1 was placed (paid: false)
order 10086 at seq 2 was paid (paid: true)
order 10086 at seq 3 was shipped (paid: true)

order 10085
  1  OrderPlaced     v1  placed     1007  web shop    {"items": [8, 9, 10], "total_cents": 4500}

order 10086
  1  OrderPlaced     v2  placed     1042  web shop    {"item_ids": [517, 23], "items_count": 2, "total_cents": 9980}
  2  PaymentReceived v1  paid       psp   webhook     {"cents": 9980}
  3  OrderShipped    v1  shipped    psp   webhook     {"carrier": "post"}

order 10087
  1  OrderPlaced     v2  placed     1042  wrong size  {"item_ids": [23], "items_count": 1, "total_cents": 1000}
  2  OrderCancelled  v1  cancelled  1042  wrong size  {}
`

func TestTheStoryIsTheSameOnBothDatabases(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]string{
		"SQLite":     filepath.Join(t.TempDir(), "shop.db"),
		"PostgreSQL": pgtest.Empty(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if err := run(t.Context(), database, &out); err != nil {
				t.Fatal(err)
			}
			if out.String() != story {
				t.Errorf("output:\n%s\nwant:\n%s", out.String(), story)
			}
			if err := run(t.Context(), database, &out); err == nil || !strings.HasPrefix(err.Error(), "rea: append to order/10086: expected seq 0") {
				t.Errorf("a second run gives %v, want a conflict", err)
			}
		})
	}
}
