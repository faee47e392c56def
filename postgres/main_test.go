package postgres_test

import (
	"context"
	"testing"

	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.Migrated(fingerprint(), migrate)) }

func fingerprint() string {
	archive, err := postgres.New(nil, postgres.Config{})
	if err != nil {
		panic(err)
	}
	return archive.MigrationSQL()
}

func migrate(ctx context.Context, url string) error {
	archive, err := postgres.Open(ctx, url, postgres.Config{})
	if err != nil {
		return err
	}
	defer archive.Close()
	return archive.Migrate(ctx, nil)
}
