package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/realtime-event-archive/rea"
)

// keptRow is a row of an inline projection as it is after the events of a call.
type keptRow struct {
	table rea.StateTable
	row   rea.StateRow
}

// keep works out the rows of an aggregate's inline projections after events, which come next and are not stored yet: so
// a value that a column cannot take is refused before anything is written. What a row lacks is folded first.
func (s *session) keep(ctx context.Context, m *machine, aggregate rea.Ref, events []rea.Event) ([]keptRow, error) {
	var kept []keptRow
	for _, t := range m.tables[aggregate.Type] {
		row, err := s.stateRow(ctx, t, tableOf(t, false), aggregate.ID)
		if err != nil {
			return nil, s.store.mapError("append to "+aggregate.String(), err)
		}
		newest, err := s.stepMissing(ctx, t, &row, aggregate, events[0].Seq)
		for _, e := range events {
			if err == nil && newest && e.Seq == row.Seq+1 {
				newest, err = t.Step(&row, e)
			}
		}
		var refused *rea.ProjectionError
		if errors.As(err, &refused) && rea.BuiltIn(refused.Event) {
			err = nil // a fact is stored, whatever a column takes: the row stays behind
		} else if refused != nil {
			refused.Table = tableOf(t, false)
		}
		if err != nil {
			return nil, err
		}
		if row.Seq != row.Was {
			kept = append(kept, keptRow{t, row})
		}
	}
	return kept, nil
}

// stepMissing folds the stored events before seq that the row lacks.
func (s *session) stepMissing(ctx context.Context, t rea.StateTable, row *rea.StateRow, aggregate rea.Ref, before int64) (newest bool, err error) {
	const page = 1000
	for newest = true; newest && row.Seq < before-1; {
		events, _, err := s.Events(ctx, rea.Stretch{Aggregate: aggregate, After: row.Seq, Limit: page, Folding: true}, nil)
		if err != nil || len(events) == 0 {
			return false, err
		}
		for _, e := range events {
			if newest && e.Seq < before {
				if newest, err = t.Step(row, e); err != nil {
					return false, err
				}
			}
		}
	}
	return newest, nil
}

// stateRow reads a row; none has seq 0.
func (s *session) stateRow(ctx context.Context, t rea.StateTable, table, id string) (rea.StateRow, error) {
	row := rea.StateRow{ID: id, Values: make([]*string, len(t.Columns))}
	updated := ""
	query, dest := "SELECT rea_seq, rea_updated_at", []any{&row.Seq, &updated}
	for i, c := range t.Columns {
		query += ", CAST(" + quoteName(c.Name) + " AS TEXT)"
		dest = append(dest, &row.Values[i])
	}
	err := one(ctx, s.db, dest, fmt.Sprintf("%s FROM %s WHERE aggregate_id = ?1", query, quoteName(table)), id)
	if errors.Is(err, sql.ErrNoRows) {
		return row, nil
	}
	row.Was, row.Updated = row.Seq, moment(updated)
	for i, c := range t.Columns {
		if v := row.Values[i]; c.Type == rea.Boolean && v != nil {
			text := map[string]string{"1": "true"}[*v]
			if text == "" {
				text = "false"
			}
			row.Values[i] = &text
		}
	}
	return row, err
}

// together stores events, by insert, and their rows, or nothing: an index or a trigger of somebody's may refuse a row. Where the
// user's handle is in no transaction, nothing can be taken back, and the next append folds what the row lacks.
func (s *session) together(ctx context.Context, kept []keptRow, insert func() error) error {
	t := transaction{s, func(call func() error) error { return call() }}
	save := func() error {
		if err := insert(); err != nil {
			return err
		}
		for _, k := range kept {
			if _, err := s.saveRow(ctx, k.table, false, k.row); err != nil {
				return err
			}
		}
		return nil
	}
	if len(kept) == 0 || t.begun(ctx) != nil {
		return save()
	}
	return t.Savepoint(ctx, save)
}

// asStored gives the events of a call as they will be read.
func asStored(call rea.Call, events []stepped, at time.Time) []rea.Event {
	list := make([]rea.Event, len(events))
	for i, e := range events {
		list[i] = rea.Event{Aggregate: call.Aggregate, Seq: e.seq, Type: e.Type, Version: e.Version, Payload: e.Payload,
			Actor: call.Actor, Reason: call.Reason, Correlation: call.Correlation, Metadata: call.Metadata, CreatedAt: at}
	}
	return list
}
