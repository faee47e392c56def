package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
)

func TestALostRaceUnderASnapshotIsARetry(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			a, _, url := archive(t)
			pool := newPool(t, url)
			put(t, a.Autocommit(), order1, "A")
			begin := func() pgx.Tx {
				tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
				return tx
			}
			stale := begin()
			if _, err := rea.Replay(t.Context(), a.Tx(stale), order1, rea.Merge); err != nil {
				t.Fatal(err)
			}
			put(t, a.Autocommit(), order1, "Meanwhile")
			_, err := a.Tx(stale).Append(t.Context(), order1, rea.NewEvent{Type: "B"})
			if !errors.Is(err, rea.ErrRetry) || stateOf(err) != "40001" {
				t.Errorf("append behind the snapshot = %v, want ErrRetry with SQLSTATE 40001", err)
			}
			again := begin()
			put(t, a.Tx(again).With(rea.Expect(2)), order1, "B")
			if err := again.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, "history", positions(t, a.Archive), "order/1#1 order/1#2 order/1#3")
		})
	}
}

func TestADeadlockIsARetryAndDoRunsAgain(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	a := open(t, with(t, url, "deadlock_timeout", "20ms"))
	order2 := rea.Ref{Type: "order", ID: "2"}
	var firsts sync.WaitGroup // both have appended once: the deadlock is forced
	firsts.Add(2)
	var runs [2]int
	var callers sync.WaitGroup
	for i, refs := range [2][2]rea.Ref{{order1, order2}, {order2, order1}} {
		callers.Go(func() {
			err := a.Do(t.Context(), func(tx *rea.Tx) error {
				runs[i]++
				if _, err := tx.Append(t.Context(), refs[0], rea.NewEvent{Type: "X"}); err != nil {
					return err
				}
				if runs[i] == 1 {
					firsts.Done()
					firsts.Wait()
				}
				_, err := tx.Append(t.Context(), refs[1], rea.NewEvent{Type: "X"})
				return err
			})
			if err != nil {
				t.Errorf("Do of caller %d: %v", i, err)
			}
		})
	}
	callers.Wait()
	if runs[0]+runs[1] < 3 {
		t.Errorf("runs = %v, want one caller to have run again", runs)
	}
	s.want("order/1 2, order/2 2", `SELECT aggregate_type || '/' || aggregate_id, count(*) FROM rea.events GROUP BY 1 ORDER BY 1`)
	s.want("", denseSQL)
}

// crossing is the case of two callers who append to two aggregates in opposite orders.
func crossing(t *testing.T, rounds int, once func(ctx context.Context, refs [2]rea.Ref) error) {
	t.Helper()
	order2 := rea.Ref{Type: "order", ID: "2"}
	var callers sync.WaitGroup
	for _, refs := range [2][2]rea.Ref{{order1, order2}, {order2, order1}} {
		callers.Go(func() {
			for round := range rounds {
				if err := once(t.Context(), refs); err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
			}
		})
	}
	callers.Wait()
}

func appendBoth(ctx context.Context, tx *rea.Tx, refs [2]rea.Ref) error {
	for _, ref := range refs {
		if _, err := tx.Append(ctx, ref, rea.NewEvent{Type: "X"}); err != nil {
			return err
		}
	}
	return nil
}

func TestTwoCallersWhoCrossAllFinish(t *testing.T) {
	t.Parallel()
	const rounds = 500
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			_, s, url := archive(t)
			a := open(t, with(t, url, "deadlock_timeout", "5ms"))
			pool := newPool(t, with(t, url, "deadlock_timeout", "5ms"))
			crossing(t, rounds, func(ctx context.Context, refs [2]rea.Ref) error {
				if level == pgx.ReadCommitted {
					return a.Do(ctx, func(tx *rea.Tx) error { return appendBoth(ctx, tx, refs) })
				}
				for { // a user's own loop; the commit's error comes from the driver itself
					err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
						return appendBoth(ctx, a.Tx(tx), refs)
					})
					if !errors.Is(err, rea.ErrRetry) && stateOf(err) != "40001" {
						return err
					}
				}
			})
			s.want(fmt.Sprintf("1 %d, 2 %d", 2*rounds, 2*rounds), `SELECT aggregate_id, count(*) FROM rea.events GROUP BY 1 ORDER BY 1`)
			s.want("", denseSQL)
		})
	}
}

