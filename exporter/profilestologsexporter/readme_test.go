// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestReadme compares the README's tables and its configuration with the defaults and with metadata.yaml.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	rows := profiletest.ReadmeRows(t)
	cfg := createDefaultConfig().(*Config)
	for key, value := range map[string]any{
		"format": cfg.Encoding.Format, "max_record_bytes": cfg.Encoding.MaxRecordBytes, "splunk_types_only": cfg.Encoding.SplunkTypesOnly,
		"mode": cfg.Mode, "recheck_interval": cfg.RecheckInterval, "timeout": cfg.Timeout,
		"max_request_bytes": cfg.MaxRequestBytes, "max_retry_after": cfg.MaxRetryAfter, "drain_timeout": cfg.DrainTimeout,
		"hec.max_request_bytes": cfg.HEC.GetOrInsertDefault().MaxRequestBytes,
	} {
		if assert.Contains(t, rows, key) {
			assert.Equal(t, fmt.Sprint(value), rows[key][1])
		}
	}
	for field := range reflect.TypeFor[Config]().Fields() {
		if key := field.Tag.Get("mapstructure"); key != ",squash" {
			assert.Contains(t, rows, key)
		}
	}
	assert.True(t, cfg.Queue.HasValue())
	assert.True(t, cfg.Retry.Enabled)
	for name, metric := range profiletest.LoadMetadata(t).Telemetry.Metrics {
		assert.Equal(t, []string{metric.Unit, strings.Join(metric.Attributes, ", "), metric.Description}, rows["otelcol_"+name])
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, block)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(block[1], &config))
	assert.Contains(t, config["exporters"], componentType.String())
}

// TestMetadata compares metadata.yaml with what the code really makes.
func TestMetadata(t *testing.T) {
	declared := profiletest.LoadMetadata(t)
	assert.Equal(t, componentType.String(), declared.Type)
	assert.Equal(t, map[string][]string{"alpha": {"profiles"}}, declared.Status.Stability)
	assert.Len(t, declared.Telemetry.Metrics, 11)
	b := &inbox{partialLogs: 1}
	e := runExporter(t, map[string]any{"grpc": grpcServer(t, b, false), "splunk_types_only": true, "max_record_bytes": 1000})
	pd := batch("x", 2)
	profiletest.SampleAt(pd, 1).SetStackIndex(99)
	other := profiletest.New().Resource("service.name", "shop").
		Profile("inuse_space", "bytes").Sample(profiletest.Value(7, "kept")).
		Profile("samples", "count").Sample(profiletest.Value(1, strings.Repeat(t.Name()+"é", 200))).
		Attributes(profiletest.Attr("note", strings.Repeat("x", 2000))).Build()
	e.send(t, pd, other)
	choosy := runExporter(t, map[string]any{"http": smallServer(t, &inbox{}, 20_000, true)})
	choosy.send(t, profiletest.New().Profile("samples", "count").Sample(profiletest.Value(1, "leaf")).
		Payload("pprof", make([]byte, 30_000)).Build())
	for name, want := range declared.Telemetry.Metrics {
		made, err := e.telemetry.GetMetric("otelcol_" + name)
		if err != nil {
			made, err = choosy.telemetry.GetMetric("otelcol_" + name)
		}
		require.NoError(t, err, name)
		assert.Equal(t, want.Description, made.Description)
		assert.Equal(t, want.Unit, made.Unit)
		if sum, ok := made.Data.(metricdata.Sum[int64]); ok {
			for _, point := range sum.DataPoints {
				assert.Positive(t, point.Value)
				keys := []string{}
				for _, attribute := range point.Attributes.ToSlice() {
					keys = append(keys, string(attribute.Key))
				}
				assert.Equal(t, want.Attributes, keys)
			}
		}
	}
}
