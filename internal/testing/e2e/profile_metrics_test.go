// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const profileMetricsConfig = `yaml:
receivers: {pprof: {server: {endpoint: "${env:PPROF_ENDPOINT}"}}}
processors: {dictionary_dedup: {timeout: 0s}}
connectors:
  profile_metrics:
    interval: 1s
    metrics:
      function.cpu.time: {profiles: [process_cpu/cpu], unit: s, functions: [.], group_by: {frame: function}}
exporters:
  profile_store: {server: {endpoint: "${env:PAGE_ENDPOINT}"}}
  file: {path: "${env:PROFILES_OUT}/metrics/metrics.jsonl", create_directory: true}
service:
  pipelines:
    profiles: {receivers: [pprof], processors: [dictionary_dedup], exporters: [profile_metrics, profile_store]}
    metrics:  {receivers: [profile_metrics], exporters: [file]}
  telemetry: {metrics: {level: none}}
`

// TestProfileMetrics pushes captured CPU profiles. The sums that come out as OTLP metrics are those of the page's API
// for the same profiles: of each service, and of each function with all that it calls.
func TestProfileMetrics(t *testing.T) {
	t.Parallel()
	c := launch(t, profileMetricsConfig)
	payloads := capturedPayloads(t)
	services := []string{"go-cpu-labels.pb.gz", "go-build-merged-cpu-large.pb.gz"}
	for _, service := range services {
		c.requirePush(t, service, payloads[service])
	}
	type table struct {
		Total     float64
		Functions []struct {
			Name  string
			Total float64
		}
	}
	want := map[string]table{}
	for _, service := range services {
		var answer table
		query := url.Values{"service": {service}, "profile": {"process_cpu"}, "type": {"cpu"}, "seconds": {"3600"},
			"limit": {"100000"}}
		require.NoError(t, json.Unmarshal([]byte(requireGet(t, "http://"+c.graphs+"/api/table?"+query.Encode())), &answer))
		want[service] = answer
	}
	require.Positive(t, want[services[0]].Total)
	require.Positive(t, want[services[1]].Total)
	c.Terminate(t)

	got := map[string]map[string]float64{} // the last value counts, since sums are cumulative
	for _, md := range readMetrics(t, c) {
		for _, rm := range md.ResourceMetrics().All() {
			service := attribute(rm.Resource().Attributes(), "service.name")
			if got[service] == nil {
				got[service] = map[string]float64{}
			}
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Type() != pmetric.MetricTypeSum {
					continue
				}
				for _, dp := range m.Sum().DataPoints().All() {
					require.NotEmpty(t, attribute(dp.Attributes(), "profile.writer.id"))
					got[service][m.Name()+" "+attribute(dp.Attributes(), "code.function.name")] = dp.DoubleValue()
				}
			}
		}
	}
	for _, service := range services {
		require.InDelta(t, want[service].Total/1e9, got[service]["profile.cpu.time "], 1e-9, service)
		compared, entries := 0, map[string]int{} // the page tells functions of one name apart by their files
		for _, f := range want[service].Functions {
			entries[f.Name]++
		}
		for _, f := range want[service].Functions {
			if total, ok := got[service]["function.cpu.time "+f.Name]; ok && entries[f.Name] == 1 {
				compared++
				require.InDelta(t, f.Total/1e9, total, 1e-9, "%s: %s", service, f.Name)
			}
		}
		require.Greater(t, compared, len(entries)*9/10, service)
	}
}

// readMetrics returns the metrics that a collector has written.
func readMetrics(t *testing.T, c *collector) (all []pmetric.Metrics) {
	t.Helper()
	content := profiletest.FileBytes(t, filepath.Join(c.outputDir, "metrics", "metrics.jsonl"))
	for line := range bytes.Lines(content) {
		md, err := new(pmetric.JSONUnmarshaler).UnmarshalMetrics(line)
		require.NoError(t, err)
		all = append(all, md)
	}
	return all
}

func attribute(m pcommon.Map, key string) string {
	if v, ok := m.Get(key); ok {
		return v.AsString()
	}
	return ""
}

// TestContribConnectors runs the configuration of docs/metrics.md with contrib's connectors, and pushes a CPU profile
// and a heap: two and four sample types, of which one is CPU time over five seconds.
func TestContribConnectors(t *testing.T) {
	t.Parallel()
	text := profiletest.FileBytes(t, filepath.Join(repository, "docs", "metrics.md"))
	_, section, ok := strings.Cut(string(text), "## How much arrives")
	require.True(t, ok)
	_, block, _ := strings.Cut(section, "```yaml part\n")
	block, _, _ = strings.Cut(block, "```")
	c := launchWith(t, newFile(t, "contrib.yaml", []byte(block)), []string{"--config", `yaml:
receivers: {pprof: {server: {endpoint: "${env:PPROF_ENDPOINT}"}}}
processors: {dictionary_dedup: {timeout: 0s}}
exporters:
  nop/profiles:
  file: {path: "${env:PROFILES_OUT}/metrics/metrics.jsonl", create_directory: true}
service:
  pipelines:
    profiles: {exporters: [nop/profiles, count, signal_to_metrics]}
    metrics: {exporters: [file]}
  telemetry: {metrics: {level: none}}
`})
	payloads := capturedPayloads(t)
	for _, name := range []string{"go-cpu-labels.pb.gz", "go-heap.pb.gz"} {
		requirePost(t, "http://"+c.endpoint+"/ingest?name=shop&format=pprof", "application/octet-stream", payloads[name])
	}
	c.Terminate(t)

	got := map[string]float64{}
	for _, md := range readMetrics(t, c) {
		for _, rm := range md.ResourceMetrics().All() {
			service := attribute(rm.Resource().Attributes(), "service.name")
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, dp := range m.Sum().DataPoints().All() {
					got[service+" "+m.Name()+" "+attribute(dp.Attributes(), "pprof.scope.profile_name")] += dp.DoubleValue() +
						float64(dp.IntValue())
				}
			}
		}
	}
	require.InDelta(t, 5, got["shop profile.covered.time "], 0.1)
	delete(got, "shop profile.covered.time ")
	require.Equal(t, map[string]float64{"shop profile.count process_cpu": 2, "shop profile.count memory": 4}, got)
}
