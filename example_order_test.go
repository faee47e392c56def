package rea_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
)

// Order is the state: what an order's events add up to.
type Order struct {
	Status string    `json:"status"` // REA keeps it, by the steps below
	Items  []int     `json:"item_ids"`
	PaidAt time.Time `json:"paid_at,omitzero"`
}

type OrderPlaced struct {
	ItemIDs []int `json:"item_ids"` // in version 1: items
}

type PaymentReceived struct {
	Cents int64 `json:"cents"`
}

type OrderShipped struct{}

func (o *Order) placed(e OrderPlaced, at rea.Event) { o.Items = e.ItemIDs }

func (o *Order) paid(e PaymentReceived, at rea.Event) { o.PaidAt = at.CreatedAt }

func (o *Order) shipped(e OrderShipped, at rea.Event) {}

// renameItems makes version 2 of OrderPlaced of version 1.
func renameItems(payload rea.Object) (rea.Object, error) {
	payload["item_ids"] = payload["items"]
	delete(payload, "items")
	return payload, nil
}

// orderCatalog says what the events of an order mean, and which steps are legal.
func orderCatalog() (*rea.Catalog, error) {
	return rea.NewCatalog(rea.Type{Name: "order", Status: "status", Events: []rea.EventType{
		rea.On(rea.EventType{Name: "OrderPlaced", From: []string{rea.FromNone}, To: "placed",
			Version: 2, Upcast: map[int]rea.UpcastFunc{1: renameItems}}, (*Order).placed),
		rea.On(rea.EventType{Name: "PaymentReceived", From: []string{"placed"}, To: "paid"}, (*Order).paid),
		rea.On(rea.EventType{Name: "OrderShipped", From: []string{"paid"}, To: "shipped"}, (*Order).shipped),
	}})
}

func ExampleOn() {
	catalog, err := orderCatalog()
	if err != nil {
		log.Fatal(err) // lists everything that is wrong
	}
	for _, step := range catalog.Declared() {
		fmt.Println(step)
	}
	// Output:
	// order
	// order: OrderPlaced: none -> placed
	// order: PaymentReceived: placed -> paid
	// order: OrderShipped: paid -> shipped
}

// openShop gives an empty archive that knows orders.
func openShop(ctx context.Context) (_ *sqlite.Archive, clean func()) {
	dir, err := os.MkdirTemp("", "rea")
	if err != nil {
		log.Fatal(err)
	}
	catalog, err := orderCatalog()
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "shop.db")
	archive, err := sqlite.Open(ctx, path, sqlite.Config{Config: rea.Config{Catalog: catalog}})
	if err != nil {
		log.Fatal(err)
	}
	if err := archive.Migrate(ctx, nil); err != nil {
		log.Fatal(err)
	}
	if _, err := archive.Apply(ctx); err != nil { // from now on the database refuses illegal steps
		log.Fatal(err)
	}
	return archive, func() { archive.Close(); os.RemoveAll(dir) }
}
