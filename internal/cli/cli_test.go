package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"

	"github.com/realtime-event-archive/rea/internal/cli"
)

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	for _, command := range []string{
		"", "init", "migrate", "migrate up", "migrate status", "migrate sql", "migrate uninstall", "append", "import", "export",
		"log", "show", "catalog", "catalog check", "catalog apply", "catalog show", "catalog diagram", "run", "wait", "projection",
		"projection list", "projection show", "projection rebuild", "projection pause", "projection resume", "projection retry", "projection skip", "projection check", "demo", "version", "completion bash",
	} {
		help := sh.must(append(strings.Fields(command), "--help")...)
		if !strings.Contains(help, "Examples:") && command != "completion bash" {
			t.Errorf("rea %s --help has no examples", command)
		}
	}
	if got := sh.must("completion", "bash"); !strings.Contains(got, "rea") {
		t.Error("rea completion bash prints nothing of rea")
	}
}

func TestDatabaseIsFoundInTheOrderThatIsDocumented(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	for i, name := range []string{"flag", "first", "second", "rea"} {
		db := "sqlite:" + name + ".db"
		sh.must("--db", db, "migrate", "up")
		for range i + 1 {
			sh.must("--db", db, "append", "order", "1", "X")
		}
	}
	seen := func(args ...string) int {
		return strings.Count(sh.must(append(args, "log", "-o", "jsonl")...), "\n")
	}
	sh.env = map[string]string{"REA_DATABASE_URL": "sqlite:first.db", "DATABASE_URL": "sqlite://second.db"}
	if n := seen("--db", "sqlite:"+filepath.Join(sh.dir, "flag.db")); n != 1 {
		t.Errorf("--db sees %d events, want 1", n)
	}
	if n := seen(); n != 2 {
		t.Errorf("REA_DATABASE_URL sees %d events, want 2", n)
	}
	sh.env["REA_DATABASE_URL"] = ""
	if n := seen(); n != 3 {
		t.Errorf("DATABASE_URL sees %d events, want 3", n)
	}
	sh.env["DATABASE_URL"] = ""
	if n := seen(); n != 4 {
		t.Errorf("rea.db sees %d events, want 4", n)
	}
	sh.env["DATABASE_URL"] = "mysql://localhost/shop"
	if r := sh.rea("log"); r.code != 2 || !strings.Contains(r.stderr, "DATABASE_URL") {
		t.Errorf("a DATABASE_URL of MySQL gives %d, %q, want 2", r.code, r.stderr)
	}
}

func TestPasswordsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	for _, url := range []string{
		"postgres://u:hunter2secret@127.0.0.1:1/x", "postgres://u:hunter2secret@%zz/x", "postgres://u:hunter2secret@127.0.0.1:1/x?sslmode=odd",
		"postgres://127.0.0.1:1/x?user=u&password=hunter2secret", "postgres://u:hunter2secret@127.0.0.1:port/x", "mysql://u:hunter2secret@h/x",
		"postgres://u:hunter2%40secret@127.0.0.1:1/x?connect_timeout=x", "u:hunter2secret@h/x", "postgresql:u:hunter2secret@h",
	} {
		for _, args := range [][]string{{"log"}, {"log", "--json"}, {"migrate", "up"}, {"init"}, {"append", "order", "1", "X"}} {
			r := sh.rea(append([]string{"--db", url}, args...)...)
			if text := r.stdout + r.stderr; strings.Contains(text, "hunter2") || r.code != 1 && r.code != 2 {
				t.Errorf("rea --db %s %s ends with %d and prints %s", url, args, r.code, text)
			}
		}
	}
}

func TestUninstallAsksOnATerminal(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		sh.must("append", "order", "1", "X")
		sh.typed = func(any) bool { return true }
		for _, answer := range []string{"", "no\n", "yes\n", "2\n"} {
			if r := sh.pipe(answer, "migrate", "uninstall"); r.code != 4 {
				t.Errorf("the answer %q ends with %d, %s, want 4", answer, r.code, r.stderr)
			}
		}
		if r := sh.pipe("1\n", "migrate", "uninstall"); r.code != 0 {
			t.Errorf("the answer 1 ends with %d, %s, want 0", r.code, r.stderr)
		}
		if r := sh.rea("log"); r.code != 1 {
			t.Errorf("rea log after it ends with %d, want 1", r.code)
		}
	})
}

