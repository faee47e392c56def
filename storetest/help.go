package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

var (
	order1 = rea.Ref{Type: "order", ID: "1"}
	order2 = rea.Ref{Type: "order", ID: "2"}
)

// errStop is an error of the caller's.
var errStop = errors.New("stop")

// waits bounds what must not wait for anything.
const waits = 20 * time.Second

// event makes a new event; a payload of "" is none.
func event(kind string, payload ...string) rea.NewEvent {
	e := rea.NewEvent{Type: kind}
	if len(payload) > 0 {
		e.Payload = json.RawMessage(payload[0])
	}
	return e
}

// fresh opens an archive in a database of its own.
func (d *Door) fresh(t *testing.T) *Base {
	t.Helper()
	return d.Open(t, d.Migrated(t), rea.Config{})
}

// limited bounds whatever may hang, so that a failure has a name.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// begin begins a user's transaction, rolled back at the end of t if nobody ends it before.
func (b *Base) begin(t *testing.T) *Transaction {
	t.Helper()
	tx, err := b.Begin(limited(t))
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func (tx *Transaction) commit(t *testing.T) {
	t.Helper()
	if err := tx.Commit(limited(t)); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func (tx *Transaction) rollback(t *testing.T) {
	t.Helper()
	if err := tx.Rollback(limited(t)); err != nil {
		t.Fatalf("rollback: %v", err)
	}
}

func (tx *Transaction) exec(t *testing.T, statement string) {
	t.Helper()
	if err := tx.Exec(limited(t), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// run runs one statement in a transaction of its own.
func (b *Base) run(t *testing.T, statement string) {
	t.Helper()
	tx := b.begin(t)
	tx.exec(t, statement)
	tx.commit(t)
}

// text gives the one value of a query.
func (b *Base) text(t *testing.T, query string) string {
	t.Helper()
	tx := b.begin(t)
	got, err := tx.Text(limited(t), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	tx.rollback(t)
	return got
}

// put appends and must succeed.
func put(t *testing.T, tx *rea.Tx, aggregate rea.Ref, events ...rea.NewEvent) rea.Receipt {
	t.Helper()
	receipt, err := tx.Append(limited(t), aggregate, events)
	if err != nil {
		t.Fatalf("append to %s: %v", aggregate, err)
	}
	return receipt
}

// all drains an iterator that must not fail.
func all(t *testing.T, events iter.Seq2[rea.Event, error]) []rea.Event {
	t.Helper()
	var got []rea.Event
	for e, err := range events {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		got = append(got, e)
	}
	return got
}

// of reads the events of one aggregate.
func of(t *testing.T, tx *rea.Tx, aggregate rea.Ref) []rea.Event {
	t.Helper()
	return all(t, tx.Events(limited(t), aggregate, 0))
}

// history numbers what has committed and reads the archive by position.
func (b *Base) history(t *testing.T, filter rea.Filter) []rea.Event {
	t.Helper()
	if _, err := b.CatchUp(limited(t)); err != nil {
		t.Fatalf("catch up: %v", err)
	}
	return all(t, b.Autocommit().History(limited(t), filter))
}

func (b *Base) count(t *testing.T) int64 {
	t.Helper()
	n, err := b.Autocommit().Count(limited(t))
	if err != nil {
		t.Fatalf("count: %v", err)
	}
	return n
}

// story tells events in a line: "order/1#1 OrderPlaced, order/1#2 PaymentReceived".
func story(events []rea.Event) string {
	told := make([]string, len(events))
	for i, e := range events {
		told[i] = fmt.Sprintf("%s#%d %s", e.Aggregate, e.Seq, e.Type)
	}
	return strings.Join(told, ", ")
}

func seqs(receipt rea.Receipt) []int64 {
	var got []int64
	for _, s := range receipt.Events {
		got = append(got, s.Seq)
	}
	return got
}

// same reports a difference as `Seq = 3, want 4`.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s = %s, want %s", what, short(got), short(want))
	}
}

func short(v any) string {
	s := fmt.Sprintf("%+v", v)
	if b, ok := v.(json.RawMessage); ok {
		s = string(b)
	}
	if len(s) > 600 {
		s = fmt.Sprintf("%s... (%d bytes)", s[:600], len(s))
	}
	return s
}

// refused gives err as the typed error that it must be.
func refused[E error](t *testing.T, what string, err error) E {
	t.Helper()
	var want E
	if !errors.As(err, &want) {
		t.Fatalf("%s: error = %v, want a %T", what, err, want)
	}
	return want
}

// later runs fn beside the test, and gives its answer when that is asked for.
func later[T any](fn func() (T, error)) func() (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := fn()
		done <- answer{value, err}
	}()
	return func() (T, error) {
		a := <-done
		return a.value, a.err
	}
}

// waiting returns when a session waits for another one.
func (b *Base) waiting(t *testing.T) {
	t.Helper()
	if err := b.Waiting(limited(t)); err != nil {
		t.Fatalf("nobody waits for a lock: %v", err)
	}
}

// dense checks that every aggregate's seqs are 1..n, and that ids and positions rise with them.
func dense(t *testing.T, events []rea.Event) {
	t.Helper()
	last := map[rea.Ref]rea.Event{}
	for _, e := range events {
		before := last[e.Aggregate]
		if e.Seq != before.Seq+1 {
			t.Errorf("after seq %d of %s comes Seq = %d, want %d", before.Seq, e.Aggregate, e.Seq, before.Seq+1)
		}
		if e.ID <= before.ID {
			t.Errorf("%s: id of seq %d = %d, want more than %d", e.Aggregate, e.Seq, e.ID, before.ID)
		}
		last[e.Aggregate] = e
	}
}
