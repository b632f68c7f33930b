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

// batcher batches the messages of one combination of client metadata. It has a lane for each core. A sender adds its
// message to a lane's batch by itself, so senders work in parallel. A full batch is sent from its lane, which nobody else
// can use until the next component has accepted all of it: there are never more batches pending or on their way than
// lanes, and senders wait for a lane if the next component is slower than they are.
type batcher struct {
	dedup *dedup
	key   string
	users int // guarded by batchers.mu: those inside consume, expire or sendAway
	// ctx has the client metadata, but no sender's deadline.
	ctx context.Context

	mu sync.Mutex
	// free has the lanes that nobody holds. The last one used is used first, so that under light load all messages are in
	// one batch.
	free []*lane
	// waiting has the senders that wait for a lane, in order. If the batcher closes a channel, that sender gets none.
	waiting []chan *lane
	lanes   int
	// closed reports that no lane may be acquired any more. After that, drained is closed when all lanes are free.
	closed  bool
	drained chan struct{}
}

// lane holds a batch. Only the holder of the lane may use it.
type lane struct {
	batch *compact.Batch // nil if nothing is pending
	// delivery is what the senders of the batch wait for.
	delivery *delivery
	timer    *time.Timer
	// growth is the largest number of bytes that a message has added to the batch.
	growth int
	// expired, guarded by the batcher's mu, reports that the timeout ended while the lane was in use.
	expired bool
}

func newBatcher(d *dedup, key string, metadata map[string][]string) *batcher {
	b := &batcher{dedup: d, key: key, lanes: runtime.GOMAXPROCS(0), drained: make(chan struct{})}
	b.ctx = client.NewContext(d.sendContext, client.Info{Metadata: client.NewMetadata(metadata)})
	for range b.lanes {
		b.free = append(b.free, &lane{})
	}
	return b
}

func (b *batcher) consume(ctx context.Context, pd pprofile.Profiles) error {
	until := time.Now().Add(b.dedup.config.MaxWait)
	if b.dedup.config.Acknowledge == AcknowledgeDelivered {
		until = until.Add(b.dedup.config.Timeout) // for which the batch waits for more messages
	}
	l, err := b.acquire(ctx, until)
	if err != nil {
		return err
	}
	if l.batch == nil {
		l.batch, l.delivery = b.dedup.newBatch(), newDelivery()
		l.growth = 0
	}
	before := l.batch.ApproximateBytes()
	b.dedup.add(ctx, l.batch, pd)
	l.growth = max(l.growth, l.batch.ApproximateBytes()-before)
	sent := l.delivery
	why, full := b.isFull(l)
	if full {
		b.sendAway(l, why)
	} else {
		if l.timer == nil {
			l.timer = time.AfterFunc(b.dedup.config.Timeout, func() { b.expire(l) })
		}
		b.release(l)
	}
	if b.dedup.config.Acknowledge == AcknowledgeDelivered {
		if err := wait(ctx, until, sent.done); err != nil {
			return err
		}
		return sent.err
	}
	if full {
		// The message is in the batch whatever the result is: waiting only slows the sender down.
		_ = wait(ctx, until, sent.done)
	}
	return nil
}

// wait returns nil when done is closed, and an error if the sender's context or its time to wait ends first.
func wait(ctx context.Context, until time.Time, done <-chan struct{}) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the next component to accept the profiles: %w", ctx.Err())
	case <-timer.C:
		return retryLater("the next component has not accepted the profiles yet; they may still arrive")
	}
}

// isFull reports whether the batch should be sent before another message is added.
func (b *batcher) isFull(l *lane) (why reason, full bool) {
	// A profile without samples counts as one, so that empty profiles cannot accumulate.
	if max(l.batch.Samples(), l.batch.Profiles()) >= b.dedup.config.SendBatchSize {
		return reasonSize, true
	}
	// A batch that is not quite full is better than two halves that repeat a dictionary.
	limit := b.dedup.config.MaxBatchBytes
	return reasonBytes, limit > 0 && l.batch.ApproximateBytes()+l.growth > limit
}

