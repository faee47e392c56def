package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// chunkBytes is how much of the rows' values a chunk has, about: larger rows make shorter chunks.
const chunkBytes = 32 << 20

// where chooses the rows that have a key and that were asked for.
func (b *Baseline) where() string {
	parts := []string{"true"}
	for _, k := range b.table.order {
		if c := b.table.Columns[k]; !c.NotNull {
			parts = append(parts, field("t", c.Name)+" IS NOT NULL")
		}
	}
	if b.options.Where != "" {
		parts = append(parts, "("+b.options.Where+"\n)")
	}
	return strings.Join(parts, " AND ")
}

// between chooses the rows after one key, up to another one. It appends to args.
func (b *Baseline) between(after, upTo []string, args *[]any) string {
	text := b.where()
	for _, bound := range []struct {
		operator string
		key      []string
	}{{">", after}, {"<=", upTo}} {
		if bound.key == nil {
			continue
		}
		var places []string
		for _, value := range bound.key {
			*args = append(*args, value)
			places = append(places, "$"+strconv.Itoa(len(*args)))
		}
		text += " AND (" + b.keys("") + ") " + bound.operator + " (" + strings.Join(places, ", ") + ")"
	}
	return text
}

// keys are the columns of the key in its index's order, each with a cast.
func (b *Baseline) keys(cast string) string {
	list := make([]string, len(b.table.order))
	for i, k := range b.table.order {
		list[i] = field("t", b.table.Columns[k].Name) + cast
	}
	return strings.Join(list, ", ")
}

// texts are the values of a row's key, as texts in an array.
func (b *Baseline) texts() string { return "ARRAY[" + b.keys("::pg_catalog.text") + "]" }

// limitSQL finds the last key of a chunk of $1 rows, without a lock: the keys of locked rows may have changed since, and are no
// measure. octet_length tells how long a text is without reading it.
func (b *Baseline) limitSQL(after []string, args *[]any) string {
	sizes := []string{"0"}
	for _, c := range b.columns {
		switch {
		case c.Type == "text" || strings.HasPrefix(c.Type, "character varying"):
			sizes = append(sizes, "coalesce(pg_catalog.octet_length("+field("t", c.Name)+"), 0)")
		case c.varies:
			sizes = append(sizes, "coalesce(pg_catalog.pg_column_size("+field("t", c.Name)+"), 0)")
		}
	}
	return `
SELECT y.key FROM (
    SELECT x.key, pg_catalog.row_number() OVER (ROWS UNBOUNDED PRECEDING) AS n, pg_catalog.sum(x.size::pg_catalog.int8) OVER (ROWS UNBOUNDED PRECEDING) AS size
    FROM (SELECT ` + b.texts() + ` AS key, ` + strings.Join(sizes, " + ") + ` AS size
          FROM ` + b.table.SQL() + ` t WHERE ` + b.between(after, nil, args) + `
          ORDER BY ` + b.keys("") + ` LIMIT $1::int) x) y
WHERE y.n = $1::int OR y.size >= ` + strconv.Itoa(chunkBytes) + `
ORDER BY y.n LIMIT 1`
}

// lockedSQL reads and locks the rows of a chunk, in the order of the key.
func (b *Baseline) lockedSQL(after, upTo []string, args *[]any) string {
	return `
SELECT ` + b.table.ID("t") + ` AS aggregate_id, ` + b.texts() + ` AS key, ` + b.payload() + ` AS payload, ` + b.statusSQL() + ` AS status` + b.seqSQL() + `
FROM ` + b.table.SQL() + ` t WHERE ` + b.between(after, upTo, args) + `
ORDER BY ` + b.keys("") + ` FOR NO KEY UPDATE OF t`
}

// redacted is what stands for the value of a redacted column, as in the guard's events.
const redacted = "(redacted)"

func (b *Baseline) payload() string {
	row := Object("t", b.columns)
	for _, name := range b.hidden {
		row += " OPERATOR(pg_catalog.||) pg_catalog.jsonb_build_object(" + Literal(name) + ", '" + redacted + "'::pg_catalog.text)"
	}
	return "pg_catalog.jsonb_build_object('row', " + row + ")"
}

func (b *Baseline) statusSQL() string {
	if b.status == nil {
		return "NULL::pg_catalog.text"
	}
	return field("t", b.table.Columns[*b.status].Name) + "::pg_catalog.text"
}

// seqSQL are the columns that mark needs.
func (b *Baseline) seqSQL() string {
	if !b.guard.Refuses() {
		return ""
	}
	return ", " + field("t", SeqColumn) + " AS seq, " + b.keys("")
}

