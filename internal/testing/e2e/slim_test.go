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
)

// onlySlim is the one component that the full build lacks: it replaces contrib's processor of the same type.
const onlySlim = "github.com/otelcol-profiles/otelcol-profiles/processor/hostdetectionprocessor"

// TestSlimIsAPart compares the two lists of components: except for onlySlim, the slim build has only components of the full
// build, in the same versions.
func TestSlimIsAPart(t *testing.T) {
	full, slim := builderConfig(t, "builder-config.yaml"), builderConfig(t, "builder-config.slim.yaml")
	for _, kind := range []string{"receivers", "processors", "connectors", "exporters", "extensions"} {
		require.NotEmpty(t, slim[kind], kind)
		for _, component := range slim[kind].([]any) {
			if component.(map[string]any)["import"] != onlySlim {
				assert.Contains(t, full[kind], component, kind)
			}
		}
		delete(full, kind)
		delete(slim, kind)
	}
	assert.Equal(t, full, slim, "what is not a component is the same in both")
}

func builderConfig(t *testing.T, name string) (read map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, name))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &read))
	return read
}

// slimCommand runs the slim build with args.
func slimCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runBinary(t, collectortest.SlimBinary, args...)
}

// TestSlimRunsTheConfigsOfANode validates every configuration with the slim build, which lacks nothing that a node needs. `make
// run` builds the full one for those that it refuses, and no others.
func TestSlimRunsTheConfigsOfANode(t *testing.T) {
	var valid []string
	for _, config := range configs(t) {
		binary := "bin/otelcol-profiles "
		if out, err := slimCommand(t, "validate", "--config", config); err == nil {
			valid, binary = append(valid, config), "bin/otelcol-profiles-slim "
		} else {
			assert.Contains(t, out, "full build", config)
		}
		assert.Contains(t, requireRun(t, repository, freshMake, "make", "--dry-run", "run", "CONFIG="+config), "exec "+binary)
	}
	require.Subset(t, valid, []string{"config/agent.yaml", "config/gateway.yaml", "config/host.yaml", "config/standalone.yaml", "config/quickstart.yaml"})
}

// TestSlimNamesTheFullBuild checks the errors about what only the full build has.
func TestSlimNamesTheFullBuild(t *testing.T) {
	config, err := os.ReadFile(filepath.Join(repository, agentConfig))
	require.NoError(t, err)
	for name, tc := range map[string]struct{ from, to, want string }{
		"discovery": {
			`file_sd_configs:`, "kubernetes_sd_configs: [{role: pod}]\n          file_sd_configs:",
			`job "files": ` + "`kubernetes_sd_configs` is not in the slim build: use the full build of otelcol-profiles",
		},
		"detector": {
			`detectors: [env, system]`, `detectors: [env, ec2]`,
			"`detectors[1]` must be env or system in the slim build, found \"ec2\": the full build of otelcol-profiles has the others",
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

// maxSlimBytes bounds the slim build. It has 54 MB (docs/benchmarks/binary.md).
const maxSlimBytes = 70_000_000

func TestSlimIsSmall(t *testing.T) {
	path, err := collectortest.SlimBinary()
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	t.Logf("%d bytes", info.Size())
	require.Less(t, info.Size(), int64(maxSlimBytes))
}