// sendAway sends the batch of a lane that the caller holds in the background, and then releases the lane.
func (b *batcher) sendAway(l *lane, why reason) {
	b.dedup.batchers.stay(b)
	go func() {
		finish := b.flush(l, why)
		b.release(l)
		b.dedup.batchers.leave(b)
		finish()
	}()
}

// flush sends the batch of a lane that the caller holds. finish tells the batch's senders the result.
func (b *batcher) flush(l *lane, why reason) (finish func()) {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	batch, sent := l.batch, l.delivery
	l.batch, l.delivery = nil, nil
	err := b.dedup.send(b.ctx, batch, why)
	b.dedup.endBatch(batch)
	return func() { sent.finish(err) }
}

// expire sends the batch of a lane whose timeout has ended, or leaves that to the holder of the lane.
func (b *batcher) expire(l *lane) {
	b.dedup.batchers.stay(b)
	defer b.dedup.batchers.leave(b)
	b.mu.Lock()
	i := slices.Index(b.free, l)
	if i < 0 || l.batch == nil {
		l.expired = i < 0
		b.mu.Unlock()
		return
	}
	b.free = slices.Delete(b.free, i, i+1)
	b.mu.Unlock()
	b.sendAway(l, reasonTimeout)
}

// acquire returns a lane for a message. Senders that wait get a lane in the order in which they came.
func (b *batcher) acquire(ctx context.Context, until time.Time) (*lane, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, errShutdown
	}
	if n := len(b.free); n > 0 {
		l := b.free[n-1]
		b.free = b.free[:n-1]
		b.mu.Unlock()
		return l, nil
	}
	ready := make(chan *lane, 1)
	b.waiting = append(b.waiting, ready)
	b.mu.Unlock()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	err := retryLater("the next component does not keep up")
	select {
	case l, ok := <-ready:
		if !ok {
			return nil, errShutdown
		}
		return l, nil
	case <-timer.C:
	case <-ctx.Done():
		err = fmt.Errorf("wait for earlier profiles to be sent: %w", ctx.Err())
	}
	b.mu.Lock()
	if i := slices.Index(b.waiting, ready); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		b.mu.Unlock()
		return nil, err
	}
	b.mu.Unlock()
	// At the same moment the sender got a lane, or the batcher was shut down.
	if l, ok := <-ready; ok {
		return l, nil
	}
	return nil, errShutdown
}

// release frees a lane, or sends its batch first if that is due.
func (b *batcher) release(l *lane) {
	b.mu.Lock()
	why, due := reasonTimeout, l.expired
	l.expired = false
	if b.closed {
		why, due = reasonShutdown, true
	}
	if due && l.batch != nil {
		b.mu.Unlock()
		b.sendAway(l, why)
		return
	}
	defer b.mu.Unlock()
	if len(b.waiting) > 0 {
		b.waiting[0] <- l // its channel has room
		b.waiting = slices.Delete(b.waiting, 0, 1)
		return
	}
	b.free = append(b.free, l)
	if b.closed && len(b.free) == b.lanes {
		close(b.drained)
	}
}

// isIdle reports whether nothing is pending and all lanes are free.
func (b *batcher) isIdle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.free) < b.lanes {
		return false
	}
	return !slices.ContainsFunc(b.free, func(l *lane) bool { return l.batch != nil })
}

// shutdown sends pending batches and returns when no batch is on its way. Senders that wait for a lane are told to retry.
func (b *batcher) shutdown() {
	b.mu.Lock()
	b.closed = true
	for _, ready := range b.waiting {
		close(ready)
	}
	b.waiting = nil
	var pending []*lane
	b.free = slices.DeleteFunc(b.free, func(l *lane) bool {
		if l.batch != nil {
			pending = append(pending, l)
		}
		return l.batch != nil
	})
	isDrained := len(b.free) == b.lanes
	b.mu.Unlock()
	for _, l := range pending {
		b.sendAway(l, reasonShutdown)
	}
	if !isDrained {
		<-b.drained
	}
}
