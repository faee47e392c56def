package adopt

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/sqlite"
)

// Inferred is what a table and the events of its rows tell about a state machine.
type Inferred struct {
	Table    string
	Type     string
	Status   string // the column
	Rows     int64
	Statuses []StatusCount // of the rows, the most frequent first
	Steps    []StepCount   // of direct changes, the most frequent first
	Events   []StatusCount // types of other events
	Columns  [][2]string   // name and type for a projection
}

// StatusCount is how often something is found.
type StatusCount struct {
	Name  *string // null: NULL
	Count int64
}

// StepCount is how often rows went from one status to another.
type StepCount struct {
	From  *string // of an update
	To    *string
	First bool // an insert: there is no status before
	Count int64
}

// mostStatuses is the number of statuses beyond which a column is none.
const mostStatuses = 40

const (
	inferStepsSQL = `
SELECT e.payload -> 'old' ->> $2, e.payload -> 'new' ->> $2, e.event_type = 'DirectInsert', count(*)
FROM rea.events e
WHERE e.aggregate_type = $1 AND e.event_type IN ('DirectInsert', 'DirectUpdate') AND e.payload -> 'new' ? $2
GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2`

	inferEventsSQL = `
SELECT e.event_type, count(*) FROM rea.events e
WHERE e.aggregate_type = $1 AND e.event_type NOT IN ('BaselineCreated', 'DirectInsert', 'DirectUpdate', 'DirectDelete', 'Reverted')
GROUP BY 1 ORDER BY 2 DESC, 1`
)

// Infer reads the statuses of a table in PostgreSQL, and the steps that its events have seen.
func Infer(ctx context.Context, db Queryer, t *Table, aggregateType, status string) (*Inferred, error) {
	in := &Inferred{Table: t.String(), Type: aggregateType, Status: status}
	i := t.Index(status)
	if i < 0 {
		return nil, fmt.Errorf("rea: %s has no column %s", t, status)
	}
	for _, c := range t.Columns {
		if c.Name != SeqColumn {
			in.Columns = append(in.Columns, [2]string{c.Name, columnType(c.Type)})
		}
	}
	column := field("t", status) + "::pg_catalog.text"
	rows, err := db.Query(ctx, "SELECT "+column+", pg_catalog.count(*) FROM "+t.SQL()+" t GROUP BY 1 ORDER BY 2 DESC, 1")
	if err == nil {
		in.Statuses, err = pgx.CollectRows(rows, pgx.RowToStructByPos[StatusCount])
	}
	if err == nil {
		rows, err = db.Query(ctx, inferStepsSQL, aggregateType, status)
	}
	if err == nil {
		in.Steps, err = pgx.CollectRows(rows, pgx.RowToStructByPos[StepCount])
	}
	if err == nil {
		rows, err = db.Query(ctx, inferEventsSQL, aggregateType)
	}
	if err == nil {
		in.Events, err = pgx.CollectRows(rows, pgx.RowToStructByPos[StatusCount])
	}
	return in, wrap(err, "read the statuses of %s", t)
}

// InferSQLite does the same for a table in the archive's file, where there are no guards and no direct changes.
func InferSQLite(ctx context.Context, archive *sqlite.Archive, table, aggregateType, status string) (*Inferred, error) {
	in := &Inferred{Table: table, Type: aggregateType, Status: status}
	err := archive.Read(ctx, func(db sqlite.SQL) error {
		t, err := DescribeSQLite(ctx, db, table, nil)
		if err != nil {
			return err
		}
		if !slices.Contains(t.Columns, status) {
			return fmt.Errorf("rea: %s has no column %s", t.Name, status)
		}
		in.Table = t.Name
		for _, c := range t.Columns {
			in.Columns = append(in.Columns, [2]string{c, "text"})
		}
		var one StatusCount
		err = eachRow(ctx, db, []any{&one.Name, &one.Count}, func() { in.Statuses = append(in.Statuses, one) },
			"SELECT CAST("+sqliteName(status)+" AS TEXT), count(*) FROM "+sqliteName(t.Name)+" GROUP BY 1 ORDER BY 2 DESC, 1")
		if err == nil {
			err = eachRow(ctx, db, []any{&one.Name, &one.Count}, func() { in.Events = append(in.Events, one) }, `
SELECT event_type, count(*) FROM rea_events WHERE aggregate_type = ?1 AND event_type <> 'BaselineCreated' GROUP BY 1 ORDER BY 2 DESC, 1`, aggregateType)
		}
		return wrap(err, "read the statuses of %s", t.Name)
	})
	return in, err
}

// columnType is the type of a projection's column for one of the application's.
func columnType(of string) string {
	switch {
	case of == "smallint" || of == "integer" || of == "bigint":
		return "bigint"
	case strings.HasPrefix(of, "numeric"):
		return "numeric"
	case of == "boolean":
		return "boolean"
	case strings.HasPrefix(of, "timestamp") && strings.HasSuffix(of, "with time zone"):
		return "timestamptz"
	case strings.HasPrefix(of, "json"):
		return "jsonb"
	}
	return "text"
}

