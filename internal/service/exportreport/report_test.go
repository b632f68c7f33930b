// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package exportreport

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// Whatever an exporter reports, sent and failed samples add up to those of the message.
func TestSamplesAddUp(t *testing.T) {
	for name, tt := range map[string]struct {
		samples, sent, lost int
		failsAtLast         bool
		wantFailed          int64
	}{
		"all sent":                    {10, 10, 0, false, 0},
		"some lost":                   {10, 7, 3, false, 3},
		"some given up":               {10, 7, 0, true, 3},
		"all lost":                    {10, 0, 10, true, 10},
		"combined":                    {100, 6, 4, false, 40},
		"combined, none of them lost": {100, 10, 0, false, 0},
		"split":                       {10, 15, 5, false, 3},
		"a failure without a report":  {10, 0, 0, true, 10},
		"a success without a report":  {10, 0, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			telemetry := componenttest.NewTelemetry()
			set := Settings(telemetry.NewTelemetrySettings())
			meter := set.MeterProvider.Meter("exporter")
			sent, err := meter.Int64Counter(sentSamples)
			require.NoError(t, err)
			failed, err := meter.Int64Counter(failedSamples)
			require.NoError(t, err)
			ctx, span := set.TracerProvider.Tracer("exporter").Start(t.Context(), "message")
			defer span.End()

			report := Report{}
			report.Sent(tt.sent)
			report.Lost(tt.lost)
			if tt.sent+tt.lost > 0 {
				var retryErr error
				left := pprofile.NewProfiles()
				if tt.failsAtLast && tt.lost == 0 {
					retryErr = errors.New("away")
					samples := left.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples()
					for range tt.samples - tt.sent {
						samples.AppendEmpty()
					}
				}
				require.ErrorIs(t, report.Finish(ctx, zap.NewNop(), retryErr, left), retryErr)
			}
			// As obsReportSender counts.
			if tt.failsAtLast {
				sent.Add(ctx, 0)
				failed.Add(ctx, int64(tt.samples))
			} else {
				sent.Add(ctx, int64(tt.samples))
			}
			require.Equal(t, tt.wantFailed, collectortest.Sum(t, telemetry, failedSamples))
			require.Equal(t, int64(tt.samples)-tt.wantFailed, collectortest.Sum(t, telemetry, sentSamples))
			require.NoError(t, telemetry.Shutdown(context.Background()))
		})
	}
}

func TestRetry(t *testing.T) {
	err := errors.New("busy")
	assert.Equal(t, err, Retry(err, 0))
	assert.Equal(t, err, Retry(err, -time.Second), "a date in the past")
	assert.ErrorContains(t, Retry(err, time.Minute), "Throttle (1m0s)")
}
