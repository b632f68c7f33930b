// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// buildTarget builds the program to scrape, and returns its path.
func buildTarget(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target")
	requireRun(t, repository, nil, "go", "build", "-o", path, "./receiver/pprofreceiver/testdata/target")
	return path
}

// runTarget runs the program at an address until stop is called.
func runTarget(t *testing.T, path, address string) (stop func()) {
	t.Helper()
	return collectortest.StartProgram(t, exec.Command(path, address)).Stop
}

// scraped is the row of the page of targets for one kind of one target.
type scraped struct{ State, Outcome, Error string }

// targetPage returns the rows of the page of targets by service and kind.
func (c *collector) targetPage(t *testing.T) map[string]scraped {
	t.Helper()
	body := requireGet(t, "http://"+c.status+"/targets?format=json")
	var page struct {
		Jobs []struct {
			Targets []struct {
				Resource  map[string]any
				Endpoints []struct {
					Profile string
					scraped
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &page), body)
	found := map[string]scraped{}
	for _, job := range page.Jobs {
		for _, target := range job.Targets {
			for _, e := range target.Endpoints {
				found[fmt.Sprint(target.Resource["service.name"], " ", e.Profile)] = e.scraped
			}
		}
	}
	return found
}

// TestScrapeRealPrograms lets the collector scrape two programs. One is listed in a file that comes and goes while it
// runs. Their profiles have names and are conformant, totals become differences, and a restart of a program makes no
// wrong differences.
func TestScrapeRealPrograms(t *testing.T) {
	t.Parallel()
	path, shop, till := buildTarget(t), freeAddress(t), freeAddress(t)
	stopShop := runTarget(t, path, shop)
	runTarget(t, path, till)

	found := filepath.Join(t.TempDir(), "found.yaml")
	c := launch(t, fmt.Sprintf(`yaml:
receivers:
  pprof:
    scrape:
      status: {endpoint: "${env:STATUS_ENDPOINT}"}
      configs:
        - job_name: shop
          scrape_interval: 2s
          static_configs: [{targets: [%q], labels: {deployment.environment.name: e2e}}]
          profiles: {custom: {nowhere: {path: /debug/pprof/nowhere}}}
        - job_name: files
          scrape_interval: 2s
          file_sd_configs: [{files: [%q], refresh_interval: 1s}]
exporters:
  file: {path: "${env:PROFILES_OUT}/profiles.jsonl", create_directory: true}
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [file]}
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: localhost, port: "${env:METRICS_PORT}"}}}}]}}
`, shop, found))

	// await waits until there are n messages of a service and kind, and returns them.
	await := func(n int, service, kind string) []pprofile.Profiles {
		t.Helper()
		for deadline := time.Now().Add(startTimeout); ; time.Sleep(100 * time.Millisecond) {
			var messages []pprofile.Profiles
			for _, pd := range c.output(t)[service] {
				for p := range profilesIn(pd) {
					if p.name() == kind {
						messages = append(messages, pd)
						break // a message has profiles of one kind
					}
				}
			}
			if len(messages) >= n {
				return messages
			}
			require.True(t, time.Now().Before(deadline), "%d messages of %s of %s instead of %d; the page: %v", len(messages),
				kind, service, n, c.targetPage(t))
		}
	}

	require.Contains(t, functionNames(await(1, "shop", "process_cpu")[0].Dictionary()), "main.Spin")
	require.Contains(t, functionNames(await(1, "shop", "mutex")[0].Dictionary()), "main.Contend")
	await(1, "shop", "goroutine")
	memory := await(3, "shop", "memory")
	allocations := valueType{"alloc_space", "bytes"}
	first := sumsOfOTLP(profilesIn(memory[0]))
	require.NotContains(t, first, allocations, "the first scrape has nothing to be compared with")
	require.Contains(t, first, valueType{"inuse_space", "bytes"})
	for _, pd := range memory[1:3] {
		allocated := sumsOfOTLP(profilesIn(pd))[allocations]
		require.Positive(t, allocated)
		require.Less(t, allocated, int64(1<<30), "the allocations of 2 s, not all since the program started")
	}
	require.Equal(t, "up", c.targetPage(t)["shop memory"].State)
	require.Equal(t, "backed_off", c.targetPage(t)["shop nowhere"].State)

	// A program that is listed later gets the name of its label, and is forgotten when the list does not have it.
	label := fmt.Sprintf("[{targets: [%q], labels: {service_name: till, service_version: v7}}]", till)
	require.NoError(t, os.WriteFile(found, []byte(label), 0o600))
	resource := await(1, "till", "memory")[0].ResourceProfiles().At(0).Resource().Attributes().AsRaw()
	require.Equal(t, "v7", resource["service.version"])
	require.NoError(t, os.WriteFile(found, []byte("[]"), 0o600))
	require.Eventually(t, func() bool { return len(c.targetPage(t)) == 6 }, startTimeout, 100*time.Millisecond)

	// The restart of a program is noticed.
	stopShop()
	runTarget(t, path, shop)
	require.Eventually(t, func() bool {
		return strings.Contains(c.ownMetrics(t), "otelcol_receiver_pprof_scrape_restarts")
	}, startTimeout, 100*time.Millisecond)

	for _, pd := range readProfiles(t, c.outputDir) {
		require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
		for _, sum := range sumsOfOTLP(profilesIn(pd)) {
			require.GreaterOrEqual(t, sum, int64(0))
		}
	}
	shown := await(1, "shop", "memory")[0].ResourceProfiles().At(0).Resource().Attributes().AsRaw()
	require.Equal(t, "e2e", shown["deployment.environment.name"])
	require.Equal(t, shop, shown["service.instance.id"])
	c.Terminate(t)
}
