package loans

import (
	"database/sql"
	"maps"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// projections lets both projections catch up, and compares them with what was published.
func (sh shell) projections() {
	sh.t.Helper()
	sh.must("run", "--once")
	sh.must("projection", "check")
	published := map[string]int{"A_SUBMITTED": 13_087, "A_APPROVED": 2_246, "A_DECLINED": 7_635, "A_CANCELLED": 2_807}
	events := "'" + strings.Join([]string{"A_SUBMITTED", "A_APPROVED", "A_DECLINED", "A_CANCELLED"}, "', '") + "'"
	if got := sh.counts("SELECT event, sum(loans) FROM rea_views_hourly_steps WHERE event IN (" + events + ") GROUP BY event"); !maps.Equal(got, published) {
		sh.t.Errorf("totals of hourly_steps = %v, want %v", got, published)
	}
	got := sh.counts(`
SELECT 'A_SUBMITTED', count(submitted_at) FROM rea_views_loan_state
UNION ALL SELECT 'A_APPROVED', count(approved_at) FROM rea_views_loan_state
UNION ALL SELECT 'A_DECLINED', count(declined_at) FROM rea_views_loan_state
UNION ALL SELECT 'A_CANCELLED', count(cancelled_at) FROM rea_views_loan_state`)
	if !maps.Equal(got, published) {
		sh.t.Errorf("loans of loan_state = %v, want %v", got, published)
	}
}

// counts reads names and numbers with another program's eyes; tables have their names of SQLite.
func (sh shell) counts(query string) map[string]int {
	sh.t.Helper()
	driver, source := "pgx", sh.env["REA_DATABASE_URL"]
	if path, ok := strings.CutPrefix(source, "sqlite:"); ok {
		driver, source = "sqlite", path
	} else {
		query = strings.ReplaceAll(query, "rea_views_", "rea_views.")
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		sh.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(sh.t.Context(), query)
	if err != nil {
		sh.t.Fatal(err)
	}
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			sh.t.Fatal(err)
		}
		counts[name] = n
	}
	if err := rows.Err(); err != nil {
		sh.t.Fatal(err)
	}
	return counts
}
