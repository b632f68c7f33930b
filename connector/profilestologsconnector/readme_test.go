// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsconnector

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestFormats compares the formats of the README, metadata.yaml and the code.
func TestFormats(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "README.md", "| key | type | default | bound | meaning |")
	cfg := createDefaultConfig().(*Config).Encoding
	formats := profiletest.LoadMetadata(t).Attributes["format"].Enum
	assert.Equal(t, strings.Join(formats, "`, `"), rows["format"][3])
	for _, format := range formats {
		cfg.Format = format
		assert.NoError(t, cfg.Validate())
		assert.Regexp(t, "^"+format, cfg.Options(0).Format.String())
	}
	cfg.Format = records.FormatOther.String()
	assert.ErrorContains(t, cfg.Validate(), strings.Join(formats[:len(formats)-1], ", ")+" or "+formats[len(formats)-1])
}

// TestMetadata compares metadata.yaml with what the code really makes.
func TestMetadata(t *testing.T) {
	declared := profiletest.LoadMetadata(t)
	set, telemetry := settings(t)
	cfg := createDefaultConfig().(*Config)
	cfg.Encoding.SplunkTypesOnly = true
	cfg.Encoding.MaxRecordBytes = 200 // too little for any record
	c := connectorOf(t, set, cfg, &consumertest.LogsSink{})
	require.NoError(t, c.ConsumeProfiles(t.Context(), brokenInPart()))
	require.NoError(t, c.ConsumeProfiles(t.Context(), profiletest.New().Profile("samples", "count").
		Attributes(profiletest.Attr("profiling.data.type", "another")).Sample(profiletest.Value(1, "leaf")).Build()))
	for name := range declared.Telemetry.Metrics {
		made, err := telemetry.GetMetric("otelcol_" + name)
		require.NoError(t, err, name)
		for _, point := range made.Data.(metricdata.Sum[int64]).DataPoints {
			assert.Positive(t, point.Value)
		}
	}
}
