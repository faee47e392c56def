package rea

import (
	"context"
	"time"
)

// Context is what the database observed about a statement that a guard or a baseline recorded, and so about the events that
// name it (Event.ContextID). Nobody claimed any of it. What SQLite cannot observe is zero there.
type Context struct {
	ID              int64
	XID             string // of its transaction; a label
	Login           string // that connected
	Role            string // under which the statement ran, SET ROLE counted
	Program         string // the name that the client gave itself; "": none
	Address         string // of the client, behind a pooler the pooler's; "": a local socket
	PID             int    // of the process that ran the statement
	Table           string // schema.table, as it was called then
	Operation       string // INSERT, UPDATE, DELETE, TRUNCATE, BASELINE, ALTER
	Rows            int64  // that it changed, and that were recorded as events
	Depth           int    // 1: the statement itself; more: a trigger that it set off
	Statement       string // as the client sent it; "": not kept
	StatementCut    bool   // Statement is the beginning
	StatementSHA256 string // of the whole text; "": not kept
	CreatedAt       time.Time
}

// contextJSON fixes names and order of a context's JSON: those of the table's columns.
type contextJSON struct {
	ContextID       int64   `json:"context_id"`
	XID             string  `json:"xid"`
	Login           *string `json:"login"`
	Role            *string `json:"role"`
	Program         string  `json:"program"`
	Address         *string `json:"address"`
	PID             int     `json:"pid"`
	Table           string  `json:"table_name"`
	Operation       string  `json:"operation"`
	Rows            int64   `json:"rows"`
	Depth           *int    `json:"depth"`
	Statement       *string `json:"statement"`
	StatementCut    bool    `json:"statement_cut"`
	StatementSHA256 *string `json:"statement_sha256"`
	CreatedAt       string  `json:"created_at"`
}

// MarshalJSON writes c with the names of the columns of rea.contexts.
func (c Context) MarshalJSON() ([]byte, error) {
	return marshal(contextJSON{
		ContextID: c.ID, XID: c.XID, Login: optional(c.Login), Role: optional(c.Role), Program: c.Program, Address: optional(c.Address),
		PID: c.PID, Table: c.Table, Operation: c.Operation, Rows: c.Rows, Depth: optional(c.Depth), Statement: optional(c.Statement),
		StatementCut: c.StatementCut, StatementSHA256: optional(c.StatementSHA256), CreatedAt: FormatTime(c.CreatedAt),
	})
}

// Contexts gives the contexts with these ids, by id. An id that stands for none is left out.
func (tx *Tx) Contexts(ctx context.Context, ids ...int64) ([]Context, error) {
	if err := tx.session.Ready(ctx, false); err != nil || len(ids) == 0 {
		return nil, err
	}
	return tx.session.Contexts(ctx, ids)
}
