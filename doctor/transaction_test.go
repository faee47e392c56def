package doctor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/doctor"
)

func TestWhoKeepsAHoleOpenIsNamed(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	tx, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := p.archive.Tx(tx).Append(t.Context(), rea.Ref{Type: "order", ID: "1"}, rea.NewEvent{Type: "Placed"}); err != nil {
		t.Fatal(err)
	}
	p.do(`SELECT rea.append('order', '2', 'Placed')`)
	if _, err := p.archive.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	level, wrong, all := p.said()
	if level != doctor.L2 || wrong != "" || !strings.Contains(all, "feed: 1 passes met ids that may still commit") || !strings.Contains(all, "idle in transaction for") {
		t.Errorf("wrong:\n%s\nall:\n%s", wrong, all)
	}
}

func TestWhoOnlyReadsForLongIsNamed(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	tx, err := p.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `SELECT count(*) FROM rea.events`); err != nil {
		t.Fatal(err)
	}
	pid := tx.Conn().PgConn().PID()
	if _, wrong, all := p.said(); wrong != "" || !strings.Contains(all, fmt.Sprintf("transactions: pid %d, ", pid)) || !strings.Contains(all, "which only reads: SELECT count(*)") {
		t.Errorf("wrong:\n%s\nall:\n%s", wrong, all)
	}
	list, err := doctor.Open(t.Context(), p, 0)
	if _, wrong, _ := told(list); err != nil || !strings.Contains(wrong, fmt.Sprintf("-> SELECT pg_terminate_backend(%d)", pid)) {
		t.Errorf("%v; beyond the limit, wrong:\n%s", err, wrong)
	}
}

func TestAPreparedTransactionIsAFaultWhenItIsOld(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	gid := p.Config().ConnConfig.Database
	p.do(`BEGIN; SELECT rea.append('order', '1', 'Placed'); PREPARE TRANSACTION '` + gid + `'`)
	t.Cleanup(func() { _, _ = p.Exec(context.Background(), `ROLLBACK PREPARED '`+gid+`'`) })
	if _, wrong, all := p.said(); wrong != "" || !strings.Contains(all, "transactions: "+gid+", prepared by ") {
		t.Errorf("wrong:\n%s\nall:\n%s", wrong, all)
	}
	list, err := doctor.Open(t.Context(), p, 0)
	if _, wrong, _ := told(list); err != nil || !strings.Contains(wrong, gid+", prepared by ") || !strings.Contains(wrong, "-> COMMIT PREPARED or ROLLBACK PREPARED") {
		t.Errorf("%v; beyond the limit, wrong:\n%s", err, wrong)
	}
}

func TestWhatAReaderCannotSeeIsSaid(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	name := p.login()
	p.do(`GRANT rea_reader TO ` + name)
	tx, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `SELECT rea.append('order', '1', 'Placed')`); err != nil {
		t.Fatal(err)
	}
	_, wrong, all := p.as(name).said()
	if wrong != "" || !strings.Contains(all, "transactions: 1 of other roles are open, and cannot be looked at with these rights") || strings.Contains(all, "rea.append") {
		t.Errorf("wrong:\n%s\nall:\n%s", wrong, all)
	}
	list, err := doctor.Postgres(t.Context(), p.as(name), p.archive.Archive)
	if next := list[len(list)-3].Next; err != nil || next == nil || *next != "GRANT pg_read_all_stats TO "+name+", and look again" {
		t.Errorf("%v, %+v, want the right that is missing", err, list)
	}
	p.do(`GRANT pg_monitor TO ` + name)
	if _, _, all := p.as(name).said(); strings.Contains(all, "cannot be looked at") || !strings.Contains(all, "rea.append") {
		t.Errorf("with the right:\n%s", all)
	}
}
