package catalog_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
)

// order is orderYAML's state in Go. Its times are texts: a time.Time would be written without the zeros at the end.
type order struct {
	Status      string      `json:"status,omitzero"`
	ItemIDs     []int       `json:"item_ids,omitzero"`
	ItemsCount  json.Number `json:"items_count,omitzero"`
	TotalAmount json.Number `json:"total_amount,omitzero"`
	PlacedAt    string      `json:"placed_at,omitzero"`
	PaidAt      string      `json:"paid_at,omitzero"`
	ShippedAt   string      `json:"shipped_at,omitzero"`
	CancelledAt string      `json:"cancelled_at,omitzero"`
	Received    json.Number `json:"received,omitzero"`
	Notes       []string    `json:"notes,omitzero"`
	NotesCount  int         `json:"notes_count,omitzero"`
}

type (
	orderPlaced struct {
		ItemIDs     []int       `json:"item_ids"`
		ItemsCount  json.Number `json:"items_count"`
		TotalAmount json.Number `json:"total_amount"`
	}
	paymentReceived struct {
		Amount json.Number `json:"amount"`
	}
	orderShipped   struct{}
	orderCancelled struct{}
	noteAdded      struct {
		Text *string `json:"text"`
	}
)

// What an event does not say, it does not change.
func (o *order) placed(e orderPlaced, at rea.Event) {
	if e.ItemIDs != nil {
		o.ItemIDs = e.ItemIDs
	}
	if e.ItemsCount != "" {
		o.ItemsCount = e.ItemsCount
	}
	if e.TotalAmount != "" {
		o.TotalAmount = e.TotalAmount
	}
	o.PlacedAt = rea.FormatTime(at.CreatedAt)
}

func (o *order) paid(e paymentReceived, at rea.Event) {
	if e.Amount != "" {
		o.Received = json.Number(cents(json.RawMessage(o.Received), json.RawMessage(e.Amount)))
	}
	o.PaidAt = rea.FormatTime(at.CreatedAt)
}

func (o *order) shipped(_ orderShipped, at rea.Event) { o.ShippedAt = rea.FormatTime(at.CreatedAt) }
func (o *order) cancelled(_ orderCancelled, at rea.Event) {
	o.CancelledAt = rea.FormatTime(at.CreatedAt)
}

func (o *order) noted(e noteAdded, _ rea.Event) {
	if e.Text != nil {
		o.Notes = append(o.Notes, *e.Text)
	}
	o.NotesCount++
}

// countItems brings an OrderPlaced of version 1 forward.
func countItems(payload rea.Object) (rea.Object, error) {
	items, ok := payload["items"]
	if !ok {
		return payload, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(items, &list); err != nil {
		return nil, err
	}
	delete(payload, "items")
	payload["item_ids"], payload["items_count"] = items, json.RawMessage(fmt.Sprint(len(list)))
	return payload, nil
}

// orderType is orderYAML's aggregate in Go.
func orderType() rea.Type {
	return rea.Type{Name: "order", Status: "status", Events: []rea.EventType{
		rea.On(rea.EventType{Name: "OrderPlaced", Version: 2, From: []string{rea.FromNone}, To: "placed", Upcast: map[int]rea.UpcastFunc{1: countItems}}, (*order).placed),
		{Name: "OrderPlacedV1", AliasOf: "OrderPlaced", Version: 1},
		rea.On(rea.EventType{Name: "PaymentReceived", From: []string{"placed"}, To: "paid"}, (*order).paid),
		rea.On(rea.EventType{Name: "OrderShipped", From: []string{"paid"}, To: "shipped"}, (*order).shipped),
		rea.On(rea.EventType{Name: "OrderCancelled", From: []string{"placed", "paid"}, To: "cancelled"}, (*order).cancelled),
		rea.On(rea.EventType{Name: "NoteAdded", From: []string{rea.FromAny}}, (*order).noted),
		{Name: "CouponTouched", Retired: true},
	}}
}

// asJSON is a state as one text in normal form.
func asJSON(t interface{ Fatal(...any) }, state any) json.RawMessage {
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	normal, err := rea.NormalizeObject(text, "state", 0)
	if err != nil {
		t.Fatal(err)
	}
	return normal
}

func TestTheFileAndTypedGoGiveTheSameStates(t *testing.T) {
	t.Parallel()
	fromFile := parse(t, orderYAML)
	inGo, err := rea.NewCatalog(orderType())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(inGo.Declared()), fmt.Sprint(fromFile.Declared()); got != want {
		t.Errorf("the steps of both differ:\n%s\n%s", got, want)
	}
	archive, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "shop.db"), sqlite.Config{Config: rea.Config{Catalog: inGo}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(archive.Close)
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	tx, orders := archive.Autocommit(), 0
	rapid.Check(t, func(t *rapid.T) {
		orders++
		ref := rea.Ref{Type: "order", ID: fmt.Sprint(orders)}
		var events []rea.NewEvent
		for _, e := range drawOrder(t) { // the catalog is not applied: steps, old names and retired events may be anywhere
			events = append(events, rea.NewEvent{Type: e.Type, Version: e.Version, Payload: e.Payload})
		}
		if _, err := tx.Append(t.Context(), ref, events); err != nil {
			t.Fatal(err)
		}
		at := rea.AtSeq(rapid.Int64Range(1, int64(len(events))).Draw(t, "at"))
		byFile, err := rea.ReplayAt(t.Context(), tx, ref, at, fromFile.Fold)
		if err != nil {
			t.Fatal(err)
		}
		want := asJSON(t, byFile.State)
		asObject, err := rea.ReplayAt(t.Context(), tx, ref, at, inGo.Fold)
		if err != nil {
			t.Fatal(err)
		}
		if got := asJSON(t, asObject.State); !rea.EqualJSON(got, want) {
			t.Fatalf("folded as an object: %s, want %s", got, want)
		}
		loaded, err := rea.LoadAt[order](t.Context(), tx, ref.ID, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := asJSON(t, loaded.State); !rea.EqualJSON(got, want) || loaded.Seq != byFile.Seq {
			t.Fatalf("loaded at seq %d: %s, want %s at seq %d", loaded.Seq, got, want, byFile.Seq)
		}
		if got, want := inGo.Status("order", asObject.State), loaded.State.Status; got != want {
			t.Fatalf("status = %q, want %q", got, want)
		}
	})
}
