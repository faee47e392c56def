package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	_ "github.com/lib/pq"

	"github.com/realtime-event-archive/rea"
)

func TestThroughLibPQ(t *testing.T) {
	t.Parallel()
	a, s, url := archive(t)
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	r := a.SQLTx(tx)
	put(t, r.With(rea.Expect(0), rea.Once("k"), rea.By("42"), rea.Metadata([]byte(`{"a": 1}`))), order1, "A", "B")
	same(t, "Duplicate", put(t, r.With(rea.Once("k")), order1, "A", "B").Duplicate, true)
	_, err = r.With(rea.Expect(1)).Append(t.Context(), order1, rea.NewEvent{Type: "X"})
	same(t, "message of a conflict", fmt.Sprint(err), "rea: append to order/1: expected seq 1, the last one is 2: load it again and retry")
	_, err = r.With(rea.Once("k")).Append(t.Context(), order1, rea.NewEvent{Type: "X"})
	same(t, "code of a reused key", rea.Code(err), "key_reused")
	loaded, err := rea.Replay(t.Context(), r, order1, rea.Merge)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "Seq", loaded.Seq, 2)
	same(t, "metadata", string(loaded.Last.Metadata), `{"a": 1}`)
	if _, err := tx.Exec(`CREATE TABLE business (n int)`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	same(t, "history", positions(t, a.Archive), "order/1#1 order/1#2")
	s.want("0", `SELECT count(*) FROM business`)
}

// formatter is like bun.Tx: it has the two methods, formats the query itself and passes no arguments on.
type formatter struct{ *sql.Tx }

func (f formatter) ExecContext(ctx context.Context, query string, _ ...any) (sql.Result, error) {
	return f.Tx.ExecContext(ctx, query)
}

func (f formatter) QueryContext(ctx context.Context, query string, _ ...any) (*sql.Rows, error) {
	return f.Tx.QueryContext(ctx, query)
}

func TestAWrapperThatFormatsQueriesIsNamed(t *testing.T) {
	t.Parallel()
	a, _, url := archive(t)
	for _, driver := range []string{"pgx", "postgres"} {
		db, err := sql.Open(driver, url)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.SQLTx(formatter{tx}).Append(t.Context(), order1, rea.NewEvent{Type: "A"})
		if want := "postgres_test.formatter formats queries itself"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "tx.Tx") {
			t.Errorf("append through a wrapper by %s = %v, want %q and tx.Tx in it", driver, err, want)
		}
		_ = tx.Rollback()
	}
}

func TestTheCallersSettingsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	a, s, url := archive(t)
	put(t, a.Autocommit().With(rea.Once("k")), order1, "A")
	positions(t, a.Archive)
	tx, err := newPool(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	settings := func() (all string) {
		t.Helper()
		const query = `SELECT string_agg(name || '=' || setting, E'\n' ORDER BY name) FROM pg_settings WHERE name NOT LIKE 'plpgsql.%'`
		if err := tx.QueryRow(t.Context(), query).Scan(&all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := settings()
	r := a.Tx(tx)
	put(t, r.With(rea.By("42"), rea.Because("why"), rea.Correlate("c")), order1, "B", "C")
	_, err = r.With(rea.Expect(9)).Append(t.Context(), order1, rea.NewEvent{Type: "X"})
	same(t, "code", rea.Code(err), "conflict")
	if _, err := rea.Replay(t.Context(), r, order1, rea.Merge); err != nil {
		t.Fatal(err)
	}
	for _, err := range r.History(t.Context(), rea.Filter{Event: "A"}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if after := settings(); after != before {
		t.Errorf("settings = %s, want those from before: %s", after, before)
	}
	var actor *string
	if err := tx.QueryRow(t.Context(), `SELECT current_setting('rea.actor', true)`).Scan(&actor); err != nil || actor != nil && *actor != "" {
		t.Errorf("rea.actor = %v, %v, want none", actor, err)
	}
	s.want("1", `SELECT count(*) FROM rea.events`)
}

func TestImportNeedsATransactionOfREAs(t *testing.T) {
	t.Parallel()
	a, _, url := archive(t)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	_, err = a.SQLTx(tx).Import(t.Context(), []rea.Line{{Aggregate: order1, Event: rea.NewEvent{Type: "A", Payload: []byte(`{}`)}}})
	if err == nil || !strings.Contains(err.Error(), "archive.Do") {
		t.Errorf("import = %v, want an error that names archive.Do", err)
	}
}
