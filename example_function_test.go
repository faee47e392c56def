package rea_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
)

// keepOrder keeps one row an order, as it is after its last event.
func keepOrder(ctx context.Context, tx rea.SQL, e rea.Event) error {
	_, err := tx.Exec(ctx, `
INSERT INTO order_projection (order_id, status, seq) VALUES (?1, ?2, ?3)
ON CONFLICT (order_id) DO UPDATE SET status = excluded.status, seq = excluded.seq`, e.Aggregate.ID, e.Status, e.Seq)
	return err
}

func ExampleConfig_inline() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "rea")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "shop.db")
	catalog, err := orderCatalog()
	if err != nil {
		log.Fatal(err)
	}
	keep := rea.Inline{Name: "order_projection", Of: "order", Apply: keepOrder}
	config := rea.Config{Catalog: catalog, Inline: []rea.Inline{keep}}
	archive, err := sqlite.Open(ctx, path, sqlite.Config{Config: config})
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
	db, err := sql.Open("sqlite", path) // the program's own handle, with its own tables
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE order_projection (order_id TEXT PRIMARY KEY, status TEXT, seq INTEGER)`); err != nil {
		log.Fatal(err)
	}
	row := func() (status string, seq int) {
		if err := db.QueryRow(`SELECT status, seq FROM order_projection WHERE order_id = '10086'`).Scan(&status, &seq); err != nil {
			log.Fatal(err)
		}
		return status, seq
	}

	ref := rea.Ref{Type: "order", ID: "10086"}
	if _, err := archive.Autocommit().Append(ctx, ref, OrderPlaced{ItemIDs: []int{517}}, PaymentReceived{Cents: 9980}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(row())

	// Event and row in the program's own transaction: here they go together.
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	receipt, err := archive.SQLTx(tx).Append(ctx, ref, OrderShipped{})
	fmt.Println(receipt.Status(), err)
	if err := tx.Rollback(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(row())
	// Output:
	// paid 2
	// shipped <nil>
	// paid 2
}
