package sqlite

import (
	"context"

	"github.com/realtime-event-archive/rea"
)

func (s *session) DropProjection(ctx context.Context, f rea.Followed) error {
	doing := "drop the projection " + f.Name
	if f.Kind != rea.KindGo {
		built, err := s.built(ctx, viewPrefix+f.Name)
		if err != nil {
			return s.store.mapError(doing, err)
		}
		for _, name := range append(built, viewPrefix+f.Name) {
			if _, err := s.change(ctx, doing, "DROP TABLE IF EXISTS "+quoteName(name)); err != nil {
				return err
			}
		}
	}
	for _, query := range []string{`DELETE FROM rea_rebuilds WHERE name = ?1`, `DELETE FROM rea_projections WHERE name = ?1`} {
		if _, err := s.change(ctx, doing, query, f.Name); err != nil {
			return err
		}
	}
	return nil
}

func (s *ownSession) DropProjection(ctx context.Context, f rea.Followed) error {
	return s.do(func() error { return s.session.DropProjection(ctx, f) })
}
