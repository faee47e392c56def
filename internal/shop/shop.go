// Package shop is the order shop of `rea demo`: its catalog, its history, the same one at every run, and the accident
// that happens to it, once in a plain table and once in an archive.
//
//	s := shop.New(3_000)
//	err := s.Import(ctx, archive) // to which shop.Catalog may have been applied
//	err = s.RunScript(ctx, archive)
package shop

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/realtime-event-archive/rea"
)

// The shop's days. The form of OrderPlaced changed on FormChange.
var (
	Opening    = time.Date(2024, 5, 20, 8, 0, 0, 0, time.UTC)
	FormChange = time.Date(2024, 5, 27, 0, 0, 0, 0, time.UTC)
	Accident   = time.Date(2024, 6, 3, 9, 30, 0, 0, time.UTC)
)

// Catalog is the text of the shop's rea.yaml.
//
//go:embed rea.yaml
var Catalog string

// MinOrders is the least number of orders, so that the one that the demo looks at is among them.
const MinOrders = 100

// Story is the order that the demo looks at: paid by a customer whom the script did not mean.
const Story = 10086

const firstID = 10001

// Order is an order as a table of present states has it, right before the accident.
type Order struct {
	ID, User, Total int
	Status          string
	PlacedAt        time.Time
}

// Shop is a history up to the accident.
type Shop struct {
	Orders []Order
	Lines  []rea.Line // of all orders, by time
}

// New makes the history of a number of orders, always the same for the same number.
func New(orders int) *Shop {
	random := rand.New(rand.NewPCG(2024, 6))
	s := &Shop{}
	span := Accident.Add(-20 * time.Minute).Sub(Opening)
	for i := range max(orders, MinOrders) {
		placed := Opening.Add(span * time.Duration(i) / time.Duration(orders)).Add(time.Duration(random.IntN(60_000)) * time.Millisecond)
		s.order(random, firstID+i, placed)
	}
	s.Lines = append(s.Lines, rea.Line{ // how the script's author can be found
		Aggregate: ref(Story + 1 - Story%75), Event: event("NoteAdded", 1, map[string]any{"text": "cleanup script tried on this order"}),
		Actor: "marketing:lin", Reason: "test run, ticket OPS-311", CreatedAt: Accident.Add(-20 * time.Minute),
	})
	slices.SortStableFunc(s.Lines, func(a, b rea.Line) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return s
}

// order adds one order and what happens to it before the accident.
func (s *Shop) order(random *rand.Rand, id int, placed time.Time) {
	o := Order{ID: id, User: 100 + random.IntN(150), Total: 100 * (5 + random.IntN(300)), Status: "placed", PlacedAt: placed}
	pays, ships, cancels, notes := random.IntN(100) < 85, random.IntN(100) < 95, random.IntN(100) < 6, random.IntN(100) < 8
	paid := placed.Add(time.Duration(1+random.IntN(180)) * time.Minute)
	shipped := paid.Add(time.Duration(20+random.IntN(52)) * time.Hour)
	items := make([]int, 1+random.IntN(4))
	for i := range items {
		items[i] = 500 + random.IntN(400)
	}
	if id%75 == 0 { // the customer whom the script means
		o.User, pays, cancels = 123, false, false
	}
	if id == Story {
		o.User, o.Total, o.PlacedAt = 207, 9980, Accident.Add(-13*time.Hour)
		placed, paid, shipped = o.PlacedAt, o.PlacedAt.Add(4*time.Minute), Accident.Add(time.Hour)
		pays, cancels, notes = true, false, true
	}
	customer := "user:" + strconv.Itoa(o.User)
	add := func(at time.Time, e rea.NewEvent, actor, reason, key string) bool {
		if !at.Before(Accident) {
			return false
		}
		line := rea.Line{Aggregate: ref(id), Event: e, Actor: actor, Reason: reason, Key: key, CreatedAt: at}
		if key != "" {
			line.KeyEvents = 1
		}
		s.Lines = append(s.Lines, line)
		return true
	}

	add(placed, placedEvent(placed, items, o.Total), customer, "", "")
	if notes {
		add(placed.Add(time.Minute), event("NoteAdded", 1, map[string]any{"text": "please leave it at the door"}), customer, "", "")
	}
	switch {
	case cancels:
		if add(placed.Add(30*time.Minute), event("OrderCancelled", 1, nil), customer, "changed my mind", "") {
			o.Status = "cancelled"
		}
	case pays && add(paid, event("PaymentReceived", 1, map[string]any{"amount": o.Total}), "payment-gateway", "webhook", fmt.Sprintf("pay-%d", id)):
		o.Status = "paid"
		if ships && add(shipped, event("OrderShipped", 1, nil), "warehouse-2", "", "") {
			o.Status = "shipped"
		}
	}
	s.Orders = append(s.Orders, o)
}

func placedEvent(at time.Time, items []int, total int) rea.NewEvent {
	if at.Before(FormChange) {
		return event("OrderPlaced", 1, map[string]any{"items": items, "total_amount": total})
	}
	return event("OrderPlaced", 2, map[string]any{"item_ids": items, "items_count": len(items), "total_amount": total})
}

func event(name string, version int, payload map[string]any) rea.NewEvent {
	if payload == nil {
		payload = map[string]any{}
	}
	text, err := json.Marshal(payload)
	if err != nil {
		panic(err) // numbers and plain text only
	}
	return rea.NewEvent{Type: name, Version: version, Payload: text}
}

func ref(id int) rea.Ref { return rea.Ref{Type: "order", ID: strconv.Itoa(id)} }

// Import stores the history.
func (s *Shop) Import(ctx context.Context, archive *rea.Archive) error {
	for lines := range slices.Chunk(s.Lines, 2_000) {
		if err := store(ctx, archive, lines); err != nil {
			return err
		}
	}
	return nil
}

// store stores lines in one transaction.
func store(ctx context.Context, archive *rea.Archive, lines []rea.Line) error {
	lines = slices.Clone(lines)
	for i := range lines {
		if err := lines[i].Normalize(); err != nil {
			return err
		}
	}
	return archive.Do(ctx, func(tx *rea.Tx) error {
		results, err := tx.Import(ctx, lines)
		if err != nil {
			return err
		}
		for _, result := range results {
			if result.Err != nil {
				return result.Err
			}
		}
		return err
	})
}
