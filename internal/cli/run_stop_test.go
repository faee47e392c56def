package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRunStopsOnSIGTERMAndNamesAnotherProcess(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		sh.write("rea.yaml", salesYAML)
		sh.pay(0, 10)
		logs := []string{"first.log", "second.log"}
		stops := make([]func() error, len(logs))
		for i, name := range logs {
			file, err := os.Create(filepath.Join(sh.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = file.Close() })
			cmd := sh.command("run")
			cmd.Stderr = file
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			stops[i] = func() error {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					return err
				}
				return cmd.Wait()
			}
		}
		deadline, total := time.Now().Add(time.Minute), 10
		for round := 1; !strings.Contains(sh.read(logs[0])+sh.read(logs[1]), "moves it; this process takes over where that one ends"); round++ {
			if time.Now().After(deadline) {
				t.Fatalf("logs = %s%s, want a line that names the other process", sh.read(logs[0]), sh.read(logs[1]))
			}
			sh.pay(round, 10)
			total += 10
			time.Sleep(100 * time.Millisecond)
		}
		sh.must("wait", "hourly_sales", "--head", "--timeout", "1m")
		for i, stop := range stops {
			if err := stop(); err != nil {
				t.Errorf("rea run ends with %v after SIGTERM, want 0", err)
			}
			text := sh.read(logs[i])
			for _, want := range []string{"keeping 2 projections of ", "hourly_sales: ", "stopped: the next start goes on from here\n"} {
				if !strings.Contains(text, want) {
					t.Errorf("log = %s\nwant %q in it", text, want)
				}
			}
			for line := range strings.Lines(text) {
				if !strings.HasPrefix(line, "20") || strings.ContainsAny(line, "\x1b\r") {
					t.Errorf("line = %q, want a plain one with its time", line)
				}
			}
		}
		if got := sh.sales(); got != total {
			t.Errorf("total = %d, want %d", got, total)
		}
	})
}

func TestRebuildAsksOnATerminal(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		sh.write("rea.yaml", salesYAML)
		sh.pay(0, 10)
		sh.must("run", "--once")
		sh.typed = func(any) bool { return true }
		for answer, code := range map[string]int{"n\n": 4, "": 4, "y\n": 0} {
			r := sh.pipe(answer, "projection", "rebuild", "hourly_sales")
			if r.code != code || !strings.Contains(r.stderr, "rebuild it? [y/N] ") {
				t.Errorf("the answer %q ends with %d, want %d: %s", answer, r.code, code, r.stderr)
			}
		}
		if got := sh.sales(); got != 10 {
			t.Errorf("total = %d, want 10", got)
		}
	})
}

func TestARunnerOfAnOlderCatalogSaysThatItDoesNotTakeOver(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		sh.write("rea.yaml", salesYAML)
		sh.write("new.yaml", strings.Replace(salesYAML, "hourly_sales: {", "hourly_sales: {version: 2, ", 1))
		sh.pay(0, 10)
		file, err := os.Create(filepath.Join(sh.dir, "run.log"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		cmd := sh.command("run")
		cmd.Stderr = file
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		sh.must("wait", "hourly_sales", "--head", "--timeout", "1m")
		sh.must("--catalog", "new.yaml", "projection", "rebuild", "hourly_sales", "--yes")
		sh.pay(1, 1) // a runner looks where there is something new
		deadline := time.Now().Add(time.Minute)
		for _, want := range []string{"this process leaves it alone", "start this program with the newer catalog"} {
			for !strings.Contains(sh.read("run.log"), want) {
				if time.Now().After(deadline) {
					t.Fatalf("log = %s\nwant %q in it", sh.read("run.log"), want)
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
		if text := sh.read("run.log"); strings.Contains(text, "takes over") {
			t.Errorf("log = %s\nwant nothing of taking over: it never does", text)
		}
	})
}
