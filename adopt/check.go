package adopt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/realtime-event-archive/rea"
)

// The kinds of differences between a table and its events.
const (
	DiffMissing   = "missing"   // a row without events
	DiffDifferent = "different" // a row that is not what its events say
	DiffExtra     = "extra"     // events that say that it exists, and no row
	DiffDeleted   = "deleted"   // a row, and events that say that it was deleted
)

// Difference is an aggregate that is not as the table has it.
type Difference struct {
	Kind      string
	Aggregate rea.Ref
	Seq       int64        // of the last event; 0: none
	Columns   []ColumnDiff // of a different row
}

// ColumnDiff is a column whose value is not what the events say.
type ColumnDiff struct {
	Column string
	Table  json.RawMessage
	Events json.RawMessage // nil: they say nothing of it
}

// CheckOptions say how a table is compared with its events.
type CheckOptions struct {
	Type    string       // of the aggregates
	Catalog *rea.Catalog // to fold by; nil: none

	Report   func(Difference)     // of each
	Progress func(rows, of int64) // after each page; nil: nobody asks
}

// CheckResult counts what Check has compared.
type CheckResult struct {
	Rows  int64            // of the table
	Diffs map[string]int64 // by kind
}

// Found reports whether there is any difference.
func (r CheckResult) Found() bool { return len(r.Diffs) > 0 }

// checked is one view of a table and its events.
type checked interface {
	// count is the number of rows.
	count(ctx context.Context) (int64, error)
	// page gives the next rows, in the order of the key, at most limit of them; none: that was all.
	page(ctx context.Context, limit int) ([]tableRow, error)
	// nameless are the ids, for people, of rows that have none.
	nameless(ctx context.Context) ([]string, error)
	// events hands over all events of some aggregates, by id and seq.
	events(ctx context.Context, ids []string, each func(rea.Event) error) error
	// rowless gives the next ids, after one, of aggregates that have no row.
	rowless(ctx context.Context, after string, limit int) ([]string, error)
}

// tableRow is a row of the table, as the text of a JSON object.
type tableRow struct {
	id   string
	text json.RawMessage
}

// checking compares.
type checking struct {
	options CheckOptions
	view    checked
	columns []string // that are compared
	partial bool     // the baseline did not take all columns: what events say nothing of is no difference
	deletes []string // events after which there is no row
	result  CheckResult
}

const (
	checkPage  = 2_000    // rows in one look
	checkBytes = 16 << 20 // of rows, after which a page is smaller
)

// run compares every row, then looks for aggregates without one.
func (c *checking) run(ctx context.Context) (CheckResult, error) {
	c.result.Diffs, c.deletes = map[string]int64{}, []string{"DirectDelete"}
	if of, declared := c.options.Catalog.Type(c.options.Type); declared {
		for _, e := range of.Events {
			if e.Deletes {
				c.deletes = append(c.deletes, e.Name)
			}
		}
	}
	total, err := c.view.count(ctx)
	if err != nil {
		return c.result, err
	}
	for size := checkPage / 20; ; {
		rows, err := c.view.page(ctx, size)
		if err != nil || len(rows) == 0 {
			if err != nil {
				return c.result, err
			}
			break
		}
		if err := c.compareAll(ctx, rows); err != nil {
			return c.result, err
		}
		bytes := 0
		for _, row := range rows {
			bytes += len(row.text)
		}
		if bytes > checkBytes {
			size = max(size/4, 1)
		} else if bytes < checkBytes/4 {
			size = min(size*2, checkPage)
		}
		c.result.Rows += int64(len(rows))
		if c.options.Progress != nil {
			c.options.Progress(c.result.Rows, total)
		}
	}
	ids, err := c.view.nameless(ctx)
	for _, id := range ids {
		c.result.Rows++
		c.found(Difference{Kind: DiffMissing, Aggregate: c.ref(id)})
	}
	if err != nil {
		return c.result, err
	}
	return c.result, c.extra(ctx)
}

func (c *checking) ref(id string) rea.Ref { return rea.Ref{Type: c.options.Type, ID: id} }

func (c *checking) found(d Difference) {
	c.result.Diffs[d.Kind]++
	if c.options.Report != nil {
		c.options.Report(d)
	}
}

// folded is an aggregate as its events say.
type folded struct {
	state   rea.Object
	seq     int64
	deleted bool
}

// fold folds all events of some aggregates.
func (c *checking) fold(ctx context.Context, ids []string) (map[string]*folded, error) {
	all := make(map[string]*folded, len(ids))
	err := c.view.events(ctx, ids, func(e rea.Event) (err error) {
		f := all[e.Aggregate.ID]
		if f == nil {
			f = &folded{}
			all[e.Aggregate.ID] = f
		}
		if f.state, err = c.options.Catalog.Fold(f.state, e); err != nil {
			return fmt.Errorf("rea: fold %s at seq %d: %w", e.Aggregate, e.Seq, err)
		}
		f.seq, f.deleted = e.Seq, slices.Contains(c.deletes, e.Type)
		return nil
	})
	return all, err
}

func (c *checking) compareAll(ctx context.Context, rows []tableRow) error {
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.id
	}
	all, err := c.fold(ctx, ids)
	if err != nil {
		return err
	}
	for _, row := range rows {
		switch f := all[row.id]; {
		case f == nil:
			c.found(Difference{Kind: DiffMissing, Aggregate: c.ref(row.id)})
		case f.deleted:
			c.found(Difference{Kind: DiffDeleted, Aggregate: c.ref(row.id), Seq: f.seq})
		default:
			fields, err := rea.ParseObject(row.text)
			if err != nil {
				return wrap(err, "read the row of %s", c.ref(row.id))
			}
			if columns := c.compare(fields, f.state); len(columns) > 0 {
				c.found(Difference{Kind: DiffDifferent, Aggregate: c.ref(row.id), Seq: f.seq, Columns: columns})
			}
		}
	}
	return nil
}

// compare gives the columns whose values are not equal as jsonb.
func (c *checking) compare(row, state rea.Object) (list []ColumnDiff) {
	for _, name := range c.columns {
		is, says := row[name], state[name]
		if bytes.Equal(is, says) || says == nil && c.partial || says != nil && rea.EqualJSON(is, says) {
			continue
		}
		list = append(list, ColumnDiff{Column: name, Table: is, Events: says})
	}
	return list
}

// extra looks for aggregates that exist by their events and have no row.
func (c *checking) extra(ctx context.Context) error {
	for after := ""; ; {
		ids, err := c.view.rowless(ctx, after, checkPage)
		if err != nil || len(ids) == 0 {
			return err
		}
		after = ids[len(ids)-1]
		all, err := c.fold(ctx, ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if f := all[id]; f != nil && !f.deleted {
				c.found(Difference{Kind: DiffExtra, Aggregate: c.ref(id), Seq: f.seq})
			}
		}
	}
}
