package rea

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Dimension is a column by which a table of statistics is divided.
type Dimension struct {
	Name    string `json:"name"` // at most 63 bytes
	Operand        // a path or an attribute; absent and null are the empty text
}

// Measure is a column of a table of statistics. Absent and null values do not count for sum, min and max, as in SQL.
type Measure struct {
	Name string `json:"name"` // at most 63 bytes
	Kind string `json:"kind"` // MeasureCount, MeasureSum, MeasureMin, MeasureMax
	Operand
}

// The kinds of measures. The column of a count is bigint, the others are numeric, without loss.
const (
	MeasureCount = "count" // of events; no operand
	MeasureSum   = "sum"
	MeasureMin   = "min"
	MeasureMax   = "max"
)

// MaxDimensionBytes is the length of the longest value of a dimension.
const MaxDimensionBytes = 500

// Type is the type of the measure's column.
func (m Measure) Type() ColumnType {
	if m.Kind == MeasureCount {
		return Bigint
	}
	return Numeric
}

// StatisticsTable is a table of statistics as a store keeps it. Its text is rea.projections.definition.
type StatisticsTable struct {
	Name     string      `json:"name"`
	Version  int         `json:"version"`
	On       []string    `json:"on"`    // event types
	Every    string      `json:"every"` // as time.Duration spells it
	Zone     string      `json:"tz"`
	By       []Dimension `json:"by"`
	Measures []Measure   `json:"measures"`

	bucket func(time.Time) time.Time
	events map[string]bool // On, and old names of them
}

// Definition gives the table as text, the same for the same declarations, and what it is recognized by.
func (t StatisticsTable) Definition() (text, mark string) {
	b, err := marshal(t)
	if err != nil {
		panic(err) // literals are in normal form
	}
	return string(b), fingerprint(string(b))
}

func (c *Catalog) statisticsTable(p Projection) StatisticsTable {
	t := StatisticsTable{Name: p.Name, Version: p.Version, On: p.On, Every: p.Every.String(), Zone: p.Zone, By: p.By, Measures: p.Measures, events: map[string]bool{}}
	zone, err := time.LoadLocation(p.Zone)
	if err != nil {
		panic(err) // it was checked
	}
	t.bucket = buckets(p.Every, zone)
	for _, event := range p.On {
		t.events[event] = true
		for _, old := range c.Aliases("", event) {
			t.events[old] = true
		}
	}
	return t
}

// buckets gives the function from a moment to the start of its bucket. Up to an hour a bucket is a stretch of real time: where
// the clocks go back, the hour that comes twice is two buckets. Longer ones are those of the calendar: a day may have
// 23 or 25 hours.
func buckets(every time.Duration, zone *time.Location) func(time.Time) time.Time {
	return func(at time.Time) time.Time {
		at = at.In(zone)
		if every > time.Hour {
			hours := int(every / time.Hour)
			return firstMoment(at, at.Hour()/hours*hours, zone)
		}
		_, offset := at.Zone()
		local := at.Unix() + int64(offset)
		size := int64(every / time.Second)
		start := local - (local%size+size)%size
		return time.Unix(start-int64(offset), 0).In(zone)
	}
}

// firstMoment is the first one of the day of at, by the clocks of zone, from hour on. Where they go forward over that hour it is when
// they do; where they show it twice, the first time.
func firstMoment(at time.Time, hour int, zone *time.Location) time.Time {
	start := time.Date(at.Year(), at.Month(), at.Day(), hour, 0, 0, 0, zone)
	begin, end := start.ZoneBounds()
	switch shown := time.Date(start.Year(), start.Month(), start.Day(), start.Hour(), start.Minute(), start.Second(), 0, time.UTC); {
	case shown.Before(time.Date(at.Year(), at.Month(), at.Day(), hour, 0, 0, 0, time.UTC)):
		return end
	case start.Hour() != hour || start.Minute() != 0:
		return begin
	case begin.IsZero():
		return start
	}
	_, offset := start.Zone()
	_, before := begin.Add(-time.Second).Zone()
	if earlier := start.Add(time.Duration(offset-before) * time.Second); before > offset && earlier.Before(begin) {
		return earlier
	}
	return start
}

