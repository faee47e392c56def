package doctor

import (
	"context"
	"fmt"
	"os"

	"github.com/realtime-event-archive/rea"
)

// SQLite looks at the archive in the file at path.
func SQLite(ctx context.Context, path string, archive *rea.Archive) ([]Finding, error) {
	events, err := archive.Autocommit().Count(ctx)
	if err != nil {
		return nil, err
	}
	level := L1
	list := []Finding{
		fine("events", "%d", events),
		{Check: "protection", OK: true, Level: &level, Text: "triggers refuse every change, and whoever may write the file can take them away. L2 takes PostgreSQL"},
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("rea: look at the file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		list = append(list, wrong("file", "chmod go-w the file", "its mode is %#o: others than its owner may write it", mode))
	} else {
		list = append(list, fine("file", "its mode is %#o: its owner alone may write it", mode))
	}
	found, err := projections(ctx, archive)
	return append(list, found...), err
}
