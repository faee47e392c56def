package storetest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// varying are the fields of an event's JSON that no two archives share.
var varying = regexp.MustCompile(`"(id|xid|db_user|created_at)":("[^"]*"|\d+|null)`)

var answers = []clause{
	{"P17 an event's JSON has the columns' names and is the same on every store", func(t *testing.T, d *Door) {
		b := d.fresh(t)
		tx := b.Autocommit().With(rea.By("42"), rea.Because("<why> & 'how'"), rea.Correlate("c"), rea.Once("k"), rea.Metadata([]byte(`{"ip":"::1"}`)))
		put(t, tx, order1, event("OrderPlaced", `{"total":1.50,"note":"<b>"}`), event("NoteAdded"))
		var got []string
		for _, e := range b.history(t, rea.Filter{}) {
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			text = []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text)))
			got = append(got, varying.ReplaceAllString(string(text), `"$1":?`))
		}
		same(t, "JSON", got, []string{
			`{"position":1,"id":?,"aggregate_type":"order","aggregate_id":"1","seq":1,"event_type":"OrderPlaced","event_version":1,` +
				`"payload":{"note":"<b>","total":1.50},"status":null,"catalog_version":null,"correction":false,"actor_id":"42",` +
				`"reason":"<why> & 'how'","correlation_id":"c","idempotency_key":"k","key_events":2,"metadata":{"ip":"::1"},"xid":?,"db_user":?,` +
				`"created_at":?,"recorded_at":null,"context_id":null}`,
			`{"position":2,"id":?,"aggregate_type":"order","aggregate_id":"1","seq":2,"event_type":"NoteAdded","event_version":1,` +
				`"payload":{},"status":null,"catalog_version":null,"correction":false,"actor_id":"42",` +
				`"reason":"<why> & 'how'","correlation_id":"c","idempotency_key":null,"key_events":null,"metadata":{"ip":"::1"},"xid":?,"db_user":?,` +
				`"created_at":?,"recorded_at":null,"context_id":null}`,
		})
	}},
	{"P17 refusals read the same on every store", func(t *testing.T, d *Door) {
		tx := d.fresh(t).Autocommit()
		put(t, tx.With(rea.Once("used")), order1, event("OrderPlaced"))
		want := map[string]string{
			"a conflict":                     "rea: append to order/1: expected seq 99, the last one is 1: load it again and retry",
			"a reused key":                   `rea: append to order/1: key "used" stands on seq 1 with other content: use a new key for a new request`,
			"a bad payload":                  "rea: append to order/1: payload at $.a: U+0000 in a string",
			"bad metadata":                   "rea: append to order/1: payload at $: must be an object (in the metadata)",
			"a long name":                    "rea: append to " + strings.Repeat("x", 60) + ".../1: aggregate_type is 201 bytes long, the limit is 200",
			"no events":                      "rea: append to order/1: events of one call are 1 to 10000, not 0",
			"a negative expectation":         "rea: append to order/1: expect is negative: 0 means that the aggregate must not exist",
			"a correction without a reason":  "rea: append to order/1: correction needs an actor and a reason",
			"an aggregate that is not there": "rea: order/2 does not exist: it has no events",
			"a seq that is not there":        "rea: order/1: no such seq 99, the last is 1",
		}
		for _, c := range bad {
			err := c.call(t, tx)
			if err == nil {
				t.Fatalf("%s: error = nil, want %s", c.name, want[c.name])
			}
			same(t, "message of "+c.name, err.Error(), want[c.name])
		}
	}},
}
