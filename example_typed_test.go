package rea_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/realtime-event-archive/rea"
)

func ExampleTx_Append_typed() {
	ctx := context.Background()
	archive, clean := openShop(ctx)
	defer clean()
	ref := rea.Ref{Type: "order", ID: "10086"}
	err := archive.Do(ctx, func(tx *rea.Tx) error { // archive.SQLTx(tx) takes one of yours
		tx = tx.With(rea.By("42"), rea.Because("web shop"))
		receipt, err := tx.Append(ctx, ref,
			OrderPlaced{ItemIDs: []int{517, 23}},
			rea.NewEvent{Type: "PaymentReceived", Payload: []byte(`{"cents": 9980}`)})
		if err != nil {
			return err
		}
		fmt.Println(receipt.Seq(), receipt.Status())
		return nil
	})
	fmt.Println(err)
	// Output:
	// 2 paid
	// <nil>
}

func ExampleLoad() {
	ctx := context.Background()
	archive, clean := openShop(ctx)
	defer clean()
	ref := rea.Ref{Type: "order", ID: "10086"}
	err := archive.Do(ctx, func(tx *rea.Tx) error {
		if _, err := tx.Append(ctx, ref, OrderPlaced{ItemIDs: []int{517, 23}}); err != nil {
			return err
		}
		order, err := rea.Load[Order](ctx, tx, "10086")
		if err != nil {
			return err // a *rea.NotFoundError where it has no events
		}
		fmt.Println(order.Seq, order.State.Status, order.State.Items)
		receipt, err := order.Append(ctx, PaymentReceived{Cents: 9980}) // expects seq 1
		fmt.Println(receipt.Seq(), receipt.Status())
		return err
	})
	fmt.Println(err)
	// Output:
	// 1 placed [517 23]
	// 2 paid
	// <nil>
}

func ExampleLoadAt() {
	ctx := context.Background()
	archive, clean := openShop(ctx)
	defer clean()
	ref := rea.Ref{Type: "order", ID: "10086"}
	tx := archive.Autocommit()
	if _, err := tx.Append(ctx, ref, OrderPlaced{ItemIDs: []int{517}}, PaymentReceived{Cents: 9980}, OrderShipped{}); err != nil {
		log.Fatal(err)
	}
	paid, err := rea.LoadAt[Order](ctx, tx, "10086", rea.AtSeq(2)) // or rea.AtTime, rea.AtPosition
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(paid.State.Status, paid.State.PaidAt.Equal(paid.Last.CreatedAt))
	// Output: paid true
}

func ExampleOn_upcast() {
	ctx := context.Background()
	archive, clean := openShop(ctx)
	defer clean()
	ref := rea.Ref{Type: "order", ID: "10086"}
	tx := archive.Autocommit()
	// What an older program has stored.
	if _, err := tx.Append(ctx, ref, rea.NewEvent{Type: "OrderPlaced", Version: 1, Payload: []byte(`{"items": [517]}`)}); err != nil {
		log.Fatal(err)
	}
	order, err := rea.Load[Order](ctx, tx, "10086")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.State.Items)
	fmt.Printf("%s\n", order.Last.Payload) // the stored event never changes
	// Output:
	// [517]
	// {"items": [517]}
}

func ExampleTransitionError() {
	ctx := context.Background()
	archive, clean := openShop(ctx)
	defer clean()
	ref := rea.Ref{Type: "order", ID: "10086"}
	tx := archive.Autocommit()
	if _, err := tx.Append(ctx, ref, OrderPlaced{}); err != nil {
		log.Fatal(err)
	}
	_, err := tx.Append(ctx, ref, OrderShipped{})
	var refused *rea.TransitionError
	if errors.As(err, &refused) {
		fmt.Println(refused.Event, refused.Status, refused.Legal)
	}
	// Output: OrderShipped placed [PaymentReceived]
}
