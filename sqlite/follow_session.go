package sqlite

import (
	"context"

	"github.com/realtime-event-archive/rea"
)

// What follows are the calls of package rea, one at a time in a transaction, and on what is committed outside of one.

func (a *autocommit) Offsets(ctx context.Context) ([]rea.ProjectionOffset, error) {
	return a.reading().Offsets(ctx)
}

func (a *autocommit) EventAt(ctx context.Context, position int64) (int64, error) {
	return a.reading().EventAt(ctx, position)
}

func (a *autocommit) PositionOf(ctx context.Context, eventID int64) (int64, error) {
	return a.reading().PositionOf(ctx, eventID)
}

func (s *ownSession) Offsets(ctx context.Context) (list []rea.ProjectionOffset, err error) {
	err = s.do(func() error { list, err = s.session.Offsets(ctx); return err })
	return list, err
}

func (s *ownSession) EventAt(ctx context.Context, position int64) (id int64, err error) {
	err = s.do(func() error { id, err = s.session.EventAt(ctx, position); return err })
	return id, err
}

func (s *ownSession) PositionOf(ctx context.Context, eventID int64) (position int64, err error) {
	err = s.do(func() error { position, err = s.session.PositionOf(ctx, eventID); return err })
	return position, err
}

func (s *ownSession) ClaimProjection(ctx context.Context, name string, wait bool) (p rea.ProjectionOffset, ok bool, err error) {
	err = s.do(func() error { p, ok, err = s.session.ClaimProjection(ctx, name, wait); return err })
	return p, ok, err
}

func (s *ownSession) FollowPage(ctx context.Context, filter rea.FollowFilter, from rea.Offset, limit int) (page []rea.Event, to rea.Offset, err error) {
	err = s.do(func() error { page, to, err = s.session.FollowPage(ctx, filter, from, limit); return err })
	return page, to, err
}

func (s *ownSession) RowsBehind(ctx context.Context, t rea.StateTable, from rea.Offset, limit int) (rows []rea.RowPlace, to rea.Offset, err error) {
	err = s.do(func() error { rows, to, err = s.session.RowsBehind(ctx, t, from, limit); return err })
	return rows, to, err
}

func (s *ownSession) MoveProjection(ctx context.Context, name, runner string, from, to rea.Offset) (moved bool, err error) {
	err = s.do(func() error { moved, err = s.session.MoveProjection(ctx, name, runner, from, to); return err })
	return moved, err
}

func (s *ownSession) FailProjection(ctx context.Context, name string, from rea.Offset, f rea.Failure, most int) (attempts int, err error) {
	err = s.do(func() error { attempts, err = s.session.FailProjection(ctx, name, from, f, most); return err })
	return attempts, err
}

func (s *ownSession) SetProjection(ctx context.Context, name, state string) error {
	return s.do(func() error { return s.session.SetProjection(ctx, name, state) })
}

func (s *ownSession) SkipEvent(ctx context.Context, name string, skip rea.Skipped) error {
	return s.do(func() error { return s.session.SkipEvent(ctx, name, skip) })
}

func (s *ownSession) MakeProjection(ctx context.Context, f rea.Followed) error {
	return s.do(func() error { return s.session.MakeProjection(ctx, f) })
}

func (s *ownSession) TableThere(ctx context.Context, f rea.Followed) (there bool, err error) {
	err = s.do(func() error { there, err = s.session.TableThere(ctx, f); return err })
	return there, err
}

func (s *ownSession) BuildTable(ctx context.Context, f rea.Followed) error {
	return s.do(func() error { return s.session.BuildTable(ctx, f) })
}

func (s *ownSession) RehearseSwitch(ctx context.Context, f rea.Followed, recreate bool) error {
	return s.do(func() error { return s.session.RehearseSwitch(ctx, f, recreate) })
}

func (s *ownSession) SwitchTable(ctx context.Context, f rea.Followed, recreate bool) error {
	return s.do(func() error { return s.session.SwitchTable(ctx, f, recreate) })
}

func (s *ownSession) ReadStateRows(ctx context.Context, t rea.StateTable, beside bool, ids []string) (list []rea.StateRow, err error) {
	err = s.do(func() error { list, err = s.session.ReadStateRows(ctx, t, beside, ids); return err })
	return list, err
}

func (s *ownSession) AddStatistics(ctx context.Context, t rea.StatisticsTable, beside bool, rows []rea.StatisticsRow) error {
	return s.do(func() error { return s.session.AddStatistics(ctx, t, beside, rows) })
}

// UserSQL gives the transaction to a function of the program's.
func (s *ownSession) UserSQL(context.Context) (rea.SQL, error) { return s.Transaction(), nil }
