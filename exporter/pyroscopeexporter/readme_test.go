// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestReadmeDefaults(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	rows := profiletest.ReadmeTable(t, "README.md", "| key | type | default | meaning |")
	delete(rows, "key")
	for key, want := range map[string]any{
		"endpoint": "", "timeout": cfg.Client.Timeout, "tenant": "",
		"labels.include": cfg.Labels.Include, "labels.exclude": cfg.Labels.Exclude, "labels.sample_exclude": cfg.Labels.SampleExclude,
		"labels.max": cfg.Labels.Max, "labels.dots": cfg.Labels.Dots, "external_labels": cfg.ExternalLabels,
		"max_profile_samples": cfg.MaxProfileSamples, "max_profile_bytes": cfg.MaxProfileBytes, "max_retry_after": cfg.MaxRetryAfter,
	} {
		require.Contains(t, rows, key)
		assert.Equal(t, fmt.Sprint(want), rows[key][2], key)
		delete(rows, key)
	}
	assert.Empty(t, rows)
}

func TestMetadataAndReadme(t *testing.T) {
	declared, rows := profiletest.LoadMetadata(t), profiletest.ReadmeRows(t)
	assert.Equal(t, NewFactory().Type().String(), declared.Type)
	telemetry := componenttest.NewTelemetry()
	m, err := newMetrics(telemetry.NewTelemetrySettings().MeterProvider.Meter(scopeName))
	require.NoError(t, err)
	m.countDroppedLabels(t.Context(), 1)
	for _, err := range []error{nil, errors.New("x"), consumererror.NewPermanent(errors.New("y"))} {
		m.countSeries(t.Context(), err)
	}
	require.Len(t, declared.Telemetry.Metrics, 2)
	for name, want := range declared.Telemetry.Metrics {
		made, err := telemetry.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, want.Description, made.Description)
		assert.Equal(t, want.Unit, made.Unit)
		require.NotEmpty(t, rows["otelcol_"+name])
		outcomes := []string{}
		for _, point := range made.Data.(metricdata.Sum[int64]).DataPoints {
			for _, kv := range point.Attributes.ToSlice() {
				assert.Equal(t, want.Attributes, []string{string(kv.Key)})
				assert.Contains(t, rows["otelcol_"+name][1], kv.Value.AsString())
				outcomes = append(outcomes, kv.Value.AsString())
			}
		}
		if len(want.Attributes) > 0 {
			assert.ElementsMatch(t, declared.Attributes["outcome"].Enum, outcomes)
		}
	}
	require.NoError(t, telemetry.Shutdown(t.Context()))
}
