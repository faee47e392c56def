// Command quickstart appends typed events to an archive in SQLite, is refused once, and reads the story back.
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

// Order is the state that an order's events add up to.
type Order struct {
	Status string `json:"status"` // REA keeps it
	Cents  int64  `json:"cents"`
}

type OrderPlaced struct {
	Cents int64 `json:"cents"`
}

type PaymentReceived struct{}

func (o *Order) placed(e OrderPlaced, _ rea.Event) { o.Cents = e.Cents }

func run(ctx context.Context, path string, out io.Writer) error {
	catalog, err := rea.NewCatalog(rea.Type{Name: "order", Status: "status", Events: []rea.EventType{
		rea.On(rea.EventType{Name: "OrderPlaced", From: []string{rea.FromNone}, To: "placed"}, (*Order).placed),
		rea.On[Order, PaymentReceived](rea.EventType{Name: "PaymentReceived", From: []string{"placed"}, To: "paid"}, nil),
	}})
	if err != nil {
		return err
	}
	archive, err := sqlite.Open(ctx, path, sqlite.Config{Config: rea.Config{Catalog: catalog}})
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := archive.Migrate(ctx, nil); err != nil {
		return err
	}
	if _, err := archive.Apply(ctx); err != nil { // from now on the database refuses illegal steps
		return err
	}

	// A transaction of REA's; archive.SQLTx(tx) joins one of yours.
	err = archive.Do(ctx, func(tx *rea.Tx) error {
		tx = tx.With(rea.By("42"), rea.Because("web shop"))
		_, err := tx.Append(ctx, rea.Ref{Type: "order", ID: "10086"}, OrderPlaced{Cents: 9980})
		return err
	})
	if err != nil {
		return err
	}

	// Load what you expect, then append: nobody comes in between unseen.
	tx := archive.Autocommit()
	order, err := rea.Load[Order](ctx, tx, "10086")
	if err != nil {
		return err
	}
	if _, err := order.Append(ctx, PaymentReceived{}); err != nil {
		return err
	}
	_, err = order.Append(ctx, PaymentReceived{})
	if !errors.Is(err, rea.ErrIllegalStep) {
		return fmt.Errorf("want a refusal, got %w", err)
	}
	fmt.Fprintln(out, "refused:", err)

	for e, err := range tx.Events(ctx, order.Aggregate, 0) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d %-16s %-7s %s\n", e.Seq, e.Type, e.Status, e.Payload)
	}
	before, err := rea.LoadAt[Order](ctx, tx, "10086", rea.AtSeq(1))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "at seq %d the status was %s\n", before.Seq, before.State.Status)
	return nil
}
