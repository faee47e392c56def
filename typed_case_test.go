package rea_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/realtime-event-archive/rea"
)

type (
	line struct {
		Item  int            `json:"item"`
		Sizes map[string]int `json:"sizes"`
	}
	basket struct {
		ID     string          `json:"ID"`
		Amount int             `json:"amount"`
		Key    string          `json:"key"`
		Lines  []line          `json:"lines"`
		ByName map[string]line `json:"byName"`
		First  *line           `json:"first"`
		Plain  int
		Raw    json.RawMessage `json:"raw"`
		Next   *basket         `json:"next"`
	}
	baskets struct {
		Last basket `json:"last"`
	}
)

func (b *baskets) filled(e basket, _ rea.Event) { b.Last = e }

func TestAFieldTakesItsOwnKeyAndNoOtherBesideIt(t *testing.T) {
	t.Parallel()
	c := mustCatalog(t, rea.Type{Name: "baskets", Events: []rea.EventType{rea.On(rea.EventType{Name: "Filled"}, (*baskets).filled)}})
	for payload, want := range map[string]string{
		`{"Amount": 1, "amount": 2}`:                                    `{"amount": 2}`,
		`{"ID": "a", "id": "b"}`:                                        `{"ID": "a"}`,
		`{"key": "a", "\u212aey": "b"}`:                                 `{"key": "a"}`, // the sign of kelvin
		`{"id": "b"}`:                                                   `{"ID": "b"}`,  // as encoding/json has it
		`{"plain": 5}`:                                                  `{"Plain": 5}`,
		`{"PLAIN": 5, "Plain": 6, "plain": 7}`:                          `{"Plain": 6}`,
		`{"lines": [{"item": 1, "Item": 2}, {"ITEM": 3}, null]}`:        `{"lines": [{"item": 1, "sizes": null}, {"item": 3, "sizes": null}, {"item": 0, "sizes": null}]}`,
		`{"Lines": [{"item": 1}, {"item": 2}], "lines": [{"item": 3}]}`: `{"lines": [{"item": 3, "sizes": null}]}`,
		`{"byName": {"A": {"item": 1, "Item": 2}, "a": {"item": 3}}}`:   `{"byName": {"A": {"item": 1, "sizes": null}, "a": {"item": 3, "sizes": null}}}`,
		`{"first": {"sizes": {"S": 1, "s": 2}, "Sizes": {"L": 1}}}`:     `{"first": {"item": 0, "sizes": {"S": 1, "s": 2}}}`,
		`{"raw": {"Raw": 1, "raw": 2, "Amount": 3, "amount": 4}}`:       `{"raw": {"Raw": 1, "raw": 2, "Amount": 3, "amount": 4}}`,
		`{"next": {"next": {"Amount": 1, "amount": 2}}}`:                `{"next": {"next": {"amount": 2}}}`,
		`{"key": "amount\": \"Amount", "amount": 1}`:                    `{"key": "amount\": \"Amount", "amount": 1}`,
	} {
		normal, err := rea.NormalizeObject([]byte(payload), "payload", 0)
		if err != nil {
			t.Fatal(err)
		}
		state, err := c.Fold(nil, rea.Event{Aggregate: rea.Ref{Type: "baskets", ID: "1"}, Seq: 1, Type: "Filled", Version: 1, Payload: normal})
		if err != nil {
			t.Errorf("%s: %v", payload, err)
			continue
		}
		if got := fmt.Sprint(meant(t, state["last"])); got != fmt.Sprint(meant(t, []byte(want))) {
			t.Errorf("%s is read as %s, want %s", payload, got, want)
		}
	}
}

type (
	drawer struct {
		Things struct {
			X int `json:"x"`
		} `json:"things"`
	}
	cupboard struct {
		Own    map[string]int `json:"things"`
		drawer                // whose things encoding/json does not see
	}
	rooms struct {
		Last map[string]int `json:"last"`
	}
)

func (r *rooms) filled(e cupboard, _ rea.Event) { r.Last = e.Own }

func TestAFieldOfTheSameNameFurtherInsideTakesNothing(t *testing.T) {
	t.Parallel()
	c := mustCatalog(t, rea.Type{Name: "rooms", Events: []rea.EventType{rea.On(rea.EventType{Name: "Filled"}, (*rooms).filled)}})
	state, err := c.Fold(nil, rea.Event{Aggregate: rea.Ref{Type: "rooms", ID: "1"}, Seq: 1, Type: "Filled", Version: 1, Payload: []byte(`{"things": {"X": 1, "x": 2}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(state["last"]), `{"X": 1, "x": 2}`; got != want {
		t.Errorf("last = %s, want %s", got, want)
	}
}

// meant leaves out what a basket has where its event does not say it.
func meant(t *testing.T, text []byte) any {
	t.Helper()
	var basket map[string]any
	if err := json.Unmarshal(text, &basket); err != nil {
		t.Fatal(err)
	}
	var strip func(map[string]any)
	strip = func(b map[string]any) {
		for key, value := range b {
			switch value := value.(type) {
			case nil:
				delete(b, key)
			case string:
				if value == "" {
					delete(b, key)
				}
			case float64:
				if value == 0 {
					delete(b, key)
				}
			case map[string]any:
				if key == "next" {
					strip(value)
				}
			}
		}
	}
	strip(basket)
	return basket
}
