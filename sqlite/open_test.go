package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

func TestOpenRefusesWhatIsNoDatabase(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	utf16 := filepath.Join(t.TempDir(), "utf16.db")
	db, err := openFile(utf16, "rwc", "_pragma=encoding('UTF-16le')")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE t (x)"); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	for path, want := range map[string]string{
		text:        "no SQLite database",
		t.TempDir(): "it is a folder",
		utf16:       "UTF-16le",
		":memory:":  "needs a file",
		"":          "needs a file",
	} {
		if archive, err := Open(t.Context(), path, Config{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q) = %v, want %s", path, err, want)
			archive.Close()
		}
	}
	if b, err := os.ReadFile(text); err != nil || !strings.HasPrefix(string(b), "no database\n") || len(b) != 12_000 {
		t.Errorf("the file was changed: %v", err)
	}
}

func TestOpenMakesNoFile(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	archive := openAt(t, path, Config{})
	for range 2 {
		if _, err := archive.Autocommit().Append(t.Context(), order(1), event("Placed", `{}`)); !errors.Is(err, rea.ErrNoSchema) {
			t.Errorf("Append: %v, want ErrNoSchema", err)
		}
		if err := archive.Do(t.Context(), func(*rea.Tx) error { return nil }); !errors.Is(err, rea.ErrNoSchema) {
			t.Errorf("Do: %v, want ErrNoSchema", err)
		}
		if err := archive.Uninstall(t.Context(), 0); !errors.Is(err, rea.ErrNoSchema) {
			t.Errorf("Uninstall: %v, want ErrNoSchema", err)
		}
		pending, err := archive.Migrations(t.Context())
		if err != nil || len(pending) != len(steps) || !pending[0].AppliedAt.IsZero() {
			t.Errorf("Migrations = %v, %v", pending, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the file is there: %v", err)
		}
	}
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
	var mode string
	if err := rawDB(t, archive, "").QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("journal mode = %s, %v, want wal", mode, err)
	}
}

func TestMigrateWithoutAFolderSaysSo(t *testing.T) {
	t.Parallel()
	archive := openAt(t, filepath.Join(t.TempDir(), "none", "rea.db"), Config{})
	err := archive.Migrate(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "cannot be made: the folder") || errors.Is(err, rea.ErrNoSchema) {
		t.Errorf("Migrate: %v, want that the folder does not exist", err)
	}
}

