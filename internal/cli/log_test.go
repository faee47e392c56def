package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/internal/cli"
)

func TestPagingByTheHintsShowsEachEventOnce(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		for i := range 7 { // so that seqs are not positions
			sh.must("append", "order", strconv.Itoa(i%2), "X")
		}
		for _, args := range [][]string{{"log", "order", "1"}, {"log", "order/0"}, {"log"}, {"log", "order", "--event", "X"}} {
			all, paged := sh.must(append(args, "-o", "jsonl")...), ""
			for more := []string{}; more != nil; {
				r := sh.rea(append(append(args, "-o", "jsonl", "--limit", "2"), more...)...)
				paged, more = paged+r.stdout, nil
				if _, hint, ok := strings.Cut(r.stderr, "go on with "); ok {
					more = strings.Fields(strings.NewReplacer(",", " ").Replace(hint))[:2]
				}
			}
			if paged != all {
				t.Errorf("rea %v shows\n%s and in pages\n%s", args, all, paged)
			}
		}
	})
}

func TestLastShowsTheNewest(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		for i := range 9 {
			sh.must("append", "order", strconv.Itoa(i%2), "E"+strconv.Itoa(i%3))
		}
		for _, args := range [][]string{{"log"}, {"log", "order", "1"}, {"log", "--event", "E1"}, {"log", "order/0", "--event", "E2"}} {
			lines := strings.SplitAfter(sh.must(append(args, "-o", "jsonl")...), "\n")
			all := lines[:len(lines)-1]
			for n := 1; n <= len(all)+1; n++ {
				want := strings.Join(all[max(0, len(all)-n):], "")
				if got := sh.must(append(args, "-o", "jsonl", "--last", strconv.Itoa(n))...); got != want {
					t.Errorf("rea %v --last %d shows\n%s, want\n%s", args, n, got, want)
				}
			}
		}
	})
}

func TestFollowFromNowOn(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		for range 3 {
			sh.must("append", "order", "1", "Old")
		}
		for i, args := range [][]string{{"--last", "1"}, {"--after", "head"}} {
			want := 3 + i
			ctx, cancel := context.WithCancel(t.Context())
			out, in := io.Pipe()
			env := sh.environment("", nil, new(bytes.Buffer))
			env.Stdout = in
			done := make(chan int)
			go func() {
				code := cli.Run(ctx, append([]string{"log", "--follow", "-o", "jsonl"}, args...), env)
				_ = in.Close()
				done <- code
			}()
			if want == 4 { // once it has begun, whenever that is
				go func() {
					for ctx.Err() == nil {
						if sh.rea("append", "order", "2", "New").code != 0 {
							return
						}
					}
				}()
			}
			var e struct {
				EventType string `json:"event_type"`
				Position  int    `json:"position"`
			}
			if err := json.NewDecoder(out).Decode(&e); err != nil || e.Position < want || e.Position > want && want == 3 {
				t.Errorf("log --follow %v shows %+v first (%v), want position %d", args, e, err, want)
			}
			cancel()
			_ = out.Close()
			<-done
		}
	})
}
