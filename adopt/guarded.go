package adopt

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// SeqColumn is the column of a table in refuse mode that names the last event of its row. It is REA's: no event has it.
const SeqColumn = "rea_seq"

// Guarded is what rea.guards says of a table.
type Guarded struct {
	Type     string
	Mode     string // "capture" or "refuse"
	Key      []int16
	Status   *int16
	Ignored  []int16
	Redacted []int16
}

// Refuses reports whether a row may change only together with its events.
func (g *Guarded) Refuses() bool { return g != nil && g.Mode == "refuse" }

// Watches reports whether the events say what is in a column. g may be nil.
func (g *Guarded) Watches(c Column) bool {
	return c.Name != SeqColumn && (g == nil || !slices.Contains(g.Ignored, c.Number) && !slices.Contains(g.Redacted, c.Number))
}

func (g *Guarded) redacts(c Column) bool { return g != nil && slices.Contains(g.Redacted, c.Number) }

const guardedSQL = `
SELECT g.aggregate_type, g.mode, g.key, g.status, g.ignored, g.redacted
FROM rea.guards g WHERE g.relation = $1`

// Guard reads how t is guarded; nil: not at all.
func (t *Table) Guard(ctx context.Context, db Queryer) (*Guarded, error) {
	rows, err := db.Query(ctx, guardedSQL, t.OID)
	if err != nil {
		return nil, fmt.Errorf("rea: look for the guard of %s: %w", t, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Guarded])
	if err != nil || len(list) == 0 {
		return nil, wrap(err, "look for the guard of %s", t)
	}
	return &list[0], nil
}

// wrap says what was being done, where that failed.
func wrap(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rea: %s: %w", fmt.Sprintf(doing, args...), err)
}

// names are the columns with these numbers.
func (t *Table) names(numbers []int16) (names []string) {
	for _, n := range numbers {
		if i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Number == n }); i >= 0 {
			names = append(names, t.Columns[i].Name)
		}
	}
	return names
}

// numbers are those of the columns at these indexes.
func (t *Table) numbers(indexes []int) []int16 {
	list := make([]int16, len(indexes))
	for i, k := range indexes {
		list[i] = t.Columns[k].Number
	}
	return list
}
