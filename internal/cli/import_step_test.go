package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// rejected is a line of a rejects file, as programs read it.
type rejected struct {
	Line    int
	Code    string
	Message string
	Type    string  `json:"aggregate_type"`
	ID      string  `json:"aggregate_id"`
	Event   string  `json:"event_type"`
	Status  *string `json:"status"`
	Legal   []string
	Text    string
}

func (sh *shell) rejects(name string) (list []rejected) {
	sh.t.Helper()
	for line := range strings.Lines(sh.read(name)) {
		var r rejected
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			sh.t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// stepLines are 300 orders that go the machine's way, with five lines between that do not, under keys of their own.
func stepLines() string {
	between := map[string]string{
		"1 OrderPlaced": "OrderShipped", "3 OrderShipped": "OrderCancelled", "100 OrderPlaced": "OrderPlaced", "200 OrderShipped": "OrderPayed",
	}
	var lines []string
	add := func(id int, event string) {
		lines = append(lines, fmt.Sprintf(`{"aggregate_type":"order","aggregate_id":"%d","event_type":"%s","payload":{"n":%d},"idempotency_key":"line %d"}`,
			id, event, id, len(lines)+1))
	}
	for id := 1; id <= 300; id++ {
		for _, event := range []string{"OrderPlaced", "PaymentReceived", "OrderShipped"} {
			add(id, event)
			if other := between[fmt.Sprint(id, " ", event)]; other != "" {
				add(id, other)
			}
		}
	}
	add(999, "OrderShipped")
	return strings.Join(lines, "\n") + "\n"
}

func TestImportListsTheStepsThatTheMachineRefusesAndTakesThemOnceMended(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.write("rea.yaml", `
rea: 1
aggregates:
  order:
    status: status
    strict: true
    events:
      OrderPlaced:     {from: [none], to: placed}
      PaymentReceived: {from: [placed], to: paid}
      OrderShipped:    {from: [paid], to: shipped}
      OrderCancelled:  {from: [placed, paid], to: cancelled}
      NoteAdded:       {from: any}
`)
		sh.write("lines.ndjson", stepLines())
		sh.must("migrate", "up")
		sh.must("catalog", "apply", "--yes")
		r := sh.rea("import", "lines.ndjson", "--batch", "100")
		if want := "lines.ndjson: 905 lines, 900 new, 0 already stored, 5 rejected\n"; r.code != 3 || r.stdout != want {
			t.Errorf("import ends with %d: %s%s, want 3: %s", r.code, r.stdout, r.stderr, want)
		}
		const said = `line 2: append to order/1: OrderShipped is illegal in status placed at seq 1: legal now: PaymentReceived, OrderCancelled, NoteAdded
5 lines rejected, see lines.ndjson.rejects.ndjson
next: jq -r .text lines.ndjson.rejects.ndjson > mended.ndjson, mend it, rea import mended.ndjson
`
		if !strings.HasSuffix(r.stderr, said) {
			t.Errorf("import says %s, want %s", r.stderr, said)
		}
		got, texts := "", ""
		for _, reject := range sh.rejects("lines.ndjson.rejects.ndjson") {
			got += fmt.Sprintln(reject.Line, reject.Code, reject.Message)
			if reject.Code == "illegal_step" {
				status, legal := "no status", strings.Join(reject.Legal, " ")
				if reject.Status != nil {
					status = *reject.Status
				}
				got += fmt.Sprintf("  %s/%s %s: %s: %s\n", reject.Type, reject.ID, reject.Event, status, legal)
			}
			texts += reject.Text + "\n"
		}
		if want := `2 illegal_step rea: append to order/1: OrderShipped is illegal in status placed at seq 1: legal now: PaymentReceived, OrderCancelled, NoteAdded
  order/1 OrderShipped: placed: PaymentReceived OrderCancelled NoteAdded
11 illegal_step rea: append to order/3: OrderCancelled is illegal in status shipped at seq 3: legal now: NoteAdded
  order/3 OrderCancelled: shipped: NoteAdded
301 illegal_step rea: append to order/100: OrderPlaced is illegal in status placed at seq 1: legal now: PaymentReceived, OrderCancelled, NoteAdded
  order/100 OrderPlaced: placed: PaymentReceived OrderCancelled NoteAdded
604 unknown_type rea: append to order/200: the catalog does not know OrderPayed: declare it, and apply the catalog
905 illegal_step rea: append to order/999: OrderShipped is illegal as the first event: legal now: OrderPlaced
  order/999 OrderShipped: no status: OrderPlaced
`; got != want {
			t.Errorf("the rejects are\n%s\nwant\n%s", got, want)
		}
		sh.must("catalog", "check")

		// The same file again adds nothing; its rejects, mended, add just those; and so the whole file, mended, nothing more.
		if r := sh.rea("import", "lines.ndjson"); r.code != 3 || !strings.Contains(r.stdout, " 0 new, 900 already stored, 5 rejected") {
			t.Errorf("the same file again ends with %d: %s", r.code, r.stdout)
		}
		mended := texts
		for _, event := range []string{"OrderShipped", "OrderCancelled", "OrderPlaced", "OrderPayed"} {
			mended = strings.ReplaceAll(mended, event, "NoteAdded")
		}
		mended = strings.Replace(mended, `"999","event_type":"NoteAdded"`, `"999","event_type":"OrderPlaced"`, 1)
		sh.write("mended.ndjson", mended)
		if got, want := sh.must("import", "mended.ndjson"), "mended.ndjson: 5 lines, 5 new, 0 already stored, 0 rejected\n"; got != want {
			t.Errorf("the mended lines: %s, want %s", got, want)
		}
		whole := sh.read("lines.ndjson")
		before, after := strings.Split(texts, "\n"), strings.Split(mended, "\n")
		for i := range before {
			whole = strings.Replace(whole, before[i], after[i], 1)
		}
		sh.write("whole.ndjson", whole)
		if got, want := sh.must("import", "whole.ndjson"), "whole.ndjson: 905 lines, 0 new, 905 already stored, 0 rejected\n"; got != want {
			t.Errorf("the whole file, mended: %s, want %s", got, want)
		}
		if n := strings.Count(sh.must("export"), "\n"); n != 905 {
			t.Errorf("the archive holds %d events, want 905", n)
		}
		sh.must("catalog", "check")
	})
}
