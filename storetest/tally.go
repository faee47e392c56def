package storetest

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
)

// tally is an order that counts its events, in Go, and how often it folds.
type tally struct {
	every, version int
	field          string // that counts
	folds          atomic.Int64
}

func (c *tally) catalog(t *testing.T) *rea.Catalog {
	count := func(state rea.Object, e rea.Event) (rea.Object, error) {
		c.folds.Add(1)
		payload, err := rea.ParseObject(e.Payload)
		if err != nil {
			return nil, err
		}
		for key, v := range payload {
			state[key] = v
		}
		state[c.field] = json.RawMessage(fmt.Sprint(e.Seq))
		return state, nil
	}
	return catalogOf(t, rea.Type{Name: "order", Status: "status", SnapshotEvery: c.every, FoldVersion: c.version, Events: []rea.EventType{
		{Name: "Placed", From: []string{rea.FromNone}, To: "placed", Fold: count}, {Name: "Noted", Fold: count},
	}})
}

// folded says how often fn made c fold.
func (c *tally) folded(fn func()) int64 {
	before := c.folds.Load()
	fn()
	return c.folds.Load() - before
}

// counted opens an archive whose orders are folded by c, with what it logs.
func (d *Door) counted(t *testing.T, address string, c *tally) (*Base, *logged) {
	t.Helper()
	log := &logged{}
	return d.Open(t, address, rea.Config{Catalog: c.catalog(t), Logger: log.logger(), PageEvents: 3}), log
}

// notes makes n events.
func notes(n int) []rea.NewEvent {
	events := make([]rea.NewEvent, n)
	for i := range events {
		events[i] = event("Noted", fmt.Sprintf(`{"n%d": 0.%d0, "list": [1, {"b": "x y"}]}`, i%4, i))
	}
	return events
}

// loads checks that a load, at the latest moment and at all others, gives what the full replay gives.
func (b *Base) loads(t *testing.T, tx *rea.Tx, aggregate rea.Ref, c *tally) *rea.Loaded[rea.Object] {
	t.Helper()
	loaded, err := tx.Load(limited(t), aggregate)
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := rea.Replay(limited(t), tx, aggregate, c.catalog(t).Fold)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "State", fieldTexts(loaded.State), fieldTexts(replayed.State))
	same(t, "Seq", loaded.Seq, replayed.Seq)
	same(t, "Last", loaded.Last, replayed.Last)
	return loaded
}

func fieldTexts(o rea.Object) map[string]string {
	m := map[string]string{}
	for key, v := range o {
		m[key] = string(v)
	}
	return m
}

func (d *Door) snapshotSeq(t *testing.T, b *Base) string {
	t.Helper()
	return b.text(t, `SELECT coalesce((SELECT CAST(seq AS text) FROM `+d.Tables+`snapshots WHERE aggregate_type = 'order' AND aggregate_id = '1'), 'none')`)
}

// shownCount is all in JSON.
type shownCount struct {
	Count int
	Seen  map[int64]time.Time
}

// hiddenCount has what JSON does not hold: a list that is empty, and not nil.
type hiddenCount struct {
	Count int
	None  []int `json:",omitempty"`
}

type noted struct {
	N float64 `json:"n"`
}

func (s *shownCount) noted(_ noted, at rea.Event) {
	if s.Seen == nil {
		s.Seen = map[int64]time.Time{}
	}
	s.Count++
	s.Seen[at.Seq] = at.CreatedAt
}

func (h *hiddenCount) noted(noted, rea.Event) { h.Count, h.None = h.Count+1, []int{} }
