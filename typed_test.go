package rea_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/sqlite"
)

type (
	account struct {
		Status string      `json:"status"`
		Cents  int64       `json:"cents"`
		Rate   any         `json:"rate"`
		Log    []string    `json:"log"`
		Limit  json.Number `json:"limit,omitzero"`
	}
	opened struct {
		Limit json.Number `json:"limit,omitzero"`
		Rate  any         `json:"rate,omitempty"`
	}
	deposited struct {
		Cents int64 `json:"cents"`
	}
	named struct {
		Name string `json:"name"`
	}
	closed struct{}
)

func (a *account) opened(e opened, at rea.Event) {
	a.Limit, a.Rate, a.Log = e.Limit, e.Rate, append(a.Log, fmt.Sprintf("%d %s %s", at.Seq, at.Type, at.Actor))
}

func (a *account) deposited(e deposited, _ rea.Event) { a.Cents += e.Cents }

func toCents(payload rea.Object) (rea.Object, error) {
	payload["cents"] = json.RawMessage(string(payload["euros"]) + "00")
	return payload, nil
}

func accountType() rea.Type {
	return rea.Type{Name: "account", Status: "status", Events: []rea.EventType{
		rea.On(rea.EventType{Name: "Opened", From: []string{rea.FromNone}, To: "open"}, (*account).opened),
		rea.On(rea.EventType{Name: "Deposited", Version: 2, From: []string{"open"}, Upcast: map[int]rea.UpcastFunc{1: toCents}}, (*account).deposited),
		{Name: "MoneyPutIn", AliasOf: "Deposited", Version: 2},
		rea.On[account, named](rea.EventType{Name: "Named", From: []string{rea.FromAny}}, nil),
		rea.On[account, closed](rea.EventType{Name: "Closed", From: []string{"open"}, To: "closed"}, nil),
		{Name: "Touched", Retired: true},
	}}
}

// openTyped gives an empty archive with a catalog, which is not applied.
func openTyped(t *testing.T, types ...rea.Type) *sqlite.Archive {
	t.Helper()
	config := rea.Config{}
	if len(types) > 0 {
		config.Catalog = mustCatalog(t, types...)
	}
	archive, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "shop.db"), sqlite.Config{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(archive.Close)
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return archive
}

func TestTypedEventsAreStoredAndFolded(t *testing.T) {
	t.Parallel()
	archive := openTyped(t, accountType())
	tx, ref := archive.Autocommit().With(rea.By("42")), rea.Ref{Type: "account", ID: "7"}
	receipt, err := tx.Append(t.Context(), ref,
		opened{Limit: "1000000000000000000000.10", Rate: json.Number("0.10")},
		&deposited{Cents: 5},
		rea.NewEvent{Type: "Deposited", Version: 1, Payload: []byte(`{"euros": 3}`)},
		[]rea.NewEvent{{Type: "MoneyPutIn", Payload: []byte(`{"cents": 9007199254740993}`)}, {Type: "Touched", Payload: []byte(`{"cents": 1}`)}},
		named{Name: "<Ann> & co"})
	if err != nil || receipt.Seq() != 6 {
		t.Fatalf("receipt = %+v, %v, want seq 6", receipt, err)
	}
	var stored []string
	for e, err := range tx.Events(t.Context(), ref, 0) {
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, fmt.Sprintf("%s %d %s", e.Type, e.Version, e.Payload))
	}
	want := []string{`Opened 1 {"rate": 0.10, "limit": 1000000000000000000000.10}`, `Deposited 2 {"cents": 5}`, `Deposited 1 {"euros": 3}`,
		`MoneyPutIn 1 {"cents": 9007199254740993}`, `Touched 1 {"cents": 1}`, `Named 1 {"name": "<Ann> & co"}`}
	if fmt.Sprint(stored) != fmt.Sprint(want) {
		t.Errorf("stored %s, want %s", strings.Join(stored, "\n"), strings.Join(want, "\n"))
	}

	loaded, err := rea.Load[account](t.Context(), tx, "7")
	if err != nil {
		t.Fatal(err)
	}
	const state = `{open 9007199254741298 0.10 [1 Opened 42] 1000000000000000000000.10}`
	if got := fmt.Sprint(loaded.State); got != state || loaded.Seq != 6 || loaded.Aggregate != ref || loaded.Last.Type != "Named" {
		t.Errorf("state = %s, seq %d of %s, want %s at seq 6 of %s", got, loaded.Seq, loaded.Aggregate, state, ref)
	}
	if receipt, err = loaded.Append(t.Context(), closed{}); err != nil || receipt.Seq() != 7 || loaded.Seq != 7 {
		t.Errorf("append to what is loaded: %+v, %v, want seq 7", receipt, err)
	}
	early, err := rea.LoadAt[account](t.Context(), tx, "7", rea.AtSeq(2))
	if err != nil || early.State.Cents != 5 {
		t.Errorf("at seq 2: %+v, %v, want 5 cents", early, err)
	}
	if _, err = early.Append(t.Context(), closed{}); !errors.Is(err, rea.ErrConflict) {
		t.Errorf("append to what is old: %v, want a conflict", err)
	}
	if _, err = rea.Load[account](t.Context(), tx, "8"); !errors.Is(err, rea.ErrNotFound) || err.Error() != "rea: account/8 does not exist: it has no events" {
		t.Errorf("load nothing: %v, want not found", err)
	}
	if _, err = rea.LoadAt[account](t.Context(), tx, "7", rea.AtSeq(9)); !errors.Is(err, rea.ErrNoSuchSeq) {
		t.Errorf("load seq 9 of 7: %v, want no such seq", err)
	}
	if _, err = rea.LoadAt[account](t.Context(), tx, "7", rea.AtTime(time.Unix(0, 0))); !errors.Is(err, rea.ErrNotFound) {
		t.Errorf("load in 1970: %v, want not found", err)
	}
}

