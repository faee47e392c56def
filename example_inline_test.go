package rea_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/catalog"
	"github.com/realtime-event-archive/rea/sqlite"
)

// A table of orders that is kept in the transaction of each append.
func ExampleArchive_Apply_inline() {
	ctx := context.Background()
	c, err := catalog.Parse("rea.yaml", []byte(`rea: 1
aggregates:
  order:
    status: status
    events:
      OrderPlaced:     {from: [none], to: placed, set: {total: $.total}}
      PaymentReceived: {from: [placed], to: paid, add: {received: $.amount}}
projections:
  orders: {of: order, mode: inline, columns: {status: text, total: numeric, received: numeric}}
`))
	if err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "rea")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "shop.db")
	archive, err := sqlite.Open(ctx, file, sqlite.Config{Config: rea.Config{Catalog: c}})
	if err != nil {
		log.Fatal(err)
	}
	defer archive.Close()
	if err := archive.Migrate(ctx, nil); err != nil {
		log.Fatal(err)
	}
	if _, err := archive.Apply(ctx); err != nil {
		log.Fatal(err)
	}
	order := rea.Ref{Type: "order", ID: "10086"}
	tx := archive.Autocommit()
	if _, err := tx.Append(ctx, order, rea.NewEvent{Type: "OrderPlaced", Payload: json.RawMessage(`{"total": 99.80}`)}); err != nil {
		log.Fatal(err)
	}
	if _, err := tx.Append(ctx, order, rea.NewEvent{Type: "PaymentReceived", Payload: json.RawMessage(`{"amount": "ten"}`)}); !errors.Is(err, rea.ErrProjection) {
		log.Fatal(err)
	}
	if _, err := tx.Append(ctx, order, rea.NewEvent{Type: "PaymentReceived", Payload: json.RawMessage(`{"amount": 99.8}`)}); err != nil {
		log.Fatal(err)
	}

	db, err := sql.Open("sqlite", file)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var status, total, received string
	var seq int64
	if err := db.QueryRow(`SELECT status, total, received, rea_seq FROM rea_views_orders WHERE aggregate_id = '10086'`).Scan(&status, &total, &received, &seq); err != nil {
		log.Fatal(err)
	}
	fmt.Println(status, total, received, seq)
	// Output:
	// paid 99.80 99.8 2
}
