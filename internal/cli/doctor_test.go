package cli_test

import (
	"strings"
	"testing"
)

func TestDoctorEndsWith3WhereSomethingIsWrong(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		if r := sh.rea("doctor"); r.code != 0 || strings.Contains(r.stdout, "BAD") || !strings.Contains(r.stdout, "ok   protection") {
			t.Errorf("doctor of a new archive: %+v", r)
		}
		sh.exec(`INSERT INTO rea_projections (name, mode, aggregate_type, version, definition, fingerprint, position) VALUES ('p', 'followed', 'order', 1, '{}', 'x', 9)`)
		if r := sh.rea("doctor"); r.code != 3 || !strings.Contains(r.stdout, "BAD  projections  p is at position 9, and the events end at 0\n                  -> rea projection rebuild p\n") {
			t.Errorf("doctor: %+v", r)
		}
		if r := sh.rea("doctor", "--json"); r.code != 3 || !strings.Contains(r.stdout, `{"check":"projections","ok":false,"level":null,"text":"p is at position 9, and the events end at 0","next":"rea projection rebuild p"}`) {
			t.Errorf("doctor --json: %+v", r)
		}
	})
}
