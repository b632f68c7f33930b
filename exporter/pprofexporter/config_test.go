// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/internal/files"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestReadme compares the README's table and its configuration with the defaults.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	rows := profiletest.ReadmeRows(t)
	cfg := createDefaultConfig().(*Config)
	file := files.DefaultConfig()
	for key, value := range map[string]any{
		"server.endpoint": cfg.Server.HTTP.NetAddr.Endpoint, "server.allowed_hosts": cfg.Server.AllowedHosts,
		"server.max_concurrent_queries": cfg.Server.MaxConcurrentQueries, "server.query_timeout": cfg.Server.QueryTimeout,
		"keep.window": cfg.Keep.Window, "keep.resolution": cfg.Keep.Resolution, "keep.max_bytes": cfg.Keep.MaxBytes,
		"keep.max_series":          cfg.Keep.MaxSeries,
		"sending_queue.queue_size": cfg.Queue.Get().QueueSize,
		"files.directory":          file.Directory, "files.name": file.Name, "files.max_age": file.MaxAge, "files.max_bytes": file.MaxBytes,
	} {
		if assert.Contains(t, rows, key) {
			assert.Equal(t, fmt.Sprint(value), rows[key][1], key)
		}
	}
	assert.False(t, cfg.Files.HasValue(), "off unless configured")
	assert.True(t, cfg.Queue.HasValue())
	assert.True(t, cfg.Retry.Enabled)
	assert.Contains(t, string(text), fmt.Sprintf("occupy up to %d %% of it", keptShare))
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, block)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(block[1], &config))
	assert.Contains(t, config["exporters"], "pprof")
}

// Every fault of a configuration is named.
func TestFaultsOfConfigurations(t *testing.T) {
	for want, config := range map[string]map[string]any{
		"`endpoint` must be set":                        {"server": map[string]any{"endpoint": ""}},
		"`max_concurrent_queries` must be positive":     {"server": map[string]any{"max_concurrent_queries": 0}},
		"`query_timeout` must be positive":              {"server": map[string]any{"query_timeout": "0s"}},
		"`endpoitn` is not a key of this section":       {"server": map[string]any{"endpoitn": "x"}},
		"`resolution` must be from 1s to 1h":            {"keep": map[string]any{"resolution": "1ms"}},
		"`window` must be from `resolution` to":         {"keep": map[string]any{"window": "1s"}},
		"`max_bytes` must be at least 1048576":          {"keep": map[string]any{"max_bytes": 10}},
		"`max_series` must be positive":                 {"keep": map[string]any{"max_series": 0}},
		"`directory` must be set":                       {"files": map[string]any{"directory": ""}},
		"`max_age` must not be negative":                {"files": map[string]any{"max_age": "-1s"}},
		"`max_bytes` must not be negative":              {"files": map[string]any{"max_bytes": -1}},
		"`name` must end in .pb.gz":                     {"files": map[string]any{"name": "x"}},
		"`name` must be a plain path below `directory`": {"files": map[string]any{"name": "../{profile}.pb.gz"}},
		"`name` must have a key between { and }":        {"files": map[string]any{"name": "{}.pb.gz"}},
		"`name` has too much between two slashes":       {"files": map[string]any{"name": "x/" + strings.Repeat("{a}", 8) + ".pb.gz"}},
		"`name` has a } without a {":                    {"files": map[string]any{"name": "a}.pb.gz"}},
	} {
		cfg := createDefaultConfig().(*Config)
		err := confmap.NewFromStringMap(config).Unmarshal(cfg)
		if err == nil {
			err = confmap.Validate(cfg)
		}
		assert.ErrorContains(t, err, want)
	}
}

// TestMetadata makes something of everything that is counted, by the names of metadata.yaml.
func TestMetadata(t *testing.T) {
	folder := t.TempDir()
	config := withFiles(folder, map[string]any{"max_bytes": 1})
	config["keep"] = map[string]any{"max_series": 1, "max_bytes": minKeptBytes}
	f := startExporter(t, config)
	f.send(small("shop", profiletest.Value(1, "leaf")), small("refused"))
	f.get("/api/services")
	malformed := small("shop")
	profiletest.SampleAt(malformed, 0).SetStackIndex(99)
	f.send(malformed)
	broken := small("broken")
	broken.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).SampleType().SetTypeStrindex(99)
	f.send(broken)
	declared := profiletest.LoadMetadata(t)
	for name := range declared.Telemetry.Metrics {
		_, err := f.telemetry.GetMetric("otelcol_" + name)
		if name == "exporter_pprof_files_dropped" { // nothing is known that both Encode and compact refuse
			continue
		}
		assert.NoError(t, err, name)
	}
	evicted, err := f.telemetry.GetMetric("otelcol_exporter_pprof_evicted_profiles")
	require.NoError(t, err)
	reasons := []string{}
	for _, point := range evicted.Data.(metricdata.Sum[int64]).DataPoints {
		value, _ := point.Attributes.Value("reason")
		reasons = append(reasons, value.AsString())
	}
	assert.ElementsMatch(t, declared.Attributes["evicted_reason"].Enum, reasons)
	refused := []string{}
	for i := range store.NumRefused {
		refused = append(refused, store.Refused(i).String())
	}
	assert.Equal(t, declared.Attributes["refused_reason"].Enum, refused)
	assert.True(t, slices.IsSorted(declared.Attributes["endpoint"].Enum))
	assert.Len(t, declared.Attributes["endpoint"].Enum, 12)
}
