package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// A trigger on the table, one of a view, views that only other views lead to, names that want quotes, and a name in a text.
func TestASwitchTakesOverWhatOthersHaveMade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "archive.db")
	catalog, err := rea.NewCatalog(rea.Type{Name: "order", Events: []rea.EventType{{Name: "A"}}})
	if err == nil {
		catalog, err = catalog.WithProjections(rea.Projection{Name: "hourly", On: []string{"A"}, Measures: []rea.Measure{{Name: "n", Kind: rea.MeasureCount}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	a := openArchive(t, path, rea.Config{Catalog: catalog, RecreateViews: true})
	t.Cleanup(a.Close)
	plain := openArchive(t, path, rea.Config{Catalog: catalog})
	t.Cleanup(plain.Close)
	if err := errors.Join(a.Migrate(t.Context(), nil), a.Rebuild(t.Context(), "hourly", nil)); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	do := func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	made := func() string {
		t.Helper()
		var text string
		if err := db.QueryRow(`SELECT group_concat(sql, x'0a') FROM (SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name)`).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, statement := range []string{
		`CREATE TABLE seen (n)`,
		`CREATE VIEW "über ""all""" AS SELECT n FROM "rea_views_hourly"`,
		`CREATE VIEW a_second(m) AS SELECT n FROM "über ""all""" -- and more`,
		"CREATE VIEW \"a`tick\" AS SELECT n FROM rea_views_hourly",
		"CREATE VIEW ticked AS SELECT n FROM `a``tick`",
		`CREATE VIEW "" AS SELECT n FROM rea_views_hourly`,
		`CREATE VIEW of_no_name AS SELECT n FROM ""`,
		`CREATE VIEW events AS SELECT n FROM rea_views_hourly`,
		`CREATE VIEW said AS SELECT 'rea_views_hourly' AS name`,
		`CREATE TRIGGER "on it" AFTER UPDATE ON rea_views_hourly WHEN NEW.n > 1 BEGIN INSERT INTO seen VALUES (NEW.n); END`,
		`CREATE TRIGGER instead INSTEAD OF DELETE ON a_second BEGIN SELECT 1; END`,
		`CREATE TRIGGER elsewhere AFTER INSERT ON seen BEGIN UPDATE rea_views_hourly SET n = n + 0 WHERE false; END`,
		`CREATE INDEX "by N" ON rea_views_hourly (n DESC) WHERE n > 0`,
	} {
		do(statement)
	}
	before := made()
	var refused *rea.DependentsError
	err = plain.Rebuild(t.Context(), "hourly", nil)
	if want := "trigger elsewhere, trigger instead, trigger on it, view , view a_second, view a`tick, view events, view of_no_name, view said, view ticked, view über \"all\""; !errors.As(err, &refused) || strings.Join(refused.Dependents, ", ") != want {
		t.Errorf("rebuild = %v, want %q", err, want)
	}
	for range 2 {
		if err := a.Rebuild(t.Context(), "hourly", nil); err != nil {
			t.Fatal(err)
		}
		if got := made(); got != before {
			t.Errorf("made = %s, want %s", got, before)
		}
	}
	for _, c := range []struct{ make, drop, says string }{
		{`CREATE TABLE child (b REFERENCES rea_views_hourly (bucket))`, `DROP TABLE child`, "foreign key of table child"},
		{`CREATE TRIGGER broken AFTER INSERT ON seen BEGIN DELETE FROM rea_views_hourly WHERE nobody = 1; END`, `DROP TRIGGER broken`, "trigger broken"},
	} {
		do(c.make)
		before := made()
		err := a.Rebuild(t.Context(), "hourly", nil)
		if refused := (*rea.DependentsError)(nil); !errors.As(err, &refused) || refused.Again || len(refused.Dependents) != 1 || !strings.Contains(refused.Dependents[0], c.says) {
			t.Errorf("rebuild = %v, want %q", err, c.says)
		}
		if got := made(); got != before {
			t.Errorf("made = %s, want %s", got, before)
		}
		do(c.drop)
	}
}
