package sqlite

import (
	"context"

	"github.com/realtime-event-archive/rea"
)

// What a transaction of REA's does with projections, one call at a time.

func (s *ownSession) Projections(ctx context.Context) (list []rea.AppliedProjection, err error) {
	err = s.do(func() error { list, err = s.session.Projections(ctx); return err })
	return list, err
}

func (s *ownSession) CheckStateTable(ctx context.Context, t rea.StateTable) (check rea.TableCheck, err error) {
	err = s.do(func() error { check, err = s.session.CheckStateTable(ctx, t); return err })
	return check, err
}

func (s *ownSession) BuildStateTable(ctx context.Context, t rea.StateTable) error {
	return s.do(func() error { return s.session.BuildStateTable(ctx, t) })
}

func (s *ownSession) StateRows(ctx context.Context, t rea.StateTable, beside bool, after string, limit int) (list []rea.RowPlace, err error) {
	err = s.do(func() error { list, err = s.session.StateRows(ctx, t, beside, after, limit); return err })
	return list, err
}

func (s *ownSession) FirstEvents(ctx context.Context, aggregateType string, ids []string, limit int, positions bool) (events []rea.Event, err error) {
	err = s.do(func() error {
		events, err = s.session.FirstEvents(ctx, aggregateType, ids, limit, positions)
		return err
	})
	return events, err
}

func (s *ownSession) LastID(ctx context.Context) (id int64, err error) {
	err = s.do(func() error { id, err = s.session.LastID(ctx); return err })
	return id, err
}

func (s *ownSession) RecentRows(ctx context.Context, t rea.StateTable, after int64, limit int) (list []rea.RowPlace, err error) {
	err = s.do(func() error { list, err = s.session.RecentRows(ctx, t, after, limit); return err })
	return list, err
}

func (s *ownSession) SaveStateRows(ctx context.Context, t rea.StateTable, beside bool, rows []rea.StateRow) (saved int, err error) {
	err = s.do(func() error { saved, err = s.session.SaveStateRows(ctx, t, beside, rows); return err })
	return saved, err
}

func (s *ownSession) InstallStateTable(ctx context.Context, t rea.StateTable, built, recreate bool) error {
	return s.do(func() error { return s.session.InstallStateTable(ctx, t, built, recreate) })
}

func (s *ownSession) RemoveProjection(ctx context.Context, name string) error {
	return s.do(func() error { return s.session.RemoveProjection(ctx, name) })
}
