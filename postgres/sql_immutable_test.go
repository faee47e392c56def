package postgres_test

import (
	"encoding/json"
	"testing"
)

// changesOf are all ways to change or remove rows of a table that holds order/1 with seq 1.
func changesOf(table string) map[string]string {
	return map[string]string{
		"UPDATE":              `UPDATE ` + table + ` SET reason = 'x'`,
		"UPDATE of one row":   `UPDATE ` + table + ` SET payload = '{"a": 1}' WHERE aggregate_id = '1' AND seq = 1`,
		"UPDATE of nothing":   `UPDATE ` + table + ` SET reason = 'x' WHERE false`,
		"DELETE":              `DELETE FROM ` + table,
		"DELETE of nothing":   `DELETE FROM ` + table + ` WHERE false`,
		"DELETE USING":        `DELETE FROM ` + table + ` e USING pg_class c WHERE c.relname = e.aggregate_id`,
		"TRUNCATE":            `TRUNCATE ` + table,
		"TRUNCATE ONLY":       `TRUNCATE ` + table + ` RESTART IDENTITY CASCADE`,
		"a WITH that deletes": `WITH x AS (DELETE FROM ` + table + ` RETURNING 1) SELECT count(*) FROM x`,
	}
}

const upsert = `INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, seq) VALUES ('order', '1', 'X', 1)
	ON CONFLICT (aggregate_type, aggregate_id, seq) DO UPDATE SET event_type = 'changed'`

func TestEventsAreImmutableForOwnerAndSuperuserWhateverTheSetting(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(insert("", ""))
	before := s.text(`SELECT md5(string_agg(e::text, '')) FROM rea.events e`)
	check := func(who string) {
		t.Helper()
		for name, sql := range changesOf("rea.events") {
			e := s.refused("RE007", sql)
			var detail struct{ Code, Operation string }
			if err := json.Unmarshal([]byte(e.Detail), &detail); err != nil || detail.Code != "immutable" || detail.Operation == "" {
				t.Errorf("%s by %s: DETAIL = %q, want code immutable and the operation", name, who, e.Detail)
			}
		}
		s.refused("RE007", upsert)
		if s.PgConn().ParameterStatus("server_version") >= "15" {
			s.refused("RE007", `MERGE INTO rea.events e USING (VALUES (1)) v (n) ON e.seq = v.n WHEN MATCHED THEN UPDATE SET reason = 'x'`)
		}
	}
	check("superuser")
	s.do(`SET session_replication_role = replica`)
	check("superuser as a replica")
	s.do(`SET session_replication_role = DEFAULT; SET ROLE rea_owner`)
	check("owner")
	s.do(`RESET ROLE`)
	for name, sql := range changesOf("rea.feed") {
		if name == "TRUNCATE" || name == "DELETE" || name == "DELETE of nothing" {
			s.refused("RE007", sql)
		}
	}
	s.refused("RE007", `UPDATE rea.feed SET position = position + 1`)
	same(t, "events afterwards", s.text(`SELECT md5(string_agg(e::text, '')) FROM rea.events e`), before)
}

func TestProtectCoversEveryPartition(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(`CREATE TABLE rea.copy (LIKE rea.events INCLUDING CONSTRAINTS INCLUDING DEFAULTS) PARTITION BY HASH (aggregate_type, aggregate_id);
	      CREATE TABLE rea.copy_0 PARTITION OF rea.copy FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	      SELECT rea.protect('rea.copy');
	      CREATE TABLE rea.copy_1 PARTITION OF rea.copy FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	      SELECT rea.protect('rea.copy')`)
	s.do(`SELECT rea.append('order', n::text, 'X') FROM generate_series(1, 8) n; INSERT INTO rea.copy SELECT * FROM rea.events`)
	s.want("true true", `SELECT (SELECT count(*) FROM rea.copy_0) > 0, (SELECT count(*) FROM rea.copy_1) > 0`)
	for _, role := range []string{"origin", "replica"} {
		s.do(`SET session_replication_role = ` + role)
		for _, table := range []string{"rea.copy", "rea.copy_0", "rea.copy_1"} {
			for _, sql := range changesOf(table) {
				s.refused("RE007", sql)
			}
		}
	}
	s.want("8", `SELECT count(*) FROM rea.copy`)
}

func TestTheInsertTriggerGivesIDsOnAPartitionedTable(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(`CREATE TABLE rea.copy (LIKE rea.events INCLUDING CONSTRAINTS INCLUDING DEFAULTS) PARTITION BY HASH (aggregate_type, aggregate_id);
	      CREATE TABLE rea.copy_0 PARTITION OF rea.copy FOR VALUES WITH (MODULUS 1, REMAINDER 0);
	      CREATE TRIGGER check_insert BEFORE INSERT ON rea.copy FOR EACH ROW EXECUTE FUNCTION rea.check_insert()`)
	s.do(`INSERT INTO rea.copy (aggregate_type, aggregate_id, event_type, seq) VALUES ('order', '1', 'X', 1)`)
	s.want("1 1 true", `SELECT id, seq, db_user = session_user FROM rea.copy_0`)
	s.refused("428C9", `INSERT INTO rea.copy_0 (id, aggregate_type, aggregate_id, event_type, seq) VALUES (5, 'order', '1', 'X', 1)`)
	s.refused("RE008", `INSERT INTO rea.copy (aggregate_type, aggregate_id, event_type, seq) VALUES ('order', '1', 'X', 3)`)
}

func TestAReplicaKeepsTheIDsThatItIsGiven(t *testing.T) {
	t.Parallel()
	_, s, _ := archive(t)
	s.do(`SET session_replication_role = replica;
	      INSERT INTO rea.events (id, aggregate_type, aggregate_id, seq, event_type, xid, db_user, created_at) VALUES (7, 'order', '1', 1, 'X', '5', 'them', '2020-01-01Z')`)
	s.want("7 5 them", `SELECT id, xid::text, db_user FROM rea.events`)
}
