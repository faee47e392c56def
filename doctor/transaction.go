package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea/guard"
)

// openTooLong is how long a transaction may be open, or prepared, without being something to do about.
const openTooLong = time.Hour

// openSQL lists the transactions of this database that have an xid, or keep old rows from being cleaned up, the oldest first. Of other roles'
// those without a right to see them have but the pid.
const openSQL = `
SELECT format('pid %s, %s%s, %s for %s s%s: %s', a.pid, coalesce(a.usename, '?'), CASE WHEN a.application_name <> '' THEN ' (' || a.application_name || ')' ELSE '' END,
              a.state, round(extract(epoch FROM clock_timestamp() - a.xact_start)), CASE WHEN a.backend_xid IS NULL THEN ', which only reads' ELSE '' END,
              left(regexp_replace(coalesce(a.query, ''), '\s+', ' ', 'g'), 60)),
       format('SELECT pg_terminate_backend(%s), where nobody waits for what it does', a.pid), clock_timestamp() - a.xact_start > $1::interval
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.xact_start IS NOT NULL AND a.pid <> pg_backend_pid() AND (a.backend_xid IS NOT NULL OR a.backend_xmin IS NOT NULL)
  AND a.backend_type = 'client backend' AND (a.backend_xid IS NOT NULL OR a.query !~* '^\s*vacuum')
ORDER BY a.xact_start LIMIT 5`

const hiddenSQL = `
SELECT count(*), quote_ident(current_user)
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.xact_start IS NULL AND (a.backend_xid IS NOT NULL OR a.backend_xmin IS NOT NULL)
  AND NOT pg_has_role(a.usesysid, 'USAGE') AND NOT pg_has_role('pg_read_all_stats', 'USAGE')`

const preparedSQL = `
SELECT format('%s, prepared by %s %s s ago', p.gid, p.owner, round(extract(epoch FROM clock_timestamp() - p.prepared))),
       'COMMIT PREPARED or ROLLBACK PREPARED, whichever its coordinator says', clock_timestamp() - p.prepared > $1::interval
FROM pg_prepared_xacts p WHERE p.database = current_database() ORDER BY p.prepared LIMIT 5`

func transactions(ctx context.Context, db guard.Beginner) ([]Finding, error) {
	return open(ctx, db, openTooLong)
}

// open tells who may still commit ids that the numbering has passed over. It delays nobody else's events, so that a transaction is a fault only
// where it is older than limit.
func open(ctx context.Context, db guard.Beginner, limit time.Duration) (list []Finding, err error) {
	var holes, hidden int64
	var role string
	if err := row(ctx, db, `SELECT count(*) FROM rea.feed_holes`, &holes); err != nil {
		return nil, err
	}
	if holes == 0 {
		list = append(list, fine("feed", "no holes are kept"))
	} else {
		list = append(list, fine("feed", "%d passes met ids that may still commit: they are kept until the transactions that were open then have ended", holes))
	}
	for _, query := range []string{openSQL, preparedSQL} {
		rows, err := db.Query(ctx, query, limit)
		if err != nil {
			return nil, err
		}
		var text, next string
		var old bool
		if _, err := pgx.ForEachRow(rows, []any{&text, &next, &old}, func() error {
			if old {
				list = append(list, wrong("transactions", next, "%s", text))
			} else {
				list = append(list, fine("transactions", "%s", text))
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	if err := row(ctx, db, hiddenSQL, &hidden, &role); err != nil || hidden == 0 {
		return list, err
	}
	next := fmt.Sprintf("GRANT pg_read_all_stats TO %s, and look again", role)
	unseen := fine("transactions", "%d of other roles are open, and cannot be looked at with these rights: not how old they are, nor what they do", hidden)
	unseen.Next = &next
	return append(list, unseen), nil
}
