// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestDatadogNodeJS installs Datadog's library for Node.js from npm, runs a busy application with it against the built
// binary, and expects functions of that application in conformant profiles, each sample of the wall clock with its time.
// It needs npm and a registry, hence it runs only where `make e2e-datadog` asks for it.
func TestDatadogNodeJS(t *testing.T) {
	wanted := os.Getenv("E2E_DATADOG")
	if wanted == "" {
		t.Skip("`make e2e-datadog` runs this")
	}
	app := t.TempDir()
	require.NoError(t, os.CopyFS(app, os.DirFS(filepath.Join("testdata", "datadog-nodejs"))))
	out, err := run(t, app, nil, "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1")
	if err != nil && wanted == "if-possible" {
		t.Skipf("SKIPPED: Datadog's library cannot be installed, which takes npm, node and a registry: %v\n%s", err, out)
	}
	require.NoError(t, err, out)
	c := startQuickstart(t)
	began := time.Now()
	printed, err := run(t, app, []string{
		"DD_TRACE_AGENT_URL=http://" + c.endpoint, "DD_PROFILING_ENABLED=true", "DD_PROFILING_UPLOAD_PERIOD=2",
		"DD_SERVICE=shop", "DD_ENV=test", "DD_VERSION=1.2", "DD_TAGS=region:eu",
		"DD_TRACE_STARTUP_LOGS=false", "DD_INSTRUMENTATION_TELEMETRY_ENABLED=false", "DD_REMOTE_CONFIGURATION_ENABLED=false",
	}, "node", "app.js")
	require.NoError(t, err, printed)
	c.Terminate(t)

	functions, ids, times := map[string]string{}, map[string]bool{}, 0
	for _, pd := range c.output(t)["shop"] {
		require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
		attributes := pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw()
		require.Equal(t, "test", attributes["deployment.environment.name"])
		require.Equal(t, "1.2", attributes["service.version"])
		require.Equal(t, "eu", attributes["region"])
		require.Equal(t, "nodejs", attributes["process.runtime.name"])
		require.Positive(t, attributes["process.pid"])
		ids[attributes["service.instance.id"].(string)] = true
		addFunctions(functions, pd)
		for _, profile := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			for _, s := range profile.Samples().All() {
				for _, at := range s.TimestampsUnixNano().All() {
					require.WithinRange(t, time.Unix(0, int64(at)), began.Add(-time.Second), time.Now())
					times++
				}
			}
		}
	}
	require.Len(t, ids, 1)
	require.Contains(t, functions["wall"], "checksumOfTheCart")
	require.Contains(t, functions["memory"], "fillTheShelves")
	require.Contains(t, functions, "timeline")
	require.Greater(t, times, 100)
	t.Logf("%d samples and events have times", times)
}
