// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsconnector

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func settings(t *testing.T) (connector.Settings, *componenttest.Telemetry) {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	return connector.Settings{ID: component.MustNewID("profiles_to_logs"),
		TelemetrySettings: telemetry.NewTelemetrySettings()}, telemetry
}

func connectorOf(t *testing.T, set connector.Settings, cfg *Config, next consumer.Logs) xconnector.Profiles {
	t.Helper()
	c, err := NewFactory().(xconnector.Factory).CreateProfilesToLogs(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), nil))
	t.Cleanup(func() { require.NoError(t, c.Shutdown(context.Background())) })
	assert.False(t, c.Capabilities().MutatesData)
	return c
}

func shop() *profiletest.Builder {
	const start = 1_700_000_000_000_000_123
	return profiletest.New().Resource("service.name", "shop").Scope("profiler", "1").
		Profile("samples", "count").Time(start, 20).Period(10_000_000, "cpu", "nanoseconds").
		Sample(profiletest.Observed([]uint64{start, start + 1}, "leaf", "main"),
			profiletest.Observed([]uint64{start + 2}, "other", "main")).
		Profile("inuse_space", "bytes").Sample(profiletest.Value(7, "kept"))
}

// brokenInPart has a sample without a stack.
func brokenInPart() pprofile.Profiles {
	pd := shop().Build()
	profiletest.SampleAt(pd, 1).SetStackIndex(99)
	return pd
}

func TestConfig(t *testing.T) {
	load := func(section map[string]any) (*Config, error) {
		return collectortest.LoadConfig(createDefaultConfig().(*Config), section)
	}
	cfg, err := load(nil)
	require.NoError(t, err)
	assert.Equal(t, records.EncodeOptions{Format: records.FormatPprof, MaxRecordBytes: 1_000_000}, cfg.Encoding.Options(0))
	cfg, err = load(map[string]any{"format": "otlp", "max_record_bytes": 2000, "splunk_types_only": true})
	require.NoError(t, err)
	assert.Equal(t, records.EncodeOptions{
		Format: records.FormatOTLP, MaxRecordBytes: 2000, MaxPartBytes: 9, SplunkTypesOnly: true,
	}, cfg.Encoding.Options(9))
	_, err = load(map[string]any{"format": "jfr", "max_record_bytes": 999})
	assert.ErrorContains(t, err, "`format` must be pprof or otlp, found \"jfr\"")
	assert.ErrorContains(t, err, "`max_record_bytes` must be at least 1000, found 999")
	_, err = load(map[string]any{"formats": "otlp"})
	assert.ErrorContains(t, err, "formats")
}

// splunk_profiling's translator reads back what the connector passes on.
func TestProfilesToLogs(t *testing.T) {
	for _, format := range []string{"pprof", "otlp"} {
		for _, splunkTypesOnly := range []bool{false, true} {
			t.Run(fmt.Sprint(format, " ", splunkTypesOnly), func(t *testing.T) {
				set, _ := settings(t)
				cfg := createDefaultConfig().(*Config)
				cfg.Encoding.Format = format
				cfg.Encoding.SplunkTypesOnly = splunkTypesOnly
				cfg.Encoding.MaxRecordBytes = 350 // splits
				sink := &consumertest.LogsSink{}
				pd := shop().Build()
				pd.MarkReadOnly() // it is shared with other pipelines
				require.NoError(t, connectorOf(t, set, cfg, sink).ConsumeProfiles(t.Context(), pd))
				require.Len(t, sink.AllLogs(), 1, "one batch gives one batch")
				assert.Greater(t, sink.LogRecordCount(), 1)
				result := records.Translate(sink.AllLogs()[0], records.Options{})
				assert.Empty(t, result.Rejected)
				want := 4
				if splunkTypesOnly && format != "otlp" {
					want = 3
				}
				assert.Equal(t, want, result.Samples)
				if format == "otlp" {
					assert.NoError(t, profiletest.Equal(pd, result.Profiles, profiletest.MergeProfiles()))
				}
			})
		}
	}
}

// Nothing is passed on if nothing is left, and the pipeline's answer is returned.
func TestNothingAndRefused(t *testing.T) {
	set, _ := settings(t)
	cfg := createDefaultConfig().(*Config)
	sink := &consumertest.LogsSink{}
	require.NoError(t, connectorOf(t, set, cfg, sink).ConsumeProfiles(t.Context(), pprofile.NewProfiles()))
	assert.Empty(t, sink.AllLogs())
	for _, refusal := range []error{errors.New("later"), consumererror.NewPermanent(errors.New("never"))} {
		err := connectorOf(t, set, cfg, consumertest.NewErr(refusal)).ConsumeProfiles(t.Context(), shop().Build())
		assert.ErrorIs(t, err, refusal)
		assert.Equal(t, consumererror.IsPermanent(refusal), consumererror.IsPermanent(err))
	}
}
