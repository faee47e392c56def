package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// The server of the tests believes everybody, so that a wrong password is not told from a right one there.
func TestReasonsOfAServer(t *testing.T) {
	t.Parallel()
	config := &pgconn.Config{Database: "shop"}
	for code, want := range map[string]string{
		"28P01": "check user and password",
		"3D000": `the database "shop" does not exist: make it`,
		"53300": "too many",
	} {
		err := errors.Join(errors.New("tls error"), &pgconn.PgError{Code: code, Message: "too many"})
		if got := connectReason(last(err), config); !strings.Contains(got, want) || strings.Contains(got, "tls") {
			t.Errorf("%s is told as %q, want %q", code, got, want)
		}
	}
}
