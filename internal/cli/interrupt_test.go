package cli_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/realtime-event-archive/rea/internal/cli"
)

// asked is a standard input that never gives anything, and tells when somebody waits for it.
type asked struct {
	once    sync.Once
	waiting chan struct{}
	never   io.Reader
}

func newAsked() *asked {
	never, _ := io.Pipe()
	return &asked{waiting: make(chan struct{}), never: never}
}

func (a *asked) Read(p []byte) (int, error) {
	a.once.Do(func() { close(a.waiting) })
	return a.never.Read(p)
}

func TestCommandThatWaitsForInputCanBeInterrupted(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	sh.must("init")
	sh.typed = func(any) bool { return true }
	for _, args := range [][]string{{"migrate", "uninstall"}, {"import", "-"}, {"append", "order", "1", "X", "--data", "-"}} {
		ctx, cancel := context.WithCancel(t.Context())
		var stderr bytes.Buffer
		env := sh.environment("", new(bytes.Buffer), &stderr)
		stdin := newAsked()
		env.Stdin = stdin
		done := make(chan int)
		go func() { done <- cli.Run(ctx, args, env) }()
		<-stdin.waiting
		cancel()
		if code := <-done; code != 1 || !strings.Contains(stderr.String(), "interrupted") {
			t.Errorf("rea %v ends with %d when it is interrupted, want 1: %s", args, code, &stderr)
		}
	}
	if got := sh.must("log", "-o", "jsonl"); got != "" {
		t.Errorf("the archive holds %s", got)
	}
}
