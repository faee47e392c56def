package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
)

// The article's table, section 2.2, with both of its indexes, in a schema of its own.
const articleTable = `
CREATE SCHEMA article;
CREATE TABLE article.events ( id BIGSERIAL PRIMARY KEY, aggregate_type TEXT NOT NULL, aggregate_id BIGINT NOT NULL, event_type TEXT NOT NULL, seq BIGINT NOT NULL, payload JSONB NOT NULL DEFAULT '{}', actor_id BIGINT NULL, created_at TIMESTAMPTZ NOT NULL DEFAULT now(), UNIQUE (aggregate_type, aggregate_id, seq) );
CREATE INDEX idx_events_created_at ON article.events (created_at);
CREATE INDEX idx_events_aggregate_lookup ON article.events (aggregate_type, aggregate_id, seq);`

// leanTable is the least that can hold events at all: the article's columns, its primary key, and the unique key
// that keeps seqs single; neither of the two further indexes.
const leanTable = `
CREATE SCHEMA lean;
CREATE TABLE lean.events ( id BIGSERIAL PRIMARY KEY, aggregate_type TEXT NOT NULL, aggregate_id BIGINT NOT NULL, event_type TEXT NOT NULL, seq BIGINT NOT NULL, payload JSONB NOT NULL DEFAULT '{}', actor_id BIGINT NULL, created_at TIMESTAMPTZ NOT NULL DEFAULT now(), UNIQUE (aggregate_type, aggregate_id, seq) );`

// fact is one event of the load, as both sides store it.
type fact struct {
	aggregate int64
	seq       int64
	kind      string
	payload   string
}

func (f fact) id() string { return strconv.FormatInt(f.aggregate, 10) }

const (
	orderType = "order"
	actor     = 42
)

// flow makes the events of one client: 50 orders are under way at a time, each gets 5 to 10 events in all, and
// their turns alternate. Flows with the same seed make the same events but for the ids of orders.
type flow struct {
	ids    *atomic.Int64 // of orders, shared by the clients of one table
	random *rand.Rand
	orders [50]order
	turn   int
}

type order struct{ id, seq, last int64 }

func newFlow(ids *atomic.Int64, seed int) *flow {
	return &flow{ids: ids, random: rand.New(rand.NewPCG(1, uint64(seed)))}
}

func newFlows(ids *atomic.Int64, n int) []*flow {
	flows := make([]*flow, n)
	for i := range flows {
		flows[i] = newFlow(ids, i)
	}
	return flows
}

func (f *flow) next() fact {
	f.turn++
	o := &f.orders[f.turn%len(f.orders)]
	if o.seq == o.last {
		*o = order{id: f.ids.Add(1), last: 5 + f.random.Int64N(6)}
	}
	o.seq++
	return fact{aggregate: o.id, seq: o.seq, kind: kindOf(o.seq), payload: payloadOf(o.id, o.seq, f.random.IntN(100_000))}
}

func kindOf(seq int64) string {
	switch seq {
	case 1:
		return "OrderPlaced"
	case 2:
		return "PaymentReceived"
	case 3:
		return "OrderShipped"
	}
	return "NoteAdded"
}

// payloadOf gives 60 to 110 bytes.
func payloadOf(id, seq int64, cents int) string {
	switch seq {
	case 1:
		return fmt.Sprintf(`{"item_ids": [%d, %d, %d], "items_count": 3, "total_amount": %d.%02d, "currency": "EUR"}`, id%977, id%541, id%83, cents/100, cents%100)
	case 2:
		return fmt.Sprintf(`{"amount": %d.%02d, "method": "card", "provider_ref": "ch_%016x"}`, cents/100, cents%100, uint64(id)*0x9e3779b97f4a7c15)
	case 3:
		return fmt.Sprintf(`{"carrier": "dhl", "tracking": "JD%018d", "parcels": 1}`, id)
	}
	return fmt.Sprintf(`{"text": "note %d on order %d: the customer called about the delivery"}`, seq, id)
}
