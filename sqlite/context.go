package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/realtime-event-archive/rea"
)

const contextsSQL = `
SELECT context_id, xid, program, pid, table_name, operation, rows, created_at
FROM rea_contexts
WHERE context_id IN (SELECT value FROM json_each(?1))
ORDER BY context_id`

func (s *session) Contexts(ctx context.Context, ids []int64) (list []rea.Context, err error) {
	asked, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	var c rea.Context
	var created string
	err = each(ctx, s.db, func() error {
		if c.CreatedAt, err = time.Parse(rea.TimeLayout, created); err != nil {
			return fmt.Errorf("the time of context %d is damaged: %w", c.ID, err)
		}
		list = append(list, c)
		return nil
	}, []any{&c.ID, &c.XID, &c.Program, &c.PID, &c.Table, &c.Operation, &c.Rows, &created}, contextsSQL, string(asked))
	return list, s.store.mapError("read contexts", err)
}

func (s *ownSession) Contexts(ctx context.Context, ids []int64) (list []rea.Context, err error) {
	err = s.do(func() error { list, err = s.session.Contexts(ctx, ids); return err })
	return list, err
}

func (a *autocommit) Contexts(ctx context.Context, ids []int64) ([]rea.Context, error) {
	return a.reading().Contexts(ctx, ids)
}
