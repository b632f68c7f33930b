// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestPartsOfTheBuild compares the lists of components: each build has only components of the next larger one, in the
// same versions.
func TestPartsOfTheBuild(t *testing.T) {
	for _, tc := range []struct{ part, whole string }{
		{"builder-config.slim.yaml", "builder-config.yaml"},
		{"builder-config.quickstart.yaml", "builder-config.slim.yaml"},
	} {
		t.Run(tc.part, func(t *testing.T) {
			whole, part := builderConfig(t, tc.whole), builderConfig(t, tc.part)
			count := 0
			for _, kind := range []string{"receivers", "processors", "connectors", "exporters", "extensions"} {
				components, _ := part[kind].([]any)
				for _, component := range components {
					count++
					assert.Contains(t, whole[kind], component, kind)
				}
				delete(whole, kind)
				delete(part, kind)
			}
			assert.GreaterOrEqual(t, count, 3)
			assert.Equal(t, whole, part, "what is not a component is the same in both")
		})
	}
}

func builderConfig(t *testing.T, name string) (read map[string]any) {
	t.Helper()
	text := profiletest.FileBytes(t, filepath.Join(repository, name))
	require.NoError(t, yaml.Unmarshal(text, &read))
	return read
}

// TestModulesHaveOneVersion keeps a dependency from being compiled twice: the collector is a module of its own, which
// may need a later version than the packages and their tests.
func TestModulesHaveOneVersion(t *testing.T) {
	collector := moduleVersions(t, "cmd/otelcol-profiles/go.mod")
	var get []string
	for module, version := range moduleVersions(t, "go.mod") {
		if other, isThere := collector[module]; isThere && other != version {
			get = append(get, module+"@"+other)
		}
	}
	require.Empty(t, get, "the collector has other versions: go get %s", strings.Join(get, " "))
}

func moduleVersions(t *testing.T, name string) map[string]string {
	t.Helper()
	content := profiletest.FileBytes(t, filepath.Join(repository, name))
	versions := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(strings.TrimPrefix(line, "require ")); len(fields) >= 2 &&
			strings.HasPrefix(fields[1], "v") {
			versions[fields[0]] = fields[1]
		}
	}
	require.Greater(t, len(versions), 50)
	return versions
}

// slimCommand runs the slim build with args.
func slimCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runBinary(t, collectortest.SlimBinary, args...)
}

// TestRunBuildsTheSmallest asks which build `make run` chooses. The slim one lacks nothing that a node needs.
func TestRunBuildsTheSmallest(t *testing.T) {
	t.Parallel()
	for _, build := range []func() (string,
		error){collectortest.Binary, collectortest.SlimBinary, collectortest.QuickstartBinary} {
		_, err := build()
		require.NoError(t, err)
	}
	choose := func(config string) string {
		return strings.TrimPrefix(requireRun(t, repository, []string{"MAKE=true"}, "internal/build/choose.sh", config),
			"bin/otelcol-profiles")
	}
	chosen := map[string][]string{}
	for _, config := range configs(t) {
		build := choose(config)
		chosen[build] = append(chosen[build], config)
	}
	require.Equal(t, []string{"config/quickstart.yaml"}, chosen["-quickstart"])
	require.Subset(t, chosen["-slim"],
		[]string{"config/agent.yaml", "config/gateway.yaml", "config/host.yaml", "config/standalone.yaml"})
	require.Subset(t, chosen[""], []string{"config/kafka-agent.yaml", "config/kafka-gateway.yaml"})

	const rest = "exporters: {profile_store: {}}\nservice: {pipelines: {profiles: {receivers: [pprof], exporters: [profile_store]}}}\n"
	for config, want := range map[string]string{
		"receivers: {pprof: {self: {}}}\n" + rest:                                                                 "-quickstart",
		"receivers: {pprof: {self: {}}}\nprocessors: {\"resource_detection\": {detectors: [env]}}\n" + rest:       "-slim",
		"receivers: {pprof: {self: {}}}\nprocessors:\n  ? filter\n  : {}\n" + rest:                                "",
		"receivers: {pprof: {scrape: {configs: [{job_name: a, kubernetes_sd_configs: [{role: pod}]}]}}}\n" + rest: "",
		"receivers: {pprof: {self: {}}}\nprocessors: {resource_detection: {detectors: [ec2]}}\n" + rest:           "-slim", // no build has it
		"receivers: {pprof: {selfie: {}}}\n" + rest:                                                               "-quickstart",
	} {
		assert.Equal(t, want, choose(newFile(t, "config.yaml", []byte(config))), config)
	}
}

// TestSlimNamesTheFullBuild checks the errors about what only the full build has.
func TestSlimNamesTheFullBuild(t *testing.T) {
	config := profiletest.FileBytes(t, filepath.Join(repository, agentConfig))
	for name, tc := range map[string]struct{ from, to, want string }{
		"discovery": {
			`file_sd_configs:`, "kubernetes_sd_configs: [{role: pod}]\n          file_sd_configs:",
			`job "files": ` + "`kubernetes_sd_configs` is not in the slim build: use the full build of otelcol-profiles",
		},
		"component": {
			"processors:\n", "processors:\n  k8s_attributes:\n",
			"This is the slim build: the full build of otelcol-profiles has more components.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, string(config), tc.from)
			path := newFile(t, "agent.yaml", []byte(strings.Replace(string(config), tc.from, tc.to, 1)))
			out, err := slimCommand(t, "validate", "--config", path)
			require.Error(t, err)
			require.Contains(t, out, tc.want)
			requireValid(t, path) // the full build has it
		})
	}
	out, err := slimCommand(t, "--help")
	require.NoError(t, err)
	require.Contains(t, out, "This is the slim build")
}

// maxSlimBytes bounds the slim build. It has 63 MB (docs/components.md).
const maxSlimBytes = 70_000_000

func TestSlimIsSmall(t *testing.T) {
	path, err := collectortest.SlimBinary()
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	t.Logf("%d bytes", info.Size())
	require.Less(t, info.Size(), int64(maxSlimBytes))
}
