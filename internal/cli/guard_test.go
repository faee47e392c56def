package cli_test

import (
	"strings"
	"testing"
)

func TestGuardsAreAddedWatchedAndRemoved(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		if strings.HasPrefix(sh.env["REA_DATABASE_URL"], "sqlite") {
			if r := sh.rea("guard", "add", "orders", "--type", "order", "--yes"); r.code != 2 || !strings.Contains(r.stderr, "guards are PostgreSQL's") {
				t.Errorf("guard on SQLite: %+v", r)
			}
			return
		}
		sh.create(`CREATE TABLE orders (id int PRIMARY KEY, status text, amount numeric, note text, phone text); INSERT INTO orders VALUES (1, 'placed', 5), (2, 'placed', 6)`)
		step := func(code int, want string, args ...string) {
			t.Helper()
			if r := sh.rea(args...); r.code != code || !strings.Contains(r.stdout+r.stderr, want) {
				t.Errorf("rea %v: %+v, want exit code %d and %q", args, r, code, want)
			}
		}
		step(0, "no table is guarded", "guard", "status")
		step(2, "--type order", "guard", "add", "orders")
		step(4, "add --yes", "guard", "add", "orders", "--type", "order")
		step(1, "no column nope", "guard", "add", "orders", "--type", "order", "--status", "nope", "--yes")
		step(0, "guarded public.orders: capture, type order", "guard", "add", "orders", "--type", "order", "--status", "status", "--yes", "--actor", "42")
		step(4, "is guarded already", "guard", "add", "orders", "--type", "order", "--yes")
		sh.create(`UPDATE orders SET status = 'paid' WHERE id = 1`)
		step(0, "DirectUpdate", "log", "order", "1")
		step(0, `"status":"paid"`, "show", "order", "1", "--json")
		sh.create(`ALTER TABLE orders ADD city text`)
		step(3, "added city", "guard", "status")
		step(0, "1 row brought level", "guard", "regenerate", "orders", "--yes")
		step(0, `"problems":[]`, "guard", "status", "--json")
		step(0, "0 rows brought level\n", "guard", "change", "orders", "--ignore", "note", "--redact", "phone", "--yes")
		sh.create(`ALTER TABLE orders DROP note, DROP phone`)
		step(0, "when made anew: note, phone", "guard", "regenerate", "orders", "--yes")
		step(2, "what is to change", "guard", "change", "orders", "--yes")
		step(4, "~ orders: mode refuse, sql hash", "guard", "change", "orders", "--mode", "refuse", "--sql", "hash")
		step(0, `"ignore":["city"],"redact":[],"sql":"hash"`, "guard", "change", "orders", "--ignore", "city", "--sql", "hash", "--yes", "--json")
		step(1, "--add-column", "guard", "change", "orders", "--mode", "refuse", "--yes")
		step(0, `"mode":"refuse","key":["id"],"status":"status","ignore":["city"],"redact":[],"sql":"hash","require_reason":false,"truncate":"refuse"`,
			"guard", "change", "orders", "--mode", "refuse", "--add-column", "--yes", "--json")
		step(0, `"mode":"capture","key":["id"],"status":"status","ignore":["city"],"redact":[],"sql":"hash","require_reason":false,"truncate":"refuse"`,
			"guard", "change", "orders", "--mode", "capture", "--truncate", "refuse", "--yes", "--json")
		step(0, `"truncate":"refuse"`, "guard", "change", "orders", "--mode", "capture", "--yes", "--json")
		step(0, `"mode":"capture","key":["id"],"status":"status","ignore":[]`, "guard", "change", "orders", "--mode", "capture", "--ignore", "", "--yes", "--json")
		step(0, "GuardChanged", "log", "rea.guard", "public.orders")
		step(1, "there is no glass to break", "guard", "break-glass", "orders", "--reason", "incident 7", "--yes")
		step(2, "takes a reason", "guard", "break-glass", "orders")
		step(0, "removed the guard of public.orders", "guard", "remove", "orders", "--yes")
		step(1, "has no guard", "guard", "remove", "orders", "--yes")
		step(1, "has no guard", "guard", "change", "orders", "--sql", "off", "--yes")
		step(0, `"mode":"refuse"`, "guard", "add", "orders", "--type", "order", "--mode", "refuse", "--add-column", "--yes", "--json")
		step(0, "broke the glass of public.orders", "guard", "break-glass", "orders", "--reason", "incident 7", "--yes")
		step(3, "glass is broken", "guard", "status")
		step(0, "mended the glass of public.orders", "guard", "break-glass", "orders", "--end", "--yes")
		step(0, "refuse", "guard", "status")
	})
}

func TestACapturedStatusThatNoStepLeadsToIsShownAsIllegal(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		if strings.HasPrefix(sh.env["REA_DATABASE_URL"], "sqlite") {
			return // has no guards
		}
		sh.must("migrate", "up")
		sh.write("rea.yaml", `
rea: 1
aggregates:
  order:
    status: status
    events:
      OrderPlaced: {from: [none], to: placed}
      PaymentReceived: {from: [placed], to: paid}
      NoteAdded: {from: any}
`)
		sh.must("catalog", "apply", "--yes")
		sh.create(`CREATE TABLE orders (id int PRIMARY KEY, status text)`)
		sh.must("guard", "add", "orders", "--type", "order", "--status", "status", "--yes")
		sh.create(`INSERT INTO orders VALUES (1, 'placed')`)
		sh.create(`UPDATE orders SET status = 'paid'`)
		sh.create(`UPDATE orders SET status = 'placed'`)
		sh.create(`UPDATE orders SET status = 'any'`)
		sh.create(`UPDATE orders SET status = 'nonsense'`)
		if out := sh.must("log", "order", "1"); strings.Count(out, "DirectUpdate (illegal)") != 2 {
			t.Errorf("log shows\n%s, want seq 3 and 5 as illegal", out)
		}
		if out := sh.must("log", "order", "1", "--json"); strings.Count(out, `"illegal":true`) != 2 {
			t.Errorf("log --json shows\n%s", out)
		}
		if out := sh.must("show", "order", "1"); !strings.Contains(out, "status      nonsense") {
			t.Errorf("show:\n%s", out)
		}
		if r := sh.rea("append", "order", "1", "PaymentReceived"); r.code != 4 || !strings.Contains(r.stderr, "illegal in status nonsense at seq 5: legal now: NoteAdded") {
			t.Errorf("append: %+v", r)
		}
	})
}
