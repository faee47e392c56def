package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Baseline gives each row of a table in PostgreSQL its first event.
type Baseline struct {
	db      *pgxpool.Pool
	table   *Table
	options BaselineOptions
	guard   *Guarded
	status  *int     // of Columns; nil: none
	columns []Column // whose values are kept
	hidden  []string // redacted ones

	rejects *rejects
	result  BaselineResult
	key     []byte // up to which rows were looked at, as rea.baselines has it; nil: none
}

// NewBaseline prepares the baseline of t. It refuses what its guard contradicts.
func NewBaseline(ctx context.Context, db *pgxpool.Pool, t *Table, o BaselineOptions) (*Baseline, error) {
	b := &Baseline{db: db, table: t, options: o}
	var err error
	if b.guard, err = t.Guard(ctx, db); err != nil {
		return nil, err
	}
	if g := b.guard; g != nil && (g.Type != o.Type || !slices.Equal(g.Key, t.numbers(t.Key))) {
		return nil, fmt.Errorf("rea: %s is guarded as %s by %v: a baseline of another type or key would not be of the same objects", t, g.Type, t.names(g.Key))
	}
	if o.Status == "" && b.guard != nil && b.guard.Status != nil {
		if names := t.names([]int16{*b.guard.Status}); len(names) == 1 {
			o.Status = names[0]
		}
	}
	if o.Status != "" {
		i := t.Index(o.Status)
		if i < 0 {
			return nil, fmt.Errorf("rea: %s has no column %s", t, o.Status)
		}
		b.status = &i
	}
	for _, name := range o.Columns {
		if t.Index(name) < 0 {
			return nil, fmt.Errorf("rea: %s has no column %s", t, name)
		}
	}
	for i, c := range t.Columns {
		switch asked := len(o.Columns) == 0 || slices.Contains(o.Columns, c.Name) || slices.Contains(t.Key, i); {
		case asked && b.guard.Watches(c):
			b.columns = append(b.columns, c)
		case asked && b.guard.redacts(c):
			b.hidden = append(b.hidden, c.Name)
		}
	}
	return b, nil
}

// Table is the table's name with its schema, for people.
func (b *Baseline) Table() string { return b.table.String() }

const beforeSQL = `
SELECT b.aggregate_type, b.columns, b.condition, b.last_key, b.taken, b.skipped, b.refused, b.done,
       (b.aggregate_type, b.key, b.columns, b.condition) IS NOT DISTINCT FROM ($2, $3::smallint[], $4::smallint[], $5)
FROM rea.baselines b WHERE b.relation = $1`

// before reads how far an earlier run has come; same: it asked for the same.
func (b *Baseline) before(ctx context.Context, db Queryer) (p BaselineProgress, same bool, err error) {
	var kind string
	var columns []int16
	var condition *string
	found := false
	rows, err := db.Query(ctx, beforeSQL, b.table.OID, b.options.Type, b.table.numbers(b.table.Key), b.chosen(), b.condition())
	if err == nil {
		b.key = nil
		_, err = pgx.ForEachRow(rows, []any{&kind, &columns, &condition, &b.key, &p.Taken, &p.Skipped, &p.Refused, &p.Done, &same},
			func() error { found = true; return nil })
	}
	if err == nil && found && !same && !p.Done {
		err = half(b.table.String(), kind, b.table.names(columns), condition)
	}
	return p, same, wrap(err, "read the progress of the baseline of %s", b.table)
}

// chosen are the numbers of the columns that were asked for; nil: all.
func (b *Baseline) chosen() []int16 {
	if len(b.options.Columns) == 0 {
		return nil
	}
	var numbers []int16
	for _, c := range b.table.Columns {
		if slices.Contains(b.options.Columns, c.Name) {
			numbers = append(numbers, c.Number)
		}
	}
	return numbers
}

func (b *Baseline) condition() *string {
	if b.options.Where == "" {
		return nil
	}
	return &b.options.Where
}

// Plan says what Run would do, and does nothing.
func (b *Baseline) Plan(ctx context.Context) (plan BaselinePlan, err error) {
	plan.Guard = b.guard
	err = b.do(ctx, func(tx pgx.Tx) error {
		if plan.Before, plan.Resumed, err = b.before(ctx, tx); err != nil {
			return err
		}
		if plan.Resumed = plan.Resumed && !plan.Before.Done; !plan.Resumed {
			plan.Before = BaselineProgress{}
		}
		return wrap(tx.QueryRow(ctx, b.countSQL(), b.options.Type).Scan(&plan.Rows, &plan.Known), "count the rows of %s", b.table)
	})
	return plan, err
}

