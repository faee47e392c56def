package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
	"github.com/realtime-event-archive/rea/sqlite"
)

// ticketEvents is how many events each ticket has.
const ticketEvents = 10

// ticketCatalog is a machine, with the status "parked" or without. Who applies the one without has to look where each
// ticket stands; for the one with there is nothing to look at.
func ticketCatalog(parked bool) (*rea.Catalog, error) {
	events := []rea.EventType{
		{Name: "Opened", From: []string{rea.FromNone}, To: "open"},
		{Name: "Taken", From: []string{"open"}, To: "taken"},
		{Name: "Noted", From: []string{rea.FromAny}},
	}
	if parked {
		events = append(events, rea.EventType{Name: "Parked", From: []string{"taken"}, To: "parked"})
	}
	return rea.NewCatalog(rea.Type{Name: "ticket", Status: "status", Events: events})
}

func (b *bench) applyPostgres(ctx context.Context) error {
	d, err := b.newDatabase(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	return b.apply(ctx, "PostgreSQL", 100_000, func(c *rea.Catalog) (*rea.Archive, error) {
		archive, err := postgres.New(d.filler.Pool, postgres.Config{Config: rea.Config{Catalog: c}})
		if err != nil {
			return nil, err
		}
		return archive.Archive, nil
	})
}

func (b *bench) applySQLite(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "rea-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return b.apply(ctx, "SQLite", 20_000, func(c *rea.Catalog) (*rea.Archive, error) {
		archive, err := sqlite.Open(ctx, filepath.Join(dir, "tickets.db"), sqlite.Config{Config: rea.Config{Catalog: c}})
		if err != nil {
			return nil, err
		}
		return archive.Archive, archive.Migrate(ctx, nil)
	})
}

// apply measures how long a catalog that lost a status takes to be applied, and how long an append waits meanwhile.
func (b *bench) apply(ctx context.Context, store string, tickets int, open func(*rea.Catalog) (*rea.Archive, error)) error {
	if b.short {
		tickets /= 10
	}
	var archives [2]*rea.Archive // with parked, without
	for i := range archives {
		c, err := ticketCatalog(i == 0)
		if err != nil {
			return err
		}
		if archives[i], err = open(c); err != nil {
			return err
		}
		defer archives[i].Close()
	}
	if _, err := archives[0].Apply(ctx); err != nil {
		return err
	}
	if err := importTickets(ctx, archives[0], tickets); err != nil {
		return err
	}
	var plain, look, wait []float64
	for i := range 2*b.rounds() + 1 {
		waits, stop := appendAlong(ctx, archives[0])
		start := time.Now()
		change, err := archives[(i+1)%2].Apply(ctx) // without, with, without...
		took := time.Since(start)
		stop()
		longest := <-waits
		switch {
		case err != nil:
			return err
		case !change.New:
			return errors.New("the catalog was applied already")
		case longest.err != nil:
			return longest.err
		case i%2 == 1:
			plain = append(plain, took.Seconds()*1_000)
		case i > 0: // the first look writes pages, as the first reader of new rows does
			look, wait = append(look, took.Seconds()*1_000), append(wait, longest.took.Seconds()*1_000)
		}
	}
	name := fmt.Sprintf("apply on %s, a status lost, %d aggregates of %d events", store, tickets, ticketEvents)
	none := [2]float64{}
	b.out.add(name+": median ms", "no status lost "+millis(quantile(plain, 0.5)), millis(quantile(look, 0.5)), quantile(look, 0.5), atMost(float64(tickets)/100_000*2_000), none)
	b.out.add(name+": longest append meanwhile, median ms", "-", millis(quantile(wait, 0.5)), quantile(wait, 0.5), target{}, none)
	return nil
}

// importTickets stores the first event of each ticket, then the second of each: their events lie far apart.
func importTickets(ctx context.Context, archive *rea.Archive, tickets int) error {
	const size = 5_000
	lines := make([]rea.Line, 0, size)
	for i := range tickets * ticketEvents {
		event := "Noted"
		if i < 2*tickets {
			event = []string{"Opened", "Taken"}[i/tickets]
		}
		lines = append(lines, rea.Line{
			Aggregate: rea.Ref{Type: "ticket", ID: strconv.Itoa(i % tickets)},
			Event:     rea.NewEvent{Type: event, Payload: json.RawMessage(`{"text": "a note of some length for the row"}`)},
		})
		if len(lines) < size && i < tickets*ticketEvents-1 {
			continue
		}
		err := archive.Do(ctx, func(tx *rea.Tx) error {
			results, err := tx.Import(ctx, lines)
			for _, r := range results {
				err = errors.Join(err, r.Err)
			}
			return err
		})
		if err != nil {
			return err
		}
		lines = lines[:0]
	}
	return nil
}

// waited is the longest of the appends of a stretch of time.
type waited struct {
	took time.Duration
	err  error
}

// appendAlong appends to one aggregate, one event after the other, until it is stopped.
func appendAlong(ctx context.Context, archive *rea.Archive) (<-chan waited, func()) {
	stopped, out := make(chan struct{}), make(chan waited, 1)
	go func() {
		var longest waited
		for longest.err == nil {
			start := time.Now()
			_, longest.err = archive.Autocommit().Append(ctx, rea.Ref{Type: "order", ID: "1"}, rea.NewEvent{Type: "NoteAdded"})
			longest.took = max(longest.took, time.Since(start))
			select {
			case <-stopped:
				out <- longest
				return
			default:
			}
		}
		out <- longest
	}()
	return out, func() { close(stopped) }
}