// checkStatistics checks what Projection says of a table of statistics.
func (c *Catalog) checkStatistics(p Projection, problem func(key, text string)) {
	for _, event := range p.On {
		declared := false
		for _, t := range c.types {
			e := t.events[event]
			declared = declared || e != nil && e.AliasOf == "" && !e.Retired
		}
		if !declared {
			problem("on", fmt.Sprintf("the event %s is not declared, or an old name", clip(event)))
		}
	}
	if p.Every < time.Minute || p.Every > 24*time.Hour || p.Every%time.Minute != 0 || p.Every <= time.Hour && time.Hour%p.Every != 0 ||
		p.Every > time.Hour && (p.Every%time.Hour != 0 || 24*time.Hour%p.Every != 0) {
		problem("every", fmt.Sprintf("every is a part of an hour in minutes, or of a day in hours, such as 15m, 1h, 24h, not %s", p.Every))
	}
	if _, err := time.LoadLocation(p.Zone); err != nil || p.Zone == "" || p.Zone == "Local" {
		problem("tz", fmt.Sprintf("tz is a zone such as UTC or America/Los_Angeles; %s is not known here", clip(p.Zone)))
	}
	if len(p.Measures) == 0 {
		problem("measures", "has no measures: name some, such as {orders: count}")
	}
	seen := map[string]bool{"bucket": true, "bucket_local": true}
	column := func(key, name string) {
		switch err := checkIdentifier("the name of a column", name, MaxColumnBytes); {
		case err != nil:
			problem(key, err.Error())
		case slices.Contains(ourColumns, asciiLower(name)) || strings.HasPrefix(asciiLower(name), "rea_"):
			problem(key, "the column "+clip(name)+" is REA's or the database's own: choose another name")
		case seen[asciiLower(name)]:
			problem(key, "the column "+clip(name)+" stands twice, or is the bucket's")
		}
		seen[asciiLower(name)] = true
	}
	for _, d := range p.By {
		column("by", d.Name)
		if d.Attribute != "" && !slices.Contains(Attributes(), d.Attribute) || d.Attribute == "" && len(d.Path) == 0 || d.Literal != nil {
			problem("by", fmt.Sprintf("the column %s is a path such as $.region, or an attribute such as @actor_id", clip(d.Name)))
		}
	}
	for _, m := range p.Measures {
		column("measures", m.Name)
		switch m.Kind {
		case MeasureCount:
		case MeasureSum, MeasureMin, MeasureMax:
			if len(m.Path) == 0 {
				problem("measures", fmt.Sprintf("the column %s: %s takes a path such as $.amount", clip(m.Name), m.Kind))
			}
		default:
			problem("measures", fmt.Sprintf("the column %s: a measure is count, or sum, min or max of a path", clip(m.Name)))
		}
	}
}

// operands are what dimensions and measures take of an event.
func (t *StatisticsTable) operands() (operands []Operand) {
	for _, d := range t.By {
		operands = append(operands, d.Operand)
	}
	for _, m := range t.Measures {
		operands = append(operands, m.Operand)
	}
	return operands
}

// row gives what an event adds.
func (t *StatisticsTable) row(e Event) (row StatisticsRow, err error) {
	var payload Object
	row.Bucket = t.bucket(e.CreatedAt)
	refuse := func(column string, kind ColumnType) error {
		return &ProjectionError{Aggregate: e.Aggregate, Projection: t.Name, Column: column, Type: kind, Event: e.Type, Seq: e.Seq}
	}
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return row, fmt.Errorf("rea: %s seq %d: %w", e.Aggregate, e.Seq, err)
	}
	for _, d := range t.By {
		value, _ := d.Of(e, payload)
		text, ok := Text.text(value)
		if !ok || text != nil && len(*text) > MaxDimensionBytes {
			return row, refuse(d.Name, Text)
		}
		if text == nil {
			text = new(string)
		}
		row.By = append(row.By, *text)
	}
	for _, m := range t.Measures {
		value, there := json.RawMessage("1"), true
		if m.Kind != MeasureCount {
			value, there = m.Of(e, payload)
		}
		if !there {
			value = nil
		}
		text, ok := m.Type().text(value)
		if !ok {
			return row, refuse(m.Name, m.Type())
		}
		row.Values = append(row.Values, text)
	}
	return row, nil
}

// Combine gives the value of a measure from two; nil is NULL.
func (m Measure) Combine(a, b *string) (*string, error) {
	switch {
	case a == nil:
		return b, nil
	case b == nil:
		return a, nil
	}
	if m.Kind == MeasureMin || m.Kind == MeasureMax {
		order, err := compareNumbers(*a, *b)
		if order > 0 == (m.Kind == MeasureMin) && order != 0 {
			a = b
		}
		return a, err
	}
	sum, err := AddNumbers(json.RawMessage(*a), json.RawMessage(*b))
	text := string(sum)
	return &text, err
}

// compareNumbers compares JSON numbers in normal form.
func compareNumbers(a, b string) (int, error) {
	x, scaleX, okX := unscaled([]byte(a))
	y, scaleY, okY := unscaled([]byte(b))
	if !okX || !okY {
		return 0, errNoNumber
	}
	scale := max(scaleX, scaleY)
	return x.Mul(x, power(scale-scaleX)).Cmp(y.Mul(y, power(scale-scaleY))), nil
}
