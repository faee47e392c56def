package postgres

import (
	"fmt"
	"strconv"

	"github.com/realtime-event-archive/rea"
)

// changeSQL writes the value of one column after one event: what ColumnChange and ColumnType say, in SQL. A value that
// the column cannot take is never cast, so that no error has to be caught.
type changeSQL struct {
	stateSQL
	does   rea.StateEvent
	change rea.ColumnChange
	column rea.Column
	event  string // NEW, or the record of an event
	before string // the column
}

func (x changeSQL) value() string {
	kind := string(x.column.Type)
	switch {
	case x.change.Kind == rea.OpUnset:
		return "NULL::" + kind
	case x.change.Kind == rea.OpCount:
		return x.add("1")
	case x.change.Attribute != "" && x.change.Kind == rea.OpAdd:
		return x.add(x.attribute())
	case x.change.Attribute != "":
		return x.attribute()
	case x.change.Path != nil && x.change.Kind == rea.OpAdd:
		return x.orKeep(x.json(), "number", x.add(x.json()+"::numeric"), x.before)
	case x.change.Path != nil:
		return x.set(x.json())
	case x.change.Kind == rea.OpAdd:
		return x.add(string(x.change.Literal))
	}
	literal, null, _ := x.column.Type.Literal(x.change.Literal) // the catalog was checked
	if null {
		return "NULL::" + kind
	}
	return quoteText(literal) + "::" + kind
}

// json is the value in the payload. -> with a text finds nothing in a list, as the fold does.
func (x changeSQL) json() string {
	path := x.event + ".payload"
	for _, key := range x.change.Path {
		path += " -> " + quoteText(key) + "::text"
	}
	return "(" + path + ")"
}

func (x changeSQL) refuse() string {
	return fmt.Sprintf("rea.refuse_value(%s, %s, %s, %s, %[5]s.aggregate_id, %[6]s, %[5]s.seq)#>>'{}'", quoteText(x.Name), quoteText(x.column.Name),
		quoteText(string(x.column.Type)), quoteText(x.Of), x.event, quoteText(x.does.Event))
}

// orKeep: a value of the JSON type, else null, else absent, else it is refused.
func (x changeSQL) orKeep(json, jsonType, value, null string) string {
	return fmt.Sprintf("CASE jsonb_typeof(%s) WHEN '%s' THEN %s WHEN 'null' THEN %s ELSE CASE WHEN %[1]s IS NULL THEN %[5]s ELSE (%[6]s)::%[7]s END END",
		json, jsonType, value, null, x.before, x.refuse(), x.column.Type)
}

// whereOK is orKeep with a test of the value's own.
func (x changeSQL) whereOK(json, test, value string) string {
	return fmt.Sprintf("CASE WHEN %s(%s) THEN %s WHEN %[2]s IS NULL THEN %[4]s WHEN jsonb_typeof(%[2]s) = 'null' THEN NULL ELSE (%[5]s)::%[6]s END",
		test, json, value, x.before, x.refuse(), x.column.Type)
}

func (x changeSQL) set(json string) string {
	switch x.column.Type {
	case rea.Numeric:
		return x.orKeep(json, "number", json+"::numeric", "NULL")
	case rea.Boolean:
		return x.orKeep(json, "boolean", json+"::boolean", "NULL")
	case rea.Bigint:
		return x.whereOK(json, "rea.is_bigint", json+"::numeric::bigint")
	case rea.Timestamptz:
		return x.whereOK(json, "rea.is_timestamptz", "("+json+" #>> '{}')::timestamptz")
	case rea.Date:
		return x.whereOK(json, "rea.is_date", "("+json+" #>> '{}')::date")
	case rea.JSONB:
		return fmt.Sprintf("CASE WHEN %s IS NULL THEN %s ELSE nullif(%[1]s, 'null') END", json, x.before)
	}
	return fmt.Sprintf("CASE jsonb_typeof(%s) WHEN 'string' THEN %[1]s #>> '{}' WHEN 'object' THEN %[2]s WHEN 'array' THEN %[2]s ELSE CASE WHEN %[1]s IS NULL THEN %[3]s ELSE %[1]s #>> '{}' END END",
		json, x.refuse(), x.before)
}

// add adds a number to a column of type numeric or bigint. A sum that numeric cannot hold is not worked out; a tenth of it is
// where it may be one, which is rare.
func (x changeSQL) add(number string) string {
	before := fmt.Sprintf("coalesce(%s, 0)::numeric", x.before)
	sum := fmt.Sprintf("(%s + %s)", before, number)
	if x.column.Type == rea.Numeric {
		return fmt.Sprintf("CASE WHEN greatest(abs(%s), abs(%s)) < '1e131071'::numeric OR abs(%[1]s * 0.1 + %[2]s * 0.1) < '1e131071'::numeric THEN %[3]s ELSE (%[4]s)::numeric END",
			before, number, sum, x.refuse())
	}
	return fmt.Sprintf("CASE WHEN abs(%s) > 18446744073709551616 THEN (%s)::bigint WHEN %[3]s BETWEEN -9223372036854775808 AND 9223372036854775807 AND trunc(%[3]s) = %[3]s THEN %[3]s::bigint ELSE (%[2]s)::bigint END",
		number, x.refuse(), sum)
}

// attribute is one that the column's type takes.
func (x changeSQL) attribute() string {
	text := ""
	switch name := x.change.Attribute; name {
	case "@metadata":
		return x.event + ".metadata"
	case "@seq":
		return "(" + x.number(x.event+".seq") + ")"
	case "@event_version":
		return "(" + x.number(strconv.Itoa(x.does.Version)) + ")"
	case "@created_at":
		if x.column.Type == rea.Timestamptz {
			return x.event + ".created_at"
		}
		text = fmt.Sprintf(`to_char(%s.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`, x.event)
	case "@event_type":
		text = quoteText(x.does.Event) + "::text"
	case "@aggregate_type":
		text = quoteText(x.Of) + "::text"
	default:
		text = x.event + "." + quoteName(name[1:])
	}
	if x.column.Type == rea.JSONB {
		return "to_jsonb(" + text + ")"
	}
	return text
}

func (x changeSQL) number(n string) string {
	if x.column.Type == rea.JSONB {
		return "to_jsonb(" + n + ")"
	}
	return n + "::" + string(x.column.Type)
}
