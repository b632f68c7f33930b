// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkencode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunklog"
)

// toLogs hands on profiles as log records.
type toLogs struct {
	component.StartFunc
	component.ShutdownFunc
	options splunklog.EncodeOptions
	metrics *splunkencode.Metrics
	next    consumer.Logs
}

// Capabilities says that profiles are only read, so that pipelines can share them.
func (*toLogs) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeProfiles hands on one batch as one batch, so that the pipeline takes all of it or nothing.
func (c *toLogs) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	encoder := splunklog.NewEncoder(pd, c.options)
	all := splunklog.EncodedPart{Logs: plog.NewLogs()}
	for part, ok := encoder.Next(); ok; part, ok = encoder.Next() {
		all.Add(part)
	}
	if all.Records > 0 {
		if err := c.next.ConsumeLogs(ctx, all.Logs); err != nil {
			return err
		}
	}
	c.metrics.Taken(ctx, &all)
	c.metrics.Dropped(ctx, encoder.Dropped)
	return nil
}
