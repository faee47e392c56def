package rea_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
)

// A table of the program's own that is kept from the feed, in the transaction in which its offset moves.
func ExampleArchive_Run() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "rea")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	payments := rea.GoProjection{
		Name: "payments",
		Apply: func(ctx context.Context, tx rea.SQL, events []rea.Event) error {
			if _, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS payments (order_id TEXT PRIMARY KEY, number INTEGER NOT NULL)`); err != nil {
				return err
			}
			for _, e := range events {
				if e.Type != "PaymentReceived" {
					continue
				}
				if _, err := tx.Exec(ctx, `INSERT INTO payments VALUES (?1, 1) ON CONFLICT (order_id) DO UPDATE SET number = number + 1`, e.Aggregate.ID); err != nil {
					return err
				}
			}
			return nil
		},
	}
	archive, err := sqlite.Open(ctx, filepath.Join(folder, "shop.db"), sqlite.Config{Config: rea.Config{Projections: []rea.GoProjection{payments}}})
	if err != nil {
		log.Fatal(err)
	}
	defer archive.Close()
	if err := archive.Migrate(ctx, nil); err != nil {
		log.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- archive.Run(running) }() // a program's main, or `rea run` for what a catalog declares

	receipt, err := archive.Autocommit().Append(ctx, rea.Ref{Type: "order", ID: "10086"}, rea.NewEvent{Type: "PaymentReceived", Payload: json.RawMessage(`{"amount": 99.8}`)})
	if err != nil {
		log.Fatal(err)
	}
	if err := archive.WaitForEvent(ctx, "payments", receipt.Events[0].ID); err != nil {
		log.Fatal(err)
	}
	list, err := archive.Projections(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(list[0].Name, list[0].State, list[0].Position)
	stop()
	fmt.Println(<-ended)
	// Output:
	// payments running 1
	// <nil>
}
