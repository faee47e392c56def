package postgres

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/realtime-event-archive/rea"
)

// copyRows adds rows to a table of states that has none of their aggregates. It takes a quarter of the time of an INSERT from JSON,
// and stops at a row that is there after all.
func (s *ownSession) copyRows(ctx context.Context, x stateSQL, beside bool, rows []rea.StateRow) error {
	if len(rows) == 0 {
		return nil
	}
	columns := "aggregate_id, rea_seq, rea_updated_at"
	for _, c := range x.Columns {
		columns += ", " + quoteName(c.Name)
	}
	var b bytes.Buffer
	for _, row := range rows {
		b.WriteString(copyText.Replace(row.ID))
		b.WriteByte('\t')
		b.Write(strconv.AppendInt(b.AvailableBuffer(), row.Seq, 10))
		b.WriteByte('\t')
		b.Write(row.Updated.UTC().AppendFormat(b.AvailableBuffer(), rea.TimeLayout))
		for _, value := range row.Values {
			b.WriteByte('\t')
			if value == nil {
				b.WriteString(`\N`)
			} else {
				b.WriteString(copyText.Replace(*value))
			}
		}
		b.WriteByte('\n')
	}
	_, err := s.tx.Conn().PgConn().CopyFrom(ctx, &b, fmt.Sprintf("COPY %s (%s) FROM STDIN", x.table(beside), columns))
	return err
}

// copyText is how COPY spells a text.
var copyText = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)

// split parts the rows that are to be added from those that are to be changed.
func split(rows []rea.StateRow) (added, changed []rea.StateRow) {
	for _, row := range rows {
		if row.Was == 0 {
			added = append(added, row)
		} else {
			changed = append(changed, row)
		}
	}
	return added, changed
}
