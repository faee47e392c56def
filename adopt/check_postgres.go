package adopt

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea"
)

const recordedSQL = `
SELECT b.aggregate_type, b.key, b.status, b.columns IS NOT NULL FROM rea.baselines b WHERE b.relation = $1`

// Known says as what a table was guarded, or else its baseline taken: the aggregates' type and the key's columns.
func Known(ctx context.Context, db Queryer, table string) (aggregateType string, key []string, err error) {
	t, err := Describe(ctx, db, table, nil)
	if err != nil {
		return "", nil, err
	}
	g, err := t.Guard(ctx, db)
	if err != nil {
		return "", nil, err
	}
	if g != nil {
		return g.Type, t.names(g.Key), nil
	}
	kind, numbers, _, err := t.recorded(ctx, db)
	return kind, t.names(numbers), err
}

// recorded is what rea.baselines says; "": nothing.
func (t *Table) recorded(ctx context.Context, db Queryer) (kind string, key []int16, partial bool, err error) {
	var status *int16
	rows, err := db.Query(ctx, recordedSQL, t.OID)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&kind, &key, &status, &partial}, func() error { return nil })
	}
	return kind, key, partial, wrap(err, "look for the baseline of %s", t)
}

// Check compares each row of a table in PostgreSQL with what its events fold to, in one view of both. Columns that the guard
// ignores or redacts are left out.
func Check(ctx context.Context, db *pgxpool.Pool, t *Table, o CheckOptions) (result CheckResult, err error) {
	err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := pin(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SET LOCAL enable_nestloop = off`); err != nil { // whatever the statistics say of tables that were filled just now
			return err
		}
		g, err := t.Guard(ctx, tx)
		if err != nil {
			return err
		}
		_, _, partial, err := t.recorded(ctx, tx)
		if err != nil {
			return err
		}
		view := &postgresView{tx: tx, b: &Baseline{table: t, options: BaselineOptions{Type: o.Type}}}
		c := checking{options: o, view: view, partial: partial}
		for _, column := range t.Columns {
			if g.Watches(column) {
				view.columns, c.columns = append(view.columns, column), append(c.columns, column.Name)
			}
		}
		result, err = c.run(ctx)
		return err
	})
	return result, err
}

// postgresView implements checked.
type postgresView struct {
	tx      pgx.Tx
	b       *Baseline
	columns []Column
	after   []string
}

func (v *postgresView) count(ctx context.Context) (n int64, err error) {
	err = v.tx.QueryRow(ctx, "SELECT pg_catalog.count(*) FROM "+v.b.table.SQL()+" t WHERE "+v.b.where()).Scan(&n)
	return n, wrap(err, "count the rows of %s", v.b.table)
}

func (v *postgresView) page(ctx context.Context, limit int) (list []tableRow, err error) {
	args := []any{int32(limit)}
	query := "SELECT " + v.b.table.ID("t") + ", " + v.b.texts() + ", (" + Object("t", v.columns) + ")::pg_catalog.text\nFROM " + v.b.table.SQL() + " t\nWHERE " +
		v.b.between(v.after, nil, &args) + "\nORDER BY " + v.b.keys("") + " LIMIT $1::int"
	rows, err := v.tx.Query(ctx, query, described(args)...)
	if err != nil {
		return nil, wrap(err, "read %s", v.b.table)
	}
	var row tableRow
	_, err = pgx.ForEachRow(rows, []any{&row.id, &v.after, (*[]byte)(&row.text)}, func() error {
		list = append(list, row)
		row.text = nil
		return nil
	})
	return list, wrap(err, "read %s", v.b.table)
}

func (v *postgresView) nameless(ctx context.Context) (ids []string, err error) {
	list, err := v.b.nameless(ctx, v.tx)
	for _, reject := range list {
		parts := make([]string, len(reject.Key))
		for i, value := range reject.Key {
			parts[i] = "NULL"
			if value != nil {
				parts[i] = *value
			}
		}
		ids = append(ids, strings.Join(parts, "/"))
	}
	return ids, err
}

// Through events_aggregate_seq_key.
const foldEventsSQL = `
SELECT e.aggregate_id, e.seq, e.event_type, e.event_version, e.payload::text, coalesce(e.status, ''), coalesce(e.catalog_version, 0), e.correction,
       coalesce(e.actor_id, ''), coalesce(e.reason, ''), coalesce(e.correlation_id, ''), coalesce(e.idempotency_key, ''), coalesce(e.key_events, 0),
       e.metadata::text, e.created_at
FROM rea.events e
WHERE e.aggregate_type = $1 AND e.aggregate_id = ANY ($2)
ORDER BY e.aggregate_id, e.seq`

func (v *postgresView) events(ctx context.Context, ids []string, each func(rea.Event) error) error {
	rows, err := v.tx.Query(ctx, foldEventsSQL, v.b.options.Type, ids)
	if err != nil {
		return wrap(err, "read the events of %s", v.b.table)
	}
	defer rows.Close()
	for rows.Next() {
		e := rea.Event{Aggregate: rea.Ref{Type: v.b.options.Type}}
		var payload string
		var metadata *string
		if err := rows.Scan(&e.Aggregate.ID, &e.Seq, &e.Type, &e.Version, &payload, &e.Status, &e.CatalogVersion, &e.Correction,
			&e.Actor, &e.Reason, &e.Correlation, &e.Key, &e.KeyEvents, &metadata, &e.CreatedAt); err != nil {
			return wrap(err, "read the events of %s", v.b.table)
		}
		e.Payload, e.CreatedAt = json.RawMessage(payload), e.CreatedAt.UTC()
		if metadata != nil {
			e.Metadata = json.RawMessage(*metadata)
		}
		if err := each(e); err != nil {
			return err
		}
	}
	return wrap(rows.Err(), "read the events of %s", v.b.table)
}

func (v *postgresView) rowless(ctx context.Context, after string, limit int) ([]string, error) {
	rows, err := v.tx.Query(ctx, fmt.Sprintf(`
SELECT e.aggregate_id FROM rea.events e
WHERE e.aggregate_type = $1 AND e.seq = 1 AND e.aggregate_id > $2
  AND NOT EXISTS (SELECT FROM %s t WHERE %s AND %s = e.aggregate_id)
ORDER BY e.aggregate_id LIMIT $3`, v.b.table.SQL(), v.b.where(), v.b.table.ID("t")), v.b.options.Type, after, limit)
	if err != nil {
		return nil, wrap(err, "look for events without a row in %s", v.b.table)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, wrap(err, "look for events without a row in %s", v.b.table)
}
