// Command orders is a small shop whose orders are kept as typed events: a catalog in Go, appends in the program's own
// transaction, an illegal step refused, an event of an older program read by a newer one, an order as it was.
//
//	orders                              # on embedded SQLite, in a temporary folder
//	orders postgres://localhost/empty   # or on PostgreSQL, in a database of its own
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/realtime-event-archive/rea"
)

func main() {
	dir, err := os.MkdirTemp("", "rea-orders")
	if err == nil {
		defer os.RemoveAll(dir)
		database := filepath.Join(dir, "shop.db")
		if len(os.Args) > 1 {
			database = os.Args[1]
		}
		err = run(context.Background(), database, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, database string, out io.Writer) error {
	s, err := open(ctx, database)
	if err != nil {
		return err
	}
	defer s.close()
	for _, chapter := range []func(context.Context, io.Writer) error{s.sell, s.readTheOld, s.cancel, s.lookBack} {
		if err := chapter(ctx, out); err != nil {
			return err
		}
	}
	for _, id := range []string{"10085", "10086", "10087"} {
		if err := s.log(ctx, id, out); err != nil {
			return err
		}
	}
	return nil
}

// sell places an order, is refused to ship it unpaid, and gets it paid and shipped.
func (s *shop) sell(ctx context.Context, out io.Writer) error {
	ref := rea.Ref{Type: "order", ID: "10086"}
	err := s.inTx(ctx, func(tx *sql.Tx, orders *rea.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE stock SET reserved = reserved + 1 WHERE item IN (517, 23)"); err != nil {
			return err
		}
		orders = orders.With(rea.By("1042"), rea.Because("web shop"), rea.Expect(0)) // 0: there is no such order yet
		_, err := orders.Append(ctx, ref, OrderPlaced{ItemIDs: []int{517, 23}, ItemsCount: 2, TotalCents: 9980})
		return err // with an error the stock is not reserved either
	})
	if err != nil {
		return err
	}
	return s.inTx(ctx, func(_ *sql.Tx, orders *rea.Tx) error {
		order, err := rea.Load[Order](ctx, orders.With(rea.By("psp"), rea.Because("webhook")), ref.ID)
		if err != nil {
			return err
		}
		_, err = order.Append(ctx, OrderShipped{Carrier: "post"})
		var refused *rea.TransitionError
		if !errors.As(err, &refused) {
			return fmt.Errorf("want a refusal, got %w", err)
		}
		fmt.Fprintf(out, "refused: %s of an order that is %s; legal now: %s\n", refused.Event, refused.Status, strings.Join(refused.Legal, ", "))

		// The transaction goes on: a refusal leaves nothing behind.
		receipt, err := order.Append(ctx, PaymentReceived{Cents: order.State.TotalCents}, OrderShipped{Carrier: "post"})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "order %s is %s at seq %d\n", ref.ID, receipt.Status(), receipt.Seq())
		return nil
	})
}

// readTheOld stores what a program wrote that knew version 1 only, and reads it by this one.
func (s *shop) readTheOld(ctx context.Context, out io.Writer) error {
	tx, ref := s.archive.Autocommit(), rea.Ref{Type: "order", ID: "10085"}
	_, err := tx.With(rea.By("1007"), rea.Because("web shop")).Append(ctx, ref,
		rea.NewEvent{Type: "OrderPlaced", Version: 1, Payload: []byte(`{"items": [8, 9, 10], "total_cents": 4500}`)})
	if err != nil {
		return err
	}
	order, err := rea.Load[Order](ctx, tx, ref.ID)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "order %s, stored as version %d %s: %d items %v\n", ref.ID, order.Last.Version, order.Last.Payload, order.State.ItemsCount, order.State.ItemIDs)
	return nil
}

// cancel lets REA begin the transaction, and run it again where another one comes first.
func (s *shop) cancel(ctx context.Context, out io.Writer) error {
	ref := rea.Ref{Type: "order", ID: "10087"}
	return s.archive.Do(ctx, func(tx *rea.Tx) error {
		tx = tx.With(rea.By("1042"), rea.Because("wrong size"))
		receipt, err := tx.Append(ctx, ref, OrderPlaced{ItemIDs: []int{23}, ItemsCount: 1, TotalCents: 1000}, OrderCancelled{})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "order %s is %s at seq %d\n", ref.ID, receipt.Status(), receipt.Seq())
		return nil
	})
}

// lookBack loads an order as it was.
func (s *shop) lookBack(ctx context.Context, out io.Writer) error {
	for seq := int64(1); seq <= 3; seq++ {
		order, err := rea.LoadAt[Order](ctx, s.archive.Autocommit(), "10086", rea.AtSeq(seq))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "order 10086 at seq %d was %s (paid: %t)\n", order.Seq, order.State.Status, !order.State.PaidAt.IsZero())
	}
	return nil
}

// log prints what happened to an order, in order, and who says so.
func (s *shop) log(ctx context.Context, id string, out io.Writer) error {
	fmt.Fprintf(out, "\norder %s\n", id)
	for e, err := range s.archive.Autocommit().Events(ctx, rea.Ref{Type: "order", ID: id}, 0) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  %d  %-15s v%d  %-9s  %-4s  %-10s  %s\n", e.Seq, e.Type, e.Version, e.Status, e.Actor, e.Reason, e.Payload)
	}
	return nil
}
