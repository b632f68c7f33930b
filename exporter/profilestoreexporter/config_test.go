// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestoreexporter

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestReadme compares a share in the README with the code.
func TestReadme(t *testing.T) {
	text := profiletest.FileBytes(t, "README.md")
	assert.Contains(t, string(text), fmt.Sprintf("occupy up to %d %% of it", keptShare))
}

// Every fault of a configuration is named.
func TestFaultsOfConfigurations(t *testing.T) {
	for want, config := range map[string]map[string]any{
		"`endpoint` must be set":                    {"server": map[string]any{"endpoint": ""}},
		"`max_concurrent_queries` must be positive": {"server": map[string]any{"max_concurrent_queries": 0}},
		"`query_timeout` must be positive":          {"server": map[string]any{"query_timeout": "0s"}},
		"invalid keys: endpoitn":                    {"server": map[string]any{"endpoitn": "x"}},
		"`resolution` must be from 1s to 1h":        {"keep": map[string]any{"resolution": "1ms"}},
		"`window` must be from `resolution` to":     {"keep": map[string]any{"window": "1s"}},
		"`max_bytes` must be at least 1048576":      {"keep": map[string]any{"max_bytes": 10}},
		"`max_series` must not be negative":         {"keep": map[string]any{"max_series": -1}},
		"`downsample.step` must be from 1s to 1h":   {"storage": map[string]any{"downsample": map[string]any{"step": 0}}},
		"`downsample.after` must be 0 or at least 1h": {
			"storage": map[string]any{"downsample": map[string]any{"after": "1m"}}},
		"`retention` must be at least 1h":            {"storage": map[string]any{"retention": "1m"}},
		"`endpoint` must be the URL of ClickHouse's": {"clickhouse": map[string]any{"endpoint": "tcp://localhost:9000"}},
		`found "http://h/?password=REDACTED"`:        {"clickhouse": map[string]any{"endpoint": "http://h/?password=s3cret"}},
		`such as http://localhost:8123, found "h:1"`: {"clickhouse": map[string]any{"endpoint": "h:1"}},
		"`table` must be an identifier":              {"clickhouse": map[string]any{"table": "t` WHERE 1 --"}},
		"`database` must be an identifier":           {"clickhouse": map[string]any{"database": ""}},
		"invalid keys: endpiont":                     {"clickhouse": map[string]any{"endpiont": "x"}},
		"exclude each other": {"clickhouse": map[string]any{},
			"storage": map[string]any{"directory": "x"}},
		"`max_result_rows` must be positive":    {"clickhouse": map[string]any{"max_result_rows": 0}},
		"`max_bytes` must be at least 67108864": {"storage": map[string]any{"max_bytes": 10}},
	} {
		_, err := collectortest.LoadConfig(createDefaultConfig().(*Config), config)
		assert.ErrorContains(t, err, want)
	}
}

// TestMetadata makes something of everything that is counted, by the names of metadata.yaml.
func TestMetadata(t *testing.T) {
	f := startExporter(t, map[string]any{"keep": map[string]any{"max_series": 1, "max_bytes": minKeptBytes}})
	f.send(small("shop", profiletest.Value(1, "leaf")))
	require.Error(t, f.ConsumeProfiles(t.Context(), small("refused")))
	f.get("/api/services")
	malformed := small("shop")
	profiletest.SampleAt(malformed, 0).SetStackIndex(99)
	f.send(malformed)
	declared := profiletest.LoadMetadata(t)
	for name := range declared.Telemetry.Metrics {
		_, err := f.telemetry.GetMetric("otelcol_" + name)
		assert.NoError(t, err, name)
	}
	evicted, err := f.telemetry.GetMetric("otelcol_exporter_profile_store_evicted_profiles")
	require.NoError(t, err)
	reasons := []string{}
	for _, point := range evicted.Data.(metricdata.Sum[int64]).DataPoints {
		value, _ := point.Attributes.Value("reason")
		reasons = append(reasons, value.AsString())
	}
	assert.ElementsMatch(t, declared.Attributes["evicted_reason"].Enum, reasons)
	refused := []string{}
	for i := range model.NumRefused {
		refused = append(refused, model.Refused(i).String())
	}
	assert.Equal(t, declared.Attributes["refused_reason"].Enum, refused)
	assert.True(t, slices.IsSorted(declared.Attributes["endpoint"].Enum))
	assert.Len(t, declared.Attributes["endpoint"].Enum, 16)
}
