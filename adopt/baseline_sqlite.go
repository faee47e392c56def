package adopt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
)

// SQLiteBaseline gives each row of a table in the archive's file its first event.
type SQLiteBaseline struct {
	archive *sqlite.Archive
	table   *SQLiteTable
	options BaselineOptions
	columns []string
	from    string // where rows are read from

	rejects *rejects
	result  BaselineResult
}

// NewSQLiteBaseline prepares the baseline of a table. key names the columns that make the aggregate's id; none: the primary key's.
func NewSQLiteBaseline(ctx context.Context, archive *sqlite.Archive, table string, key []string, o BaselineOptions) (*SQLiteBaseline, error) {
	var t *SQLiteTable
	err := archive.Read(ctx, func(db sqlite.SQL) (err error) {
		t, err = DescribeSQLite(ctx, db, table, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	b := &SQLiteBaseline{archive: archive, table: t, options: o}
	for _, name := range append(slices.Clone(o.Columns), o.Status) {
		if name != "" && !slices.Contains(t.Columns, name) {
			return nil, fmt.Errorf("rea: %s has no column %s", t.Name, name)
		}
	}
	for _, c := range t.Columns {
		if len(o.Columns) == 0 || slices.Contains(o.Columns, c) || slices.Contains(t.Key, c) {
			b.columns = append(b.columns, c)
		}
	}
	b.from = " FROM " + sqliteName(t.Name) + " WHERE " + t.where(o.Where)
	return b, nil
}

// Table is the table's name, for people.
func (b *SQLiteBaseline) Table() string { return b.table.Name }

// asked is what rea_baselines has of the options.
func (b *SQLiteBaseline) asked() []any {
	key, _ := json.Marshal(b.table.Key) // names always can be
	columns, _ := json.Marshal(b.options.Columns)
	optional := func(text string) any {
		if text == "" || text == "null" {
			return nil
		}
		return text
	}
	return []any{b.table.Name, b.options.Type, string(key), optional(b.options.Status), optional(string(columns)), optional(b.options.Where)}
}

const sqliteBeforeSQL = `
SELECT aggregate_type, columns, condition, last_key, taken, skipped, refused, done,
       aggregate_type = ?2 AND key = ?3 AND columns IS ?5 AND condition IS ?6, status IS ?4
FROM rea_baselines WHERE table_name = ?1`

// before reads how far an earlier run has come; same: it asked for the same. after is the key up to which rows were looked at.
func (b *SQLiteBaseline) before(ctx context.Context, db sqlite.SQL) (p BaselineProgress, after []any, same bool, err error) {
	var kind string
	var columns, condition, key *string
	var sameStatus bool
	found := false
	err = eachRow(ctx, db, []any{&kind, &columns, &condition, &key, &p.Taken, &p.Skipped, &p.Refused, &p.Done, &same, &sameStatus},
		func() { found = true }, sqliteBeforeSQL, b.asked()...)
	if err == nil && found && !same && !p.Done {
		var names []string
		if columns != nil {
			err = json.Unmarshal([]byte(*columns), &names)
		}
		err = cmp.Or(err, half(b.table.Name, kind, names, condition))
	}
	if err == nil && key != nil {
		after, err = bindKey(*key)
	}
	return p, after, same && !p.Done, wrap(err, "read the progress of the baseline of %s", b.table.Name)
}

// Plan says what Run would do, and does nothing.
func (b *SQLiteBaseline) Plan(ctx context.Context) (plan BaselinePlan, err error) {
	err = b.archive.Read(ctx, func(db sqlite.SQL) error {
		var err error
		if plan.Before, _, plan.Resumed, err = b.before(ctx, db); err != nil {
			return err
		}
		if !plan.Resumed {
			plan.Before = BaselineProgress{}
		}
		if err := eachRow(ctx, db, []any{&plan.Rows}, func() {}, "SELECT count(*)"+b.from); err != nil {
			return wrap(err, "count the rows of %s", b.table.Name)
		}
		known, err := b.known(ctx, db)
		plan.Known = known
		return wrap(err, "count the rows of %s", b.table.Name)
	})
	return plan, err
}

// known counts the rows whose aggregates have events.
func (b *SQLiteBaseline) known(ctx context.Context, db sqlite.SQL) (n int64, err error) {
	ids := map[string]bool{}
	var id string
	if err := eachRow(ctx, db, []any{&id}, func() { ids[id] = true },
		`SELECT aggregate_id FROM rea_events WHERE aggregate_type = ?1 AND seq = 1`, b.options.Type); err != nil || len(ids) == 0 {
		return 0, err
	}
	rows, err := db.QueryContext(ctx, "SELECT "+list(b.table.Key, "+")+b.from)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		key, err := scanRow(rows, len(b.table.Key))
		if err != nil {
			return 0, err
		}
		if ids[idOf(key)] {
			n++
		}
	}
	return n, rows.Err()
}

const sqliteBeginSQL = `
INSERT INTO rea_baselines (table_name, aggregate_type, key, status, columns, condition) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (table_name) DO UPDATE
SET aggregate_type = excluded.aggregate_type, key = excluded.key, status = excluded.status, columns = excluded.columns, condition = excluded.condition,
    last_key = NULL, taken = 0, skipped = 0, refused = 0, done = 0, started_at = excluded.started_at, updated_at = excluded.updated_at
WHERE done`

// Run takes the baseline, or goes on with it. It may be stopped and killed at any moment: the next one goes on.
func (b *SQLiteBaseline) Run(ctx context.Context) (BaselineResult, error) {
	err := b.archive.Baseline(ctx, func(tx *sqlite.BaselineTx) error {
		if _, _, _, err := b.before(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, sqliteBeginSQL, b.asked()...); err != nil {
			return wrap(err, "begin the baseline of %s", b.table.Name)
		}
		var err error
		b.result.BaselineProgress, _, _, err = b.before(ctx, tx)
		return err
	})
	if err != nil {
		return b.result, err
	}
	if b.rejects, err = openRejects(b.options.Rejects, b.table.Name, b.result.Refused); err != nil {
		return b.result, err
	}
	taken := b.result.Taken
	for err == nil && !b.result.Done {
		if err = b.chunk(ctx); err == nil && b.options.Progress != nil {
			b.options.Progress(b.result.BaselineProgress)
		}
	}
	b.result.New = b.result.Taken - taken
	return b.result, errors.Join(err, b.rejects.close())
}

const sqliteMoveSQL = `
UPDATE rea_baselines SET last_key = ?2, taken = ?3, skipped = ?4, refused = ?5, done = ?6, updated_at = ?7 WHERE table_name = ?1`

func (b *SQLiteBaseline) chunk(ctx context.Context) error {
	var next BaselineProgress
	var refused []Reject
	err := b.archive.Baseline(ctx, func(tx *sqlite.BaselineTx) (err error) {
		var after []any
		if next, after, _, err = b.before(ctx, tx); err != nil || next.Done {
			return err
		}
		var rows []sqlite.BaselineRow
		var keys [][]any
		if rows, keys, refused, after, err = b.rows(ctx, tx, after); err != nil {
			return wrap(err, "read %s", b.table.Name)
		}
		next.Done = len(rows)+len(refused) == 0
		if next.Done {
			nameless, err := b.table.nameless(ctx, tx, b.options.Where)
			if err != nil {
				return err
			}
			for _, key := range nameless {
				refused = append(refused, b.reject(key, errNameless))
			}
		}
		metadata, _ := json.Marshal(map[string]string{"rea": b.options.Version})
		metadata, err = rea.NormalizeJSON(metadata, "metadata", 0)
		if err != nil {
			return err
		}
		taken, known, why, err := tx.Take(ctx, b.table.Name, b.options.Type, metadata, rows)
		if err != nil {
			return err
		}
		for i := range rows {
			switch {
			case known[i]:
				next.Skipped++
			case why[i] != nil:
				refused = append(refused, b.reject(keys[i], why[i]))
			}
		}
		next.Taken, next.Refused = next.Taken+taken, next.Refused+int64(len(refused))
		var last any
		if after != nil {
			last = keyOf(after)
		}
		if _, err = tx.ExecContext(ctx, sqliteMoveSQL, b.table.Name, last, next.Taken, next.Skipped, next.Refused, next.Done, rea.FormatTime(time.Now())); err != nil {
			return wrap(err, "record the progress of the baseline of %s", b.table.Name)
		}
		return b.rejects.write(refused)
	})
	if err != nil {
		return err
	}
	b.result.BaselineProgress = next
	b.result.First = append(b.result.First, refused[:min(len(refused), firstRejects-len(b.result.First))]...)
	return b.rejects.committed()
}

// rows reads the rows of a chunk after a key, those that have JSON and those that have none, and gives the last one's key.
func (b *SQLiteBaseline) rows(ctx context.Context, db sqlite.SQL, after []any) (taken []sqlite.BaselineRow, keys [][]any, refused []Reject, last []any, err error) {
	columns := b.columns
	if b.options.Status != "" {
		columns = append(slices.Clone(columns), b.options.Status)
	}
	query := b.table.pageSQL(columns, b.options.Where, len(after), b.options.batch())
	rows, err := db.QueryContext(ctx, query, after...)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	defer rows.Close()
	last = after
	for size := 0; size < chunkBytes && rows.Next(); {
		row, err := scanRow(rows, len(b.table.order)+len(columns))
		if err != nil {
			return nil, nil, nil, nil, err
		}
		last = row[:len(b.table.order)]
		key := b.table.keyIn(last)
		payload, err := payloadOf(b.columns, row[len(b.table.order):])
		if err != nil {
			refused = append(refused, b.reject(key, err))
			continue
		}
		size += len(payload)
		status := ""
		if b.options.Status != "" {
			status = valueText(row[len(row)-1])
		}
		taken = append(taken, sqlite.BaselineRow{ID: idOf(key), Payload: payload, Status: status})
		keys = append(keys, key)
	}
	return taken, keys, refused, last, rows.Err()
}

func payloadOf(columns []string, row sqliteRow) (json.RawMessage, error) {
	text, err := objectJSON(columns, row)
	if err != nil {
		return nil, err
	}
	return rea.NormalizeJSON(slices.Concat([]byte(`{"row":`), text, []byte("}")), "payload", 0)
}

func (b *SQLiteBaseline) reject(key []any, why error) Reject {
	r := Reject{Table: b.table.Name, Code: cmp.Or(rea.Code(why), "refused"), Message: strings.TrimPrefix(why.Error(), "rea: ")}
	for _, value := range key {
		if value == nil {
			r.Key = append(r.Key, nil)
			continue
		}
		text := valueText(value)
		r.Key = append(r.Key, &text)
	}
	return r
}

var errNameless = &rea.LimitError{What: "id", Problem: "cannot be made of a key with a NULL"}
