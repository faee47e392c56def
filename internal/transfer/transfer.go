// Package transfer moves events between an archive and NDJSON: one event a line, plain or gzip. Import is
// bounded in memory, goes on after a kill, and stores nothing twice; Export is its inverse, byte for byte.
//
//	result, err := transfer.Import(ctx, archive, "events.ndjson.gz", transfer.ImportOptions{})
//	n, err := transfer.Export(ctx, archive, os.Stdout, transfer.ExportOptions{})
package transfer

import "github.com/realtime-event-archive/rea"

// MaxLineBytes bounds a line: a payload of the largest size, and room for everything else. A longer line
// is rejected without being held in memory.
const MaxLineBytes = rea.MaxPayloadBytes + 1<<20
