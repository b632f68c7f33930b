// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

// toLogs passes on profiles as log records.
type toLogs struct {
	component.StartFunc
	component.ShutdownFunc
	options records.EncodeOptions
	metrics *encode.Metrics
	next    consumer.Logs
}

// Capabilities reports that profiles are only read, so that pipelines can share them.
func (*toLogs) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// maxBatchBytes bounds the records that are held at once.
const maxBatchBytes = 32 << 20

// ConsumeProfiles passes on a batch as one batch, so that the pipeline accepts all of it or nothing. If its records are
// larger than maxBatchBytes together, they are split.
func (c *toLogs) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	encoder := records.NewEncoder(pd, c.options)
	batch := records.EncodedPart{Logs: plog.NewLogs()}
	var refused error // permanently: the sender does not repeat what follows
	for part, ok := encoder.Next(); ok; part, ok = encoder.Next() {
		if batch.Bytes+part.Bytes > maxBatchBytes {
			if err := c.handOn(ctx, &batch); otlpstatus.IsPermanent(err) {
				refused = err
			} else if err != nil {
				return err
			}
			batch = records.EncodedPart{Logs: plog.NewLogs()}
		}
		batch.Add(part)
	}
	if err := c.handOn(ctx, &batch); err != nil {
		return err
	}
	c.metrics.Dropped(ctx, encoder.Dropped)
	return refused
}

func (c *toLogs) handOn(ctx context.Context, batch *records.EncodedPart) error {
	if batch.Records > 0 {
		if err := c.next.ConsumeLogs(ctx, batch.Logs); err != nil {
			return err
		}
	}
	c.metrics.Sent(ctx, batch)
	return nil
}
