// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/delivery"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

// fromLogs only reads records, so that pipelines can share them.
type fromLogs struct {
	component.StartFunc
	component.ShutdownFunc
	consumer.Logs
}

func newFromLogs(consume consumer.ConsumeLogsFunc) (connector.Logs, error) {
	logs, err := consumer.NewLogs(consume)
	return fromLogs{Logs: logs}, err
}

// toProfiles passes on the profiles of log records. A record that cannot be read is counted and does not fail the
// request: sending it again would not help.
func toProfiles(path *delivery.Path, logger *zap.Logger) consumer.ConsumeLogsFunc {
	return func(ctx context.Context, ld plog.Logs) error {
		reservation := path.Budget.Begin()
		defer reservation.Release()
		report, err := path.Deliver(ctx, ld, reservation)
		if err == nil && report.Message != "" {
			logger.Debug("log records were rejected, or lost samples",
				zap.Int("rejected", report.Rejected), zap.Int("incomplete", report.Incomplete),
				zap.String("reason", report.Message))
		}
		return err
	}
}

// toLogs passes on the records that have nothing to do with profiling, if there are any.
func toLogs(next consumer.Logs) consumer.ConsumeLogsFunc {
	return func(ctx context.Context, ld plog.Logs) error {
		rest := records.Rest(ld)
		if rest.LogRecordCount() == 0 {
			return nil
		}
		return next.ConsumeLogs(ctx, rest)
	}
}
