package rea_test

import (
	"os"
	"strings"
	"testing"
)

// The code of the package comment stands in the examples, whose output is checked.
func TestTheTutorialIsMadeOfTheExamples(t *testing.T) {
	t.Parallel()
	examples := make(map[string]bool)
	for _, file := range []string{"example_order_test.go", "example_typed_test.go", "example_function_test.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			examples[strings.TrimSpace(line)] = true
		}
	}
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok && !examples[strings.TrimSpace(code)] {
			t.Errorf("doc.go has a line that no example has: %s", code)
		}
	}
}
