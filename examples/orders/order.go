package main

import (
	"encoding/json"
	"time"

	"github.com/realtime-event-archive/rea"
)

// Order is what the events of an order add up to.
type Order struct {
	Status      string    `json:"status"` // kept by REA, by the steps of the catalog
	ItemIDs     []int     `json:"item_ids"`
	ItemsCount  int       `json:"items_count"`
	TotalCents  int64     `json:"total_cents"`
	PlacedAt    time.Time `json:"placed_at,omitzero"`
	PaidAt      time.Time `json:"paid_at,omitzero"`
	ShippedAt   time.Time `json:"shipped_at,omitzero"`
	CancelledAt time.Time `json:"cancelled_at,omitzero"`
}

// OrderPlaced in its version 2. Version 1 had items, and no count.
type OrderPlaced struct {
	ItemIDs    []int `json:"item_ids"`
	ItemsCount int   `json:"items_count"`
	TotalCents int64 `json:"total_cents"`
}

type PaymentReceived struct {
	Cents int64 `json:"cents"`
}

type OrderShipped struct {
	Carrier string `json:"carrier"`
}

type OrderCancelled struct{}

func (o *Order) placed(e OrderPlaced, at rea.Event) {
	o.ItemIDs, o.ItemsCount, o.TotalCents = e.ItemIDs, e.ItemsCount, e.TotalCents
	o.PlacedAt = at.CreatedAt
}

func (o *Order) paid(_ PaymentReceived, at rea.Event)     { o.PaidAt = at.CreatedAt }
func (o *Order) shipped(_ OrderShipped, at rea.Event)     { o.ShippedAt = at.CreatedAt }
func (o *Order) cancelled(_ OrderCancelled, at rea.Event) { o.CancelledAt = at.CreatedAt }

// catalog names the events, and says from which status each is legal and where it leads.
func catalog() (*rea.Catalog, error) {
	return rea.NewCatalog(rea.Type{Name: "order", Status: "status", Events: []rea.EventType{
		rea.On(rea.EventType{Name: "OrderPlaced", From: []string{rea.FromNone}, To: "placed",
			Version: 2, Upcast: map[int]rea.UpcastFunc{1: countItems}}, (*Order).placed),
		rea.On(rea.EventType{Name: "PaymentReceived", From: []string{"placed"}, To: "paid"}, (*Order).paid),
		rea.On(rea.EventType{Name: "OrderShipped", From: []string{"paid"}, To: "shipped"}, (*Order).shipped),
		rea.On(rea.EventType{Name: "OrderCancelled", From: []string{"placed", "paid"}, To: "cancelled"}, (*Order).cancelled),
	}})
}

// countItems brings an OrderPlaced from version 1 to 2.
func countItems(payload rea.Object) (rea.Object, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(payload["items"], &items); err != nil {
		return nil, err
	}
	count, err := json.Marshal(len(items))
	if err != nil {
		return nil, err
	}
	payload["item_ids"], payload["items_count"] = payload["items"], count
	delete(payload, "items")
	return payload, nil
}
