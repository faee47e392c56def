package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
)

// machines measures what the state machine costs: the same appends to a type with one, and to a type without.
func (b *bench) machines(ctx context.Context, n int) error {
	d, c, err := b.open(ctx, n)
	if err != nil {
		return err
	}
	defer c.Close()
	catalog, err := rea.NewCatalog(rea.Type{Name: machineType, Status: "status", Events: []rea.EventType{
		{Name: "OrderPlaced", From: []string{rea.FromNone}, To: "placed"},
		{Name: "PaymentReceived", From: []string{"placed"}, To: "paid"},
		{Name: "OrderShipped", From: []string{"paid"}, To: "shipped"},
		{Name: "OrderCancelled", From: []string{"placed", "paid"}, To: "cancelled"},
		{Name: "NoteAdded", From: []string{rea.FromAny}},
	}})
	if err != nil {
		return err
	}
	applying, err := postgres.New(c.Pool, postgres.Config{Config: rea.Config{Catalog: catalog}})
	if err != nil {
		return err
	}
	if _, err := applying.Apply(ctx); err != nil {
		return err
	}
	loop := func(name, aggregateType string) contender {
		flows := newFlows(&d.orders, n)
		return closedLoop(name, n, c.pids, func(ctx context.Context, worker int) (int, error) {
			e := flows[worker].next()
			receipt, err := c.archive.Autocommit().With(rea.Expect(e.seq-1), rea.By(strconv.Itoa(actor))).Append(ctx,
				rea.Ref{Type: aggregateType, ID: e.id()}, rea.NewEvent{Type: e.kind, Payload: json.RawMessage(e.payload)})
			if err == nil && (receipt.Status() != "") != (aggregateType == machineType) {
				err = fmt.Errorf("status of %s/%s = %q", aggregateType, e.id(), receipt.Status())
			}
			return 1, err
		})
	}
	limit := loop("Go, without", "plain")
	duels, err := interleave(ctx, b.rounds(), b.slice(), limit, loop("Go, with a state machine", machineType))
	if err == nil {
		b.out.addDuel(fmt.Sprintf("append Go with a state machine, %d clients", n), limit.name, duels[0], atLeast(0.90), atMost(1.15))
	}
	return err
}

const machineType = "stepped"
