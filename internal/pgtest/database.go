package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Migrated describes a template that build fills. The fingerprint must change when what build
// does changes (say, the text of the migrations): a server that has the template keeps it.
func Migrated(fingerprint string, build func(ctx context.Context, url string) error) Template {
	sum := sha256.Sum256([]byte(fingerprint))
	return Template{name: fmt.Sprintf("rea_template_%x", sum[:8]), build: build}
}

// Database returns the address of a new copy of the template given to Main, dropped when t ends.
func Database(t testing.TB) string {
	t.Helper()
	if run.template.build == nil {
		t.Fatal("pgtest: Database needs a TestMain that calls pgtest.Main with a template")
	}
	admin := AdminURL(t)
	run.built.Do(func() { run.builtErr = run.template.ensure(t.Context(), admin) })
	if run.builtErr != nil {
		t.Fatal(run.builtErr)
	}
	return create(t, admin, run.template.name)
}

// Empty returns the address of a new database with nothing in it, dropped when t ends.
func Empty(t testing.TB) string {
	t.Helper()
	return create(t, AdminURL(t), "template0")
}

func create(t testing.TB, admin, template string) string {
	t.Helper()
	name := strings.ToLower("rea_test_" + rand.Text()[:12])
	if err := do(t.Context(), admin, func(conn *pgx.Conn) string { return copySQL(conn, name, template) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		drop := func(*pgx.Conn) string { return "DROP DATABASE " + quote(name) + " WITH (FORCE)" }
		// The test's own context has ended by now.
		if err := do(context.Background(), admin, drop); err != nil {
			t.Errorf("%v (a prepared transaction or a replication slot keeps a database)", err)
		}
	})
	url, err := address(admin, name)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// copySQL copies files where the server lets us choose (15 and later): on a memory file system that takes
// 20 to 40 ms, against 30 to 80 ms through the write-ahead log; on a disk the two are alike.
func copySQL(conn *pgx.Conn, name, template string) string {
	sql := "CREATE DATABASE " + quote(name) + " TEMPLATE " + quote(template) + " ENCODING 'UTF8'"
	if major(conn.PgConn().ParameterStatus("server_version")) >= 15 {
		sql += " STRATEGY file_copy"
	}
	return sql
}

// templateLock is the advisory lock, in the admin database, under which templates are built.
const templateLock = 7235046

// ensure builds the template unless the server has it. Test programs run side by side, so the first one
// builds while the others wait. Being marked as a template is what tells a finished one from
// one whose builder was killed.
func (tm Template) ensure(ctx context.Context, admin string) (err error) {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	// Ends the lock too.
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return fmt.Errorf("pgtest: wait for template: %w", err)
	}
	var done bool
	const look = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)"
	if err := conn.QueryRow(ctx, look, tm.name).Scan(&done); err != nil || done {
		return err
	}
	name := quote(tm.name)
	for _, sql := range []string{
		"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)",
		copySQL(conn, tm.name, "template0"),
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("pgtest: create template: %w", err)
		}
	}
	url, err := address(admin, tm.name)
	if err != nil {
		return err
	}
	if err := tm.build(ctx, url); err != nil {
		return fmt.Errorf("pgtest: build template: %w", err)
	}
	// Nobody may connect any more: a single connection makes every copy wait.
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+name+" IS_TEMPLATE true ALLOW_CONNECTIONS false"); err != nil {
		return fmt.Errorf("pgtest: finish template: %w", err)
	}
	return nil
}

// do runs one statement on a connection of its own, as databases cannot be made in a transaction.
func do(ctx context.Context, admin string, statement func(*pgx.Conn) string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	sql := statement(conn)
	_, err = conn.Exec(ctx, sql)
	if err != nil {
		err = fmt.Errorf("pgtest: %s: %w", sql, err)
	}
	return errors.Join(err, conn.Close(ctx))
}

// address is that of another database on the same server.
func address(admin, database string) (string, error) {
	u, err := url.Parse(admin)
	if err != nil || u.Host == "" && u.RawQuery == "" {
		return "", fmt.Errorf("pgtest: %s must be a postgres:// address", EnvURL)
	}
	u.Path = "/" + database
	return u.String(), nil
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
