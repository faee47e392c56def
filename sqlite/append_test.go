package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

func TestBatchKeepsEveryByte(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	payloads := []string{
		`{}`, `{"n": 0.10, "big": 12345678901234567890.123456789}`, `{"s": "\"\\\u0001<>&\u2028 é 😀 ' "}`,
		`{"a": ` + strings.Repeat("[", 899) + strings.Repeat("]", 899) + `}`, `{"?1": "'; DROP TABLE rea_events; --"}`,
	}
	var events []rea.NewEvent
	for i, p := range payloads {
		e := event(fmt.Sprintf(`Type "%d" \ ? 😀`, i), p)
		e.Version = i
		events = append(events, e)
	}
	mustAppend(t, archive.Autocommit(), order(0), event("Placed", `{}`))
	batch := mustAppend(t, archive.Autocommit().With(rea.Once("k"), rea.By("ann"), rea.Because("test"), rea.Metadata([]byte(`{"m": 1}`))), order(1), events...)
	for _, e := range events {
		mustAppend(t, archive.Autocommit(), order(2), e)
	}
	for _, id := range []int{1, 2} {
		i := 0
		for e, err := range archive.Autocommit().Events(t.Context(), order(id), 0) {
			if err != nil {
				t.Fatal(err)
			}
			want, _ := rea.NormalizeObject([]byte(payloads[i]), "payload", 0)
			if string(e.Payload) != string(want) || e.Type != events[i].Type || e.Version != max(i, 1) {
				t.Errorf("%s seq %d: %s %d %s", e.Aggregate, e.Seq, e.Type, e.Version, e.Payload)
			}
			if id == 1 && (e.ID != batch.Events[i].ID || e.Seq != batch.Events[i].Seq || e.Actor != "ann" || string(e.Metadata) != `{"m": 1}` || (e.Key == "k") != (i == 0) || (e.KeyEvents == len(events)) != (i == 0)) {
				t.Errorf("event %d: %+v, receipt %+v", i, e, batch.Events[i])
			}
			i++
		}
		if i != len(payloads) {
			t.Errorf("%d events, want %d", i, len(payloads))
		}
	}
}

