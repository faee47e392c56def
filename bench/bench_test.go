package main

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

func TestMain(m *testing.M) {
	pgtest.Main(m, pgtest.Migrated("bench", func(ctx context.Context, url string) error {
		archive, err := postgres.Open(ctx, url, postgres.Config{})
		if err != nil {
			return err
		}
		defer archive.Close()
		return archive.Migrate(ctx, nil)
	}))
}

// BenchmarkAppend counts what one append allocates in the program:
//
//	go test ./bench -bench Append -run '^$'
func BenchmarkAppend(b *testing.B) {
	archive, err := postgres.Open(b.Context(), pgtest.Database(b), postgres.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer archive.Close()
	tx, f := archive.Autocommit(), newFlow(new(atomic.Int64), 1)
	b.ReportAllocs()
	for b.Loop() {
		e := f.next()
		if err := appendGo(b.Context(), tx, e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNormalize is the part of an append that needs no database.
func BenchmarkNormalize(b *testing.B) {
	payload := json.RawMessage(payloadOf(7, 1, 9980))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rea.NormalizeObject(payload, "payload", rea.MaxPayloadBytes); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAVerdictKnowsNoise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target target
		figure float64
		want   string
	}{
		{atLeast(0.90), 0.90, "ok"},
		{atLeast(0.90), 0.80, "noise"},
		{atLeast(0.90), 0.70, "missed"},
		{atMost(1.35), 1.35, "ok"},
		{atMost(1.35), 1.45, "noise"},
		{atMost(1.35), 1.60, "missed"},
		{target{}, 7, "info"},
	} {
		if got := c.target.verdict(c.figure, [2]float64{0.86, 1.09}); got != c.want {
			t.Errorf("verdict of %.2f for %s = %s, want %s", c.figure, c.target, got, c.want)
		}
	}
}

func TestFlowsOfOneSeedAreAlike(t *testing.T) {
	t.Parallel()
	a, b := newFlow(new(atomic.Int64), 1), newFlow(new(atomic.Int64), 1)
	last := make(map[int64]int64)
	for range 1_000 {
		x, y := a.next(), b.next()
		if x != y {
			t.Fatalf("events = %v and %v, want the same", x, y)
		}
		if x.seq != last[x.aggregate]+1 {
			t.Fatalf("seq of order %d = %d after %d", x.aggregate, x.seq, last[x.aggregate])
		}
		last[x.aggregate] = x.seq
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	values := []float64{5, 1, 4, 2, 3}
	if got := median(values); got != 3 {
		t.Errorf("median = %v, want 3", got)
	}
	if got := quantile(values, 0.99); got != 5 {
		t.Errorf("p99 = %v, want 5", got)
	}
}
