package postgres

import (
	"context"

	"github.com/realtime-event-archive/rea"
)

func (s *ownSession) DropProjection(ctx context.Context, f rea.Followed) error {
	doing := "drop the projection " + f.Name
	if err := s.own(ctx); err != nil {
		return mapError(doing, err)
	}
	if f.Kind != rea.KindGo {
		built, err := s.built(ctx, f.Name)
		if err != nil {
			return mapError(doing, err)
		}
		for _, name := range append(built, f.Name) {
			if err := s.run(ctx, doing, "DROP TABLE IF EXISTS rea_views."+quoteName(name)); err != nil {
				return err
			}
		}
	}
	for _, query := range []string{`DELETE FROM rea.rebuilds r WHERE r.name = $1`, `DELETE FROM rea.projections p WHERE p.name = $1`} {
		if _, err := s.changed(ctx, doing, query, f.Name); err != nil {
			return err
		}
	}
	return nil
}
