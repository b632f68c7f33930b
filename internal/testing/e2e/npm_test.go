// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// installNPM copies a folder of testdata, installs its dependencies from npm, and returns the copy. That takes npm,
// node and a registry, hence tests with it run only if the variable is set.
func installNPM(t *testing.T, variable, folder string) (copied string) {
	t.Helper()
	return collectortest.InstallNPM(t, variable, os.DirFS(filepath.Join("testdata", folder)))
}

// installShop is installNPM for an application that uses testdata/shop.js.
func installShop(t *testing.T, variable, folder string) (copied string) {
	t.Helper()
	copied = installNPM(t, variable, folder)
	shop := profiletest.FileBytes(t, filepath.Join("testdata", "shop.js"))
	require.NoError(t, os.WriteFile(filepath.Join(copied, "shop.js"), shop, 0o600))
	return copied
}

// runShop runs app.js in the folder, which ends by itself, and returns what it printed.
func runShop(t *testing.T, folder string, env ...string) string {
	t.Helper()
	return requireRun(t, folder, env, "node", "app.js")
}

// TestSplunkAgent runs the shop with Splunk's agent for Node.js. Its functions arrive in conformant profiles, linked to
// the spans that it printed.
func TestSplunkAgent(t *testing.T) {
	t.Parallel()
	app := installShop(t, "E2E_SPLUNK", "splunk-agent")
	c := launch(t, splunkConfig)
	printed := runShop(t, app, "COLLECTOR=http://"+c.splunkHTTP)
	c.Terminate(t)

	spans := map[string]bool{}
	for _, span := range regexp.MustCompile(`(?m)^span (\S+)`).FindAllStringSubmatch(printed, -1) {
		spans[span[1]] = true
	}
	require.NotEmpty(t, spans, printed)
	types := map[string]bool{}
	linked := map[string]int{} // samples that are linked to a span, by the functions in their stacks
	for _, pd := range c.output(t)["busy-shop"] {
		require.NoError(t, profiletest.Check(pd))
		for p := range profilesIn(pd) {
			types[p.sampleType()] = true
			for _, s := range p.Samples().All() {
				link := p.dictionary.LinkTable().At(int(s.LinkIndex()))
				if p.sampleType() != "samples" || !spans[link.TraceID().String()+"/"+link.SpanID().String()] {
					continue
				}
				functions := p.functions(s)
				slices.Sort(functions)
				for _, function := range slices.Compact(functions) { // a recursive function counts once
					linked[function] += s.TimestampsUnixNano().Len()
				}
			}
		}
	}
	require.True(t, types["samples"])
	require.True(t, types["allocated_space"])
	require.Positive(t, linked["checksumOfTheCart"])
	require.Positive(t, linked["fillTheShelves"])
	t.Logf("%d spans; %d samples of one function and %d of another are linked to them",
		len(spans), linked["checksumOfTheCart"], linked["fillTheShelves"])
}

// TestPyroscopeNodeJS runs the shop with two versions of Pyroscope's SDK for Node.js. Its functions arrive in
// conformant profiles of wall clock time and memory.
func TestPyroscopeNodeJS(t *testing.T) {
	t.Parallel()
	app := installShop(t, "E2E_PYROSCOPE", "pyroscope-nodejs")
	c := startQuickstart(t)
	sdks := []string{"pyroscope-0.6", "pyroscope-0.4"}
	for _, sdk := range sdks {
		runShop(t, app, "SDK="+sdk, "COLLECTOR=http://"+c.endpoint)
	}
	c.Terminate(t)
	byService := c.output(t)
	for _, sdk := range sdks {
		t.Run(sdk, func(t *testing.T) {
			functions := map[string]string{}
			for _, pd := range byService["shop."+sdk] {
				require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
				for p := range profilesIn(pd) {
					require.Equal(t, "eu", p.resource.AsRaw()["region"])
					functions[p.name()] += strings.Join(functionNames(p.dictionary), "\n") + "\n"
				}
			}
			// A name is the file, the function and its line.
			require.Regexp(t, `:checksumOfTheCart\b`, functions["wall"])
			require.Regexp(t, `:fillTheShelves\b`, functions["memory"])
			require.Len(t, functions, 2)
		})
	}
}

// TestDatadogNodeJS runs the shop with Datadog's library for Node.js. Its functions arrive in conformant profiles, and
// samples of the wall clock have times.
func TestDatadogNodeJS(t *testing.T) {
	t.Parallel()
	app := installShop(t, "E2E_DATADOG", "datadog-nodejs")
	c := startQuickstart(t)
	began := time.Now()
	runShop(t, app, "DD_TRACE_AGENT_URL=http://"+c.endpoint, "DD_PROFILING_ENABLED=true", "DD_PROFILING_UPLOAD_PERIOD=2",
		"DD_SERVICE=shop", "DD_ENV=test", "DD_VERSION=1.2", "DD_TAGS=region:eu",
		"DD_TRACE_STARTUP_LOGS=false", "DD_INSTRUMENTATION_TELEMETRY_ENABLED=false", "DD_REMOTE_CONFIGURATION_ENABLED=false")
	c.Terminate(t)

	functions, ids, times := map[string]string{}, map[any]bool{}, 0
	for _, pd := range c.output(t)["shop"] {
		require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
		for p := range profilesIn(pd) {
			attributes := p.resource.AsRaw()
			require.Equal(t, "test", attributes["deployment.environment.name"])
			require.Equal(t, "1.2", attributes["service.version"])
			require.Equal(t, "eu", attributes["region"])
			require.Equal(t, "nodejs", attributes["process.runtime.name"])
			require.Positive(t, attributes["process.pid"])
			ids[attributes["service.instance.id"]] = true
			functions[p.name()] += strings.Join(functionNames(p.dictionary), "\n") + "\n"
			for _, s := range p.Samples().All() {
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
