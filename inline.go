package rea

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// Inline is a function of the program's that keeps its tables in the transaction of each append: rows and event are
// there together, or neither is.
type Inline struct {
	// Name stands in errors: 1 to 200 bytes, and no other function has it.
	Name string
	// Of is the aggregate type whose events it gets. "": all.
	Of string
	// Apply gets each event once, by seq, after the append that stored it: complete as it is stored (on PostgreSQL without
	// a Position, which comes after the commit), brought forward to its newest version by Config.Catalog where that
	// knows the type, retired ones left out. Its error, and that of a statement that failed in it, refuses the whole
	// append with a *ProjectionError. It writes through tx alone, which ends with the call, and keeps nothing in
	// memory: the transaction may still be rolled back, and Do runs again. It appends nothing, which is an error.
	Apply func(ctx context.Context, tx SQL, e Event) error
}

// checkInline checks the functions once, when an archive is made.
func checkInline(list []Inline) error {
	names := map[string]bool{}
	for i, fn := range list {
		if err := checkName(fmt.Sprintf("Config.Inline[%d].Name", i), fn.Name); err != nil {
			return err
		}
		switch {
		case fn.Apply == nil:
			return fmt.Errorf("rea: the inline function %s has no Apply", clip(fn.Name))
		case names[fn.Name]:
			return fmt.Errorf("rea: two inline functions are called %s: give each a name of its own", clip(fn.Name))
		}
		if fn.Of != "" {
			if err := checkName(fmt.Sprintf("Config.Inline[%d].Of", i), fn.Of); err != nil {
				return err
			}
		}
		names[fn.Name] = true
	}
	return nil
}

func (a *Archive) hasInline(aggregateType string) bool {
	return slices.ContainsFunc(a.config.Inline, func(fn Inline) bool { return fn.Of == "" || fn.Of == aggregateType })
}

// appendInline is the append of an archive that has inline functions.
func (tx *Tx) appendInline(ctx context.Context, call Call) (receipt Receipt, err error) {
	if err := tx.archive.outside(ctx, "append to "+call.Aggregate.String()); err != nil {
		return Receipt{}, err
	}
	if !tx.archive.hasInline(call.Aggregate.Type) {
		if err := tx.takeTurn(ctx); err != nil {
			return Receipt{}, err
		}
		defer tx.giveTurn()
		return tx.session.Append(ctx, call)
	}
	err = tx.whole(ctx, func(tx *Tx, db SQL) error {
		stored, err := tx.session.Append(ctx, call)
		if err == nil && !stored.Duplicate {
			err = tx.apply(ctx, db, call.Aggregate, stored.Events[0].Seq, stored.Seq())
		}
		receipt = stored
		return err
	})
	if err != nil {
		return Receipt{}, err
	}
	return receipt, nil
}

// importInline is the import of an archive that has inline functions. They run when all lines of the call are stored, in
// the order of the lines; an error of one leaves nothing of the call.
func (tx *Tx) importInline(ctx context.Context, lines []Line) (results []LineResult, err error) {
	if err := tx.archive.outside(ctx, "import"); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(lines, func(l Line) bool { return tx.archive.hasInline(l.Aggregate.Type) }) {
		if err := tx.takeTurn(ctx); err != nil {
			return nil, err
		}
		defer tx.giveTurn()
		return tx.session.(OwnSession).Import(ctx, lines)
	}
	err = tx.whole(ctx, func(tx *Tx, db SQL) (err error) {
		if results, err = tx.session.(OwnSession).Import(ctx, lines); err != nil {
			return err
		}
		applies := func(i int) bool {
			return results[i].Err == nil && !results[i].Duplicate && tx.archive.hasInline(lines[i].Aggregate.Type)
		}
		for i := 0; i < len(lines); i++ {
			if !applies(i) {
				continue
			}
			aggregate, first := lines[i].Aggregate, results[i].Seq
			for i+1 < len(lines) && applies(i+1) && lines[i+1].Aggregate == aggregate && results[i+1].Seq == results[i].Seq+1 {
				i++
			}
			if err := tx.apply(ctx, db, aggregate, first, results[i].Seq); err != nil {
				return err
			}
		}
		return nil
	})
	return results, err
}

// whole runs fn all or nothing: in a transaction of its own where tx is in none, else in a savepoint, so that what is there
// stays usable.
func (tx *Tx) whole(ctx context.Context, fn func(tx *Tx, db SQL) error) error {
	transaction := tx.session.Transaction()
	if transaction == nil {
		_, err := tx.archive.once(ctx, func(own *Tx) error { return fn(own, own.session.Transaction()) })
		return err
	}
	if err := tx.takeTurn(ctx); err != nil {
		return err
	}
	defer tx.giveTurn()
	return transaction.Savepoint(ctx, func() error { return fn(tx, transaction) })
}

