package rea

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// failure is one event that a projection cannot take.
type failure struct {
	at    ProjectionOffset
	event Event
	err   error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// passing reports whether an error is the database's, so that another try may succeed without anybody's doing.
func passing(err error) bool {
	if errors.Is(err, ErrRetry) || errors.Is(err, ErrReadOnly) {
		return true
	}
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		switch state := coded.SQLState(); {
		case state == "40001", state == "40P01", state == "25006", strings.HasPrefix(state, "08"), strings.HasPrefix(state, "57P"),
			strings.HasPrefix(state, "53"), strings.HasPrefix(state, "58"):
			return true
		}
		return false
	}
	var program *programError
	if errors.As(err, &program) {
		return program.lost
	}
	return Code(err) == ""
}

// noteLost notes where the transaction was gone when the program's function failed: then that was why.
func noteLost(ctx context.Context, session Session, err error) error {
	var program *programError
	var coded interface{ SQLState() string }
	if errors.As(err, &program) && !errors.As(err, &coded) {
		_, gone := session.Head(ctx)
		program.lost = gone != nil && !errors.As(gone, &coded)
	}
	return err
}

// lastRetry bounds the growing time between two tries.
const lastRetry = time.Minute

// fail records that a projection cannot take the next event, and says so where that is new.
func (f *follower) fail(ctx context.Context, err error) error {
	var failed *failure
	if !errors.As(err, &failed) {
		return err // not of one event
	}
	f.known = -1
	config := f.archive.config
	delay := config.RetryAfter << min(failed.at.Failed.Attempts, 20)
	record := Failure{Position: failed.event.Position, Error: errorText(failed.err), Delay: min(delay, max(lastRetry, config.RetryAfter))}
	attempts := 0
	recording := f.archive.own(ctx, func(session OwnSession) (err error) {
		attempts, err = session.FailProjection(ctx, f.Name, failed.at.Offset, record, config.StallAfter)
		return err
	})
	if recording != nil {
		return fmt.Errorf("record that the projection %s fails at position %d: %w", clip(f.Name), record.Position, recording)
	}
	about := []any{"projection", f.Name, "position", failed.event.Position, "aggregate", failed.event.Aggregate.String(),
		"seq", failed.event.Seq, "event", failed.event.Type, "attempts", attempts, "error", record.Error}
	switch {
	case attempts >= config.StallAfter:
		f.failing = true
		config.Logger.Error("rea: a projection is stalled: `rea projection retry "+f.Name+"`, or skip the event", about...)
	case attempts == 1:
		f.failing = true
		config.Logger.Warn("rea: a projection fails", about...)
	}
	return nil
}
