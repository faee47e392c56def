package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// ErrNoServer says that PostgreSQL is not installed, and what to do about it.
var ErrNoServer = errors.New("pgtest: found no PostgreSQL server: install one " +
	"(Debian, Ubuntu: apt-get install postgresql; macOS: brew install postgresql), " +
	"or set REA_TEST_PG_BIN to the folder that holds initdb, " +
	"or set REA_TEST_DATABASE_URL to a server where tests may create databases")

// Binaries returns the folder that holds initdb and postgres: bin if given, else REA_TEST_PG_BIN, else
// that of pg_config, of PATH, or the newest one where Debian and Homebrew put it. A folder
// that was asked for and lacks them is an error; finding none at all is ErrNoServer.
func Binaries(bin string) (string, error) {
	if bin == "" {
		bin = os.Getenv("REA_TEST_PG_BIN")
	}
	if bin != "" {
		if !hasServer(bin) {
			return "", fmt.Errorf("pgtest: no initdb and postgres in %s", bin)
		}
		return filepath.Abs(bin)
	}
	for _, dir := range candidates() {
		if hasServer(dir) {
			return dir, nil
		}
	}
	return "", ErrNoServer
}

func candidates() []string {
	var dirs []string
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, name := range []string{"postgres", "initdb", "pg_ctl"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		// A link on PATH leads to the folder where the server's own files are found from.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
		"/usr/pgsql-*/bin",
	} {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return major(b) - major(a) })
		dirs = append(dirs, found...)
	}
	return dirs
}

// major reads the first number in a path or version, as 15 in /usr/lib/postgresql/15/bin and in 15.4.
func major(text string) int {
	digits := func(r rune) bool { return r >= '0' && r <= '9' }
	text = text[max(0, strings.IndexFunc(text, digits)):]
	n, _ := strconv.Atoi(text[:len(text)-len(strings.TrimLeftFunc(text, digits))])
	return n
}

func hasServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}
