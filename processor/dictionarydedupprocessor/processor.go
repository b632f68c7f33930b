// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata/pref"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shutdown"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

type dedup struct {
	config  *Config
	options compact.Options
	logger  *zap.Logger
	next    xconsumer.Profiles
	metrics *metrics

	batchers *batchers
	// sendContext is the parent of all contexts in which batches are sent; endSends cancels it.
	sendContext context.Context
	endSends    context.CancelFunc
	// stopping is closed when Shutdown begins.
	stopping chan struct{}
	// refusals logs when the next component begins to refuse profiles temporarily, and when it accepts some again.
	refusals telemetry.Changes
	batches  compact.Pool
}

func newProcessor(set processor.Settings, config *Config, next xconsumer.Profiles) (*dedup, error) {
	d := &dedup{
		config:  config,
		options: compact.Options{MaxBytes: config.MaxBatchBytes, OrderByFrequency: true, CombineSamples: true},
		logger:  set.Logger,
		refusals: telemetry.Changes{
			Logger:    set.Logger,
			Failed:    "the next component temporarily refuses profiles; retrying, and suppressing repeats until it accepts some",
			Recovered: "the next component accepts profiles again",
		},
		next:     next,
		stopping: make(chan struct{}),
	}
	d.sendContext, d.endSends = context.WithCancel(context.Background())
	d.batchers = newBatchers(d)
	var err error
	if d.metrics, err = newMetrics(set.TelemetrySettings, set.ID, d.batchers.len); err != nil {
		return nil, fmt.Errorf("make the metrics: %w", err)
	}
	return d, nil
}

// Capabilities: incoming messages are consumed.
func (d *dedup) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// Start does nothing: batchers start with the first message.
func (d *dedup) Start(context.Context, component.Host) error { return nil }

// sendEnds is the time in which sends must return after their contexts have ended.
const sendEnds = time.Second

// Shutdown sends pending batches until the time for it has passed, and tells waiting senders to retry. It counts and
// logs the samples that could not be sent by then.
func (d *dedup) Shutdown(ctx context.Context) error {
	if d.sendContext.Err() != nil { // Shutdown was called before
		return nil
	}
	ctx, cancel := shutdown.Deadline(ctx)
	defer cancel()
	defer d.metrics.Shutdown()
	defer d.endSends()
	close(d.stopping)
	var draining sync.WaitGroup
	draining.Go(d.batchers.shutdown)
	if await.Return(ctx, draining.Wait) == nil {
		return nil
	}
	d.endSends()
	ending, cancel := context.WithTimeout(context.Background(), sendEnds)
	defer cancel()
	if await.Return(ending, draining.Wait) != nil {
		return errors.New("the next component does not return, although its context has ended")
	}
	return nil
}

// ConsumeProfiles adds a message to a batch. Depending on `acknowledge`, it returns when the message is in a batch, or
// when the next component has accepted that batch. A sender waits for at most `max_wait` if the next component is
// slower.
func (d *dedup) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.config.Timeout > 0 {
		return d.batchers.consume(ctx, pd)
	}
	batch := d.batches.Get(d.options)
	defer d.batches.Put(batch)
	d.add(ctx, batch, pd)
	return d.passOn(ctx, batch)
}

// add adds a message to a batch, which consumes it.
func (d *dedup) add(ctx context.Context, batch *compact.Batch, pd pprofile.Profiles) {
	d.metrics.countIncomingBytes(ctx, pd)
	// The batch keeps memory of the message.
	pref.RefProfiles(pd)
	batch.Consume(pd)
	d.metrics.countIncoming(ctx, batch.TakeStats())
}

// passOn sends a batch of one message and returns the result to its sender. The first part is not retried, so that the
// sender can; later parts are, for a while. A part that is refused permanently does not keep the others from being
// sent, because the sender will not repeat them. After a part that is refused for the moment, the error has everything
// that was not accepted, for senders that repeat only that.
func (d *dedup) passOn(ctx context.Context, batch *compact.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, d.config.MaxWait)
	defer cancel()
	parts := 0
	var refused, dropped error
	lost := 0
	var rest []pprofile.Profiles // after refused
	for part := range batch.Parts() {
		if refused != nil {
			rest = append(rest, part.Profiles)
			continue
		}
		parts++
		left, _, err := d.deliver(ctx, &part, parts == 1)
		switch {
		case err == nil:
		case otlpstatus.IsPermanent(err):
			dropped = err
			lost += left.SampleCount()
		case parts == 1 && left == part.Profiles:
			return d.answer(ctx, err)
		default:
			refused, rest = err, append(rest, left)
		}
	}
	if parts > 1 { // else the sender learns that all was refused
		d.countLost(ctx, lossRefused, lost)
	}
	if refused != nil {
		d.logLost(lossRefused, lost, dropped) // the sender only learns of refused
		return xconsumererror.NewProfiles(d.answer(ctx, refused), new(compact.Batch).Merge(rest))
	}
	d.countBatch(ctx, reasonTimeout, parts)
	return dropped
}

// answer returns the next component's error, or, if the sender's wait has timed out, an error that asks it to retry.
func (d *dedup) answer(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
		return retryLater("the next component did not accept the profiles in time")
	}
	return err
}

func (d *dedup) countBatch(ctx context.Context, why reason, parts int) {
	if parts == 0 {
		return
	}
	d.metrics.ProcessorDictionaryDedupBatches.Add(ctx, 1, d.metrics.reasons[why])
	if parts > 1 {
		d.metrics.ProcessorDictionaryDedupSplits.Add(ctx, int64(parts-1), d.metrics.own)
	}
}

func (d *dedup) warnOversized(ctx context.Context, part *compact.Part) {
	if part.Oversized {
		d.metrics.ProcessorDictionaryDedupOversized.Add(ctx, 1, d.metrics.own)
		d.logger.Warn("sending a message larger than `max_batch_bytes`, since its samples share too much to be split",
			zap.Int("bytes", part.Bytes), zap.Int("max_batch_bytes", d.options.MaxBytes))
	}
}
