package main

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// contender is one way to do the work of a group: the limit or one of REA's paths.
type contender struct {
	name  string
	slice func(ctx context.Context, d time.Duration) (sample, error)
}

// sample is what one slice gave.
type sample struct {
	events  int64
	elapsed time.Duration
	cpu     time.Duration // of the backends; 0: not known
}

func (s sample) rate() float64        { return float64(s.events) / s.elapsed.Seconds() }
func (s sample) cpuPerEvent() float64 { return float64(s.cpu.Nanoseconds()) / float64(s.events) / 1000 } // microseconds

// operation does one unit of work as client number worker and returns how many events that was.
type operation func(ctx context.Context, worker int) (int, error)

// closedLoop makes a contender of n workers that repeat op until the time is over, at least once; an op that has begun
// is finished and counted. pids are the backends whose CPU counts.
func closedLoop(name string, n int, pids []uint32, op operation) contender {
	return contender{name, func(ctx context.Context, d time.Duration) (sample, error) {
		var events atomic.Int64
		var wait sync.WaitGroup
		errs := make([]error, n)
		before, err := cpuOf(pids)
		if err != nil {
			return sample{}, err
		}
		start := time.Now()
		for worker := range n {
			wait.Go(func() {
				for {
					var done int
					done, errs[worker] = op(ctx, worker)
					events.Add(int64(done))
					if errs[worker] != nil || time.Since(start) >= d {
						return
					}
				}
			})
		}
		wait.Wait()
		s := sample{events: events.Load(), elapsed: time.Since(start)}
		for _, err := range errs {
			if err != nil {
				return s, err
			}
		}
		after, err := cpuOf(pids)
		s.cpu = after - before
		return s, err
	}}
}

// duel is what interleave gives for one contender.
type duel struct {
	limit, path []sample // a slice each per round; limit: the mean of the two around it
	again       []sample // the limit's second slice over its first: events and cpu are not sums here
	first       []sample
}

// interleave runs, in every round, the limit, each path, and the limit again. The order of the paths turns with the
// rounds. A short slice of each comes before and does not count: plans, caches and pages of tables are then there.
func interleave(ctx context.Context, rounds int, d time.Duration, limit contender, paths ...contender) ([]duel, error) {
	for _, c := range append([]contender{limit}, paths...) {
		if _, err := c.slice(ctx, d/2); err != nil {
			return nil, err
		}
	}
	duels := make([]duel, len(paths))
	for round := range rounds {
		first, err := limit.slice(ctx, d)
		if err != nil {
			return nil, err
		}
		got := make([]sample, len(paths))
		for i := range paths {
			at := (i + round) % len(paths)
			if got[at], err = paths[at].slice(ctx, d); err != nil {
				return nil, err
			}
		}
		second, err := limit.slice(ctx, d)
		if err != nil {
			return nil, err
		}
		both := sample{first.events + second.events, first.elapsed + second.elapsed, first.cpu + second.cpu}
		for i := range duels {
			duels[i].limit, duels[i].path = append(duels[i].limit, both), append(duels[i].path, got[i])
			duels[i].first, duels[i].again = append(duels[i].first, first), append(duels[i].again, second)
		}
	}
	return duels, nil
}

// ratio is the median over the rounds of of(path) / of(limit), with the band of the limit against itself.
func (d duel) ratio(of func(sample) float64) (ratio float64, band [2]float64) {
	var ratios, alike []float64
	for i := range d.path {
		ratios = append(ratios, of(d.path[i])/of(d.limit[i]))
		alike = append(alike, of(d.again[i])/of(d.first[i]))
	}
	return median(ratios), [2]float64{quantile(alike, 0.25), quantile(alike, 0.75)}
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile is the nearest value: 0.5 the median, 0.99 what one of a hundred is above.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func mediansOf(samples []sample, of func(sample) float64) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, of(s))
	}
	return median(values)
}