// Seven sessions wait behind an eighth; each appends twice to one aggregate, and all commit.
func TestEightSessionsOnOneAggregateAreAllStoredInTheOrderOfTheirSeqs(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	const sessions = 8
	first := connect(t, url)
	first.do(`BEGIN`)
	first.do(`SELECT * FROM rea.append('order', '1', 'First')`)
	var others sync.WaitGroup
	for i := range sessions - 1 {
		other := connect(t, url)
		others.Go(func() {
			for range 5 {
				if err := other.try(`BEGIN; SELECT * FROM rea.append('order', '1', 'Placed'); SELECT * FROM rea.append('order', '1', 'Paid'); COMMIT`); err != nil {
					t.Errorf("session %d: %v", i, err)
					return
				}
			}
		})
	}
	s.waitFor(fmt.Sprint(sessions-1), waiters)
	first.do(`COMMIT`)
	others.Wait()
	s.want(fmt.Sprint(1+2*5*(sessions-1)), `SELECT count(*) FROM rea.events`)
	s.want("", denseSQL)
}

// Behind a pooler in transaction mode each call may meet another backend that knows of no prepared statement.
func TestEveryCallOnAnotherBackend(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			_, s, url := archive(t)
			config, err := pgxpool.ParseConfig(url)
			if err != nil {
				t.Fatal(err)
			}
			config.ConnConfig.DefaultQueryExecMode = mode
			config.AfterRelease = func(*pgx.Conn) bool { return false }
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			a, err := postgres.New(pool, counting(t))
			if err != nil {
				t.Fatal(err)
			}
			appendAll(t, a.Archive)
			readAll(t, a.Archive)
			if err := a.Migrate(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			s.want("", denseSQL)
			t.Run("runs", func(t *testing.T) {
				runs(t, a)
				has(t, a, put(t, a.Autocommit(), rea.Ref{Type: "order", ID: "counted"}, "A", "A"))
			})
			for _, name := range []string{"hourly", "orders"} {
				if err := errors.Join(a.Rebuild(t.Context(), name, nil), a.CheckProjection(t.Context(), name, func(d rea.Drift) { t.Errorf("%+v", d) })); err != nil {
					t.Error(err)
				}
			}
			s.want("2", `SELECT n FROM rea_views.orders WHERE aggregate_id = 'counted'`)
			if pool.Stat().NewConnsCount() < 10 {
				t.Errorf("connections made = %d, want one a call", pool.Stat().NewConnsCount())
			}
		})
	}
}

func TestAServerThatTakesNoWritesIsNamedAndReadAndThenWrittenAgain(t *testing.T) {
	t.Parallel()
	a, s, url := archive(t)
	put(t, a.Autocommit(), order1, "A")
	positions(t, a.Archive)
	standby := open(t, with(t, url, "default_transaction_read_only", "on"))
	_, err := standby.Autocommit().Append(t.Context(), order1, rea.NewEvent{Type: "X"})
	same(t, "code of an append", rea.Code(err), "read_only")
	err = standby.Do(t.Context(), func(tx *rea.Tx) error {
		_, err := tx.Append(t.Context(), order1, rea.NewEvent{Type: "X"})
		return err
	})
	same(t, "code of Do", rea.Code(err), "read_only")
	put(t, a.Autocommit(), order1, "Unnumbered")
	head, err := standby.CatchUp(t.Context())
	same(t, "CatchUp", fmt.Sprint(head, " ", rea.Code(err)), "1 read_only")
	same(t, "history where nothing can be numbered", positions(t, standby.Archive), "order/1#1")
	same(t, "history where it can", positions(t, a.Archive), "order/1#1 order/1#2")
	same(t, "history afterwards", positions(t, standby.Archive), "order/1#1 order/1#2")
	s.want("2", `SELECT count(*) FROM rea.events`)
}
