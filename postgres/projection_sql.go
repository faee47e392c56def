package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
)

// stateSQL writes the SQL of one inline projection. Names and literals come from the catalog and are quoted; the bodies of
// functions are whole literals too, so that nothing in them can end them.
type stateSQL struct {
	rea.StateTable
}

func quoteName(name string) string { return pgx.Identifier{name}.Sanitize() }

// quoteText is a literal that means the same whatever standard_conforming_strings says.
func quoteText(s string) string {
	s = strings.ReplaceAll(s, "'", "''")
	if strings.Contains(s, `\`) {
		return "E'" + strings.ReplaceAll(s, `\`, `\\`) + "'"
	}
	return "'" + s + "'"
}

// The functions' and the trigger's names say where they come from: that is what an error's CONTEXT shows.
func (s stateSQL) keeper() string { return s.Name + " (rea catalog apply)" }
func (s stateSQL) mender() string { return s.Name + " (rea catch up)" }
func (s stateSQL) beside() string {
	_, fingerprint := s.Definition()
	return s.Name + "." + fingerprint[:8]
}
func (s stateSQL) table(beside bool) string {
	if beside {
		return "rea_views." + quoteName(s.beside())
	}
	return "rea_views." + quoteName(s.Name)
}

func (s stateSQL) create() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (\n    aggregate_id text COLLATE \"C\" NOT NULL,\n", s.table(true))
	for _, c := range s.Columns {
		fmt.Fprintf(&b, "    %s %s,\n", quoteName(c.Name), c.Type)
	}
	fmt.Fprintf(&b, "    rea_seq bigint NOT NULL,\n    rea_updated_at timestamptz NOT NULL,\n    CONSTRAINT %s PRIMARY KEY (aggregate_id)\n) WITH (fillfactor = 80)",
		quoteName(s.beside()+"_pkey"))
	return b.String()
}

const functionSQL = `CREATE OR REPLACE FUNCTION rea.%s(%s) RETURNS %s
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
AS %s`

func (s stateSQL) keepFunction() string {
	return fmt.Sprintf(functionSQL, quoteName(s.keeper()), "", "trigger", quoteText(s.keepBody()))
}

func (s stateSQL) mendFunction() string {
	return fmt.Sprintf(functionSQL, quoteName(s.mender()), "rea_id text, rea_last bigint", "void", quoteText(s.mendBody()))
}

func (s stateSQL) trigger() string {
	return fmt.Sprintf(`CREATE OR REPLACE TRIGGER %s AFTER INSERT ON rea.events FOR EACH ROW
WHEN (NEW.aggregate_type OPERATOR(pg_catalog.=) %s) EXECUTE FUNCTION rea.%[1]s()`, quoteName(s.keeper()), quoteText(s.Of))
}

// keepBody: one statement moves the row from the seq before; where that is not what the row has, the careful function.
func (s stateSQL) keepBody() string {
	columns, values := "", ""
	for i, c := range s.Columns {
		columns += ", " + quoteName(c.Name)
		values += ",\n        " + s.value(i, "NEW", "NULL::"+string(c.Type))
	}
	return fmt.Sprintf(`
#variable_conflict use_column
BEGIN
    IF NEW.seq = 1 THEN
        INSERT INTO %s (aggregate_id, rea_seq, rea_updated_at%s)
        SELECT NEW.aggregate_id, 1, NEW.created_at%s
        WHERE %s
        ON CONFLICT DO NOTHING;
    ELSE
        %s;
    END IF;
    IF NOT FOUND THEN
        PERFORM rea.%s(NEW.aggregate_id, NEW.seq);
    END IF;
    RETURN NULL;
END
`, s.table(false), columns, values, s.newest("NEW"), s.update("NEW"), quoteName(s.mender()))
}

// mendBody folds what a row lacks, as far as events are in their newest form. It locks the row first, or the place
// of a row that is not there, so that whoever catches it up from outside waits for this transaction and then looks again;
// under REPEATABLE READ either is a serialization failure where the row has moved since the snapshot.
func (s stateSQL) mendBody() string {
	return fmt.Sprintf(`
#variable_conflict use_column
DECLARE
    rea_at bigint;
    rea_e rea.events;
BEGIN
    LOOP
        SELECT rea_v.rea_seq INTO rea_at FROM %[1]s rea_v WHERE rea_v.aggregate_id = rea_id FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO %[1]s (aggregate_id, rea_seq, rea_updated_at) VALUES (rea_id, 0, '-infinity') ON CONFLICT DO NOTHING;
        IF FOUND THEN
            rea_at := 0;
            EXIT;
        END IF;
    END LOOP;
    FOR rea_e IN SELECT e.* FROM rea.events e
                 WHERE e.aggregate_type = %[2]s AND e.aggregate_id = rea_id AND e.seq > rea_at AND e.seq <= rea_last
                 ORDER BY e.seq LOOP
        IF rea.is_own(rea_e.event_type) THEN
            %[4]s;
        ELSE
            %[3]s;
        END IF;
        EXIT WHEN NOT FOUND;
    END LOOP;
    DELETE FROM %[1]s rea_v WHERE rea_v.aggregate_id = rea_id AND rea_v.rea_seq = 0;
END
`, s.table(false), quoteText(s.Of), s.update("rea_e"), s.updateByRow("rea_e"))
}

// updateByRow is update for one of REA's own events: columns are the fields of the row with their names. A value that a
// column cannot take leaves the row behind, for the statement that it stands for is the application's.
func (s stateSQL) updateByRow(event string) string {
	set, fits := "", ""
	for _, c := range s.Columns {
		said := fmt.Sprintf("rea.row_value(%[1]s.event_type, %[1]s.payload, %[1]s.seq, %[2]s)", event, quoteText(c.Name))
		x := changeSQL{stateSQL: s, does: rea.StateEvent{}, column: c, event: event, before: "rea_v." + quoteName(c.Name)}
		set += fmt.Sprintf("%s = %s,\n                ", quoteName(c.Name), x.set(said))
		fits += fmt.Sprintf("\n              AND rea.column_takes(%s, %s)", said, quoteText(string(c.Type)))
	}
	return fmt.Sprintf(`UPDATE %s rea_v
            SET %srea_seq = %[3]s.seq, rea_updated_at = %[3]s.created_at
            WHERE rea_v.aggregate_id = %[3]s.aggregate_id AND rea_v.rea_seq = %[3]s.seq - 1 AND %[3]s.event_version = 1%[4]s`, s.table(false), set, event, fits)
}

func (s stateSQL) update(event string) string {
	set := ""
	for i, c := range s.Columns {
		if s.touched(i) {
			set += fmt.Sprintf("%s = %s,\n            ", quoteName(c.Name), s.value(i, event, "rea_v."+quoteName(c.Name)))
		}
	}
	return fmt.Sprintf(`UPDATE %s rea_v
        SET %srea_seq = %[3]s.seq, rea_updated_at = %[3]s.created_at
        WHERE rea_v.aggregate_id = %[3]s.aggregate_id AND rea_v.rea_seq = %[3]s.seq - 1
          AND %[4]s`, s.table(false), set, event, s.newest(event))
}

func (s stateSQL) touched(column int) bool {
	for _, e := range s.Events {
		for _, c := range e.Changes {
			if c.Column == column {
				return true
			}
		}
	}
	return false
}

// newest is false for an event that has to be upcast. Events with the same versions share a comparison: each expression is
// set up anew in every transaction.
func (s stateSQL) newest(event string) string {
	names := map[string][]string{}
	for _, e := range s.Events {
		for _, name := range e.Names() {
			versions := "false"
			if list := e.Stored[name]; len(list) > 0 {
				versions = fmt.Sprintf("%s.event_version IN (%s)", event, strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]"))
			}
			names[versions] = append(names[versions], quoteText(name))
		}
	}
	names["false"] = append(names["false"], "'BaselineCreated', 'DirectInsert', 'DirectUpdate', 'DirectDelete', 'Reverted'") // the careful function's
	var b strings.Builder
	for _, versions := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, " WHEN %s.event_type IN (%s) THEN %s", event, strings.Join(names[versions], ", "), versions)
	}
	return fmt.Sprintf("CASE%s ELSE true END", b.String())
}

// value is the value of a column after an event, before being the one that it has.
func (s stateSQL) value(column int, event, before string) string {
	var b strings.Builder
	for _, e := range s.Events {
		for _, c := range e.Changes {
			if c.Column != column {
				continue
			}
			x := changeSQL{stateSQL: s, does: e, change: c, column: s.Columns[column], event: event, before: before}
			for _, name := range e.Names() {
				if len(e.Stored[name]) > 0 {
					fmt.Fprintf(&b, " WHEN %s THEN %s", quoteText(name), x.value())
				}
			}
		}
	}
	if b.Len() == 0 {
		return before
	}
	return fmt.Sprintf("CASE %s.event_type%s ELSE %s END", event, b.String(), before)
}
