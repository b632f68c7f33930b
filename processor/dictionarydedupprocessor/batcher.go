// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
)

// batcher gathers the messages of one combination of client metadata. It has a lane for each core. A sender
// adds its message to a lane's batch by itself, and sends the batch by itself when that is full, so senders
// work side by side, and one that is faster than the next component waits. There are never more batches
// pending or on their way than lanes.
type batcher struct {
	of    *dedup
	key   string
	users int // guarded by batchers.mu: those inside consume or expire
	// ctx has the client metadata, and none of a sender's deadline.
	ctx context.Context

	mu sync.Mutex
	// free are the lanes that nobody holds. The last one used is used first: under light load all messages
	// meet in one batch.
	free []*lane
	// waiting are those who wait for a lane, in order.
	waiting []chan *lane
	lanes   int
	closed  bool
}

// lane is a place for a batch. Only who holds it may touch it.
type lane struct {
	batch *compact.Batch // nil where nothing is pending
	timer *time.Timer
	// growth is the largest number of bytes by which a message has made the batch longer.
	growth int
	// expired, guarded by the batcher's mu, says that the batch's time was up while somebody held the lane.
	expired bool
}

func newBatcher(of *dedup, key string, metadata map[string][]string) *batcher {
	b := &batcher{of: of, key: key, lanes: runtime.GOMAXPROCS(0)}
	b.ctx = client.NewContext(context.Background(), client.Info{Metadata: client.NewMetadata(metadata)})
	for range b.lanes {
		b.free = append(b.free, &lane{})
	}
	return b
}

func (b *batcher) consume(ctx context.Context, pd pprofile.Profiles) error {
	l, err := b.acquire(ctx)
	if err != nil {
		return fmt.Errorf("wait for earlier profiles to be sent: %w", err)
	}
	defer b.release(l)
	if l.batch == nil {
		l.batch = b.of.newBatch()
		l.growth = 0
	}
	before := l.batch.ApproximateBytes()
	b.of.add(ctx, l.batch, pd)
	l.growth = max(l.growth, l.batch.ApproximateBytes()-before)
	if why, full := b.isFull(l); full {
		b.flush(l, why)
	} else if l.timer == nil {
		l.timer = time.AfterFunc(b.of.config.Timeout, func() { b.expire(l) })
	}
	return nil
}

// isFull reports whether the batch should go before another message comes.
func (b *batcher) isFull(l *lane) (why reason, full bool) {
	// A profile without samples counts as one, lest profiles without end are held.
	if max(l.batch.Samples(), l.batch.Profiles()) >= b.of.config.SendBatchSize {
		return reasonSize, true
	}
	// Better a batch that is not quite full than two halves that share a dictionary.
	limit := b.of.config.MaxBatchBytes
	return reasonBytes, limit > 0 && l.batch.ApproximateBytes()+l.growth > limit
}

// flush sends the batch of a lane that the caller holds.
func (b *batcher) flush(l *lane, why reason) {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	batch := l.batch
	l.batch = nil
	if batch != nil {
		b.of.send(b.ctx, batch, why)
		b.of.endBatch(batch)
	}
}

// expire sends the batch of a lane whose time is up, or leaves that to who holds the lane.
func (b *batcher) expire(l *lane) {
	b.of.batchers.stay(b)
	defer b.of.batchers.leave(b)
	b.mu.Lock()
	i := slices.Index(b.free, l)
	if i < 0 {
		l.expired = true
		b.mu.Unlock()
		return
	}
	b.free = slices.Delete(b.free, i, i+1)
	b.mu.Unlock()
	b.flush(l, reasonTimeout)
	b.release(l)
}

// acquire takes a lane for a message.
func (b *batcher) acquire(ctx context.Context) (*lane, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, errShutdown
	}
	return b.take(ctx)
}

// take takes a lane, and waits for one in turn. It unlocks mu, which the caller has locked.
func (b *batcher) take(ctx context.Context) (*lane, error) {
	if n := len(b.free); n > 0 {
		l := b.free[n-1]
		b.free = b.free[:n-1]
		b.mu.Unlock()
		return l, nil
	}
	ready := make(chan *lane, 1)
	b.waiting = append(b.waiting, ready)
	b.mu.Unlock()
	select {
	case l := <-ready:
		return l, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	if i := slices.Index(b.waiting, ready); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		b.mu.Unlock()
		return nil, ctx.Err()
	}
	b.mu.Unlock()
	// A lane came at the same moment.
	return <-ready, nil
}

// release gives a lane back, after what its holder has to do in place of its timer.
func (b *batcher) release(l *lane) {
	b.mu.Lock()
	for l.expired {
		l.expired = false
		b.mu.Unlock()
		b.flush(l, reasonTimeout)
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if len(b.waiting) > 0 {
		b.waiting[0] <- l
		b.waiting = slices.Delete(b.waiting, 0, 1)
		return
	}
	b.free = append(b.free, l)
}

// isIdle reports whether nothing is pending and nobody is inside.
func (b *batcher) isIdle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.free) < b.lanes {
		return false
	}
	return !slices.ContainsFunc(b.free, func(l *lane) bool { return l.batch != nil })
}

// shutdown takes all lanes, for good, and sends what they have.
func (b *batcher) shutdown(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	for range b.lanes {
		b.mu.Lock()
		l, err := b.take(ctx)
		if err != nil {
			return fmt.Errorf("wait for profiles to be sent: %w", err)
		}
		b.flush(l, reasonShutdown)
	}
	return nil
}
