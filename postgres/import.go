package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/realtime-event-archive/rea"
)

// columns are the lines of an import as one array parameter a column.
type columns struct {
	types, ids, events, payloads                  []string
	seqs                                          []*int64
	versions                                      []int32
	actors, reasons, correlations, keys, metadata []*string
	keyEvents                                     []*int32
	created                                       []*time.Time
	corrections                                   []bool
	anyCreated, anyCorrection                     bool
}

func columnsOf(lines []rea.Line) *columns {
	c := &columns{}
	for i := range lines {
		l := &lines[i]
		c.types, c.ids = append(c.types, l.Aggregate.Type), append(c.ids, l.Aggregate.ID)
		c.events, c.payloads = append(c.events, l.Event.Type), append(c.payloads, string(l.Event.Payload))
		c.seqs = append(c.seqs, nonZero(l.Seq))
		c.versions = append(c.versions, int32(max(l.Event.Version, 1)))
		c.actors, c.reasons = append(c.actors, optional(l.Actor)), append(c.reasons, optional(l.Reason))
		c.correlations, c.keys = append(c.correlations, optional(l.Correlation)), append(c.keys, optional(l.Key))
		c.metadata = append(c.metadata, optional(string(l.Metadata)))
		c.keyEvents = append(c.keyEvents, nonZero(int32(l.KeyEvents)))
		c.created = append(c.created, optionalTime(l.CreatedAt))
		c.corrections = append(c.corrections, l.Correction)
		c.anyCreated = c.anyCreated || !l.CreatedAt.IsZero()
		c.anyCorrection = c.anyCorrection || l.Correction
	}
	return c
}

func (c *columns) args() []any {
	return []any{c.types, c.ids, c.seqs, c.events, c.versions, c.payloads, c.actors, c.reasons,
		c.correlations, c.keys, c.keyEvents, c.metadata, c.created, c.corrections}
}

const linesFrom = `
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::int[], $6::text[], $7::text[], $8::text[],
            $9::text[], $10::text[], $11::int[], $12::text[], $13::timestamptz[], $14::boolean[]) WITH ORDINALITY
     l(aggregate_type, aggregate_id, seq, event_type, event_version, payload, actor_id, reason,
       correlation_id, idempotency_key, key_events, metadata, created_at, correction, n)`

// insertSQL stores lines in their order; the insert trigger checks each. A column that is named needs its right
// whatever the value, so created_at and correction are named only where some line has them.
func insertSQL(created, correction bool) string {
	const names = `aggregate_type, aggregate_id, seq, event_type, event_version, payload, actor_id, reason,
    correlation_id, idempotency_key, key_events, metadata`
	const values = `l.aggregate_type, l.aggregate_id, l.seq, l.event_type, l.event_version, l.payload::jsonb, l.actor_id, l.reason,
    l.correlation_id, l.idempotency_key, l.key_events, l.metadata::jsonb`
	var moreNames, moreValues string
	if created {
		moreNames, moreValues = ", created_at", ", l.created_at"
	}
	if correction {
		moreNames, moreValues = moreNames+", correction", moreValues+", l.correction"
	}
	return "INSERT INTO rea.events (" + names + moreNames + ")\nSELECT " + values + moreValues + linesFrom + "\nORDER BY l.n\nRETURNING seq"
}

// storedSQL finds what is stored already: at the seq that a line gives, else under its key.
// Through events_aggregate_seq_key and events_idempotency_key.
const storedSQL = `
SELECT l.n, e.seq,
       (SELECT x.seq FROM rea.events x WHERE x.aggregate_type = l.aggregate_type AND x.aggregate_id = l.aggregate_id
        ORDER BY x.seq DESC LIMIT 1),
       e.event_type = l.event_type AND e.event_version = l.event_version AND e.payload = l.payload::jsonb
       AND (l.created_at IS NULL OR e.created_at = l.created_at)` + linesFrom + `
JOIN rea.events e ON e.aggregate_type = l.aggregate_type AND e.aggregate_id = l.aggregate_id
     AND (e.seq = l.seq OR (e.idempotency_key = l.idempotency_key AND e.idempotency_key IS NOT NULL
          AND (l.seq IS NULL OR EXISTS (SELECT FROM rea.events x
                          WHERE x.aggregate_type = l.aggregate_type AND x.aggregate_id = l.aggregate_id AND x.seq = l.seq - 1))
          AND NOT EXISTS (SELECT FROM rea.events x
                          WHERE x.aggregate_type = l.aggregate_type AND x.aggregate_id = l.aggregate_id AND x.seq = l.seq)))`

// Import stores lines set-wise. Where the database refuses the set, what is stored already is sorted out, and the
// rest is halved until the refused lines stand alone; the order of lines stays.
func (s *ownSession) Import(ctx context.Context, lines []rea.Line) ([]rea.LineResult, error) {
	results := make([]rea.LineResult, len(lines))
	todo := make([]int, len(lines))
	for i := range todo {
		todo[i] = i
	}
	return results, s.importLines(ctx, lines, todo, results)
}

