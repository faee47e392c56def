package doctor_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea/doctor"
	"github.com/realtime-event-archive/rea/sqlite"
)

func TestSQLiteSaysWhoMayWriteTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rea.db")
	archive, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	said := func(want string) {
		t.Helper()
		list, err := doctor.SQLite(t.Context(), path, archive.Archive)
		level, wrong, all := told(list)
		if err != nil || level != doctor.L1 || (wrong == "") != (want == "") || !strings.Contains(wrong, want) {
			t.Errorf("%v, level %s, wrong:\n%s\nwant %s", err, level, wrong, want)
		}
		if want == "" && (!strings.Contains(all, "schema: version ") || !strings.Contains(all, "journal: mode WAL")) {
			t.Errorf("all:\n%s", all)
		}
	}
	change := func(name string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	change(path, 0o600)
	said("")
	change(path, 0o666)
	said("file: its mode is 0666: others than its owner may write it -> chmod go-w the file")
	change(path, 0o600)
	change(filepath.Dir(path), 0o777)
	said("folder: its mode is 0777: others than its owner may put another file in the archive's place -> chmod go-w the folder")
	change(filepath.Dir(path), 0o777|os.ModeSticky)
	said("")
}

func TestSQLiteSaysThatAFileIsNotInWAL(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rea.db")
	archive, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	archive.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`PRAGMA journal_mode = DELETE`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if archive, err = sqlite.Open(t.Context(), path, sqlite.Config{}); err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	list, err := doctor.SQLite(t.Context(), path, archive.Archive)
	if _, wrong, _ := told(list); err != nil || !strings.Contains(wrong, "journal: the file is not in journal mode WAL") {
		t.Errorf("%v, wrong:\n%s", err, wrong)
	}
}
