package rea_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
)

var order = rea.Ref{Type: "order", ID: "10086"}

// open gives an empty archive in a folder that clean removes.
func open(ctx context.Context) (archive *sqlite.Archive, clean func()) {
	dir, err := os.MkdirTemp("", "rea")
	if err != nil {
		log.Fatal(err)
	}
	archive, err = sqlite.Open(ctx, filepath.Join(dir, "shop.db"), sqlite.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := archive.Migrate(ctx, nil); err != nil {
		log.Fatal(err)
	}
	return archive, func() { archive.Close(); os.RemoveAll(dir) }
}

func ExampleTx_Append() {
	ctx := context.Background()
	archive, clean := open(ctx)
	defer clean()
	tx := archive.Autocommit().With(rea.By("42"), rea.Because("webhook"))
	receipt, err := tx.Append(ctx, order,
		rea.NewEvent{Type: "OrderPlaced", Payload: []byte(`{"total": 99.80}`)},
		rea.NewEvent{Type: "PaymentReceived"})
	fmt.Println(receipt.Aggregate, receipt.Seq(), err)
	// Output: order/10086 2 <nil>
}

func ExampleExpect() {
	ctx := context.Background()
	archive, clean := open(ctx)
	defer clean()
	tx := archive.Autocommit()
	_, err := tx.With(rea.Expect(2)).Append(ctx, order, rea.NewEvent{Type: "OrderShipped"})
	var conflict *rea.ConflictError
	if errors.As(err, &conflict) {
		fmt.Println(rea.Code(err), conflict.Expected, conflict.Actual)
	}
	// Output: conflict 2 0
}

func ExampleOnce() {
	ctx := context.Background()
	archive, clean := open(ctx)
	defer clean()
	tx := archive.Autocommit().With(rea.Once("request-9"))
	for range 2 {
		receipt, err := tx.Append(ctx, order, rea.NewEvent{Type: "PaymentReceived", Payload: []byte(`{"amount": 5}`)})
		fmt.Println(receipt.Seq(), receipt.Duplicate, err)
	}
	_, err := tx.Append(ctx, order, rea.NewEvent{Type: "PaymentReceived", Payload: []byte(`{"amount": 6}`)})
	fmt.Println(errors.Is(err, rea.ErrKeyReused))
	// Output:
	// 1 false <nil>
	// 1 true <nil>
	// true
}

func ExampleReplayAt() {
	ctx := context.Background()
	archive, clean := open(ctx)
	defer clean()
	tx := archive.Autocommit()
	for _, status := range []string{"placed", "paid", "cancelled"} {
		_, err := tx.Append(ctx, order, rea.NewEvent{Type: "StatusChanged", Payload: []byte(`{"status": "` + status + `"}`)})
		if err != nil {
			log.Fatal(err)
		}
	}
	now, _ := rea.Replay(ctx, tx, order, rea.Merge)
	then, _ := rea.ReplayAt(ctx, tx, order, rea.AtSeq(2), rea.Merge)
	_, err := rea.ReplayAt(ctx, tx, order, rea.AtSeq(5), rea.Merge)
	fmt.Printf("%s %s\n%v\n", now.State["status"], then.State["status"], err)
	// Output:
	// "cancelled" "paid"
	// rea: order/10086: no such seq 5, the last is 3
}

func ExampleReplay() {
	ctx := context.Background()
	archive, clean := open(ctx)
	defer clean()
	type account struct{ notes int }
	fold := func(a account, e rea.Event) (account, error) {
		if e.Type == "NoteAdded" {
			a.notes++
		}
		return a, nil
	}
	err := archive.Do(ctx, func(tx *rea.Tx) error {
		if _, err := tx.Append(ctx, order, rea.NewEvent{Type: "OrderPlaced"}, rea.NewEvent{Type: "NoteAdded"}); err != nil {
			return err
		}
		loaded, err := rea.Replay(ctx, tx, order, fold)
		if err != nil {
			return err
		}
		fmt.Println(loaded.Seq, loaded.State.notes)
		_, err = loaded.Append(ctx, rea.NewEvent{Type: "NoteAdded"}) // expects seq 2
		return err
	})
	fmt.Println(err)
	// Output:
	// 2 1
	// <nil>
}

func ExampleTx_History() {
	ctx := context.Background()
	archive, clean := open(ctx)
	defer clean()
	tx := archive.Autocommit()
	for _, id := range []string{"1", "2", "3"} {
		if _, err := tx.Append(ctx, rea.Ref{Type: "order", ID: id}, rea.NewEvent{Type: "OrderPlaced"}); err != nil {
			log.Fatal(err)
		}
	}
	head, err := archive.CatchUp(ctx)
	fmt.Println(head, err)
	for e, err := range tx.History(ctx, rea.Filter{Event: "OrderPlaced", After: 1}) {
		fmt.Println(e.Position, e.Aggregate, err)
	}
	// Output:
	// 3 <nil>
	// 2 order/2 <nil>
	// 3 order/3 <nil>
}

func ExampleArchive_Apply() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "rea")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	catalog, err := rea.NewCatalog(rea.Type{Name: "order", Status: "status", Events: []rea.EventType{
		{Name: "OrderPlaced", From: []string{rea.FromNone}, To: "placed"},
		{Name: "PaymentReceived", From: []string{"placed"}, To: "paid"},
		{Name: "OrderShipped", From: []string{"paid"}, To: "shipped"},
	}})
	if err != nil {
		log.Fatal(err)
	}
	archive, err := sqlite.Open(ctx, filepath.Join(dir, "shop.db"), sqlite.Config{Config: rea.Config{Catalog: catalog}})
	if err != nil {
		log.Fatal(err)
	}
	defer archive.Close()
	if err := archive.Migrate(ctx, nil); err != nil {
		log.Fatal(err)
	}
	change, err := archive.Apply(ctx) // from now on the database refuses, whoever writes
	fmt.Println(change.Number, err)

	tx := archive.Autocommit()
	receipt, err := tx.Append(ctx, order, rea.NewEvent{Type: "OrderPlaced"})
	fmt.Println(receipt.Status(), err)
	_, err = tx.Append(ctx, order, rea.NewEvent{Type: "OrderShipped"})
	var refused *rea.TransitionError
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Legal)
	}
	// Output:
	// 1 <nil>
	// placed <nil>
	// placed [PaymentReceived]
}