func TestCloseTwice(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
	err := archive.Do(t.Context(), func(tx *rea.Tx) error {
		mustAppend(t, tx, order(2), event("Placed", `{}`))
		archive.Close() // the transaction goes on to its end
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	archive.Close()
	if _, err := archive.Autocommit().Append(t.Context(), order(1), event("Placed", `{}`)); err == nil {
		t.Error("an append after Close has no error")
	}
	if n := count(t, openAt(t, archive.store.path, Config{})); n != 2 {
		t.Errorf("%d events are stored, want 2", n)
	}
	if left, _ := filepath.Glob(filepath.Dir(archive.store.path) + "/*-wal"); len(left) > 0 {
		t.Logf("left behind: %v", left) // by the archive that has just been opened
	}
}

func TestOtherSchemas(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
	raise := func(text string) {
		t.Helper()
		if _, err := rawDB(t, archive, "").Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	raise("INSERT INTO rea_schema_migrations (version, name, checksum) VALUES (99, 'later', 'x')")
	for name, a := range map[string]*Archive{"a program that was running": archive, "a program that starts": openAt(t, archive.store.path, Config{})} {
		var schema *rea.SchemaError
		if _, err := a.Autocommit().Append(t.Context(), order(1), event("Paid", `{}`)); !errors.Is(err, rea.ErrNewerSchema) || !errors.As(err, &schema) || schema.Found != 99 {
			t.Errorf("%s: Append: %v, want ErrNewerSchema", name, err)
		}
		for what, err := range map[string]error{
			"Do": a.Do(t.Context(), func(tx *rea.Tx) error {
				_, err := tx.Append(t.Context(), order(1), event("Paid", `{}`))
				return err
			}),
			"Migrate": a.Migrate(t.Context(), nil), "Uninstall": a.Uninstall(t.Context(), 1),
		} {
			if !errors.Is(err, rea.ErrNewerSchema) {
				t.Errorf("%s: %s: %v, want ErrNewerSchema", name, what, err)
			}
		}
		if n := count(t, a); n != 1 {
			t.Errorf("%s: %d events, want 1", name, n)
		}
	}
	raise("DELETE FROM rea_schema_migrations WHERE version = 99")
	mustAppend(t, archive.Autocommit(), order(1), event("Paid", `{}`))

	raise("UPDATE rea_schema_migrations SET checksum = 'x' WHERE version = 1")
	if err := openAt(t, archive.store.path, Config{}).Migrate(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "another build") {
		t.Errorf("another checksum: %v", err)
	}
	raise("DELETE FROM rea_schema_migrations WHERE version > 1")
	if _, err := openAt(t, archive.store.path, Config{}).Autocommit().Count(t.Context()); err == nil {
		t.Errorf("an older schema: %v", err)
	}
}

func TestUninstall(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
	db := rawDB(t, archive, "")
	if _, err := db.Exec("CREATE TABLE rea_mine (x); CREATE TABLE events (x)"); err != nil {
		t.Fatal(err)
	}
	var refused *rea.NotConfirmedError
	if err := archive.Uninstall(t.Context(), 2); !errors.As(err, &refused) || refused.Events != 1 || count(t, archive) != 1 {
		t.Fatalf("err = %v, want *rea.NotConfirmedError", err)
	}
	if err := archive.Uninstall(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	var left string
	if err := db.QueryRow("SELECT group_concat(name) FROM (SELECT name FROM sqlite_master ORDER BY name)").Scan(&left); err != nil || left != "events,rea_mine" {
		t.Errorf("left: %s, %v", left, err)
	}
	if _, err := archive.Autocommit().Append(t.Context(), order(1), event("Paid", `{}`)); !errors.Is(err, rea.ErrNoSchema) {
		t.Errorf("err = %v, want ErrNoSchema", err)
	}
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
}

func TestUninstallNamesWhatDependsOnIt(t *testing.T) {
	t.Parallel()
	for want, statement := range map[string]string{
		"view v":                 `CREATE VIEW v AS SELECT seq FROM "rea_events"`,
		"view w":                 `CREATE VIEW w AS SELECT seq FROM REA_HISTORY`,
		"trigger t":              `CREATE TRIGGER t AFTER INSERT ON rea_events BEGIN SELECT 1; END`,
		"trigger u":              `CREATE TRIGGER u AFTER INSERT ON mine BEGIN INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type) VALUES ('a', 'b', 1, 'X'); END`,
		"foreign key of table f": `CREATE TABLE f (a INTEGER REFERENCES rea_events (id), b INTEGER REFERENCES [rea_events])`,
		"virtual table x":        `CREATE VIRTUAL TABLE x USING fts5(payload, content='rea_events', content_rowid='id')`,
		"":                       `CREATE TABLE rea_events_of_mine (rea_events TEXT, "a" INTEGER REFERENCES mine (a))`,
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			archive := newArchive(t)
			mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
			db := rawDB(t, archive, "")
			for _, statement := range []string{`CREATE TABLE mine (a INTEGER PRIMARY KEY)`, `CREATE VIEW harmless AS SELECT a AS rea_event FROM mine`, statement} {
				if _, err := db.Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
			err := archive.Uninstall(t.Context(), 1)
			if want == "" {
				if err != nil {
					t.Errorf("Uninstall = %v", err)
				}
				return
			}
			if err == nil || !strings.HasSuffix(err.Error(), "drop it first: "+want) {
				t.Errorf("Uninstall = %v, want an error that names the %s", err, want)
			}
			if n := count(t, archive); n != 1 {
				t.Errorf("%d events are left, want 1", n)
			}
		})
	}
}
