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

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
)

// batcher batches the messages of one combination of client metadata. It has a lane for each core. A sender adds its
// message to a lane's batch by itself, so senders work in parallel. A full batch is sent from its lane, which nobody
// else can use until the next component has accepted all of it: there are never more batches pending or on their way
// than lanes, and senders wait for a lane if the next component is slower than they are.
type batcher struct {
	dedup *dedup
	key   string
	users int // guarded by batchers.mu: those inside consume, expire or sendAway
	// ctx has the client metadata, but no sender's deadline.
	ctx context.Context

	// tokens has one for each lane that nobody holds. Those who wait for one get it in the order in which they came, and
	// then remove a lane from free.
	tokens chan struct{}
	// large has a token for each lane but one. Whoever adds a large message to a batch needs one, too: a lane is left for
	// the others.
	large chan struct{}
	// closing is closed when no lane may be acquired any more.
	closing chan struct{}

	mu sync.Mutex
	// free has a lane for each token, and for each holder of a token that has not removed its lane yet. The last lane used
	// is used first, so that under light load all messages are in one batch.
	free []*lane
}

// lane holds a batch. Only the holder of the lane may use it.
type lane struct {
	batch *compact.Batch // nil if nothing is pending
	// delivery is what the senders of the batch wait for.
	delivery *delivery
	timer    *time.Timer
	// growth is the largest number of bytes that a message has added to the batch.
	growth int
	// holdsLarge reports that its holder acquired a token of the batcher's large.
	holdsLarge bool
	// expired, guarded by the batcher's mu, reports that the timeout ended while the lane was in use.
	expired bool
}

func newBatcher(d *dedup, key string, metadata map[string][]string) *batcher {
	n := lanes()
	b := &batcher{dedup: d, key: key, tokens: make(chan struct{}, n), large: make(chan struct{}, n-1),
		closing: make(chan struct{})}
	b.ctx = client.NewContext(d.sendContext, client.Info{Metadata: client.NewMetadata(metadata)})
	for range n {
		b.release(&lane{})
	}
	for range n - 1 {
		b.large <- struct{}{}
	}
	return b
}

// lanes returns the number of lanes: one for each core, and at least one beside a large message.
func lanes() int { return max(2, runtime.GOMAXPROCS(0)) }

// isLarge reports whether a message takes long to add and to send: some hundredths of a second.
func isLarge(pd pprofile.Profiles) bool {
	const entries = 128 << 10
	tables := compact.EntriesOf(pd.Dictionary())
	return pd.SampleCount()+otlp.Total(tables[:]) >= entries
}

func (b *batcher) consume(ctx context.Context, pd pprofile.Profiles) error {
	until := time.Now().Add(b.dedup.config.MaxWait)
	if b.dedup.config.Acknowledge == AcknowledgeDelivered {
		until = until.Add(b.dedup.config.Timeout) // for which the batch waits for more messages
	}
	large := isLarge(pd)
	l, err := b.acquire(ctx, until, large)
	if err != nil {
		return err
	}
	if l.batch == nil {
		l.batch, l.delivery = b.dedup.batches.Get(b.dedup.options), newDelivery()
		l.growth = 0
	}
	before := l.batch.ApproximateBytes()
	b.dedup.add(ctx, l.batch, pd)
	l.growth = max(l.growth, l.batch.ApproximateBytes()-before)
	sent := l.delivery
	why, full := b.isFull(l)
	if large && !full { // Its token of large is held until the batch is sent.
		why, full = reasonSize, true
	}
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
		// The message is in the batch: waiting only slows the sender down, and the result does not matter.
		_ = wait(ctx, until, sent.done)
	}
	return nil
}

// wait returns nil when done is closed, and an error if the sender's context or its time to wait ends first.
func wait(ctx context.Context, until time.Time, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the next component to accept the profiles: %w", ctx.Err())
	case <-time.After(time.Until(until)):
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
	b.dedup.batches.Put(batch)
	return func() { sent.finish(err) }
}

// expire sends the batch of a lane whose timeout has ended, or leaves that to the holder of the lane.
func (b *batcher) expire(l *lane) {
	b.dedup.batchers.stay(b)
	defer b.dedup.batchers.leave(b)
	b.mu.Lock()
	i, isMine := slices.Index(b.free, l), false
	if i >= 0 && l.batch != nil {
		select {
		case <-b.tokens:
			isMine, b.free = true, slices.Delete(b.free, i, i+1)
		default: // the tokens of all free lanes are held by others, who are about to remove them
		}
	}
	l.expired = !isMine && (i < 0 || l.batch != nil)
	b.mu.Unlock()
	if isMine {
		b.sendAway(l, reasonTimeout)
	}
}

// acquire returns a lane for a message. Senders that wait get a lane in the order in which they came.
func (b *batcher) acquire(ctx context.Context, until time.Time, isLarge bool) (*lane, error) {
	if isLarge {
		if err := b.receive(ctx, b.large, until); err != nil {
			return nil, err
		}
	}
	if err := b.receive(ctx, b.tokens, until); err != nil {
		if isLarge {
			b.large <- struct{}{}
		}
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.removeFree()
	l.holdsLarge = isLarge
	return l, nil
}

// receive receives a token, unless the batcher is closing. It waits until a time.
func (b *batcher) receive(ctx context.Context, tokens <-chan struct{}, until time.Time) error {
	select {
	case <-b.closing:
		return errShutdown
	default:
	}
	select {
	case <-tokens: // Fast path, without a timer.
		return nil
	default:
	}
	select {
	case <-tokens:
		return nil
	case <-b.closing:
		return errShutdown
	case <-time.After(time.Until(until)):
		return retryLater("the next component does not keep up")
	case <-ctx.Done():
		return fmt.Errorf("wait for earlier profiles to be sent: %w", ctx.Err())
	}
}

// removeFree returns the free lane of a token that the caller has received. The caller holds mu.
func (b *batcher) removeFree() *lane {
	last := len(b.free) - 1
	l := b.free[last]
	b.free = b.free[:last]
	return l
}

// release frees a lane, or sends its batch first if that is due.
func (b *batcher) release(l *lane) {
	b.mu.Lock()
	isDue := l.expired && l.batch != nil
	l.expired = false
	if !isDue {
		if l.holdsLarge {
			l.holdsLarge = false
			b.large <- struct{}{}
		}
		b.free = append(b.free, l)
		b.tokens <- struct{}{} // there is room for the tokens of all lanes
	}
	b.mu.Unlock()
	if isDue {
		b.sendAway(l, reasonTimeout)
	}
}

// isIdle reports whether nothing is pending and all lanes are free.
func (b *batcher) isIdle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.free) == cap(b.tokens) && !slices.ContainsFunc(b.free, func(l *lane) bool { return l.batch != nil })
}

// shutdown sends pending batches and returns when no batch is on its way. Senders that wait for a lane are told to
// retry.
func (b *batcher) shutdown() {
	close(b.closing)
	var draining sync.WaitGroup
	for range cap(b.tokens) {
		draining.Go(func() {
			<-b.tokens // which is never returned
			b.mu.Lock()
			l := b.removeFree()
			b.mu.Unlock()
			if l.batch != nil {
				b.flush(l, reasonShutdown)()
			}
		})
	}
	draining.Wait()
}