// rowsSQL gives the rows of the chunk as they are stored in the end. In refuse mode a row names its last event; the
// application's own triggers may change it then.
func (b *Baseline) rowsSQL() string {
	if !b.guard.Refuses() {
		return "rows AS (SELECT j.aggregate_id, j.key, j.payload, j.status, j.problem FROM judged j)"
	}
	var same []string
	for _, k := range b.table.order {
		name := b.table.Columns[k].Name
		same = append(same, field("t", name)+" = "+field("j", name))
	}
	return `marked AS (
    UPDATE ` + b.table.SQL() + ` t
    SET ` + SeqColumn + ` = coalesce((SELECT pg_catalog.max(e.seq) FROM rea.events e
                               WHERE e.aggregate_type = $1 AND e.aggregate_id = j.aggregate_id COLLATE "C"), 1)
    FROM judged j
    WHERE j.seq IS NULL AND j.problem IS NULL AND ` + strings.Join(same, " AND ") + `
    RETURNING j.aggregate_id, j.key, ` + b.payload() + ` AS payload, ` + b.statusSQL() + ` AS status
), rows AS (
    SELECT m.aggregate_id, m.key, m.payload, m.status, NULL AS problem FROM marked m
    UNION ALL
    SELECT j.aggregate_id, j.key, j.payload, j.status, j.problem FROM judged j WHERE j.seq IS NOT NULL OR j.problem IS NOT NULL
)`
}

// takeSQL takes a chunk in one statement; no row travels. $1 to $7: type, relation, key before, key after, whether it is the last
// one, rows without a key, metadata.
func (b *Baseline) takeSQL(after, upTo []string, args *[]any) string {
	return `
WITH locked AS MATERIALIZED (` + b.lockedSQL(after, upTo, args) + `
), judged AS MATERIALIZED (
    SELECT l.*, CASE WHEN NOT rea.name_ok(l.aggregate_id) THEN 'id' WHEN NOT rea.size_ok(l.payload, 16777216) THEN 'payload' END AS problem
    FROM locked l
), ` + b.rowsSQL() + `
SELECT taken.taken, taken.skipped, chunk.problems, chunk.keys
FROM (SELECT pg_catalog.array_agg(r.aggregate_id) FILTER (WHERE r.problem IS NULL) AS ids,
             pg_catalog.array_agg(r.payload) FILTER (WHERE r.problem IS NULL) AS payloads,
             pg_catalog.array_agg(r.status) FILTER (WHERE r.problem IS NULL) AS statuses,
             pg_catalog.array_agg(r.problem) FILTER (WHERE r.problem IS NOT NULL) AS problems,
             pg_catalog.jsonb_agg(r.key) FILTER (WHERE r.problem IS NOT NULL) AS keys,
             pg_catalog.count(r.problem) AS refused
      FROM rows r WHERE $1::text IS NOT NULL) chunk,
     LATERAL rea.take_baseline($2::oid::regclass, chunk.ids, chunk.payloads, chunk.statuses, chunk.refused + $6::bigint,
                               $3::jsonb, $4::jsonb, $5::boolean, $7::jsonb) taken`
}

// passSQL passes over a chunk of one row. It takes what takeSQL takes.
func (b *Baseline) passSQL(after, upTo []string, args *[]any) string {
	return `
WITH rows AS MATERIALIZED (
    SELECT ` + b.texts() + ` AS key FROM ` + b.table.SQL() + ` t WHERE ` + b.between(after, upTo, args) + `
)
SELECT taken.taken, taken.skipped, chunk.problems, chunk.keys
FROM (SELECT pg_catalog.array_agg('row'::text) AS problems, pg_catalog.jsonb_agg(r.key) AS keys, pg_catalog.count(*) AS refused
      FROM rows r WHERE $1::text IS NOT NULL) chunk,
     LATERAL rea.take_baseline($2::oid::regclass, NULL, NULL, NULL, chunk.refused + $6::bigint, $3::jsonb, $4::jsonb, $5::boolean, $7::jsonb) taken`
}

// quickSQL makes settings for statements that go by the key's index.
const quickSQL = `
SELECT pg_catalog.set_config(s, 'off', true) FROM pg_catalog.unnest('{enable_seqscan,enable_bitmapscan,enable_hashjoin,enable_mergejoin}'::text[]) s`

