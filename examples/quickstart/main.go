// Command quickstart appends events to an archive in SQLite, is refused once, and reads the story back.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
)

func main() {
	dir, err := os.MkdirTemp("", "rea-quickstart")
	if err == nil {
		defer os.RemoveAll(dir)
		err = run(context.Background(), filepath.Join(dir, "shop.db"), os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, path string, out io.Writer) error {
	archive, err := sqlite.Open(ctx, path, sqlite.Config{})
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := archive.Migrate(ctx, nil); err != nil {
		return err
	}
	order := rea.Ref{Type: "order", ID: "10086"}

	// A transaction of REA's; archive.SQLTx(tx) joins one of yours.
	err = archive.Do(ctx, func(tx *rea.Tx) error {
		tx = tx.With(rea.By("42"), rea.Because("web shop"))
		_, err := tx.Append(ctx, order, rea.NewEvent{Type: "OrderPlaced", Payload: []byte(`{"total_amount": 99.80, "status": "placed"}`)})
		return err
	})
	if err != nil {
		return err
	}

	// Load what you expect, then append: nobody comes in between unseen.
	tx := archive.Autocommit()
	loaded, err := rea.Replay(ctx, tx, order, rea.Merge)
	if err != nil {
		return err
	}
	if _, err := loaded.Append(ctx, rea.NewEvent{Type: "PaymentReceived", Payload: []byte(`{"amount": 99.80, "status": "paid"}`)}); err != nil {
		return err
	}
	_, err = tx.With(rea.Expect(1)).Append(ctx, order, rea.NewEvent{Type: "OrderCancelled"})
	if !errors.Is(err, rea.ErrConflict) {
		return fmt.Errorf("want a conflict, got %w", err)
	}
	fmt.Fprintln(out, "refused:", err)

	for e, err := range tx.Events(ctx, order, 0) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d %-16s %s\n", e.Seq, e.Type, e.Payload)
	}
	before, err := rea.ReplayAt(ctx, tx, order, rea.AtSeq(1), rea.Merge)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "at seq %d the status was %s\n", before.Seq, before.State["status"])
	return nil
}