// YAML writes a catalog to begin with. What is no status, or may be none, stands there as a comment.
func (in *Inferred) YAML() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, s := range in.Statuses {
		in.Rows += s.Count
	}
	line("# A catalog to begin with: what %s, %s, and the events of type %s tell.", oneLine(in.Table), rowsOf(in.Rows), oneLine(in.Type))
	line("# Give the events the names of what happened in the business, take away steps that only an accident took, then:")
	line("#   rea catalog check && rea catalog apply")
	line("#")
	usable := in.statuses(line)
	line("rea: 1")
	line("aggregates:")
	line("  %s:", yamlText(in.Type))
	line("    status: %s", yamlText(in.Status))
	names := newNames()
	events := in.events(usable, names)
	for _, e := range in.Events {
		if name := *e.Name; names.take(name) {
			events = append(events, fmt.Sprintf("%s: {}   # %d of them are stored", yamlText(name), e.Count))
		}
	}
	if len(events) > 0 {
		line("    events:")
		for _, e := range events {
			line("      %s", e)
		}
	}
	line("")
	line("# A table of the present states, if one is wanted beside %s:", oneLine(in.Table))
	line("# projections:")
	line("#   %s:", yamlText(in.Type+"_state"))
	line("#     of: %s", yamlText(in.Type))
	line("#     columns:")
	for _, c := range in.Columns {
		line("#       %s: %s", yamlText(c[0]), c[1])
	}
	return b.String()
}

// statuses comments on each status, and gives those that can be one.
func (in *Inferred) statuses(line func(string, ...any)) (usable []string) {
	if len(in.Statuses) > mostStatuses {
		line("# %s has %d different values, so that it may be no status; the most frequent ones:", oneLine(in.Status), len(in.Statuses))
	} else {
		line("# The values of %s:", oneLine(in.Status))
	}
	for i, s := range in.Statuses {
		if i == mostStatuses {
			line("#   ...")
			break
		}
		note := ""
		switch {
		case s.Name == nil:
			line("#   NULL: %s, which have no status", rowsOf(s.Count))
			continue
		case !nameOK(*s.Name):
			note = ", which can be none of a catalog's: 1 to 200 bytes, no control characters, no space at either end, not none or any"
		default:
			if s.Count*1000 < in.Rows {
				note = ", which is rare: a slip?"
			}
			if len(in.Statuses) <= mostStatuses {
				usable = append(usable, *s.Name)
			}
		}
		line("#   %s: %s%s", strconv.Quote(*s.Name), rowsOf(s.Count), note)
	}
	line("")
	return usable
}

// events suggests one for each status that rows came to.
func (in *Inferred) events(usable []string, names *nameSet) (list []string) {
	known := func(s *string) bool { return s != nil && nameOK(*s) }
	to := slices.Clone(usable)
	for _, step := range in.Steps {
		for _, s := range []*string{step.To, step.From} {
			if known(s) && !slices.Contains(to, *s) && len(to) < mostStatuses && len(in.Statuses) <= mostStatuses {
				to = append(to, *s)
			}
		}
	}
	if len(to) > 0 && !slices.ContainsFunc(in.Steps, func(s StepCount) bool { return s.First && known(s.To) }) {
		list = append(list, fmt.Sprintf("%s: {from: none, to: %s}   # no insert was seen: which status does one begin with?", names.of("Created", ""), yamlText(to[0])))
	}
	for _, status := range to {
		var from, seen []string
		var first int64
		for _, step := range in.Steps {
			switch {
			case !known(step.To) || *step.To != status:
			case step.First:
				first += step.Count
			case known(step.From):
				from, seen = append(from, yamlText(*step.From)), append(seen, fmt.Sprintf("%d from %s", step.Count, strconv.Quote(*step.From)))
			default:
				seen = append(seen, fmt.Sprintf("%d from what is no status", step.Count))
			}
		}
		if first > 0 {
			list = append(list, fmt.Sprintf("%s: {from: none, to: %s}   # seen: %d", names.of("CreatedAs", status), yamlText(status), first))
		}
		switch {
		case len(from) > 0:
			list = append(list, fmt.Sprintf("%s: {from: [%s], to: %s}   # seen: %s", names.of("Became", status), strings.Join(from, ", "), yamlText(status),
				strings.Join(seen, ", ")))
		case first == 0:
			list = append(list, fmt.Sprintf("%s: {from: any, to: %s}   # not seen yet", names.of("Became", status), yamlText(status)))
		}
	}
	return list
}

func rowsOf(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

// nameOK: it can be a status of a catalog.
func nameOK(s string) bool {
	return s != "none" && s != "any" && utf8.ValidString(s) && len(s) >= 1 && len(s) <= 200 && strings.Trim(s, " ") == s && !strings.ContainsFunc(s, unicode.IsControl)
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, s)
}

var plainYAML = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// yamlText writes a text so that no reader of YAML takes it for anything else.
func yamlText(s string) string {
	if plainYAML.MatchString(s) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s)) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(oneLine(s)) + `"`
}

// nameSet gives each event a name of its own.
type nameSet struct{ taken map[string]bool }

func newNames() *nameSet { return &nameSet{map[string]bool{}} }

func (n *nameSet) take(name string) bool {
	free := !n.taken[name]
	n.taken[name] = true
	return free
}

// of makes a name of a status: BecamePartlyPaid of partly_paid.
func (n *nameSet) of(before, status string) string {
	var b strings.Builder
	b.WriteString(before)
	begins := true
	for _, r := range status {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) || b.Len() > 150:
			begins = true
		case begins:
			b.WriteRune(unicode.ToUpper(r))
			begins = false
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	name := b.String()
	for i := 2; !n.take(name); i++ {
		name = b.String() + strconv.Itoa(i)
	}
	return yamlText(name)
}
