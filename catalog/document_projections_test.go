package catalog_test

import (
	"os"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/catalog"
)

func TestTheTutorialOfProjectionsBeginsWithACatalog(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/projections.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(block, "```")
		f, err := catalog.ParseFile("docs/projections.md", []byte(block))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Warnings) > 0 || len(f.Catalog.Projections()) != 3 {
			t.Errorf("warnings = %v, projections = %v, want none and three", f.Warnings, f.Catalog.Projections())
		}
	}
}
