//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// userEnv makes a second process of these tests run as another user, who has no rights.
const userEnv = "REA_TEST_AS_USER"

func init() {
	if id, err := strconv.Atoi(os.Getenv(userEnv)); err == nil {
		for _, err := range []error{syscall.Setgroups(nil), syscall.Setgid(id), syscall.Setuid(id)} {
			if err != nil {
				panic(err)
			}
		}
	}
}

func TestFileAndFolderThatAreReadOnly(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "rea-readonly-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700); _ = os.RemoveAll(dir) })
	sh := newShell(t, stores[0])
	sh.dir = dir
	sh.must("init")
	sh.must("append", "order", "1", "X")
	for name, mode := range map[string]os.FileMode{"rea.db": 0o444, ".": 0o555} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	run := func(code int, want string, args ...string) {
		t.Helper()
		cmd := sh.command(args...)
		if os.Getuid() == 0 { // whom no permission stops
			cmd.Env = append(cmd.Env, userEnv+"=65534")
		}
		text, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(text), want) {
			t.Errorf("rea %v ends with %d, want %d and %q: %s", args, got, code, want, text)
		}
	}
	run(0, "order/1", "log")
	run(0, `"event_type":"X"`, "export")
	run(0, "up to date", "migrate", "up")
	run(1, "rea append: begin: rea.db is read-only here", "append", "order", "1", "Y")
	run(1, "new.db cannot be made: "+dir+": permission denied", "--db", "sqlite:new.db", "init")
	run(1, "the folder none does not exist", "--db", "sqlite:none/new.db", "migrate", "up")
	run(1, "permission denied", "export", "out.ndjson")

	if err := os.WriteFile(filepath.Join(dir, "rea.db-wal"), []byte("x"), 0o444); err != nil && os.Getuid() == 0 {
		t.Fatal(err)
	} else if err == nil {
		run(1, "rea.db-wal is there", "log")
	}
}