// takeTurn lets the goroutines of one transaction append one after the other: going back to a savepoint would take along
// what another one was told is stored.
func (tx *Tx) takeTurn(ctx context.Context) error {
	if tx.turn == nil {
		return nil
	}
	select {
	case tx.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("rea: wait for another append in the same transaction: %w", ctx.Err())
	}
}

func (tx *Tx) giveTurn() {
	if tx.turn != nil {
		<-tx.turn
	}
}

// apply reads back what was stored, a page at a time, and hands it to the functions.
func (tx *Tx) apply(ctx context.Context, db SQL, aggregate Ref, first, last int64) error {
	for after := first - 1; after < last; {
		page, _, err := tx.session.Events(ctx, Stretch{Aggregate: aggregate, After: after, Limit: int(min(last-after, int64(tx.archive.config.PageEvents)))}, nil)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return fmt.Errorf("rea: append to %s: seq %d cannot be read back: inline functions take the right to read events", aggregate, after+1)
		}
		for _, e := range page {
			after = e.Seq
			e, ignore, err := tx.archive.config.Catalog.Upcast(e)
			if err != nil {
				return err
			}
			if ignore {
				continue
			}
			for _, fn := range tx.archive.config.Inline {
				if fn.Of != "" && fn.Of != aggregate.Type {
					continue
				}
				if err := tx.archive.call(ctx, fn, db, e); err != nil {
					return &ProjectionError{Aggregate: aggregate, Projection: fn.Name, Event: e.Type, Seq: e.Seq, Err: err}
				}
			}
		}
	}
	return nil
}

func (a *Archive) call(ctx context.Context, fn Inline, db SQL, e Event) error {
	lent := &lent{db: db}
	defer lent.state.Store(returned) // also after a panic
	if err := fn.Apply(context.WithValue(ctx, insideOf{a}, fn.Name), lent, e); err != nil {
		return err
	}
	if lent.state.Swap(returned) == running {
		return errors.New("it has returned while a statement of it was running: wait for that")
	}
	return lent.failed
}

// insideOf is the key of contexts that an archive has handed to an inline function.
type insideOf struct{ *Archive }

// outside refuses what an inline function asks of its own archive: on SQLite it would wait for itself, elsewhere it would
// be another transaction.
func (a *Archive) outside(ctx context.Context, doing string) error {
	if name, inside := ctx.Value(insideOf{a}).(string); inside {
		return fmt.Errorf("rea: %s: the inline function %s appends nothing: do it in Archive.Do, after the append that calls it", doing, clip(name))
	}
	return nil
}

// lent is the transaction as one call of a function has it.
type lent struct {
	db     SQL
	state  atomic.Int32
	failed error // of the first statement that the database refused
}

// The states of a lent transaction.
const (
	free int32 = iota
	running
	returned
)

// take keeps one statement at a time on the connection, alike on all doors.
func (l *lent) take() error {
	if l.state.CompareAndSwap(free, running) {
		return nil
	}
	if l.state.Load() == returned {
		return errors.New("rea: the inline function has returned: its transaction is not lent any more")
	}
	return errors.New("rea: another statement is running in this transaction: collect the rows of a query before the next one")
}

// give ends a statement. One that failed has ended PostgreSQL's transaction up to the savepoint, whatever the function
// makes of it, and so it does everywhere.
func (l *lent) give(err error) {
	if err != nil && l.failed == nil {
		l.failed = err
	}
	l.state.CompareAndSwap(running, free)
}

func (l *lent) Exec(ctx context.Context, statement string, args ...any) (rows int64, err error) {
	if err := l.take(); err != nil {
		return 0, err
	}
	defer func() { l.give(err) }()
	return l.db.Exec(ctx, statement, args...)
}

func (l *lent) Query(ctx context.Context, dest []any, each func() error, query string, args ...any) (rows int64, err error) {
	if err := l.take(); err != nil {
		return 0, err
	}
	stopped := false // by each
	defer func() {
		if stopped {
			l.give(nil)
		} else {
			l.give(err)
		}
	}()
	if each != nil {
		row := each
		each = func() error {
			err := row()
			stopped = err != nil
			return err
		}
	}
	return l.db.Query(ctx, dest, each, query, args...)
}
