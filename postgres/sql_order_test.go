package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// Eight writers with transactions of random length, some rolled back, and two followers all the time.
func TestManyWritersAndTwoFollowersLoseNothing(t *testing.T) {
	t.Parallel()
	a, s, url := archive(t)
	const writers, appends = 8, 500
	pool := newPool(t, with(t, url, "pool_max_conns", "12"))
	var working, following sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type tally struct {
		count, sum int64
		seen       map[int64]bool
	}
	var tallies [2]tally
	var last [2]chan int64
	for i := range tallies {
		tallies[i].seen, last[i] = map[int64]bool{}, make(chan int64, writers*appends+1)
		follower := open(t, url)
		following.Go(func() {
			seqs := map[rea.Ref]int64{}
			for e, err := range follower.Follow(ctx, rea.Filter{}) {
				if err != nil {
					t.Errorf("follower %d: %v", i, err)
					return
				}
				var n int64
				_, _ = fmt.Sscanf(string(e.Payload), `{"n": %d}`, &n)
				if tallies[i].seen[e.ID] || e.Seq != seqs[e.Aggregate]+1 || e.Position != tallies[i].count+1 {
					t.Errorf("follower %d: position %d, id %d, %s seq %d after seq %d, want each once, in order", i, e.Position, e.ID, e.Aggregate, e.Seq, seqs[e.Aggregate])
				}
				tallies[i].seen[e.ID], seqs[e.Aggregate] = true, e.Seq
				tallies[i].count, tallies[i].sum = tallies[i].count+1, tallies[i].sum+n
				last[i] <- e.Position
			}
		})
	}
	for w := range writers {
		working.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for n := range appends {
				tx, err := pool.Begin(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = a.Tx(tx).Append(ctx, rea.Ref{Type: "order", ID: fmt.Sprint(random.IntN(50))},
					rea.NewEvent{Type: "X", Payload: fmt.Appendf(nil, `{"n": %d}`, n)})
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
				// the case's own input: transactions end in another order than they began
				if _, err := tx.Exec(ctx, `SELECT pg_sleep($1)`, random.Float64()*0.02); err != nil {
					t.Error(err)
				}
				end := tx.Commit
				if random.IntN(20) == 0 {
					end = tx.Rollback
				}
				if err := end(ctx); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	working.Wait()
	head, err := a.CatchUp(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	limit := time.After(time.Minute)
	for i := range last {
		for position := int64(0); position < head; {
			select {
			case position = <-last[i]:
			case <-limit:
				t.Fatalf("follower %d is at position %d a minute after the writers stopped, want %d", i, position, head)
			}
		}
	}
	cancel()
	following.Wait()
	for i := range tallies {
		same(t, fmt.Sprint("count and sum of follower ", i), fmt.Sprint(tallies[i].count, " ", tallies[i].sum),
			s.text(`SELECT count(*), sum((payload->>'n')::int)::bigint FROM rea.events`))
	}
	s.want("", denseSQL)
}