// Fold takes and gives Objects, and goes through the state's type for it.
func TestTheFoldOfObjectsGoesThroughTheTypedState(t *testing.T) {
	t.Parallel()
	c := mustCatalog(t, accountType())
	event := func(seq int64, name, payload string) rea.Event {
		return rea.Event{Aggregate: rea.Ref{Type: "account", ID: "7"}, Seq: seq, Type: name, Version: 1, Payload: json.RawMessage(payload)}
	}
	var state rea.Object
	for _, e := range []rea.Event{
		event(1, "Opened", `{"rate": {"a": [0.10, 12345678901234567890.50]}, "limit": 1.00}`), event(2, "Deposited", `{"euros": 4}`), event(3, "Touched", `{}`), event(4, "Closed", `{}`),
	} {
		var err error
		if state, err = c.Fold(state, e); err != nil {
			t.Fatal(err)
		}
	}
	const want = `cents=400 limit=1.00 log=["1 Opened "] rate={"a": [0.10, 12345678901234567890.50]} status="closed" `
	if got := showObject(state); got != want {
		t.Errorf("state = %s, want %s", got, want)
	}
	if got := c.Status("account", state); got != "closed" {
		t.Errorf("status = %s, want closed", got)
	}
	if _, err := c.Fold(rea.Object{"cents": json.RawMessage(`98.76`)}, event(5, "Named", `{}`)); err == nil || strings.Contains(err.Error(), `98`) {
		t.Errorf("a state that is none gives %v, want an error without data", err)
	}
}

