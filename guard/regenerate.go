package guard

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/adopt"
)

// Regenerate writes a guard's code and triggers anew, for the columns and partitions as they are, and levels the history: a row whose
// events fold to something else because columns came, went or were renamed gets a DirectUpdate, in a context with the operation ALTER.
func Regenerate(ctx context.Context, db Beginner, table string, by By) (*Guard, int64, error) {
	return renewed(ctx, db, table, func(g *Guard, tx pgx.Tx) (int64, error) {
		return g.renew(ctx, tx, "GuardRegenerated", by, g.facts())
	})
}

const knownSQL = `
SELECT c.name, c.type, CASE WHEN g.made_for = g.relation::oid THEN c.number ELSE 0 END
FROM rea.guards g, pg_catalog.jsonb_to_recordset(g.columns) c(number smallint, name text, type text) WHERE g.guard_id = $1`

// changedColumns are those that the code does not know by this name and type, or that were dropped and made anew, and those that it knows
// and that are not there.
func (g *Guard) changedColumns(ctx context.Context, tx pgx.Tx) (came, went []string, err error) {
	rows, err := tx.Query(ctx, knownSQL, g.ID)
	if err != nil {
		return nil, nil, err
	}
	known := map[string]adopt.Column{} // Number 0: a restored table has others
	var c adopt.Column
	came, went = []string{}, []string{}
	if _, err := pgx.ForEachRow(rows, []any{&c.Name, &c.Type, &c.Number}, func() error {
		if known[c.Name] = c; g.column(c.Name) == nil {
			went = append(went, c.Name)
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	for _, c := range g.recorded() {
		if k, ok := known[c.Name]; !ok || k.Type != c.Type || k.Number != 0 && k.Number != c.Number {
			came = append(came, c.Name)
		}
	}
	return came, went, nil
}
