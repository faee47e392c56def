package cli_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite"
)

const salesYAML = `rea: 1
aggregates:
  order:
    events:
      PaymentReceived: {add: {paid: $.amount}}
projections:
  hourly_sales: {on: PaymentReceived, every: 1h, measures: {orders: count, amount: {sum: $.amount}}}
  order_state: {of: order, columns: {paid: numeric}}
`

// value gives the one value of a query, asked for beside rea.
func (sh *shell) value(sqliteQuery, postgresQuery string) (value int) {
	sh.t.Helper()
	url := sh.env["REA_DATABASE_URL"]
	var err error
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		var db *sql.DB
		if db, err = sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"); err == nil {
			defer db.Close()
			err = db.QueryRow(sqliteQuery).Scan(&value)
		}
	} else {
		var conn *pgx.Conn
		if conn, err = pgx.Connect(sh.t.Context(), url); err == nil {
			defer func() { _ = conn.Close(context.Background()) }()
			err = conn.QueryRow(sh.t.Context(), postgresQuery).Scan(&value)
		}
	}
	if err != nil {
		sh.t.Fatal(err)
	}
	return value
}

// exec runs a statement by hand, beside rea, with the tables' names of SQLite.
func (sh *shell) exec(statement string) {
	sh.t.Helper()
	if sh.store.name != "sqlite" {
		statement = strings.NewReplacer("rea_views_", "rea_views.", "rea_projections", "rea.projections").Replace(statement)
	}
	if strings.HasPrefix(statement, "CREATE ") || strings.HasPrefix(statement, "DROP ") {
		sh.create(statement)
		return
	}
	sh.value(statement+" RETURNING 1", statement+" RETURNING 1")
}

func (sh *shell) sales() int {
	const query = "SELECT coalesce(sum(CAST(amount AS BIGINT)), 0) FROM "
	return sh.value(query+"rea_views_hourly_sales", query+"rea_views.hourly_sales")
}

// pay imports payments of amount 1.
func (sh *shell) pay(round, payments int) {
	var b strings.Builder
	for n := range payments {
		fmt.Fprintf(&b, `{"aggregate_type":"order","aggregate_id":"%d","event_type":"PaymentReceived","payload":{"amount":1},"reason":"round %d"}`+"\n", n%7, round)
	}
	name := fmt.Sprintf("round%d.ndjson", round)
	sh.write(name, b.String())
	sh.must("import", name)
}

// runs starts `rea run` as a process of its own.
func (sh *shell) runs() *exec.Cmd {
	cmd := sh.command("run")
	if err := cmd.Start(); err != nil {
		sh.t.Fatal(err)
	}
	sh.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// listed is a line of `rea projection list --json`.
type listed struct {
	Name     string  `json:"name"`
	Position int     `json:"position"`
	Lag      *int    `json:"lag"`
	Runner   *string `json:"runner"`
}

func (sh *shell) listed() map[string]listed {
	var lines []listed
	if err := json.Unmarshal([]byte(sh.must("projection", "list", "--json")), &lines); err != nil {
		sh.t.Fatal(err)
	}
	list := map[string]listed{}
	for _, l := range lines {
		list[l.Name] = l
	}
	return list
}

// reaches waits until both projections have come to a position.
func (sh *shell) reaches(position int) map[string]listed {
	sh.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		list := sh.listed()
		if list["hourly_sales"].Position >= position && list["order_state"].Position >= position {
			return list
		}
		if time.Now().After(deadline) {
			sh.t.Fatalf("projections = %+v, want position %d", list, position)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestARunnerKilledAtFiftyMomentsCountsEachEventOnce(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		sh.write("rea.yaml", salesYAML)
		for round := range 50 {
			running := sh.runs()
			sh.pay(round, 20)
			time.Sleep(rand.N(150 * time.Millisecond))
			_ = running.Process.Kill()
			_ = running.Wait()
		}
		sh.runs()
		sh.reaches(1000)
		if got := sh.sales(); got != 1000 {
			t.Errorf("total = %d, want 1000", got)
		}
	})
}

func TestOneOfThreeRunnersIsActiveAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		sh.write("rea.yaml", salesYAML)
		running := map[int]*exec.Cmd{}
		for range 3 {
			cmd := sh.runs()
			running[cmd.Process.Pid] = cmd
		}
		total := 0
		for round := range 10 {
			sh.pay(round, 100)
			total += 100
			if round != 4 {
				continue
			}
			active := 0
			runner := sh.reaches(1)["hourly_sales"].Runner
			if runner == nil {
				t.Fatal("the list names no runner")
			}
			if _, err := fmt.Sscanf((*runner)[strings.LastIndex(*runner, "pid "):], "pid %d", &active); err != nil || running[active] == nil {
				t.Fatalf("runner = %q, want one of the three processes", *runner)
			}
			_ = running[active].Process.Kill()
			killed := time.Now()
			sh.pay(100, 1)
			total++
			sh.reaches(total)
			if took := time.Since(killed); took > 15*time.Second {
				t.Errorf("another one took over after %s, want at most 15 s", took)
			}
		}
		sh.reaches(total)
		if got := sh.sales(); got != total {
			t.Errorf("total = %d, want %d", got, total)
		}
		if lag := sh.listed()["order_state"].Lag; lag == nil || *lag != 0 {
			t.Errorf("lag = %v, want 0", lag)
		}
	})
}

func TestProjectionListNamesTheEventThatFailsAndWhatToType(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, sh *shell) {
		sh.must("migrate", "up")
		sh.write("rea.yaml", salesYAML)
		sh.must("append", "order", "13", "PaymentReceived", "--data", `{"amount": "much"}`)
		sh.runs()
		deadline := time.Now().Add(time.Minute)
		for {
			r := sh.rea("projection", "list")
			if r.code == 3 && strings.Contains(r.stdout, "`rea projection retry hourly_sales`") {
				for _, want := range []string{"order/13 seq 1, PaymentReceived, position 1", " since 2", "the column amount (numeric)"} {
					if !strings.Contains(r.stdout, want) {
						t.Errorf("list = %s\nwant %q in it", r.stdout, want)
					}
				}
				if strings.Contains(r.stdout, "much") {
					t.Errorf("list = %s\nwant nothing of the payload in it", r.stdout)
				}
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("list = %s, want the event that fails", r.stdout)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}
