package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const referenceFile = "../../docs/cli.md"

// The reference is what the commands say of themselves; -update writes it again.
func TestReferenceIsWhatTheCommandsSay(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# The command line\n\nWhat each command's `--help` says, in one page. A test keeps it so.\n")
	root := (&app{env: Env{}.withDefaults()}).root()
	root.InitDefaultCompletionCmd()
	reference(t, &b, root)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(referenceFile, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	stored, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(stored) != b.String() {
		t.Errorf("docs/cli.md is not what --help says: go test ./internal/cli -run Reference -update")
	}
}

func reference(t *testing.T, b *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" || cmd.Parent() != nil && cmd.Parent().Name() == "completion" {
		return
	}
	var help bytes.Buffer
	cmd.SetOut(&help)
	if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(b, "\n## %s\n\n```text\n%s\n```\n", cmd.CommandPath(), strings.TrimSpace(help.String()))
	for _, sub := range cmd.Commands() {
		reference(t, b, sub)
	}
}