func TestHeadsAreBoldOnATerminalUnlessNoColorIsSet(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	sh.must("init")
	sh.must("append", "order", "1", "X")
	sh.typed = func(any) bool { return true }
	if got := sh.must("log"); !strings.HasPrefix(got, "\x1b[1m") {
		t.Errorf("the head on a terminal is %q", got)
	}
	sh.env["NO_COLOR"] = "1"
	if got := sh.must("log"); strings.Contains(got, "\x1b") {
		t.Errorf("with NO_COLOR, the output has escapes: %q", got)
	}
}

func TestLargeValuesAreFoldedInTablesAndWholeInJSON(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		long := strings.Repeat("长", 1_000_000)
		sh.write("big.json", `{"text": "`+long+`"}`)
		sh.must("append", "order", "1", "X", "--data", "@big.json")
		for _, args := range [][]string{{"log", "order", "1"}, {"log"}, {"show", "order", "1"}, {"log", "--follow", "--limit", "1"}} {
			if got := sh.must(args...); len(got) > 2_000 || !strings.Contains(got, "长…") {
				t.Errorf("rea %v prints %d bytes: %.300s", args, len(got), got)
			}
			if got := sh.must(append(args, "--json")...); !strings.Contains(got, long) {
				t.Errorf("rea %v --json does not hold the whole value", args)
			}
		}
		sh.write("big.json", `{"text": "`+strings.Repeat("a", 16<<20)+`"}`)
		if r := sh.rea("append", "order", "1", "X", "--data", "@big.json", "--json"); r.code != 4 || !strings.Contains(r.stderr, `"code":"limit"`) {
			t.Errorf("a payload over the limit ends with %d, %s", r.code, r.stderr)
		}
	})
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		sh.must("append", "order", "1", "X", "--data", `{"a":9007199254740993,"b":18446744073709551616,"c":0.1,"d":12345678901234567890.123456789,"f":0.10,"e":1e30}`)
		for _, args := range [][]string{{"log", "order", "1", "--json"}, {"log", "--json"}, {"show", "order", "1", "--json"}, {"export"}, {"show", "order", "1"}} {
			got := sh.must(args...)
			for _, digits := range []string{"9007199254740993", "18446744073709551616", "0.1", "12345678901234567890.123456789", "0.10", "1" + strings.Repeat("0", 30)} {
				if !strings.Contains(got, digits) {
					t.Errorf("rea %v does not print %s: %s", args, digits, got)
				}
			}
		}
	})
}

// command is a second process: this program, run as rea.
func (sh *shell) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = sh.dir
	cmd.Env = append(os.Environ(), childEnv+"=1")
	for name, value := range sh.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

func TestFollowShowsWhatAnotherProcessAppends(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		sh.must("append", "order", "1", "First")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out, in := io.Pipe()
		env := sh.environment("", nil, new(bytes.Buffer))
		env.Stdout = in
		done := make(chan int)
		go func() {
			code := cli.Run(ctx, []string{"log", "--follow", "-o", "jsonl"}, env)
			_ = in.Close()
			done <- code
		}()
		events := json.NewDecoder(out)
		for i, name := range []string{"First", "Second", "Third"} {
			if i > 0 {
				if text, err := sh.command("append", "order", strconv.Itoa(i), name).CombinedOutput(); err != nil {
					t.Fatalf("append: %v: %s", err, text)
				}
			}
			var e struct {
				EventType string `json:"event_type"`
				Position  int    `json:"position"`
			}
			if err := events.Decode(&e); err != nil || e.EventType != name || e.Position != i+1 {
				t.Fatalf("follow shows %+v (%v), want %s at position %d", e, err, name, i+1)
			}
		}
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("follow ends with %d when it is interrupted, want 0", code)
		}
	})
}

func TestInterruptedImportSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		sh.write("in.ndjson", strings.Repeat(`{"aggregate_type":"order","aggregate_id":1,"event_type":"X"}`+"\n", 200))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stdout bytes.Buffer
		stderr := &canceller{cancel: cancel}
		env := sh.environment("", &stdout, nil)
		env.Stderr = stderr
		code := cli.Run(ctx, []string{"import", "in.ndjson", "--batch", "20"}, env)
		if code != 1 || !strings.Contains(stderr.text.String(), "interrupted: 20 lines are done with") {
			t.Errorf("the import ends with %d: %s", code, &stderr.text)
		}
		if got, want := sh.must("import", "in.ndjson"), "in.ndjson: 200 lines, 180 new, 20 already stored, 0 rejected\n"; got != want {
			t.Errorf("the import again prints %q, want %q", got, want)
		}
		if got, want := sh.must("import", "in.ndjson"), "in.ndjson: 200 lines, 0 new, 200 already stored, 0 rejected\n"; got != want {
			t.Errorf("the third import prints %q, want %q", got, want)
		}
	})
}

// canceller cancels at the first line of progress.
type canceller struct {
	text   bytes.Buffer
	cancel func()
}

func (c *canceller) Write(p []byte) (int, error) {
	c.cancel()
	return c.text.Write(p)
}

func TestExportFileAppearsWhenItIsComplete(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	sh.must("init")
	sh.must("append", "order", "1", "X")
	sh.must("export", "all.ndjson.gz")
	if got := sh.read("all.ndjson.gz"); !strings.HasPrefix(got, "\x1f\x8b") {
		t.Errorf("all.ndjson.gz is no gzip: %q", got)
	}
	sh.must("--db", "sqlite:two.db", "migrate", "up")
	sh.must("--db", "sqlite:two.db", "import", "all.ndjson.gz")
	if a, b := sh.must("export", "--gzip"), sh.must("--db", "sqlite:two.db", "export", "-", "--gzip"); a != b {
		t.Errorf("two exports differ: %q, %q", a, b)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := cli.Run(ctx, []string{"export", "half.ndjson"}, sh.environment("", new(bytes.Buffer), new(bytes.Buffer))); code != 1 {
		t.Errorf("an interrupted export ends with %d, want 1", code)
	}
	if left, _ := filepath.Glob(filepath.Join(sh.dir, "half*")); len(left) > 0 {
		t.Errorf("an interrupted export leaves %v", left)
	}
}

func TestVersionSaysTheSchemaVersions(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	var v struct {
		Version string
		Schema  map[string]int
	}
	if err := json.Unmarshal([]byte(sh.must("version", "--json")), &v); err != nil || v.Version == "" || v.Schema["sqlite"] < 1 || v.Schema["postgres"] < 1 {
		t.Errorf("version --json = %+v, %v", v, err)
	}
}

func TestDemoTellsTheStory(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	got := strings.ReplaceAll(sh.must("demo", "--no-serve", "--orders", "300", "--dir", "shop"), sh.dir, "DIR")
	got = sh.mask(got)
	golden := filepath.Join("testdata", "demo.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s\n%s", golden, difference(string(want), got))
	}
	if r := sh.rea("demo", "--dir", "shop"); r.code != 2 {
		t.Errorf("a demo in the same folder ends with %d, want 2", r.code)
	}
}

func TestRowsEndWithTheTerminal(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	sh.must("init")
	sh.must("append", "order", "1", "X", "--data", `{"text": "`+strings.Repeat("长", 60)+`"}`)
	sh.env["NO_COLOR"] = "1"
	sh.typed = func(any) bool { return true }
	for _, args := range [][]string{{"log", "order"}, {"log", "order", "1"}, {"show", "order", "1"}, {"log", "--follow", "--limit", "1"}} {
		sh.columns = 0
		long := sh.must(args...)
		sh.columns = 80
		short := sh.must(args...)
		if long == short || !strings.Contains(short, "…") {
			t.Errorf("rea %v prints\n%s and, in 80 columns,\n%s", args, long, short)
		}
		for line := range strings.Lines(short) {
			if width := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); width > 80+1 && args[1] != "--follow" { // … may count as two
				t.Errorf("rea %v prints a line of %d columns, want 80: %s", args, width, line)
			}
		}
	}
}