func TestMostEventsOfOneCall(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	events := make([]rea.NewEvent, rea.MaxCallEvents)
	for i := range events {
		events[i] = event("Noted", fmt.Sprintf(`{"n": %d}`, i))
	}
	receipt := mustAppend(t, archive.Autocommit().With(rea.Once("k")), order(1), events...)
	again := mustAppend(t, archive.Autocommit().With(rea.Once("k"), rea.Expect(0)), order(1), events...)
	if receipt.Seq() != rea.MaxCallEvents || !again.Duplicate || again.Seq() != receipt.Seq() || again.Events[0] != receipt.Events[0] {
		t.Errorf("Seq = %d, again %d, duplicate %v", receipt.Seq(), again.Seq(), again.Duplicate)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	tx := archive.Autocommit()
	v2 := event("Paid", `{"cents": 1.0}`)
	v2.Version = 2
	mustAppend(t, tx, order(1), event("Placed", `{}`))
	mustAppend(t, tx.With(rea.Once("k")), order(1), v2, event("Noted", `{}`))
	mustAppend(t, tx, order(1), event("Noted", `{}`))
	v1 := v2
	v1.Version = 1
	for name, c := range map[string]struct {
		events []rea.NewEvent
		same   bool
	}{
		"the same":              {[]rea.NewEvent{v2, event("Noted", `{}`)}, true},
		"version not said":      {[]rea.NewEvent{event("Paid", `{"cents":1.00}`), event("Noted", `{}`)}, true},
		"another version":       {[]rea.NewEvent{v1, event("Noted", `{}`)}, false},
		"another payload":       {[]rea.NewEvent{event("Paid", `{"cents": 2}`), event("Noted", `{}`)}, false},
		"another order":         {[]rea.NewEvent{event("Noted", `{}`), v2}, false},
		"fewer":                 {[]rea.NewEvent{v2}, false},
		"more, as stored after": {[]rea.NewEvent{v2, event("Noted", `{}`), event("Noted", `{}`)}, false},
	} {
		receipt, err := tx.With(rea.Once("k"), rea.Expect(0)).Append(t.Context(), order(1), c.events)
		var reused *rea.KeyReusedError
		if c.same && (err != nil || !receipt.Duplicate || receipt.Events[0].Seq != 2 || receipt.Seq() != 3) {
			t.Errorf("%s: %+v, %v", name, receipt, err)
		}
		if !c.same && (!errors.As(err, &reused) || reused.Seq != 2) {
			t.Errorf("%s: %v, want *KeyReusedError at seq 2", name, err)
		}
	}
	if n := count(t, archive); n != 4 {
		t.Errorf("%d events are stored, want 4", n)
	}
}

// Callers that wait together share a transaction, and each gets its own answer.
func TestAppendsTogether(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	const callers, each = 40, 20
	var stored, conflicts int
	var mu sync.Mutex
	var wg sync.WaitGroup
	release := make(chan struct{})
	go func() { // holds the turn until everybody waits
		_ = archive.Do(t.Context(), func(*rea.Tx) error { <-release; return nil })
	}()
	for i := range callers {
		wg.Go(func() {
			for n := range each {
				_, err := archive.Autocommit().With(rea.Expect(0)).Append(t.Context(), order(n), event("Placed", `{}`))
				own := mustAppend(t, archive.Autocommit(), rea.Ref{Type: "own", ID: fmt.Sprint(i)}, event("Noted", `{}`), event("Noted", `{}`))
				mu.Lock()
				if err == nil {
					stored++
				} else if errors.Is(err, rea.ErrConflict) {
					conflicts++
				}
				if own.Seq() != int64(2*n+2) {
					t.Errorf("Seq = %d, want %d", own.Seq(), 2*n+2)
				}
				mu.Unlock()
			}
		})
	}
	close(release)
	wg.Wait()
	if stored != each || conflicts != each*(callers-1) || count(t, archive) != int64(each+2*callers*each) {
		t.Errorf("%d stored, %d conflicts, %d events", stored, conflicts, count(t, archive))
	}
	calls := map[string]string{}
	for e, err := range archive.Autocommit().History(t.Context(), rea.Filter{Type: ""}) {
		if err != nil {
			t.Fatal(err)
		}
		if other, known := calls[e.XID]; known && other != e.Aggregate.String() {
			t.Fatalf("xid %s is shared by %s and %s", e.XID, other, e.Aggregate)
		}
		calls[e.XID] = e.Aggregate.String()
	}
}

func TestCallerThatGivesUpStoresNothing(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	err := archive.Do(t.Context(), func(*rea.Tx) error {
		ctx, cancel := context.WithTimeout(t.Context(), shortWait)
		defer cancel()
		if _, err := archive.Autocommit().Append(ctx, order(1), event("Placed", `{}`)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want DeadlineExceeded", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, archive.Autocommit(), order(2), event("Placed", `{}`))
	if n := count(t, archive); n != 1 {
		t.Errorf("%d events are stored, want 1", n)
	}
}

func TestImportLines(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	at := time.Date(2024, 6, 1, 12, 0, 0, 123456000, time.UTC)
	line := func(seq int64, name, payload string) rea.Line {
		return rea.Line{Aggregate: order(1), Event: rea.NewEvent{Type: name, Payload: json.RawMessage(payload)}, Seq: seq, CreatedAt: at}
	}
	keyed := line(0, "Paid", `{"n": 1}`)
	keyed.Key = "k"
	other := keyed
	other.Event.Type = "Refunded"
	later := line(1, "Placed", `{"n": 1.0}`)
	later.CreatedAt = at.Add(time.Microsecond)
	lines := []rea.Line{
		line(1, "Placed", `{"n": 1.0}`), line(1, "Placed", `{"n": 1.00}`), line(1, "Placed", `{"n": 2}`), later, line(3, "Paid", `{}`),
		keyed, keyed, other, line(0, "Shipped", `{}`),
	}
	want := []string{"stored", "duplicate", "conflict", "conflict", "hole", "stored", "duplicate", "key_reused", "stored"}
	check := func(round string, want []string) {
		err := archive.Do(t.Context(), func(tx *rea.Tx) error {
			results, err := tx.Import(t.Context(), lines)
			for i, r := range results {
				got := rea.Code(r.Err)
				if r.Duplicate {
					got = "duplicate"
				} else if r.Err == nil {
					got = "stored"
				}
				if got != want[i] {
					t.Errorf("%s, line %d: %s (%v), want %s", round, i+1, got, r.Err, want[i])
				}
			}
			return errors.Join(err, tx.SaveImportProgress(t.Context(), rea.ImportProgress{Source: "sum", Name: round, Lines: 9, Stored: 3, Duplicates: 2, Rejected: 4, Done: true}))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	check("first", want)
	if p, err := archive.Autocommit().ImportProgress(t.Context(), "sum"); err != nil || p.Lines != 9 || !p.Done || p.Name != "first" {
		t.Errorf("progress = %+v, %v", p, err)
	}
	if p, err := archive.Autocommit().ImportProgress(t.Context(), "none"); err != nil || p != (rea.ImportProgress{}) {
		t.Errorf("progress = %+v, %v, want none", p, err)
	}
	for e, err := range archive.Autocommit().Events(t.Context(), order(1), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if !e.CreatedAt.Equal(at) || e.RecordedAt.IsZero() || e.XID != "1" || (e.Key == "k") != (e.KeyEvents == 1) {
			t.Errorf("event = %+v", e)
		}
	}
	lines = lines[:4]
	check("again", []string{"duplicate", "duplicate", "conflict", "conflict"})
}

func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 8, 32} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			archive := newArchive(b)
			var wg sync.WaitGroup
			next := make(chan int)
			for range callers {
				wg.Go(func() {
					for n := range next {
						mustAppend(b, archive.Autocommit(), order(n%1000), event("Noted", `{"text": "some text of a common length", "amount": 9980}`))
					}
				})
			}
			b.ResetTimer()
			for n := range b.N {
				next <- n
			}
			close(next)
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

func BenchmarkBatch(b *testing.B) {
	archive := newArchive(b)
	events := make([]rea.NewEvent, 1000)
	for i := range events {
		events[i] = event("Noted", `{"text": "some text of a common length", "amount": 9980}`)
	}
	b.ResetTimer()
	for n := range b.N {
		mustAppend(b, archive.Autocommit(), order(n), events...)
	}
	b.ReportMetric(float64(b.N*1000)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkImport(b *testing.B) {
	archive := newArchive(b)
	lines := make([]rea.Line, 1000)
	b.ResetTimer()
	for n := range b.N {
		for i := range lines {
			lines[i] = rea.Line{Aggregate: order(n*100 + i%100), Event: event("Noted", `{"text": "some text of a common length", "amount": 9980}`), Seq: int64(i/100 + 1), Actor: "42", CreatedAt: time.Now().Truncate(time.Microsecond)}
		}
		err := archive.Do(b.Context(), func(tx *rea.Tx) error {
			results, err := tx.Import(b.Context(), lines)
			for _, r := range results {
				if r.Err != nil || r.Duplicate {
					b.Fatal(r)
				}
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*1000)/b.Elapsed().Seconds(), "lines/s")
}
