package postgres

import (
	"context"
	"encoding/json"

	"github.com/realtime-event-archive/rea"
)

// Through contexts_pkey.
const contextsSQL = `
SELECT c.context_id, c.xid::text, c.login, c.role, c.program, coalesce(c.address, ''), c.pid, c.table_name, c.operation, c.rows, c.depth,
       coalesce(c.statement, ''), c.statement_cut, coalesce(c.statement_sha256, ''), c.created_at
FROM rea.contexts c
WHERE c.context_id = ANY (ARRAY(SELECT j::bigint FROM jsonb_array_elements_text($1::jsonb) j))
ORDER BY c.context_id`

func (s *session) Contexts(ctx context.Context, ids []int64) (list []rea.Context, err error) {
	asked, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	var c rea.Context
	err = each(ctx, s.db, func() error {
		c.CreatedAt = c.CreatedAt.UTC()
		list = append(list, c)
		return nil
	}, []any{&c.ID, &c.XID, &c.Login, &c.Role, &c.Program, &c.Address, &c.PID, &c.Table, &c.Operation, &c.Rows, &c.Depth,
		&c.Statement, &c.StatementCut, &c.StatementSHA256, &c.CreatedAt}, contextsSQL, string(asked))
	return list, mapError("read contexts", err)
}
