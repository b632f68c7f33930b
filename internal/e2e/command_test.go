// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func configs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "config", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i, file := range files {
		files[i], err = filepath.Rel(repository, file)
		require.NoError(t, err)
	}
	return files
}

func TestEveryConfigIsValid(t *testing.T) {
	for _, config := range configs(t) {
		t.Run(config, func(t *testing.T) {
			out, err := command(t, "validate", "--config", config)
			require.NoError(t, err, out)
		})
	}
}

// TestGatewayVolumesIsValid lays the configuration of the queue on a volume over that of a gateway, as the pods do.
func TestGatewayVolumesIsValid(t *testing.T) {
	t.Setenv("BACKEND_ENDPOINT", "backend:4317")
	components := "config/kubernetes/components/"
	out, err := command(t, "validate", "--config", components+"gateway/gateway.yaml", "--config", components+"gateway-volumes/queue.yaml")
	require.NoError(t, err, out)
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

// TestHelp expects the project's own components in what --help prints, and no others.
func TestHelp(t *testing.T) {
	type component struct{ Name, Module string }
	var listed struct{ Receivers, Processors, Exporters, Connectors []component }
	out, err := command(t, "components")
	require.NoError(t, err, out)
	require.NoError(t, yaml.Unmarshal([]byte(out), &listed))
	help, err := command(t, "--help")
	require.NoError(t, err, help)
	for kind, listed := range map[string][]component{
		"receivers": listed.Receivers, "processors": listed.Processors, "exporters": listed.Exporters, "connectors": listed.Connectors,
	} {
		var own []string
		for _, c := range listed {
			if strings.HasPrefix(c.Module, "github.com/otelcol-profiles/") {
				own = append(own, c.Name)
			}
		}
		slices.Sort(own)
		require.NotEmpty(t, own, kind)
		require.Regexp(t, "(?m)^  "+kind+" +"+strings.Join(own, ", ")+"$", help)
	}
	require.Contains(t, help, "--config")
}

func TestVersion(t *testing.T) {
	var manifest struct {
		Dist struct{ Name, Version string }
	}
	content, err := os.ReadFile(filepath.Join(repository, "builder-config.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, &manifest))

	out, err := command(t, "--version")
	require.NoError(t, err, out)
	require.Equal(t, manifest.Dist.Name+" version "+manifest.Dist.Version+"\n", out)
}

// TestComponents expects what users of profiles were promised, by the names that configurations use.
func TestComponents(t *testing.T) {
	type component struct{ Name string }
	var listed struct {
		Receivers, Processors, Exporters, Connectors, Extensions []component
	}
	out, err := command(t, "components")
	require.NoError(t, err, out)
	require.NoError(t, yaml.Unmarshal([]byte(out), &listed))

	for _, kind := range []struct {
		name   string
		listed []component
		wanted []string
	}{
		{"receivers", listed.Receivers, []string{"kafka", "otlp", "otlp_profiles", "pprof", "profiling", "splunk_profiling"}},
		{"processors", listed.Processors, []string{
			"dictionary_dedup", "filter", "k8s_attributes", "memory_limiter", "process_resource", "resource", "resource_detection",
			"symbolize", "transform",
		}},
		{"exporters", listed.Exporters, []string{"debug", "file", "kafka", "nop", "otlp_grpc", "otlp_http", "pprof", "profiles_to_logs", "pyroscope"}},
		{"connectors", listed.Connectors, []string{"profiles_to_logs", "splunk_profiling"}},
		{"extensions", listed.Extensions, []string{
			"basicauth", "bearertokenauth", "file_storage", "health_check", "pprof", "zpages",
		}},
	} {
		var names []string
		for _, c := range kind.listed {
			names = append(names, c.Name)
		}
		slices.Sort(names)
		require.Equal(t, kind.wanted, names, kind.name)
	}
}
