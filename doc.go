// Package rea keeps the history of business objects as an ordered, immutable table of events in the database
// that the program has already, each event written in the transaction of the change itself.
//
//	archive, err := sqlite.Open(ctx, "shop.db", sqlite.Config{}) // or postgres.Open
//	order := rea.Ref{Type: "order", ID: "10086"}
//	err = archive.Do(ctx, func(tx *rea.Tx) error {
//		_, err := tx.With(rea.By("42"), rea.Because("webhook")).Append(ctx, order,
//			rea.NewEvent{Type: "PaymentReceived", Payload: []byte(`{"amount": 9980}`)})
//		return err
//	})
//
// # Words
//
// An aggregate is one business object, named by a [Ref]. An [Event] is an immutable fact about one aggregate.
// Its seq counts 1, 2, 3... within the aggregate, without holes, and is the only order in which an aggregate is
// read. Its position counts 1, 2, 3... in the whole archive, without holes, and is given after the commit
// ([Archive.Number], [Archive.CatchUp]). Its id is neither. Times are for people.
//
// # Appending
//
// A [Tx] is REA in one transaction: the user's own (Tx and SQLTx of the store's Archive), one of REA's
// ([Archive.Do]), or none ([Archive.Autocommit]). [Tx.Append] stores events of one aggregate, all or nothing.
// [Expect] says which seq the caller believes to be the last, [Once] makes a repeated call harmless.
// A refusal is a typed error with a class that errors.Is and [Code] tell, leaves nothing behind, and leaves the
// transaction usable.
//
// # Reading
//
// [Tx.Events] yields one aggregate by seq, [Tx.History] the archive by position, [Archive.Follow] does not stop
// there. [Replay] and [ReplayAt] fold an aggregate into a state with any function of the program's, or with [Merge],
// which needs no declaration.
//
// # Limits
//
// Types, ids, actors, keys and correlations: 1 to 200 bytes of UTF-8, no control characters (U+0000 to U+001F,
// U+007F to U+009F), no space (U+0020) at either end, compared byte by byte. Reasons: 1 to 4,096 bytes.
// Payloads: a JSON object, at most 16 MiB in the text form of PostgreSQL's jsonb and 900 containers deep, without
// duplicate keys, U+0000 or lone surrogates, numbers within numeric. Metadata: the same, 64 KiB.
// Events of one call: 10,000, with
// payloads of 32 MiB together. Times: years 1 to 9999, microseconds.
package rea
