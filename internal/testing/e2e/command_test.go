// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func configs(t *testing.T) []string {
	t.Helper()
	files := profiletest.Glob(t, filepath.Join(repository, "config", "*.yaml"))
	for i, file := range files {
		var err error
		files[i], err = filepath.Rel(repository, file)
		require.NoError(t, err)
	}
	return files
}

func TestEveryConfigIsValid(t *testing.T) {
	for _, config := range configs(t) {
		t.Run(config, func(t *testing.T) { requireValid(t, config) })
	}
}

// TestManifestsAreValid validates the configurations in config/kubernetes with the variables that their pods have,
// merged as their arguments merge them, and with the token, the volumes and the eBPF profiler that components add. The
// same holds if the lines of profile_metrics are no longer commented out, and with the chart's values in
// docs/metrics.md and docs/from-alloy.md.
func TestManifestsAreValid(t *testing.T) {
	for _, variable := range []string{"BACKEND_TOKEN", "K8S_NODE_NAME", "K8S_NAMESPACE_NAME", "K8S_POD_NAME",
		"K8S_POD_UID"} {
		t.Setenv(variable, "value")
	}
	t.Setenv("BACKEND_ENDPOINT", "backend:4317")
	t.Setenv("CONFIG_FOLDER", "config/kubernetes/base")
	t.Setenv("QUEUE_DIRECTORY", t.TempDir())
	const folder = "config/kubernetes/"
	const agent, ebpf = folder + "base/agent.yaml", folder + "components/ebpf/ebpf.yaml"
	const gateway, volumes = folder + "components/gateway/gateway.yaml", folder + "components/gateway-volumes/queue.yaml"
	const token = "yaml:exporters::otlp_grpc::headers::authorization: Bearer ${env:BACKEND_TOKEN}"
	withMetrics := func(config string) string { return uncommented(t, config, collectortest.Metrics) }
	for _, configs := range [][]string{
		{agent, token}, {agent, ebpf}, {gateway, token}, {gateway, volumes}, {folder + "components/page/page.yaml"},
		{withMetrics(agent)}, {withMetrics(agent), ebpf}, {withMetrics(agent), withMetrics(ebpf)},
		{withMetrics(gateway)}, {withMetrics(gateway), volumes}, {withMetrics(gateway), withMetrics(volumes)},
		{agent, chartConfig(t, "metrics.md")}, {agent, chartConfig(t, "from-alloy.md")},
	} {
		requireValid(t, configs...)
	}
}

// chartConfig returns the configuration that a page adds to the agent by the chart's values.
func chartConfig(t *testing.T, page string) (config string) {
	t.Helper()
	text := profiletest.FileBytes(t, filepath.Join(repository, "docs", page))
	_, block, ok := strings.Cut(string(text), "```yaml of the chart\nagent:\n")
	require.True(t, ok)
	block, _, _ = strings.Cut(block, "```")
	var values struct{ Config map[string]any }
	require.NoError(t, yaml.Unmarshal([]byte(block), &values))
	require.NotEmpty(t, values.Config)
	content, err := yaml.Marshal(values.Config)
	require.NoError(t, err)
	return newFile(t, "values.yaml", content)
}

func TestProfilesSupportCanBeTurnedOff(t *testing.T) {
	for _, args := range [][]string{
		{"validate", "--config", "config/quickstart.yaml", "--feature-gates=-service.profilesSupport"},
		{"--config", "config/quickstart.yaml", "--feature-gates=-service.profilesSupport"},
	} {
		out, err := command(t, args...)
		require.Error(t, err, "%v", args)
		require.Contains(t, out, "service.profilesSupport", "%v", args)
	}
}

// Whoever knows the Collector configures batch first. The error names what takes its place.
func TestBatchIsExplained(t *testing.T) {
	out, err := command(t, "validate", "--config", "config/quickstart.yaml", "--config",
		"yaml:processors::batch::timeout: 1s")
	require.Error(t, err)
	require.Contains(t, out, `unknown type: "batch"`)
	require.Contains(t, out, "dictionary_dedup makes the batches")
}

type listedComponent struct{ Name, Module string }

// listedComponents returns what the command `components` prints, by kind.
func listedComponents(t *testing.T) map[string][]listedComponent {
	t.Helper()
	out, err := command(t, "components")
	require.NoError(t, err, out)
	var listed struct {
		Receivers, Processors, Exporters, Connectors, Extensions []listedComponent
	}
	require.NoError(t, yaml.Unmarshal([]byte(out), &listed))
	return map[string][]listedComponent{
		"receivers": listed.Receivers, "processors": listed.Processors, "exporters": listed.Exporters,
		"connectors": listed.Connectors, "extensions": listed.Extensions,
	}
}

// TestHelp requires that --help names what this is, and where its components are listed.
func TestHelp(t *testing.T) {
	help, err := command(t, "--help")
	require.NoError(t, err, help)
	for _, want := range []string{"continuous profiling.", "`otelcol-profiles components`", "--config"} {
		require.Contains(t, help, want)
	}
}

func TestVersion(t *testing.T) {
	var manifest struct {
		Dist struct{ Name, Version string }
	}
	content := profiletest.FileBytes(t, filepath.Join(repository, "builder-config.yaml"))
	require.NoError(t, yaml.Unmarshal(content, &manifest))

	out, err := command(t, "--version")
	require.NoError(t, err, out)
	require.Equal(t, manifest.Dist.Name+" version "+manifest.Dist.Version, out)
}

// TestComponents lists what users of profiles were promised, by the names that configurations use.
func TestComponents(t *testing.T) {
	listed := listedComponents(t)
	for kind, want := range map[string][]string{
		"receivers": {"kafka", "otlp", "otlp_profiles", "pprof", "processes", "profiling", "splunk_profiling"},
		"processors": {
			"dictionary_dedup", "filter", "k8s_attributes", "memory_limiter", "process_resource", "resource",
			"resource_detection",
			"symbolize", "transform",
		},
		"exporters": {"clickhouse", "debug", "file", "kafka", "nop", "otlp_grpc", "otlp_http", "pprof_file", "profile_store",
			"profiles_to_logs", "pyroscope"},
		"connectors": {"count", "profile_metrics", "profiles_to_logs", "signal_to_metrics", "splunk_profiling"},
		"extensions": {"basicauth", "bearertokenauth", "file_storage", "health_check", "plain_attributes", "pprof", "zpages"},
	} {
		var names []string
		for _, c := range listed[kind] {
			names = append(names, c.Name)
		}
		slices.Sort(names)
		require.Equal(t, want, names, kind)
	}
}
