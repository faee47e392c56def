package catalog_test

import (
	"os"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/catalog"
)

func TestTheDocumentTellsTheTruth(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/catalog.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	all := ""
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		f, err := catalog.ParseFile("docs/catalog.md", []byte(block))
		if err != nil {
			t.Errorf("%v in\n%s", err, block)
			continue
		}
		if len(f.Warnings) > 0 {
			t.Errorf("warnings = %v of\n%s", f.Warnings, block)
		}
		all += block
	}
	if len(blocks) < 6 {
		t.Errorf("%d examples were read, want all of the document", len(blocks))
	}
	for _, key := range []string{
		"rea", "aggregates", "projections", "status", "strict", "renamed", "snapshot", "every", "events", "version", "from", "to", "alias", "retired",
		"set", "unset", "add", "count", "append", "remove", "upcast", "rename", "length", "default", "of", "on", "mode", "columns", "tz", "measures", "sum",
	} {
		if !strings.Contains(all, key+":") {
			t.Errorf("no example has the key %s", key)
		}
	}
}
