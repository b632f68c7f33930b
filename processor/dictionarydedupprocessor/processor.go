// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata/pref"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
)

// maxGrowth bounds what splitting repeats: no batch leaves as messages that together have more than twice the
// bytes of the whole.
const maxGrowth = 2

// dedup is the processor.
type dedup struct {
	config  *Config
	options compact.Options
	logger  *zap.Logger
	next    xconsumer.Profiles
	metrics *metrics

	batchers *batchers
	// spare holds empty batches for their memory.
	spare sync.Pool
}

func newProcessor(set processor.Settings, config *Config, next xconsumer.Profiles) (*dedup, error) {
	d := &dedup{
		config: config,
		options: compact.Options{
			MaxBytes:         config.MaxBatchBytes,
			MaxGrowth:        maxGrowth,
			OrderByFrequency: config.OrderByFrequency,
			CombineSamples:   config.CombineSamples,
		},
		logger: set.Logger,
		next:   next,
	}
	d.batchers = newBatchers(d)
	var err error
	if d.metrics, err = newMetrics(set.TelemetrySettings, set.ID, d.batchers.len); err != nil {
		return nil, fmt.Errorf("make the metrics: %w", err)
	}
	return d, nil
}

// Capabilities: what comes in is taken apart.
func (d *dedup) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// Start has nothing to do: batchers begin with what they get.
func (d *dedup) Start(context.Context, component.Host) error { return nil }

// Shutdown sends what is pending. Nothing may be consumed meanwhile or afterwards.
func (d *dedup) Shutdown(ctx context.Context) error { return d.batchers.shutdown(ctx) }

// ConsumeProfiles adds a message to a batch, and sends the batch itself where it is full. It returns when
// the message is taken, so a sender waits while the next component is slower.
func (d *dedup) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.config.Timeout > 0 {
		return d.batchers.consume(ctx, pd)
	}
	batch := d.newBatch()
	defer d.endBatch(batch)
	d.add(ctx, batch, pd)
	return d.passOn(ctx, batch)
}

// add takes a message apart into a batch.
func (d *dedup) add(ctx context.Context, batch *compact.Batch, pd pprofile.Profiles) {
	d.metrics.countIncomingBytes(ctx, pd)
	// Memory of the message lives on in the batch.
	pref.RefProfiles(pd)
	batch.Consume(pd)
	d.metrics.countIncoming(ctx, batch.TakeStats())
}

// passOn sends a batch of one message, whose sender learns how that went. After an error it stops: the sender
// will send everything again, so what has not gone yet had better not go twice.
func (d *dedup) passOn(ctx context.Context, batch *compact.Batch) error {
	parts := 0
	for part := range batch.Parts() {
		parts++
		if err := d.sendPart(ctx, &part); err != nil {
			return err
		}
	}
	d.countBatch(ctx, reasonTimeout, parts)
	return nil
}

// send sends a batch whose senders have been told that it was taken. What the next component refuses is
// counted and logged.
func (d *dedup) send(ctx context.Context, batch *compact.Batch, why reason) {
	parts, lost := 0, 0
	var errs []error
	for part := range batch.Parts() {
		parts++
		if err := d.sendPart(ctx, &part); err != nil {
			errs = append(errs, err)
			lost += part.SampleCount
		}
	}
	d.countBatch(ctx, why, parts)
	if lost > 0 || len(errs) > 0 {
		d.metrics.failed.Add(ctx, int64(lost), d.metrics.own)
		d.logger.Warn("The next component refused profiles that had been accepted; they are lost",
			zap.Int("samples", lost), zap.Error(errors.Join(errs...)))
	}
}

func (d *dedup) countBatch(ctx context.Context, why reason, parts int) {
	if parts == 0 {
		return
	}
	d.metrics.batches.Add(ctx, 1, d.metrics.reasons[why])
	if parts > 1 {
		d.metrics.splits.Add(ctx, int64(parts-1), d.metrics.own)
	}
}

func (d *dedup) sendPart(ctx context.Context, part *compact.Part) error {
	if part.Oversized {
		d.metrics.oversized.Add(ctx, 1, d.metrics.own)
		d.logger.Warn("A message is larger than `max_batch_bytes`, since its samples share too much to be split; sending it as it is",
			zap.Int("bytes", part.Bytes), zap.Int("max_batch_bytes", d.options.MaxBytes))
	}
	bytes := d.metrics.outgoingSize(ctx, part)
	if err := d.next.ConsumeProfiles(ctx, part.Profiles); err != nil {
		return err
	}
	d.metrics.countOutgoing(ctx, part, bytes)
	return nil
}

func (d *dedup) newBatch() *compact.Batch {
	batch, ok := d.spare.Get().(*compact.Batch)
	if !ok {
		batch = &compact.Batch{}
	}
	batch.Reset(d.options)
	return batch
}

// maxSpareBytes is the largest batch whose memory is kept for another.
const maxSpareBytes = 16 << 20

func (d *dedup) endBatch(batch *compact.Batch) {
	if batch.ApproximateBytes() <= maxSpareBytes {
		batch.Reset(d.options)
		d.spare.Put(batch)
	}
}
