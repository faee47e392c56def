package postgres_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

func TestSmoke(t *testing.T) {
	ctx := t.Context()
	archive, err := postgres.Open(ctx, pgtest.Database(t), postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	ref := rea.Ref{Type: "order", ID: "1"}
	tx := archive.Autocommit()
	r, err := tx.Append(ctx, ref, rea.NewEvent{Type: "OrderPlaced", Payload: json.RawMessage(`{"total": 10}`)}, rea.NewEvent{Type: "X"})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r)
	_, err = tx.With(rea.Expect(1)).Append(ctx, ref, rea.NewEvent{Type: "OrderPlaced"})
	if !errors.Is(err, rea.ErrConflict) {
		t.Fatal(err)
	}
	t.Log(archive.CatchUp(ctx))
	for e, err := range tx.History(ctx, rea.Filter{Event: "X"}) {
		t.Log(e, err)
	}
	l, err := rea.Load(ctx, tx, ref, rea.Merge)
	t.Log(l, err)
	err = archive.Do(ctx, func(tx *rea.Tx) error {
		res, err := tx.Import(ctx, []rea.Line{{Aggregate: ref, Event: rea.NewEvent{Type: "L", Payload: json.RawMessage("{}")}}, {Aggregate: ref, Seq: 9, Event: rea.NewEvent{Type: "L", Payload: json.RawMessage("{}")}}, {Aggregate: ref, Seq: 2, Event: rea.NewEvent{Type: "X", Payload: json.RawMessage("{}")}},  {Aggregate: ref, Event: rea.NewEvent{Type: "L", Payload: json.RawMessage("{}")}}})
		t.Log(res, err)
		return err
	})
	if err != nil { t.Fatal(err)}
	t.Log(tx.Count(ctx))
	t.Log(archive.Uninstall(ctx, 3))
	if err := archive.Uninstall(ctx, 4); err != nil { t.Fatal(err)}
}
