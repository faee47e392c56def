package shop

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	_ "modernc.org/sqlite" // the driver of the plain table

	"github.com/realtime-event-archive/rea"
)

// Script is the accident: it was meant to cancel what customer 123 had left open before June. AND binds
// closer than OR, and the parentheses are missing, so it cancels every paid order of the shop.
const Script = `UPDATE orders SET status = 'cancelled'
WHERE created_at < '2024-06-01' AND user_id = 123 AND status = 'placed' OR status = 'paid'`

// ScriptActor and ScriptReason are what the script says of itself in REA.
const (
	ScriptActor  = "script:promo-cleanup"
	ScriptReason = "end of the May promotion, ticket OPS-311"
)

var june = time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)

// Hit gives the orders that the script cancels, and how many of them it was meant to.
func (s *Shop) Hit() (hit []Order, meant int) {
	for _, o := range s.Orders {
		old := o.PlacedAt.Before(june) && o.User == 123
		if old && o.Status == "placed" || o.Status == "paid" {
			hit = append(hit, o)
			if old {
				meant++
			}
		}
	}
	return hit, meant
}

// RunScript is the accident in REA: the same wrong condition, an event for each order, one transaction. A quarter
// of an hour later support writes down that a customer complains.
func (s *Shop) RunScript(ctx context.Context, archive *rea.Archive) error {
	hit, _ := s.Hit()
	lines := make([]rea.Line, len(hit))
	for i, o := range hit {
		lines[i] = rea.Line{
			Aggregate: ref(o.ID), Event: event("OrderCancelled", 1, nil), Actor: ScriptActor, Reason: ScriptReason,
			CreatedAt: Accident.Add(time.Duration(i) * 150 * time.Microsecond),
		}
	}
	if err := store(ctx, archive, lines); err != nil {
		return err
	}
	return store(ctx, archive, []rea.Line{{
		Aggregate: ref(Story), Event: event("NoteAdded", 1, map[string]any{"text": "customer asks why a paid order is cancelled"}),
		Actor: "support:mei", CreatedAt: Accident.Add(17 * time.Minute),
	}})
}

// Table is the shop without REA: one row an order, with its present status.
type Table struct{ db *sql.DB }

// NewTable makes the table in a new SQLite file, filled with the orders as they are right before the accident.
func (s *Shop) NewTable(ctx context.Context, path string) (*Table, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := s.fill(ctx, db); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("make the table orders: %w", err)
	}
	return &Table{db}, nil
}

func (s *Shop) fill(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `
CREATE TABLE orders (
    id           INTEGER PRIMARY KEY,
    user_id      INTEGER NOT NULL,
    total_amount INTEGER NOT NULL,
    status       TEXT NOT NULL,
    created_at   TEXT NOT NULL
)`); err != nil {
		return err
	}
	insert, err := tx.PrepareContext(ctx, `INSERT INTO orders (id, user_id, total_amount, status, created_at) VALUES (?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, o := range s.Orders {
		if _, err := insert.ExecContext(ctx, o.ID, o.User, o.Total, o.Status, o.PlacedAt.Format(time.DateTime)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// RunScript runs Script and gives the number of rows that it changed.
func (t *Table) RunScript(ctx context.Context) (int64, error) {
	result, err := t.db.ExecContext(ctx, Script)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Order reads one row.
func (t *Table) Order(ctx context.Context, id int) (o Order, err error) {
	var placed string
	err = t.db.QueryRowContext(ctx, `SELECT id, user_id, total_amount, status, created_at FROM orders WHERE id = ?`, id).
		Scan(&o.ID, &o.User, &o.Total, &o.Status, &placed)
	if err != nil {
		return o, err
	}
	o.PlacedAt, err = time.Parse(time.DateTime, placed)
	return o, err
}

// Close closes the file.
func (t *Table) Close() error { return t.db.Close() }
