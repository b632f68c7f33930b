// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/delivery"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

// toProfiles passes on the profiles of log records.
type toProfiles struct {
	component.StartFunc
	component.ShutdownFunc
	logger *zap.Logger
	path   *delivery.Path
}

// Capabilities reports that records are only read, so that pipelines can share them.
func (*toProfiles) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeLogs translates one request. A record that cannot be read is counted and does not fail the request: sending
// it again would not help.
func (c *toProfiles) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	claim := c.path.Budget.Begin()
	defer claim.Release()
	report, err := c.path.Deliver(ctx, ld, claim)
	if err == nil && report.Message != "" {
		c.logger.Debug("log records were rejected, or lost samples",
			zap.Int("rejected", report.Rejected), zap.Int("incomplete", report.Incomplete), zap.String("reason", report.Message))
	}
	return err
}

// toLogs passes on the records that have nothing to do with profiling.
type toLogs struct {
	component.StartFunc
	component.ShutdownFunc
	next consumer.Logs
}

// Capabilities reports that records are only read, so that pipelines can share them.
func (*toLogs) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeLogs passes on the other records of one request, if there are any.
func (c *toLogs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	rest := records.Rest(ld)
	if rest.LogRecordCount() == 0 {
		return nil
	}
	return c.next.ConsumeLogs(ctx, rest)
}