func (b *Baseline) countSQL() string {
	return `
SELECT pg_catalog.count(*), pg_catalog.count(e.aggregate_id)
FROM ` + b.table.SQL() + ` t LEFT JOIN rea.events e
     ON e.aggregate_type = $1 AND e.seq = 1 AND e.aggregate_id = ` + b.table.ID("t") + `
WHERE ` + b.where()
}

// do runs fn in a transaction with pinned settings. What policies hide is an error there.
func (b *Baseline) do(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, b.db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if err := pin(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// pin sets Settings for a transaction, but for search_path: conditions and triggers are the application's.
func pin(ctx context.Context, tx pgx.Tx) error {
	var names, values []string
	for _, s := range append(slices.Clone(Settings), [2]string{"row_security", "off"}, [2]string{"jit", "off"}) {
		if s[0] != "search_path" {
			names, values = append(names, s[0]), append(values, s[1])
		}
	}
	_, err := tx.Exec(ctx, `SELECT pg_catalog.set_config(s.name, s.value, true) FROM unnest($1::text[], $2::text[]) s(name, value)`, names, values)
	return wrap(err, "pin the settings of a transaction")
}

// chunkFault is an error that a row of a chunk is the reason of.
type chunkFault struct{ err error }

func (e *chunkFault) Error() string { return e.err.Error() }
func (e *chunkFault) Unwrap() error { return e.err }

// Run takes the baseline, or goes on with it. It may be stopped and killed at any moment: the next one goes on.
func (b *Baseline) Run(ctx context.Context) (BaselineResult, error) {
	_, _, err := b.before(ctx, b.db)
	if err != nil {
		return b.result, err
	}
	_, err = b.db.Exec(ctx, `SELECT rea.begin_baseline($1::oid::regclass, $2, $3, $4, $5, $6)`, b.table.OID, b.options.Type,
		b.table.numbers(b.table.Key), b.statusNumber(), b.chosen(), b.condition())
	if err != nil {
		return b.result, wrap(err, "begin the baseline of %s", b.table)
	}
	if b.result.BaselineProgress, _, err = b.before(ctx, b.db); err != nil {
		return b.result, err
	}
	if b.rejects, err = openRejects(b.options.Rejects, b.table.String(), b.result.Refused); err != nil {
		return b.result, err
	}
	taken := b.result.Taken
	err = b.run(ctx)
	b.result.New = b.result.Taken - taken
	return b.result, errors.Join(err, b.rejects.close())
}

func (b *Baseline) statusNumber() *int16 {
	if b.status == nil {
		return nil
	}
	return &b.table.Columns[*b.status].Number
}

const (
	lockTimeout = 500 * time.Millisecond // with more than one row, while the others of the chunk are locked
	mostRetries = 20                     // of one chunk, for reasons that pass by
)

// run takes chunk after chunk. A chunk that waits for somebody's lock, or that has a row that cannot be taken, is tried again
// with fewer rows; one row alone waits as long as it takes, and holds nobody else up.
func (b *Baseline) run(ctx context.Context) error {
	size, retries := b.options.batch(), 0
	for !b.result.Done {
		err := b.chunk(ctx, size, nil)
		var fault *chunkFault
		switch {
		case err == nil:
			size, retries = min(size*2, b.options.batch()), 0
			if b.options.Progress != nil {
				b.options.Progress(b.result.BaselineProgress)
			}
			continue
		case ctx.Err() != nil:
			return err
		case errors.As(err, &fault) && size == 1:
			if err := b.chunk(ctx, 1, fault.err); err != nil {
				return err
			}
			continue
		case errors.As(err, &fault):
			size = max(size/2, 1)
		case sqlState(err) == "55P03" && size > 1:
			size = max(size/4, 1)
		case passes(err) && retries < mostRetries:
			retries++
		default:
			return err
		}
		if b.result.BaselineProgress, _, err = b.before(ctx, b.db); err != nil {
			return err
		}
	}
	return nil
}

// passes: another transaction was in the way.
func passes(err error) bool {
	switch sqlState(err) {
	case "40001", "40P01", "23505", "55P03":
		return true
	}
	return false
}

func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// metadata is that of the events.
func (b *Baseline) metadata() []byte {
	text, _ := json.Marshal(map[string]string{"rea": b.options.Version}) // strings always can be
	return text
}