func (s *ownSession) importLines(ctx context.Context, lines []rea.Line, todo []int, results []rea.LineResult) error {
	if len(todo) == 0 {
		return nil
	}
	seqs, refused, err := s.insertLines(ctx, pick(lines, todo))
	if err != nil {
		return mapError("import", err)
	}
	if refused == nil {
		for i, seq := range seqs {
			results[todo[i]].Seq = seq
		}
		return nil
	}
	rest, err := s.sortOutStored(ctx, lines, todo, results)
	switch {
	case err != nil:
		return mapError("import", err)
	case len(rest) < len(todo):
		return s.importLines(ctx, lines, rest, results)
	case len(rest) == 1 && errors.Is(refusedLine(lines[rest[0]], refused), rea.ErrConflict):
		return s.importLines(ctx, lines, rest, results) // lost a race, whose winner has committed: look again
	case len(rest) == 1:
		if results[rest[0]].Err = refusedLine(lines[rest[0]], refused); results[rest[0]].Err == nil {
			return mapError("import", refused)
		}
		return nil
	}
	half := len(rest) / 2
	if err := s.importLines(ctx, lines, rest[:half], results); err != nil {
		return err
	}
	return s.importLines(ctx, lines, rest[half:], results)
}

// insertLines gives the seqs of the lines, in their order: RETURNING has the order of the inserts. It gives refused where a
// line was the reason, and leaves nothing of the set behind then.
func (s *ownSession) insertLines(ctx context.Context, lines []rea.Line) (seqs []int64, refused, err error) {
	if err := s.db.exec(ctx, "SAVEPOINT rea_import"); err != nil {
		return nil, nil, err
	}
	c := columnsOf(lines)
	seqs = make([]int64, 0, len(lines))
	var seq int64
	err = each(ctx, s.db, func() error { seqs = append(seqs, seq); return nil }, []any{&seq}, insertSQL(c.anyCreated, c.anyCorrection), c.args()...)
	if err != nil {
		if refusedLine(rea.Line{}, err) == nil {
			return nil, nil, err
		}
		return nil, err, s.db.exec(ctx, "ROLLBACK TO SAVEPOINT rea_import")
	}
	return seqs, nil, s.db.exec(ctx, "RELEASE SAVEPOINT rea_import")
}

// sortOutStored decides the lines whose seq or key is stored already, and returns the others.
func (s *ownSession) sortOutStored(ctx context.Context, lines []rea.Line, todo []int, results []rea.LineResult) ([]int, error) {
	if !anyNamed(lines, todo) {
		return todo, nil
	}
	decided := make(map[int]bool)
	var (
		n, seq, last int64
		same         bool
	)
	err := each(ctx, s.db, func() error {
		i := todo[n-1]
		line := lines[i]
		decided[i] = true
		switch {
		case same:
			results[i].Duplicate, results[i].Seq = true, seq
		case seq != line.Seq:
			results[i].Err = &rea.KeyReusedError{Aggregate: line.Aggregate, Key: line.Key, Seq: seq}
		default:
			results[i].Err = &rea.ConflictError{Aggregate: line.Aggregate, Expected: line.Seq - 1, Actual: last}
		}
		return nil
	}, []any{&n, &seq, &last, &same}, storedSQL, columnsOf(pick(lines, todo)).args()...)
	if err != nil {
		return nil, err
	}
	rest := make([]int, 0, len(todo))
	for _, i := range todo {
		if !decided[i] {
			rest = append(rest, i)
		}
	}
	return rest, nil
}

func anyNamed(lines []rea.Line, todo []int) bool {
	for _, i := range todo {
		if lines[i].Seq != 0 || lines[i].Key != "" {
			return true
		}
	}
	return false
}

func pick(lines []rea.Line, todo []int) []rea.Line {
	picked := make([]rea.Line, len(todo))
	for i, n := range todo {
		picked[i] = lines[n]
	}
	return picked
}

func nonZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// ImportProgress locks first: the line count that it reads is the one to go on from.
func (s *ownSession) ImportProgress(ctx context.Context, source string) (rea.ImportProgress, error) {
	if err := s.db.exec(ctx, `SELECT pg_advisory_xact_lock(7497057, hashtext($1::text))`, source); err != nil {
		return rea.ImportProgress{}, mapError("wait for another import of the file", err)
	}
	return s.session.ImportProgress(ctx, source)
}

func (s *session) ImportProgress(ctx context.Context, source string) (rea.ImportProgress, error) {
	var p rea.ImportProgress
	err := each(ctx, s.db, func() error { return nil },
		[]any{&p.Source, &p.Name, &p.Lines, &p.Stored, &p.Duplicates, &p.Rejected, &p.Done}, `
SELECT i.source, i.name, i.lines, i.stored, i.duplicates, i.rejected, i.done FROM rea.imports i WHERE i.source = $1`, source)
	return p, mapError("read the progress of an import", err)
}

func (s *ownSession) SaveImportProgress(ctx context.Context, p rea.ImportProgress) error {
	err := s.db.exec(ctx, `
INSERT INTO rea.imports (source, name, lines, stored, duplicates, rejected, done)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (source) DO UPDATE
SET name = excluded.name, lines = excluded.lines, stored = excluded.stored, duplicates = excluded.duplicates, rejected = excluded.rejected,
    done = excluded.done, updated_at = clock_timestamp()`,
		p.Source, strings.ToValidUTF8(p.Name, "?"), p.Lines, p.Stored, p.Duplicates, p.Rejected, p.Done)
	return mapError("record the progress of an import", err)
}
