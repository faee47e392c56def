package cli_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// create runs a statement that gives nothing back, beside rea.
func (sh *shell) create(statement string) {
	sh.t.Helper()
	url := sh.env["REA_DATABASE_URL"]
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
		if err == nil {
			defer db.Close()
			_, err = db.Exec(statement)
		}
		if err != nil {
			sh.t.Fatalf("%s: %v", statement, err)
		}
		return
	}
	conn, err := pgx.Connect(sh.t.Context(), url)
	if err == nil {
		defer func() { _ = conn.Close(context.Background()) }()
		_, err = conn.Exec(sh.t.Context(), statement)
	}
	if err != nil {
		sh.t.Fatalf("%s: %v", statement, err)
	}
}

// counts decodes what `rea baseline --json` prints.
func counts(t *testing.T, r result) (c struct {
	Rows    int64   `json:"rows"`
	New     int64   `json:"new"`
	Known   int64   `json:"already_known"`
	Refused int64   `json:"refused"`
	Rejects *string `json:"rejects_file"`
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.stdout), &c); err != nil {
		t.Fatalf("exit %d: %s%s: %v", r.code, r.stdout, r.stderr, err)
	}
	return c
}

func TestBaselineRunTwiceReportsNothingNew(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		sh.create(`CREATE TABLE orders (id bigint PRIMARY KEY, status text)`)
		sh.create(`INSERT INTO orders WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, 'paid' FROM n`)
		if r := sh.rea("baseline", "orders", "--type", "order"); r.code != 4 || !strings.Contains(r.stderr, "1000 to take") {
			t.Errorf("without --yes: exit %d, %s", r.code, r.stderr)
		}
		for run, want := range []int64{1000, 0} {
			r := sh.rea("baseline", "orders", "--type", "order", "--batch", "90", "--yes", "--json")
			if c := counts(t, r); r.code != 0 || c.Rows != 1000 || c.New != want || c.Known != 1000-want || c.Refused != 0 || c.Rejects != nil {
				t.Errorf("run %d: exit %d, %+v, want %d new", run+1, r.code, c, want)
			}
		}
		const made = ` WHERE seq = 1 AND event_type = 'BaselineCreated' AND actor_id = 'baseline' AND created_at IS NOT NULL AND metadata IS NOT NULL`
		if n := sh.value("SELECT count(*) FROM rea_events"+made, "SELECT count(*) FROM rea.events"+made); n != 1000 {
			t.Errorf("%d events say what they should, want 1000", n)
		}
		if r := sh.rea("baseline", "check", "orders"); r.code != 0 {
			t.Errorf("check: exit %d, %s%s", r.code, r.stdout, r.stderr)
		}
	})
}

func TestBaselineListsWhatItCannotTake(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		sh.create(`CREATE TABLE orders (id text PRIMARY KEY, status text, total numeric, note text)`)
		sh.create(`INSERT INTO orders VALUES ('1', NULL, -5, NULL), ('2', 'PAID ', NULL, '{"a": 1, "a": 2}'), ('3', 'paied', 1, ''), (' 4', 'paid', 1, ''), ('5', 'paid', 1, '')`)
		sh.create(`UPDATE orders SET note = replace('xxxxxxxxxxxxxxxxxxxx', 'x', replace('xxxxxxxxxxxxxxxxxxxx', 'x', replace('xxxxxxxxxxxxxxxxxxxx', 'x',
replace('xxxxxxxxxxxxxxxxxxxx', 'x', replace('xxxxxxxxxxxxxxxxxxxxxxxxx', 'x', 'five!'))))) WHERE id = '5'`)
		r := sh.rea("baseline", "orders", "--type", "order", "--status", "status", "--yes", "--json", "--rejects", "bad.ndjson")
		c := counts(t, r)
		if r.code != 3 || c.New != 3 || c.Refused != 2 || c.Rejects == nil || *c.Rejects != "bad.ndjson" {
			t.Errorf("exit %d, %+v, want 3 new and 2 refused: %s", r.code, c, r.stderr)
		}
		if bad := sh.read("bad.ndjson"); strings.Count(bad, "\n") != 2 || !strings.Contains(bad, `[" 4"]`) || !strings.Contains(bad, `["5"]`) {
			t.Errorf("rejects: %s", bad)
		}
		if log := sh.must("log", "order", "2", "--json"); !strings.Contains(log, `"status":"PAID "`) || !strings.Contains(log, `"{\"a\": 1, \"a\": 2}"`) {
			t.Errorf("order/2: %s", log)
		}
		if r := sh.rea("baseline", "check", "orders"); r.code != 3 || strings.Count(r.stdout, "missing") != 2 {
			t.Errorf("check: exit %d, %s%s", r.code, r.stdout, r.stderr)
		}
	})
}

func TestGuardCheckNamesWhatTheTriggersDidNotSee(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[1])
	sh.env["REA_DATABASE_URL"] = stores[1].new(t)
	sh.must("migrate", "up")
	sh.create(`CREATE TABLE orders (id bigint PRIMARY KEY, status text)`)
	sh.create(`INSERT INTO orders VALUES (1, 'placed'), (2, 'placed')`)
	if r := sh.rea("baseline", "orders", "--type", "order", "--yes"); !strings.Contains(r.stderr, "is not guarded") {
		t.Errorf("no warning: %s", r.stderr)
	}
	sh.must("guard", "add", "orders", "--type", "order", "--status", "status", "--yes")
	sh.create(`UPDATE orders SET status = 'paid' WHERE id = 1`)
	if r := sh.rea("guard", "check", "all"); r.code != 0 || !strings.Contains(r.stderr, "2 rows, as the events say") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	sh.create(`ALTER TABLE orders ALTER status TYPE text USING upper(status)`)
	r := sh.rea("guard", "check", "orders", "--limit", "1", "--json")
	if r.code != 3 || strings.Count(r.stdout, `"difference":"different"`) != 1 || !strings.Contains(r.stderr, "the first 1 of 2 are listed") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := sh.rea("guard", "check", "nothing"); r.code != 1 {
		t.Errorf("a table without a guard: exit %d, %s", r.code, r.stderr)
	}
}
