package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/catalog"
)

func ExampleParse() {
	c, err := catalog.Parse("rea.yaml", []byte(`
rea: 1
aggregates:
  order:
    status: status
    events:
      OrderPlaced:
        version: 2
        from: [none]
        to: placed
        set: {item_ids: $.item_ids}
        upcast:
          1: [{rename: {items: item_ids}}]
      PaymentReceived: {from: [placed], to: paid, add: {received: $.amount}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	order := rea.Ref{Type: "order", ID: "10086"}
	var state rea.Object
	for _, e := range []rea.Event{
		{Aggregate: order, Seq: 1, Type: "OrderPlaced", Version: 1, Payload: json.RawMessage(`{"items": [7, 8]}`)},
		{Aggregate: order, Seq: 2, Type: "PaymentReceived", Version: 1, Payload: json.RawMessage(`{"amount": 99.80}`)},
	} {
		if state, err = c.Fold(state, e); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Printf("%s %s %s\n", state["status"], state["item_ids"], state["received"])
	_, err = c.Step("order", "OrderPlaced", "paid", true)
	fmt.Println(err)
	// Output:
	// "paid" [7, 8] 99.80
	// rea: order: OrderPlaced is illegal in status paid: legal now: nothing
}

func ExampleError() {
	_, err := catalog.Parse("rea.yaml", []byte("rea: 1\naggregates:\n  order: {evnts: {}}\n"))
	var wrong *catalog.Error
	if errors.As(err, &wrong) {
		fmt.Print(wrong.Detail())
	}
	// Output:
	// rea.yaml:3:11: the aggregate type order has no key evnts: is events meant?
	//    3 |   order: {evnts: {}}
	//      |           ^
}
