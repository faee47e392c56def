package sqlite

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

// Every statement of a program without REA: what it leaves is either the event that it meant, or nothing.
func TestRawStatements(t *testing.T) {
	t.Parallel()
	const insert = "INTO rea_events (aggregate_type, aggregate_id, seq, event_type, payload) VALUES "
	const withID = "INTO rea_events (id, aggregate_type, aggregate_id, seq, event_type) VALUES "
	const withKey = "INTO rea_events (aggregate_type, aggregate_id, seq, event_type, idempotency_key, key_events) VALUES "
	long := strings.Repeat("x", 201)
	for _, c := range []struct{ name, sql, refused string }{
		{"the next seq", "INSERT " + insert + "('order', '1', 3, 'Paid', '{}')", ""},
		{"the next seq with a number for the id", "INSERT " + insert + "('order', 1, 3, 'Paid', '{}')", ""},
		{"a new aggregate", "INSERT " + insert + "('order', 'new', 1, 'Paid', '{}')", ""},
		{"two rows", "INSERT " + insert + "('order', '1', 3, 'Paid', '{}'), ('order', '1', 4, 'Shipped', '{}')", ""},
		{"two rows the wrong way round", "INSERT " + insert + "('order', '1', 4, 'Paid', '{}'), ('order', '1', 3, 'Shipped', '{}')", "RE008 hole"},
		{"a hole", "INSERT " + insert + "('order', '1', 4, 'Paid', '{}')", "RE008 hole"},
		{"a hole at the start", "INSERT " + insert + "('order', 'new', 2, 'Paid', '{}')", "RE008 hole"},
		{"a hole or ignore", "INSERT OR IGNORE " + insert + "('order', '1', 4, 'Paid', '{}')", "RE008 hole"},
		{"a taken seq", "INSERT " + insert + "('order', '1', 2, 'Paid', '{}')", "RE001 conflict"},
		{"a taken seq, id as a number", "INSERT " + insert + "('order', 1, 2, 'Paid', '{}')", "RE001 conflict"},
		{"a taken seq or replace", "INSERT OR REPLACE " + insert + "('order', '1', 2, 'Paid', '{}')", "RE001 conflict"},
		{"a taken seq or replace, id as a number", "INSERT OR REPLACE " + insert + "('order', 1, '2', 'Paid', '{}')", "RE001 conflict"},
		{"a taken seq or ignore", "INSERT OR IGNORE " + insert + "('order', '1', 2, 'Paid', '{}')", "RE001 conflict"},
		{"a taken seq or fail", "INSERT OR FAIL " + insert + "('order', '1', 3, 'Paid', '{}'), ('order', '1', 1, 'Paid', '{}')", "RE001 conflict"},
		{"replace", "REPLACE " + insert + "('order', '1', 1, 'Paid', '{}')", "RE001 conflict"},
		{"upsert", "INSERT " + insert + "('order', '1', 1, 'Paid', '{}') ON CONFLICT DO UPDATE SET payload = '{}'", "RE001 conflict"},
		{"on conflict do nothing", "INSERT " + insert + "('order', '1', 1, 'Paid', '{}') ON CONFLICT DO NOTHING", "RE001 conflict"},
		{"no seq", "INSERT INTO rea_events (aggregate_type, aggregate_id, event_type) VALUES ('order', '1', 'Paid')", "NOT NULL"},
		{"no seq or replace", "INSERT OR REPLACE INTO rea_events (aggregate_type, aggregate_id, event_type) VALUES ('order', '1', 'Paid')", "NOT NULL"},
		{"seq 0", "INSERT " + insert + "('order', 'new', 0, 'Paid', '{}')", "events_seq_check"},
		{"seq -1", "INSERT " + insert + "('order', 'new', -1, 'Paid', '{}')", "events_seq_check"},
		{"seq 1.5", "INSERT " + insert + "('order', 'new', 1.5, 'Paid', '{}')", "REAL"},
		{"the id that comes next", "INSERT " + withID + "(4, 'order', '1', 3, 'Paid')", ""},
		{"a taken id", "INSERT " + withID + "(2, 'order', '1', 3, 'Paid')", "RE007 immutable"},
		{"a taken id or replace", "INSERT OR REPLACE " + withID + "(2, 'order', '1', 3, 'Paid')", "RE007 immutable"},
		{"a taken id as text or replace", "INSERT OR REPLACE " + withID + "('2', 'order', '1', 3, 'Paid')", "RE007 immutable"},
		{"a taken rowid or replace", "INSERT OR REPLACE INTO rea_events (rowid, aggregate_type, aggregate_id, seq, event_type) VALUES (2, 'order', '1', 3, 'Paid')", "RE007 immutable"},
		{"a high id", "INSERT " + withID + "(9, 'order', '1', 3, 'Paid')", "id of an event is the highest"},
		{"the highest id or ignore", "INSERT OR IGNORE " + withID + "(9223372036854775807, 'order', '1', 3, 'Paid')", "id of an event is the highest"},
		{"id 0", "INSERT " + withID + "(0, 'order', '1', 3, 'Paid')", "id of an event is the highest"},
		{"id -1", "INSERT " + withID + "(-1, 'order', '1', 3, 'Paid')", "id of an event is the highest"},
		{"update", "UPDATE rea_events SET payload = '{\"x\":1}' WHERE id = 1", "RE007 immutable: UPDATE"},
		{"update of nothing new", "UPDATE rea_events SET payload = payload", "RE007 immutable: UPDATE"},
		{"update or replace", "UPDATE OR REPLACE rea_events SET seq = 2 WHERE id = 1", "RE007 immutable: UPDATE"},
		{"update or ignore", "UPDATE OR IGNORE rea_events SET seq = 2 WHERE id = 1", "RE007 immutable: UPDATE"},
		{"delete", "DELETE FROM rea_events WHERE id = 3", "RE007 immutable: DELETE"},
		{"delete of all", "DELETE FROM rea_events", "RE007 immutable: DELETE"},
		{"a known key", "INSERT " + withKey + "('order', '2', 2, 'Paid', 'k', 1)", "RE003 key_reused"},
		{"a known key or replace", "INSERT OR REPLACE " + withKey + "('order', '2', 2, 'Paid', 'k', 1)", "RE003 key_reused"},
		{"a new key", "INSERT " + withKey + "('order', '2', 2, 'Paid', 'k2', 1)", ""},
		{"a known key in another aggregate", "INSERT " + withKey + "('order', '1', 3, 'Paid', 'k', 1)", ""},
		{"a key without key_events", "INSERT " + withKey + "('order', '2', 2, 'Paid', 'k2', NULL)", "events_key_events_check"},
		{"key_events without a key", "INSERT " + withKey + "('order', '2', 2, 'Paid', NULL, 1)", "events_key_events_check"},
		{"key_events 0", "INSERT " + withKey + "('order', '2', 2, 'Paid', 'k2', 0)", "events_key_events_check"},
		{"an empty type", "INSERT " + insert + "('', '1', 1, 'Paid', '{}')", "events_aggregate_type_check"},
		{"a leading space", "INSERT " + insert + "(' order', '1', 1, 'Paid', '{}')", "events_aggregate_type_check"},
		{"a trailing space", "INSERT " + insert + "('order', '1 ', 1, 'Paid', '{}')", "events_aggregate_id_check"},
		{"a space within", "INSERT " + insert + "('my order', '1', 1, 'Paid', '{}')", ""},
		{"200 bytes", "INSERT " + insert + "('" + long[:200] + "', '1', 1, 'Paid', '{}')", ""},
		{"201 bytes", "INSERT " + insert + "('order', '1', 3, '" + long + "', '{}')", "events_event_type_check"},
		{"202 bytes in 101 letters", "INSERT " + insert + "('order', '" + strings.Repeat("é", 101) + "', 1, 'Paid', '{}')", "events_aggregate_id_check"},
		{"U+0000", "INSERT " + insert + "('order', 'a' || char(0), 1, 'Paid', '{}')", "events_aggregate_id_check"},
		{"U+0000 at the start", "INSERT " + insert + "('order', char(0) || 'a', 1, 'Paid', '{}')", "events_aggregate_id_check"},
		{"U+0001", "INSERT " + insert + "('order', 'a' || char(1), 1, 'Paid', '{}')", "events_aggregate_id_check"},
		{"a newline", "INSERT " + insert + "('order', 'a' || char(10) || 'b', 1, 'Paid', '{}')", "events_aggregate_id_check"},
		{"U+001F", "INSERT " + insert + "('order', char(31), 1, 'Paid', '{}')", "events_aggregate_id_check"},
		{"U+007F", "INSERT " + insert + "('order', 'a' || char(127), 1, 'Paid', '{}')", "events_aggregate_id_check"},
		{"U+009F", "INSERT " + insert + "('order', 'a' || char(159), 1, 'Paid', '{}')", "events_aggregate_id_check"},
		{"U+00A0", "INSERT " + insert + "('order', 'a' || char(160), 1, 'Paid', '{}')", ""},
		{"characters of patterns", "INSERT " + insert + "('a]-[^*?%_', ']', 1, '[x]', '{}')", ""},
		{"a blob", "INSERT " + insert + "('order', x'41', 1, 'Paid', '{}')", "BLOB"},
		{"no JSON", "INSERT " + insert + "('order', '1', 3, 'Paid', 'x')", "events_payload_check"},
		{"an array", "INSERT " + insert + "('order', '1', 3, 'Paid', '[]')", "events_payload_check"},
		{"JSON5", "INSERT " + insert + "('order', '1', 3, 'Paid', '{a:1}')", "events_payload_check"},
		{"payload with a line feed", "INSERT " + insert + `('order', '1', 3, 'Paid', '{' || char(10) || '}')`, "events_payload_check"},
		{"metadata with a line feed", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{' || char(10) || '}')`, "events_metadata_check"},
		{"payload with a carriage return", "INSERT " + insert + `('order', '1', 3, 'Paid', '{}' || char(13))`, "events_payload_check"},
		{"metadata with a carriage return", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{}' || char(13))`, "events_metadata_check"},
		{"payload with a tab", "INSERT " + insert + `('order', '1', 3, 'Paid', char(9) || '{}')`, "events_payload_check"},
		{"metadata with a tab", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', char(9) || '{}')`, "events_metadata_check"},
		{"payload with U+0001 in a text", "INSERT " + insert + `('order', '1', 3, 'Paid', '{"x":"' || char(1) || '"}')`, "events_payload_check"},
		{"metadata with U+0001 in a text", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{"x":"' || char(1) || '"}')`, "events_metadata_check"},
		{"payload with U+0000 behind it", "INSERT " + insert + `('order', '1', 3, 'Paid', '{}' || char(0) || 'x')`, "events_payload_check"},
		{"metadata with U+0000 behind it", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{}' || char(0) || 'x')`, "events_metadata_check"},
		{"payload with an escaped U+0000", "INSERT " + insert + `('order', '1', 3, 'Paid', '{"x":"\u0000"}')`, "events_payload_check"},
		{"metadata with an escaped U+0000", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{"x":"\u0000"}')`, "events_metadata_check"},
		{"payload with an escaped U+0000 behind a backslash", "INSERT " + insert + `('order', '1', 3, 'Paid', '{"x":"\\\u0000"}')`, "events_payload_check"},
		{"metadata with an escaped U+0000 behind a backslash", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{"x":"\\\u0000"}')`, "events_metadata_check"},
		{"payload with an escaped U+0000 in a key", "INSERT " + insert + `('order', '1', 3, 'Paid', '{"\u0000":1}')`, "events_payload_check"},
		{"metadata with an escaped U+0000 in a key", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{"\u0000":1}')`, "events_metadata_check"},
		{"payload with half a surrogate", "INSERT " + insert + `('order', '1', 3, 'Paid', '{"x":"\uD83d"}')`, "events_payload_check"},
		{"metadata with half a surrogate", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{"x":"\uD83d"}')`, "events_metadata_check"},
		{"payload with the other half", "INSERT " + insert + `('order', '1', 3, 'Paid', '{"x":"\udE00"}')`, "events_payload_check"},
		{"metadata with the other half", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{"x":"\udE00"}')`, "events_metadata_check"},
		{"payload with an escaped surrogate pair", "INSERT " + insert + `('order', '1', 3, 'Paid', '{"x":"\ud83d\ude00"}')`, "events_payload_check"},
		{"metadata with an escaped surrogate pair", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{"x":"\ud83d\ude00"}')`, "events_metadata_check"},
		{"payload with a visible u0000", "INSERT " + insert + `('order', '1', 3, 'Paid', '{"x":"\\u0000"}')`, ""},
		{"metadata with a visible u0000", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{"x":"\\u0000"}')`, ""},
		{"payload with a visible surrogate", "INSERT " + insert + `('order', '1', 3, 'Paid', '{"x":"\\\\ud83d"}')`, ""},
		{"metadata with a visible surrogate", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{"x":"\\\\ud83d"}')`, ""},
		{"payload with an escaped letter", "INSERT " + insert + `('order', '1', 3, 'Paid', '{"x":"\ud55c\ud7ff\ue000\u0001\n"}')`, ""},
		{"metadata with an escaped letter", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{"x":"\ud55c\ud7ff\ue000\u0001\n"}')`, ""},
		{"payload with a space", "INSERT " + insert + `('order', '1', 3, 'Paid', '{ }')`, ""},
		{"metadata with a space", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{ }')`, ""},
		{"payload with an emoji", "INSERT " + insert + `('order', '1', 3, 'Paid', '{"x":"😀"}')`, ""},
		{"metadata with an emoji", `INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, metadata) VALUES ('order', '1', 3, 'Paid', '{"x":"😀"}')`, ""},
		{"null", "INSERT " + insert + "('order', '1', 3, 'Paid', NULL)", "NOT NULL"},
		{"a big payload", "INSERT " + insert + "('order', '1', 3, 'Paid', '{\"x\":\"' || printf('%.*c', 16777216, 'x') || '\"}')", "events_payload_check"},
		{"status", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, status) VALUES ('order', '1', 3, 'Paid', 'paid')", "RE002 illegal_step"},
		{"a correction by nobody", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, correction) VALUES ('order', '1', 3, 'Paid', 1)", "events_correction_check"},
		{"version 0", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, event_version) VALUES ('order', '1', 3, 'Paid', 0)", "events_event_version_check"},
		{"a time without digits", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 3, 'Paid', '2024-06-01T12:00:00Z')", "events_created_at_check"},
		{"February 30", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 3, 'Paid', '2024-02-30T12:00:00.000000Z')", "events_created_at_check"},
		{"February 29", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 3, 'Paid', '2024-02-29T12:00:00.000000Z')", ""},
		{"February 29 of another year", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 3, 'Paid', '2023-02-29T12:00:00.000000Z')", "events_created_at_check"},
		{"April 31", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 3, 'Paid', '2024-04-31T12:00:00.000000Z')", "events_created_at_check"},
		{"hour 24", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 3, 'Paid', '2024-02-03T24:00:00.000000Z')", "events_created_at_check"},
		{"month 13", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 3, 'Paid', '2024-13-01T00:00:00.000000Z')", "events_created_at_check"},
		{"day 0", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 3, 'Paid', '2024-01-00T00:00:00.000000Z')", "events_created_at_check"},
		{"recorded at February 30", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, recorded_at) VALUES ('order', '1', 3, 'Paid', '2024-02-30T12:00:00.000000Z')", "events_recorded_at_check"},
		{"recorded at hour 24", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, recorded_at) VALUES ('order', '1', 3, 'Paid', '2024-02-03T24:00:00.000000Z')", "events_recorded_at_check"},
		{"recorded at a time", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, recorded_at) VALUES ('order', '1', 3, 'Paid', '2024-02-03T23:59:59.999999Z')", ""},
		{"second 60", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 3, 'Paid', '2024-02-03T12:00:60.000000Z')", "events_created_at_check"},
		{"year 0", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 3, 'Paid', '0000-02-03T12:00:00.000000Z')", "events_created_at_check"},
		{"the last microsecond", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 3, 'Paid', '9999-12-31T23:59:59.999999Z')", ""},
		{"the first microsecond", "INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 3, 'Paid', '0001-01-01T00:00:00.000000Z')", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			archive := newArchive(t)
			mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{"total": 1}`), event("Noted", `{}`))
			mustAppend(t, archive.Autocommit().With(rea.Once("k")), order(2), event("Placed", `{}`))
			before := dump(t, archive)
			_, err := rawDB(t, archive, "").Exec(c.sql)
			after := dump(t, archive)
			if c.refused == "" {
				if err != nil || !strings.HasPrefix(after, before) || after == before {
					t.Fatalf("err = %v, stored:\n%s", err, after)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("err = %v, want %s", err, c.refused)
			}
			if after != before {
				t.Errorf("stored:\n%swant:\n%s", after, before)
			}
		})
	}
}

func TestRawDefaultsAreReadBack(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	if _, err := rawDB(t, archive, "").Exec("INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type) VALUES ('order', 1, 1, 'Placed')"); err != nil {
		t.Fatal(err)
	}
	for e, err := range archive.Autocommit().Events(t.Context(), order(1), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Version != 1 || string(e.Payload) != "{}" || e.CreatedAt.IsZero() || e.XID != "" || !e.RecordedAt.IsZero() {
			t.Errorf("event = %+v", e)
		}
	}
}

// Tests run on the newest SQLite; the program sqlite3, where there is one, is often older, and its strftime checks less.
func TestRawTimesInTheInstalledSQLite(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	run := func(statement string) (string, error) {
		_, err := rawDB(t, archive, "").ExecContext(t.Context(), statement)
		return fmt.Sprint(err), err
	}
	if shell, err := exec.LookPath("sqlite3"); err == nil {
		run = func(statement string) (string, error) {
			out, err := exec.CommandContext(t.Context(), shell, archive.store.reader.path, statement).CombinedOutput()
			return string(out), err
		}
	}
	for at, refused := range map[string]bool{
		"2024-02-29T12:00:00": false, "2024-02-30T12:00:00": true, "2023-02-29T12:00:00": true, "2024-02-03T24:00:00": true,
		"2024-04-31T00:00:00": true, "0001-01-01T00:00:00": false, "9999-12-31T23:59:59": false,
	} {
		for _, column := range []string{"created_at", "recorded_at"} {
			statement := fmt.Sprintf("INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, %s) VALUES ('%[1]s', '%[2]s', 1, 'X', '%[2]s.000000Z')", column, at)
			out, err := run(statement)
			if (err != nil) != refused || refused && !strings.Contains(out, "events_"+column+"_check") {
				t.Errorf("%s %s: %v, %s", column, at, err, out)
			}
		}
	}
}

func TestDamagedTimeIsNamed(t *testing.T) {
	t.Parallel()
	archive := newArchive(t)
	mustAppend(t, archive.Autocommit(), order(1), event("Placed", `{}`))
	_, err := rawDB(t, archive, "_pragma=ignore_check_constraints(1)").Exec(
		"INSERT INTO rea_events (aggregate_type, aggregate_id, seq, event_type, created_at) VALUES ('order', '1', 2, 'Paid', '2024-02-30T12:00:00.000000Z')")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range archive.Autocommit().Events(t.Context(), order(1), 0) {
		if err != nil && strings.Contains(err.Error(), "order/1 at seq 2") {
			return
		}
	}
	t.Error("the damaged event is not named")
}