func TestWhatIsNotRegisteredIsRefusedBeforeSQL(t *testing.T) {
	t.Parallel()
	type invoice struct{}
	typed, bare := openTyped(t, accountType(), rea.Type{Name: "order"}).Autocommit(), openTyped(t).Autocommit()
	ref, order := rea.Ref{Type: "account", ID: "7"}, rea.Ref{Type: "order", ID: "7"}
	appendTo := func(tx *rea.Tx, ref rea.Ref, e any) error {
		_, err := tx.Append(t.Context(), ref, rea.NewEvent{Type: "Opened"}, e)
		return err
	}
	load := func(tx *rea.Tx) error { _, err := rea.Load[invoice](t.Context(), tx, "7"); return err }
	for want, err := range map[string]error{
		"rea: append to account/7: rea_test.invoice is no registered payload of account: register it with On, or append a NewEvent":                  appendTo(typed, ref, invoice{}),
		"rea: append to account/7: *rea_test.invoice is no registered payload of account: register it with On, or append a NewEvent":                 appendTo(typed, ref, &invoice{}),
		"rea: append to order/7: rea_test.opened is registered for account only: register it for order with On, or append to the other":              appendTo(typed, order, opened{}),
		"rea: append to account/7: []rea_test.opened is no event: give its elements, as in events...":                                                appendTo(typed, ref, []opened{{}}),
		"rea: append to account/7: nil is no event: give a NewEvent or a registered payload":                                                         appendTo(typed, ref, nil),
		"rea: append to account/7: rea_test.opened: the archive has no catalog: give Config.Catalog, or append a NewEvent":                           appendTo(bare, ref, opened{}),
		"rea: load rea_test.invoice 7: the catalog registers no such state: give the aggregate type's events to On with a fold of *rea_test.invoice": load(typed),
		"rea: load rea_test.invoice 7: the archive has no catalog: give Config.Catalog, or fold with Replay":                                         load(bare),
	} {
		var unregistered *rea.UnregisteredError
		if !errors.As(err, &unregistered) || err.Error() != want || rea.Code(err) != "unknown_type" {
			t.Errorf("error = %v, want %s", err, want)
		}
	}
	for want, e := range map[string]any{
		"rea: append to account/7: payload at events[1] $: is a nil *rea_test.opened":                                                                                                     (*opened)(nil),
		"rea: append to account/7: payload at events[1] $: rea_test.opened cannot be written as JSON: json: unsupported value: NaN":                                                       opened{Rate: math.NaN()},
		"rea: append to account/7: payload at events[1] $.name: U+0000 in a string":                                                                                                       named{Name: "a\x00"},
		"rea: append to account/7: payload at events[1] $.rate.a: duplicate key":                                                                                                          opened{Rate: json.RawMessage(`{"a": 1, "a": 2}`)},
		"rea: append to account/7: payload at events[1] $: rea_test.opened cannot be written as JSON: its MarshalJSON or a json.Number in it is at fault (errors.Unwrap gives the cause)": opened{Limit: "98x"},
		"rea: append to account/7: payload at events[1] $.Name: is not valid UTF-8":                                                                                                       named{Name: "a\xff"},
		"rea: append to account/7: payload at events[1] $.Rate.\"a\"[1]: is not valid UTF-8":                                                                                              opened{Rate: map[string]any{"a": []any{"\ufffd", "\xff"}}},
	} {
		if err := appendTo(typed, ref, e); !errors.Is(err, rea.ErrBadPayload) || err.Error() != want {
			t.Errorf("error = %v, want %s", err, want)
		}
	}
	if _, err := typed.Append(t.Context(), ref); !errors.Is(err, rea.ErrLimit) {
		t.Errorf("append nothing: %v, want a limit", err)
	}
	if _, err := rea.Replay(t.Context(), typed, ref, rea.Merge); !errors.Is(err, rea.ErrNotFound) {
		t.Errorf("a refused append has left %v, want nothing", err)
	}
}

func TestAPayloadThatDoesNotFitNamesItsEvent(t *testing.T) {
	t.Parallel()
	archive := openTyped(t, accountType())
	tx := archive.Autocommit()
	for id, c := range map[string]struct {
		event rea.NewEvent
		want  string
	}{
		"1": {rea.NewEvent{Type: "MoneyPutIn", Payload: []byte(`{"cents": 99.80}`)},
			"rea: account/1 seq 2: read MoneyPutIn (version 1) as rea_test.deposited: number does not fit into cents of type int64: change the type, or raise the version and give an upcaster"},
		"2": {rea.NewEvent{Type: "Deposited", Version: 1, Payload: []byte(`{"euros": "9"}`)}, "rea: account/2 seq 2: upcast Deposited (version 1) from version 1 to 2: "},
		"3": {rea.NewEvent{Type: "Deposited", Version: 9}, "rea: account/3 seq 2: Deposited has version 9, the catalog knows up to 2"},
		"4": {rea.NewEvent{Type: "Other"}, "rea: account/4 seq 2: the catalog does not know Other (version 1): declare it, or declare it retired"},
	} {
		if _, err := tx.Append(t.Context(), rea.Ref{Type: "account", ID: id}, opened{}, c.event); err != nil {
			t.Fatal(err)
		}
		if _, err := rea.Load[account](t.Context(), tx, id); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("error = %v, want %s", err, c.want)
		}
		if loaded, err := rea.LoadAt[account](t.Context(), tx, id, rea.AtSeq(1)); err != nil || loaded.State.Status != "open" {
			t.Errorf("before it: %+v, %v, want an open account", loaded, err)
		}
	}
	var wrong *rea.DecodeError
	_, err := rea.Load[account](t.Context(), tx, "1")
	if !errors.As(err, &wrong) || wrong.Event != "MoneyPutIn" || wrong.Version != 1 || wrong.Seq != 2 || !errors.As(err, new(*json.UnmarshalTypeError)) {
		t.Errorf("error = %#v, want a DecodeError of MoneyPutIn version 1 seq 2", err)
	}
}
