package cli_test

import (
	"net/url"
	"os/exec"
	"strings"
	"testing"
)

func TestNextStepsCanBeRunAsTheyArePrinted(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	for _, db := range []string{"sqlite:rea.db", "sqlite:a b's.db", "sqlite:订单.db"} {
		r := sh.rea("--db", db, "init")
		next, _, _ := strings.Cut(r.stderr[strings.Index(r.stderr, "next: rea ")+len("next: rea "):], "\n")
		out, err := exec.Command("sh", "-c", `for word in "$@"; do :; done; printf '%s\n' `+next).Output()
		if err != nil {
			t.Fatal(err)
		}
		sh.must(strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")...)
		if got := sh.must("--db", db, "log", "-o", "jsonl"); strings.Count(got, "\n") != 1 {
			t.Errorf("%s holds %q after the next step", db, got)
		}
	}
	sh.env["DATABASE_URL"] = "sqlite:env.db"
	if r := sh.rea("init"); !strings.HasPrefix(r.stderr, "using DATABASE_URL\n") || !strings.Contains(r.stderr, "next: rea append") {
		t.Errorf("rea init with DATABASE_URL says %s", r.stderr)
	}
	if r := sh.rea("migrate", "uninstall"); !strings.HasPrefix(r.stderr, "using DATABASE_URL\n") {
		t.Errorf("rea migrate uninstall with DATABASE_URL says %s", r.stderr)
	}
	if r := sh.rea("log"); strings.Contains(r.stderr, "using") {
		t.Errorf("rea log with DATABASE_URL says %s", r.stderr)
	}
}

func TestNextStepsShowNoPassword(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(stores[1].new(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(u.User.Username(), "hunter2secret")
	sh := newShell(t, stores[1])
	r := sh.rea("--db", u.String(), "init")
	if strings.Contains(r.stderr, "hunter2") || r.code == 0 && !strings.Contains(r.stderr, "next (with the same --db): rea append") {
		t.Errorf("rea init ends with %d and says %s", r.code, r.stderr)
	}
}
