// Package rea keeps the history of business objects as an ordered, immutable table of events in the database
// that the program has already, each event written in the transaction of the change itself.
//
// # Define
//
// A state is what an object's events add up to, a payload what an event says. Both are structs, a fold is a method:
//
//	type Order struct {
//		Status string    `json:"status"` // REA keeps it, by the steps below
//		Items  []int     `json:"item_ids"`
//		PaidAt time.Time `json:"paid_at,omitzero"`
//	}
//
//	type OrderPlaced struct {
//		ItemIDs []int `json:"item_ids"` // in version 1: items
//	}
//
//	func (o *Order) placed(e OrderPlaced, at rea.Event) { o.Items = e.ItemIDs }
//
// [On] joins them to the name under which the event is stored; names are never taken from Go:
//
//	func orderCatalog() (*rea.Catalog, error) {
//		return rea.NewCatalog(rea.Type{Name: "order", Status: "status", Events: []rea.EventType{
//			rea.On(rea.EventType{Name: "OrderPlaced", From: []string{rea.FromNone}, To: "placed",
//				Version: 2, Upcast: map[int]rea.UpcastFunc{1: renameItems}}, (*Order).placed),
//			rea.On(rea.EventType{Name: "PaymentReceived", From: []string{"placed"}, To: "paid"}, (*Order).paid),
//			rea.On(rea.EventType{Name: "OrderShipped", From: []string{"paid"}, To: "shipped"}, (*Order).shipped),
//		}})
//	}
//
// # Open
//
// Package sqlite needs nothing, package postgres a server; the rest is the same:
//
//	catalog, err := orderCatalog()
//	archive, err := sqlite.Open(ctx, path, sqlite.Config{Config: rea.Config{Catalog: catalog}})
//	if err := archive.Migrate(ctx, nil); err != nil {
//		log.Fatal(err)
//	}
//	if _, err := archive.Apply(ctx); err != nil { // from now on the database refuses illegal steps
//		log.Fatal(err)
//	}
//
// # Append
//
//	ref := rea.Ref{Type: "order", ID: "10086"}
//	err := archive.Do(ctx, func(tx *rea.Tx) error { // archive.SQLTx(tx) takes one of yours
//		tx = tx.With(rea.By("42"), rea.Because("web shop"))
//		receipt, err := tx.Append(ctx, ref,
//			OrderPlaced{ItemIDs: []int{517, 23}},
//			rea.NewEvent{Type: "PaymentReceived", Payload: []byte(`{"cents": 9980}`)})
//		if err != nil {
//			return err
//		}
//		fmt.Println(receipt.Seq(), receipt.Status())
//		return nil
//	})
//
// An aggregate is one business object, named by a [Ref]; [Tx.Append] stores events of one, all or nothing. A [NewEvent]
// needs no declaration. A [Tx] is REA in one transaction: the program's own (Tx and SQLTx of the store's Archive), one of
// REA's ([Archive.Do]), or none ([Archive.Autocommit]). [Expect] says which seq the caller believes to be the
// last, [Once] makes a repeated call harmless.
//
// # Inline
//
// A table of the program's own changes in the transaction of the append, where Config.Inline has a function that keeps it:
//
//	func keepOrder(ctx context.Context, tx rea.SQL, e rea.Event) error {
//		_, err := tx.Exec(ctx, `
//	INSERT INTO order_projection (order_id, status, seq) VALUES (?1, ?2, ?3)
//	ON CONFLICT (order_id) DO UPDATE SET status = excluded.status, seq = excluded.seq`, e.Aggregate.ID, e.Status, e.Seq)
//		return err
//	}
//
//	keep := rea.Inline{Name: "order_projection", Of: "order", Apply: keepOrder}
//	config := rea.Config{Catalog: catalog, Inline: []rea.Inline{keep}}
//
// It runs in every append through this archive, once for each event, in whatever transaction that is in: rows and event are
// there together, or neither is. Its error refuses the append ([ProjectionError]).
//
// # Load
//
//	order, err := rea.Load[Order](ctx, tx, "10086")
//	if err != nil {
//		return err // a *rea.NotFoundError where it has no events
//	}
//	fmt.Println(order.Seq, order.State.Status, order.State.Items)
//	receipt, err := order.Append(ctx, PaymentReceived{Cents: 9980}) // expects seq 1
//
// What is appended through a [Loaded] is stored only where nobody came in between; else it is a [ConflictError], after which
// Archive.Do runs the function again.
//
// # Load at a moment
//
//	paid, err := rea.LoadAt[Order](ctx, tx, "10086", rea.AtSeq(2)) // or rea.AtTime, rea.AtPosition
//
// An [Event] is an immutable fact. Its seq counts 1, 2, 3... within the aggregate, without holes, and is the only order in
// which an aggregate is read. Its position counts 1, 2, 3... in the whole archive, without holes, and is given
// after the commit ([Archive.Number], [Archive.CatchUp]). Its id is neither. Times are for people.
//
// # Upcast
//
// Stored events never change; where a payload has a new form, an upcaster brings the old one forward when it is read:
//
//	func renameItems(payload rea.Object) (rea.Object, error) {
//		payload["item_ids"] = payload["items"]
//		delete(payload, "items")
//		return payload, nil
//	}
//
// What cannot be read is an error that names type, version, aggregate and seq: [UnknownTypeError], [UpcastError], [DecodeError].
//
// # Refuse
//
//	_, err := tx.Append(ctx, ref, OrderShipped{})
//	var refused *rea.TransitionError
//	if errors.As(err, &refused) {
//		fmt.Println(refused.Event, refused.Status, refused.Legal)
//	}
//
// A refusal is a typed error with a class that errors.Is and [Code] tell, leaves nothing behind, and leaves the
// transaction usable.
//
// # Without types
//
// [Tx.Events] yields one aggregate by seq, [Tx.History] the archive by position, [Archive.Follow] does not stop
// there. [Tx.Load] folds an aggregate into a JSON object by the catalog, which package catalog reads from rea.yaml.
// [Replay] and [ReplayAt] fold it into a state with any function of the program's, or with [Merge], which needs no
// declaration.
//
// # Snapshots
//
// [Load] and [Tx.Load] begin at a stored copy of the state where one is of use, and store one in passing every 100 events
// ([Type].SnapshotEvery). The state is the same as without. Where the catalog folds by functions in Go, FoldVersion has to
// say when they change; 0: there are no snapshots.
//
// # Limits
//
// Types, ids, actors, keys and correlations: 1 to 200 bytes of UTF-8, no control characters (U+0000 to U+001F,
// U+007F to U+009F), no space (U+0020) at either end, compared byte by byte. Reasons: 1 to 4,096 bytes.
// Payloads: a JSON object, at most 16 MiB in the text form of PostgreSQL's jsonb and 900 containers deep, without
// duplicate keys, U+0000 or lone surrogates, numbers within numeric. Metadata: the same, 64 KiB.
// Events of one call: 10,000, with payloads of 32 MiB together. Times: years 1 to 9999, microseconds.
package rea
