package storetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/realtime-event-archive/rea"
)

// modelled is an archive in memory: what the store must answer.
type modelled map[rea.Ref][]modelEvent

type modelEvent struct {
	kind   string
	n      int
	key    string
	events int
}

// attempt is one append of a random sequence.
type attempt struct {
	aggregate int
	kinds     []int
	wrong     int // added to the right expectation; 9: no belief
	key       int // 0: none
}

type modelTransaction struct {
	attempts []attempt
	commit   bool
}

var transactionGen = rapid.Custom(func(t *rapid.T) modelTransaction {
	return modelTransaction{
		attempts: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) attempt {
			return attempt{
				aggregate: rapid.IntRange(0, 2).Draw(t, "aggregate"),
				kinds:     rapid.SliceOfN(rapid.IntRange(0, 2), 1, 3).Draw(t, "kinds"),
				wrong:     rapid.SampledFrom([]int{9, 9, 0, 0, 1, -1}).Draw(t, "expect"),
				key:       rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "key"),
			}
		}), 1, 5).Draw(t, "attempts"),
		commit: rapid.IntRange(0, 3).Draw(t, "commit") > 0,
	}
})

// append does to the model what the store must do: it gives the seqs, whether they were there, and the refusal.
func (m modelled) append(aggregate rea.Ref, kinds []int, expect int64, key string) (seqs []int64, duplicate bool, code string) {
	events := m[aggregate]
	stored := make([]modelEvent, len(kinds))
	for i, n := range kinds {
		stored[i] = modelEvent{kind: fmt.Sprint("E", n), n: n}
	}
	if key != "" {
		stored[0].key, stored[0].events = key, len(kinds)
		if at := slices.IndexFunc(events, func(e modelEvent) bool { return e.key == key }); at >= 0 {
			if events[at].events != len(kinds) || !slices.Equal(events[at:at+len(kinds)], stored) {
				return nil, false, "key_reused"
			}
			for i := range kinds {
				seqs = append(seqs, int64(at+i+1))
			}
			return seqs, true, ""
		}
	}
	if expect >= 0 && expect != int64(len(events)) {
		return nil, false, "conflict"
	}
	for i := range stored {
		seqs = append(seqs, int64(len(events)+i+1))
	}
	m[aggregate] = append(slices.Clip(events), stored...)
	return seqs, false, ""
}

// state folds the first seq events.
func (m modelled) state(aggregate rea.Ref, seq int) string {
	state := map[string]int{}
	for _, e := range m[aggregate][:seq] {
		state[e.kind], state["last"] = e.n, e.n
	}
	return fmt.Sprint(state)
}

var model = []clause{
	{"P17 random appends, rollbacks and loads agree with a model in memory", func(t *testing.T, d *Door) {
		b := d.Open(t, d.Migrated(t), rea.Config{PageEvents: 3})
		round := 0
		rapid.Check(t, func(rt *rapid.T) {
			round++
			kind := fmt.Sprint("round", round)
			m := modelled{}
			for _, transaction := range rapid.SliceOfN(transactionGen, 1, 6).Draw(rt, "transactions") {
				tx, err := b.Begin(t.Context())
				if err != nil {
					rt.Fatal(err)
				}
				inside := maps.Clone(m)
				for _, a := range transaction.attempts {
					a.check(t, rt, tx, inside, rea.Ref{Type: kind, ID: fmt.Sprint(a.aggregate)})
				}
				end := tx.Rollback
				if transaction.commit {
					end, m = tx.Commit, inside
				}
				if err := end(t.Context()); err != nil {
					rt.Fatal(err)
				}
			}
			m.check(t, rt, b, kind)
		})
	}},
}

func (a attempt) check(t *testing.T, rt *rapid.T, tx *Transaction, m modelled, aggregate rea.Ref) {
	expect := int64(-1)
	var options []rea.Option
	if a.wrong != 9 {
		expect = max(0, int64(len(m[aggregate])+a.wrong))
		options = append(options, rea.Expect(expect))
	}
	key := ""
	if a.key > 0 {
		key = fmt.Sprint("key", a.key)
		options = append(options, rea.Once(key))
	}
	var events []rea.NewEvent
	for _, n := range a.kinds {
		events = append(events, event(fmt.Sprint("E", n), fmt.Sprintf(`{"E%d":%d,"last":%d}`, n, n, n)))
	}
	want, duplicate, code := m.append(aggregate, a.kinds, expect, key)
	receipt, err := tx.With(options...).Append(t.Context(), aggregate, events)
	if got := rea.Code(err); got != code || (err != nil && code == "") {
		rt.Fatalf("append %+v: error = %v, want %q", a, err, code)
	}
	if got := seqs(receipt); !slices.Equal(got, want) || receipt.Duplicate != duplicate {
		rt.Fatalf("append %+v: seqs = %v, duplicate %t, want %v, %t", a, got, receipt.Duplicate, want, duplicate)
	}
}

func (m modelled) check(t *testing.T, rt *rapid.T, b *Base, kind string) {
	total := 0
	for id := range 3 {
		aggregate := rea.Ref{Type: kind, ID: fmt.Sprint(id)}
		events := m[aggregate]
		total += len(events)
		for seq := range len(events) + 2 {
			loaded, err := rea.ReplayAt(t.Context(), b.Autocommit(), aggregate, rea.AtSeq(int64(seq)), rea.Merge)
			code := ""
			switch {
			case len(events) == 0 || seq == 0:
				code = "not_found"
			case seq > len(events):
				code = "no_such_seq"
			}
			if rea.Code(err) != code || (err != nil && code == "") {
				rt.Fatalf("load %s at seq %d: error = %v, want %q", aggregate, seq, err, code)
			}
			if err != nil {
				continue
			}
			state := map[string]string{}
			for name, value := range loaded.State {
				state[name] = string(value)
			}
			if got, want := fmt.Sprint(state), m.state(aggregate, seq); got != want {
				rt.Fatalf("state of %s at seq %d = %s, want %s", aggregate, seq, got, want)
			}
		}
	}
	if _, err := b.CatchUp(t.Context()); err != nil {
		rt.Fatal(err)
	}
	stored := 0
	last := map[rea.Ref]int64{}
	for e, err := range b.Autocommit().History(t.Context(), rea.Filter{Type: kind}) {
		if err != nil {
			rt.Fatal(err)
		}
		stored++
		if e.Seq != last[e.Aggregate]+1 {
			rt.Fatalf("after seq %d of %s comes Seq = %d", last[e.Aggregate], e.Aggregate, e.Seq)
		}
		last[e.Aggregate] = e.Seq
	}
	if stored != total {
		rt.Fatalf("events by position = %d, want %d", stored, total)
	}
}
