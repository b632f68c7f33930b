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

// TestPartsOfTheBuild compares the lists of components: each build has only components of the next larger one, in the same
// versions, except for onlySlim.
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
					if count++; component.(map[string]any)["import"] != onlySlim {
						assert.Contains(t, whole[kind], component, kind)
					}
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

// TestRunBuildsTheSmallest validates every configuration with the smaller builds. The slim one lacks nothing that a node needs.
// `make run` builds the smallest that accepts a configuration.
func TestRunBuildsTheSmallest(t *testing.T) {
	var slim, quickstart []string
	for _, config := range configs(t) {
		binary := "bin/otelcol-profiles "
		if out, err := slimCommand(t, "validate", "--config", config); err == nil {
			slim, binary = append(slim, config), "bin/otelcol-profiles-slim "
		} else {
			assert.Contains(t, out, "full build", config)
		}
		if out, err := runBinary(t, collectortest.QuickstartBinary, "validate", "--config", config); err == nil {
			quickstart, binary = append(quickstart, config), "bin/otelcol-profiles-quickstart "
		} else {
			assert.Contains(t, out, "`make run CONFIG=FILE`", config)
		}
		assert.Contains(t, requireRun(t, repository, freshMake, "make", "--dry-run", "run", "CONFIG="+config), "exec "+binary)
	}
	require.Subset(t, slim, []string{"config/agent.yaml", "config/gateway.yaml", "config/host.yaml", "config/standalone.yaml"})
	require.Equal(t, []string{"config/quickstart.yaml"}, quickstart)
}

// TestChoiceOfABuild has configurations that are written in other ways.
func TestChoiceOfABuild(t *testing.T) {
	const detectors = "processors:\n  resource_detection:\n    detectors:"
	for config, want := range map[string]string{
		"receivers:\n  pprof:\n    scrape:\n      otlp:\n":                                 "quickstart",
		"receivers: # of all\n    # first\n\n    pprof/a: {}\n":                            "quickstart",
		"service:\n  pipelines:\n    profiles: {receivers: [otlp]}\n":                      "quickstart",
		"receivers:\n    pprof:\n        self:\n    otlp/a:\n":                             "slim",
		"receivers: {pprof: {}}\n":                                                         "slim",
		"exporters:\n  profile_store:\n  debug:\n":                                         "slim",
		"extensions:\n  zpages:\n":                                                         "slim",
		"receivers:\n  pprof:\nexporters:\n  kafka/a:\n":                                   "full",
		"receivers:\n  pprof:\n    scrape: [{kubernetes_sd_configs: 1}]":                   "full",
		"\"exporters\":\n  debug:\n":                                                       "slim",
		"service:\n  telemetry: {}\n\"exporters\" :\n  pprof:\n":                           "slim",
		"  receivers:\n    otlp:\n":                                                        "slim",
		"{receivers: {otlp: }}\n":                                                          "slim",
		"processors: {k8s_attributes: {}}\n":                                               "full",
		"processors: {\"transform/a\": {}}\n":                                              "full",
		"processors:\n  ? filter\n  : {}\n":                                                "full",
		"{receivers: {kafka: }}\n":                                                         "full",
		"processors: ${file:processors.yaml}\n":                                            "full",
		"exporters:\n  debug: # no kafka: yet, kafka: never\n":                             "slim",
		detectors + " [env, system]\n":                                                     "slim",
		detectors + "\n      - env\n      # of all\n      - \"system\"\n    timeout: 1s\n": "slim",
		detectors + "\n      - ec2\n":                                                      "full",
		detectors + "\n    - env\n    - \"gcp\" # there\n":                                 "full",
		detectors + " [\n      env,\n      docker,\n    ]\n":                               "full",
		detectors + " [\"${env:DETECTOR}\"]\n":                                             "full",
	} {
		file := newFile(t, "config.yaml", []byte(config))
		assert.Equal(t, want, requireRun(t, repository, nil, "internal/build/choose.sh", file), config)
	}
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

// maxSlimBytes bounds the slim build. It has 54 MB (docs/components.md).
const maxSlimBytes = 70_000_000

func TestSlimIsSmall(t *testing.T) {
	path, err := collectortest.SlimBinary()
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	t.Logf("%d bytes", info.Size())
	require.Less(t, info.Size(), int64(maxSlimBytes))
}