// chunk takes the next rows, size of them at most. Where why is not nil, they are refused for it instead.
func (b *Baseline) chunk(ctx context.Context, size int, why error) error {
	var after []string
	if b.key != nil {
		if err := json.Unmarshal(b.key, &after); err != nil {
			return wrap(err, "read the progress of the baseline of %s", b.table)
		}
	}
	next, key := b.result.BaselineProgress, b.key
	var list []Reject
	err := b.do(ctx, func(tx pgx.Tx) error {
		timeout := fmt.Sprintf("%dms", lockTimeout.Milliseconds())
		if size == 1 {
			timeout = "0"
		}
		if _, err := tx.Exec(ctx, quickSQL); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT pg_catalog.set_config('lock_timeout', $1, true)`, timeout); err != nil {
			return err
		}
		args := []any{int32(size)}
		query := b.limitSQL(after, &args)
		var upTo []string
		err := tx.QueryRow(ctx, query, described(args)...).Scan(&upTo)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return wrap(err, "read %s", b.table)
		}
		if next.Done = upTo == nil; next.Done {
			list, err = b.nameless(ctx, tx)
		} else {
			key, err = json.Marshal(upTo)
		}
		if err != nil {
			return err
		}
		refused, err := b.take(ctx, tx, after, upTo, key, int64(len(list)), &next, why)
		list = append(list, refused...)
		next.Refused += int64(len(list))
		if err != nil {
			return err
		}
		return b.rejects.write(list)
	})
	if err != nil {
		return err
	}
	b.result.BaselineProgress, b.key = next, key
	for _, reject := range list {
		if len(b.result.First) < firstRejects {
			b.result.First = append(b.result.First, reject)
		}
	}
	return b.rejects.committed()
}

// described: the server says which types the parameters have, so that texts serve for keys of all types.
func described(args []any) []any { return append([]any{pgx.QueryExecModeDescribeExec}, args...) }

// take stores the events of a chunk, and gives the rows that cannot be taken.
func (b *Baseline) take(ctx context.Context, tx pgx.Tx, after, upTo []string, key []byte, nameless int64, next *BaselineProgress, why error) ([]Reject, error) {
	args := []any{b.options.Type, b.table.OID, b.key, key, next.Done, nameless, b.metadata()}
	query := ""
	if why == nil {
		query = b.takeSQL(after, upTo, &args)
	} else {
		query = b.passSQL(after, upTo, &args)
	}
	var taken, skipped int64
	var problems []string
	var keys [][]*string
	var text []byte
	if err := tx.QueryRow(ctx, query, described(args)...).Scan(&taken, &skipped, &problems, &text); err != nil {
		return nil, faultOf(wrap(err, "take the baseline of %s", b.table))
	}
	next.Taken, next.Skipped = next.Taken+taken, next.Skipped+skipped
	if text != nil {
		if err := json.Unmarshal(text, &keys); err != nil {
			return nil, err
		}
	}
	list := make([]Reject, len(keys))
	for i, key := range keys {
		list[i] = b.reject(key, problems[i], why)
	}
	return list, nil
}

// reject says why a row cannot be taken. key is in the index's order.
func (b *Baseline) reject(key []*string, problem string, why error) Reject {
	r := Reject{Table: b.table.String(), Key: make([]*string, len(key)), Code: "limit"}
	for i, k := range b.table.Key {
		r.Key[i] = key[slices.Index(b.table.order, k)]
	}
	switch problem {
	case "key":
		r.Message = "a column of the key is NULL: the row has no name"
	case "id":
		r.Message = "the key is no id: 1 to 200 bytes, no control characters, no space at either end"
	case "payload":
		r.Message = "the row is more than 16 MiB of JSON, or more than 900 levels deep"
	default:
		r.Code, r.Message = "bad_payload", "the row cannot be made an event: "+serverMessage(why)
	}
	return r
}

// serverMessage is what the server says, without what we were doing. It holds no data but what the server quotes.
func serverMessage(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Message + " (SQLSTATE " + e.Code + ")"
	}
	return err.Error()
}

// faultOf: a value that has no JSON, or too much of it, one that an inline projection's column cannot take, a stored value that
// is damaged, a trigger of the application's that refuses rea_seq.
func faultOf(err error) error {
	state := sqlState(err)
	for _, class := range []string{"22", "23514", "54", "53200", "P0001", "RE", "XX"} {
		if strings.HasPrefix(state, class) {
			return &chunkFault{err}
		}
	}
	return err
}

// nameless are the rows whose key has a NULL.
func (b *Baseline) nameless(ctx context.Context, tx pgx.Tx) ([]Reject, error) {
	var parts []string
	for _, k := range b.table.order {
		if c := b.table.Columns[k]; !c.NotNull {
			parts = append(parts, field("t", c.Name)+" IS NULL")
		}
	}
	if parts == nil {
		return nil, nil
	}
	query := "SELECT " + b.texts() + " FROM " + b.table.SQL() + " t WHERE (" + strings.Join(parts, " OR ") + ")"
	if b.options.Where != "" {
		query += " AND (" + b.options.Where + "\n)"
	}
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return nil, wrap(err, "read %s", b.table)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[[]*string])
	list := make([]Reject, len(keys))
	for i, key := range keys {
		list[i] = b.reject(key, "key", nil)
	}
	return list, wrap(err, "read %s", b.table)
}
