package cli_test

import (
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

func TestWhyAServerIsNotReached(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[1])
	there, err := url.Parse(pgtest.AdminURL(t))
	if err != nil {
		t.Fatal(err)
	}
	there.Path = "/no_such_database"
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for db, want := range map[string][]string{
		"postgres://u@127.0.0.1:1/x":                                      {"cannot connect to 127.0.0.1:1 as u: connection refused"},
		"postgres://u@rea.invalid/x":                                      {"rea.invalid is not known"},
		"postgres://u@127.0.0.1:1/x?host=/no/folder":                      {"no such socket"},
		"postgres://u@" + silent.Addr().String() + "/x?connect_timeout=2": {"connecting to " + silent.Addr().String() + "...\n", "no answer within 2s"},
		there.String(): {`the database "no_such_database" does not exist`},
	} {
		r := sh.rea("--db", db, "log")
		for _, text := range want {
			if r.code != 1 || !strings.Contains(r.stderr, text) {
				t.Errorf("rea --db %s log ends with %d: %s\nwant %s", db, r.code, r.stderr, text)
			}
		}
		if last := strings.TrimSpace(r.stderr); strings.Contains(last[strings.LastIndex(last, "\n")+1:], "tls") {
			t.Errorf("rea --db %s log speaks of TLS: %s", db, r.stderr)
		}
	}
}
