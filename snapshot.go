package rea

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"
)

// Snapshot is a row of rea.snapshots: a copy of a state that may be thrown away at any time. It is never the truth:
// one that is not what it claims to be is left alone, and replaced.
type Snapshot struct {
	Aggregate   Ref
	Seq         int64  // of the last event that is folded in
	EventID     int64  // of that event
	Fingerprint string // of the fold
	Digest      string // of all this, against damage
	State       []byte // JSON; nil where a store says that it is none for whoever asked
}

// snapshotEvery is how many events lie between two snapshots of an aggregate where its type does not say.
const snapshotEvery = 100

// digest tells a whole snapshot from a damaged one. It is no protection against those who may write the table.
func (s Snapshot) digest() string {
	h := sha256.New()
	var size [8]byte
	for _, part := range [][]byte{[]byte(s.Fingerprint), []byte(s.Aggregate.Type), []byte(s.Aggregate.ID), s.State} {
		h.Write(binary.BigEndian.AppendUint64(size[:0], uint64(len(part))))
		h.Write(part)
	}
	h.Write(binary.BigEndian.AppendUint64(size[:0], uint64(s.Seq)))
	h.Write(binary.BigEndian.AppendUint64(size[:0], uint64(s.EventID)))
	return hex.EncodeToString(h.Sum(nil))
}

// Snapshot stores a snapshot of an aggregate's committed state, where its type's SnapshotEvery events, or more, have
// come since the one that is there, or where that one is of no use. It reports whether it did. Nobody needs
// to call it: Load does the same in passing, unless it is in a user's transaction, and so does Run.
func (a *Archive) Snapshot(ctx context.Context, aggregate Ref) (stored bool, err error) {
	return a.snapshot(ctx, aggregate, true)
}

// snapshot leaves one that is of no use to this program's folds alone, unless replace.
func (a *Archive) snapshot(ctx context.Context, aggregate Ref, replace bool) (stored bool, err error) {
	t := a.config.Catalog.snapshots(aggregate.Type)
	if t == nil {
		return false, nil
	}
	tx := a.Join(a.store.Autocommit())
	f := a.config.Catalog.engine(aggregate.Type)
	read, err := tx.resume(ctx, aggregate, At{}, f)
	if err != nil {
		return false, err
	}
	if read.useless != "" && !replace {
		return false, nil
	}
	if s, ok := read.snapshot(t, f); ok && (read.useless != "" || read.due(t)) {
		err = a.save(ctx, keeping{s, read.useless})
		return err == nil, err
	}
	return false, nil
}

// save writes, so that the schema must not be a newer one.
func (a *Archive) save(ctx context.Context, k keeping) error {
	if err := a.store.Autocommit().Ready(ctx, true); err != nil {
		return err
	}
	return a.store.SaveSnapshot(ctx, k.snapshot, k.over)
}

// keeping is a snapshot that may be stored once what it was made of has committed.
type keeping struct {
	snapshot Snapshot
	over     string // the digest of a useless one that is to be replaced
}

// quietFor is how long nothing is tried any more after a snapshot could not be stored in passing: the login may lack the
// right, or the database be read-only, for good.
const quietFor = time.Minute

// quietWait bounds what a Load waits for a snapshot to be stored in passing.
const quietWait = time.Second

// keep stores a snapshot in passing. Nothing depends on it, so that an error is no news.
func (a *Archive) keep(ctx context.Context, k keeping) {
	if ctx.Err() != nil || time.Now().UnixNano() < a.quiet.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, quietWait)
	defer cancel()
	if err := a.save(ctx, k); err != nil {
		a.quiet.Store(time.Now().Add(quietFor).UnixNano())
		a.config.Logger.DebugContext(ctx, "rea: a snapshot is not stored", "aggregate", k.snapshot.Aggregate.String(), "error", err)
	}
}

// keeper collects the snapshots of a transaction of REA's, until it has committed.
type keeper struct {
	mu   sync.Mutex
	list map[Ref]keeping
}

func (k *keeper) keep(_ context.Context, s keeping) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list == nil {
		k.list = make(map[Ref]keeping)
	}
	k.list[s.snapshot.Aggregate] = s
}

// take gives what was collected, and collects anew.
func (k *keeper) take() map[Ref]keeping {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.list
	k.list = nil
	return list
}
